"""The objects of a simulated cluster, as plain JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

Obj = dict[str, Any]
GROUPS: Final = "podgroups.scheduling.volcano.sh"
QUEUES: Final = "queues.scheduling.volcano.sh"
JOBS: Final = "jobs.batch.volcano.sh"
PODS: Final = "pods"
NODES: Final = "nodes"
REPLICA_SETS: Final = "replicasets.apps"
LEASES: Final = "leases.coordination.k8s.io"
NAMESPACE: Final = "default"
SYSTEM: Final = "volcano-system"
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
GIB: Final = "Gi"


def namespace(name: str) -> Obj:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node(name: str, cpu: int, memory_gi: int = 64, pods: int = 30, labels: Mapping[str, str] | None = None) -> Obj:
    """Return a node that is ready."""
    room = {"cpu": str(cpu), "memory": f"{memory_gi}{GIB}", "pods": str(pods)}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def queue(name: str, **spec: Any) -> Obj:
    """Return a queue."""
    body = {"weight": 1, **spec}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": body}


def priority_class(name: str, value: int) -> Obj:
    """Return a priority class."""
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def pod_spec(cpu: str, priority: str = "", **spec: Any) -> Obj:
    """Return the spec of a pod of ours with one container."""
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": cpu}}}
    made: Obj = {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [container], **spec}
    return {**made, "priorityClassName": priority} if priority else made


def pod(name: str, cpu: str, group: str = "", priority: str = "", **spec: Any) -> Obj:
    """Return a pod of ours, of a group if one is named."""
    notes = {GROUP_NAME: group} if group else {}
    meta = {"name": name, "namespace": NAMESPACE, "annotations": notes, "labels": {"app": group or name}}
    return pod_of(meta, pod_spec(cpu, priority, **spec))


def pod_of(meta: Obj, spec: Obj) -> Obj:
    """Return a pod of these parts."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def minimum(of: Obj) -> int | None:
    """Return the minMember of a PodGroup; None if it is unreadable now, see the fault "unreadable object"."""
    found = of["spec"].get("minMember", 1)
    return found if isinstance(found, int) else None


def group(name: str, minimum: int, queue: str, cpu: str, priority: str = "") -> Obj:
    """Return a PodGroup."""
    spec: Obj = {"minMember": minimum, "queue": queue, "minResources": {"cpu": str(int(cpu) * minimum)}}
    if priority:
        spec["priorityClassName"] = priority
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": spec}


def vcjob(
    name: str,
    tasks: Sequence[tuple[str, int, int, Obj]],
    minimum: int,
    queue: str,
    priority: str = "",
    policy: str = "",
) -> Obj:
    """Return a Volcano job; each task has a name, pods, how many of them it needs, and the template of its pods."""
    policies = [{"event": "PodEvicted", "action": "RestartJob"}]
    if policy:
        event, _, action = policy.partition(" ")
        policies.append({"event": event, "action": action})
    spec: Obj = {
        "schedulerName": "volcano",
        "queue": queue,
        "minAvailable": minimum,
        "maxRetry": 3,
        "policies": policies,
        "tasks": [
            {"name": task, "replicas": pods, "minAvailable": needed, "template": template}
            for task, pods, needed, template in tasks
        ],
    }
    if priority:
        spec["priorityClassName"] = priority
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta, "spec": spec}


def replica_set(name: str, pods: int, template: Obj) -> Obj:
    """Return a ReplicaSet."""
    labels = {"app": name}
    spec = {
        "replicas": pods,
        "selector": {"matchLabels": labels},
        "template": {**template, "metadata": {"labels": labels}},
    }
    meta = {"name": name, "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}


def command(name: str, action: str, job: Obj) -> Obj:
    """Return a Command to a Volcano job."""
    target = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    meta = {"name": name, "namespace": NAMESPACE, "ownerReferences": [target]}
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": meta,
        "action": action,
        "target": target,
    }
