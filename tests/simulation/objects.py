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
COMMANDS: Final = "commands.bus.volcano.sh"
CLAIMS: Final = "persistentvolumeclaims"
VOLUMES: Final = "persistentvolumes"
NAMESPACE: Final = "default"
HOLD: Final = "example.com/hold"
"""The finalizer of those who want to look at a job or pod before it goes."""
SYSTEM: Final = "volcano-system"
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
GIB: Final = "Gi"


def short_key(meta: Mapping[str, Any]) -> str:
    """Return the name of an object, after its namespace unless that is the usual one."""
    space = meta.get("namespace", NAMESPACE)
    return str(meta["name"]) if space == NAMESPACE else f"{space}/{meta['name']}"


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


def pod(name: str, cpu: str, group: str = "", priority: str = "", *, namespace: str = NAMESPACE, **spec: Any) -> Obj:
    """Return a pod of ours, of a group if one is named."""
    notes = {GROUP_NAME: group} if group else {}
    meta = {"name": name, "namespace": namespace, "annotations": notes, "labels": {"app": group or name}}
    return pod_of(meta, pod_spec(cpu, priority, **spec))


def pod_of(meta: Obj, spec: Obj) -> Obj:
    """Return a pod of these parts."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def minimum(of: Obj) -> int | None:
    """Return the minMember of a PodGroup; None if it is unreadable now, see the fault "unreadable object"."""
    found = of["spec"].get("minMember", 1)
    return found if isinstance(found, int) else None


def group(name: str, minimum: int, queue: str, cpu: str, priority: str = "", *, namespace: str = NAMESPACE) -> Obj:
    """Return a PodGroup."""
    spec: Obj = {"minMember": minimum, "queue": queue, "minResources": {"cpu": str(int(cpu) * minimum)}}
    if priority:
        spec["priorityClassName"] = priority
    meta = {"name": name, "namespace": namespace}
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


def volume_name(claim: Obj) -> str:
    """Return the name of the volume of a claim."""
    return f"pvc-{claim['metadata']['uid']}"


def volume(claim: Obj) -> Obj:
    """Return the volume that is made for a claim and is everywhere."""
    meta = claim["metadata"]
    spec = {
        "capacity": claim["spec"]["resources"]["requests"],
        "accessModes": claim["spec"]["accessModes"],
        "claimRef": {"kind": "PersistentVolumeClaim", **{key: meta[key] for key in ("namespace", "name", "uid")}},
        "persistentVolumeReclaimPolicy": "Delete",
        "csi": {"driver": "shared.example.com", "volumeHandle": meta["uid"]},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume_name(claim)}, "spec": spec}


def replica_set(name: str, pods: int, template: Obj, namespace: str = NAMESPACE) -> Obj:
    """Return a ReplicaSet."""
    labels = {"app": name}
    spec = {
        "replicas": pods,
        "selector": {"matchLabels": labels},
        "template": {**template, "metadata": {"labels": labels}},
    }
    meta = {"name": name, "namespace": namespace, "labels": labels}
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
    return _command(
        {"name": name, "namespace": job["metadata"]["namespace"], "ownerReferences": [target]}, action, target
    )


def order(name: str, action: str, queue: Obj) -> Obj:
    """Return a Command to a queue, as `vcctl queue operate` makes it."""
    meta = queue["metadata"]
    target = {"apiVersion": queue["apiVersion"], "kind": "Queue", "name": meta["name"], "uid": meta["uid"]}
    return _command({"name": name, "namespace": NAMESPACE, "ownerReferences": [target]}, action, target)


def _command(meta: Obj, action: str, target: Obj) -> Obj:
    return {
        "apiVersion": "bus.volcano.sh/v1alpha1",
        "kind": "Command",
        "metadata": meta,
        "action": action,
        "target": target,
    }
