"""Objects of the demo as a user would write them, in wire form."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.kube.resource import VCJOBS

NAMESPACE: Final = "default"
GPU: Final = "nvidia.com/gpu"

Obj = dict[str, Any]


def node(name: str, resources: Mapping[str, str], taints: tuple[Obj, ...] = ()) -> Obj:
    """Return a node that has these resources and room for 110 pods."""
    has = {keys.PODS: "110", **resources}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {keys.LABEL_HOSTNAME: name}},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"capacity": dict(has), "allocatable": dict(has)},
    }


def queue(name: str) -> Obj:
    """Return a queue."""
    api_version = f"{keys.SCHEDULING_GROUP}/{keys.SCHEDULING_VERSION}"
    return {"apiVersion": api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}


def pod_group(name: str, min_member: int) -> Obj:
    """Return the PodGroup of a gang."""
    return {
        "apiVersion": f"{keys.SCHEDULING_GROUP}/{keys.SCHEDULING_VERSION}",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"minMember": min_member, "queue": keys.DEFAULT_QUEUE},
    }


def task(name: str, replicas: int, requests: Mapping[str, str], tolerations: tuple[Obj, ...] = ()) -> Obj:
    """Return a task of a job: equal pods that run until they are marked as ended."""
    pod_spec: Obj = {"restartPolicy": "Never", "containers": [_container(name, requests)]}
    if tolerations:
        pod_spec["tolerations"] = list(tolerations)
    return {"name": name, "replicas": replicas, "template": {"spec": pod_spec}}


def job(name: str, tasks: Sequence[Obj]) -> Obj:
    """Return a Volcano job (vcjob) whose pods start together or not at all."""
    return {
        "apiVersion": VCJOBS.api_version,
        "kind": VCJOBS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "schedulerName": keys.SCHEDULER_NAME,
            "queue": keys.DEFAULT_QUEUE,
            "minAvailable": sum(task["replicas"] for task in tasks),
            "tasks": list(tasks),
        },
    }


def pod(name: str, group: str, role: str, requests: Mapping[str, str], tolerations: tuple[Obj, ...] = ()) -> Obj:
    """Return a pod of a gang that runs until it is marked as ended."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {keys.GROUP_NAME: group, keys.TASK_SPEC: role},
        },
        "spec": {
            "schedulerName": keys.SCHEDULER_NAME,
            "restartPolicy": "Never",
            "tolerations": list(tolerations),
            "containers": [_container(role, requests)],
        },
    }


def _container(name: str, requests: Mapping[str, str]) -> Obj:
    resources: Obj = {"requests": dict(requests)}
    if GPU in requests:
        resources["limits"] = {GPU: requests[GPU]}
    return {"name": name, "image": "demo", "command": ["train"], "resources": resources}
