"""Builds wire objects as the API server would send them, with defaults for everything a case does not care about.

Quantities have the usual form (``cpu=4``, ``memory="8Gi"``, ``gpu=1``). Other resources go by their full name:
``a_node("n1", **{"example.com/fpga": 2})``. ``spec`` takes any further field in its wire form. `as_json` and `manifest`
turn the objects into JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.apps import ReplicaSet
from volcano_py.api.core import Namespace, Node, Pod, ReplicationController, ResourceQuota, Service
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.api.quantity import WireQuantity
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.api.shard import NodeShard
from volcano_py.api.topology import HyperNode
from volcano_py.cache.feeding import Known
from volcano_py.cache.watched_kinds import WATCHED_KINDS

EPOCH: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""Default creation time of objects; ``created`` counts seconds from here."""

GPU: Final = "nvidia.com/gpu"
NAMESPACE: Final = "default"

IMAGE: Final = "busybox"
"""Image of containers in a `manifest`; pods of `a_pod` have none because images change the scores of nodes."""

_API_VERSIONS: Final[Mapping[type, str]] = {kind.type: kind.resource.api_version for kind in WATCHED_KINDS}
_SET_BY_THE_SERVER: Final = ("uid", "resourceVersion", "generation", "creationTimestamp")
_SHORT_NAMES: Final = {"gpu": GPU, "ephemeral_storage": keys.EPHEMERAL_STORAGE}


def a_node(
    name: str = "n1",
    *,
    cpu: WireQuantity = 4,
    memory: WireQuantity = "16Gi",
    pods: WireQuantity = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[str] = (),
    unschedulable: bool = False,
    terminating: bool = False,
    **extended: WireQuantity,
) -> Node:
    """Return a node; taints are written ``key=value:Effect`` or ``key:Effect``."""
    resources = _resources({"cpu": cpu, "memory": memory, "pods": pods, **extended})
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "creationTimestamp": EPOCH,
                "labels": {keys.LABEL_HOSTNAME: name, **(labels or {})},
                **({"deletionTimestamp": EPOCH} if terminating else {}),
            },
            "spec": {"unschedulable": unschedulable, "taints": [_taint(text) for text in taints]},
            "status": {"capacity": resources, "allocatable": resources},
        },
        Node,
    )


def a_pod(
    name: str = "p1",
    *,
    namespace: str = NAMESPACE,
    uid: str = "",
    group: str = "",
    role: str = "",
    cpu: WireQuantity | None = None,
    memory: WireQuantity | None = None,
    node: str = "",
    phase: str = "",
    terminating: bool = False,
    scheduler: str = keys.SCHEDULER_NAME,
    priority: int | None = None,
    created: float = 0.0,
    owner: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    why_pending: str = "",
    spec: Mapping[str, Any] | None = None,
    **extended: WireQuantity,
) -> Pod:
    """Return a pod of one container; without a phase it is Running on its node, or Pending without a node.

    ``owner`` is the workload that created it, such as ``ReplicaSet/web``.
    """
    requests = _resources({"cpu": cpu, "memory": memory, **extended})
    notes = dict(annotations or {})
    if group:
        notes[keys.GROUP_NAME] = group
    if role:
        notes[keys.TASK_SPEC] = role
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{namespace}-{name}",
        "creationTimestamp": EPOCH + timedelta(seconds=created),
        "labels": dict(labels or {}),
        "annotations": notes,
    }
    if terminating:
        metadata["deletionTimestamp"] = EPOCH + timedelta(seconds=created)
    if owner:
        kind, _, maker = owner.partition("/")
        version = "v1" if kind == "ReplicationController" else "apps/v1"
        metadata["ownerReferences"] = [
            {"apiVersion": version, "kind": kind, "name": maker, "uid": f"uid-{maker}", "controller": True}
        ]
    status: dict[str, Any] = {"phase": phase or ("Running" if node else "Pending")}
    if why_pending:
        status["conditions"] = [
            {
                "type": keys.CONDITION_POD_SCHEDULED,
                "status": "False",
                "reason": keys.REASON_UNSCHEDULABLE,
                "message": why_pending,
            }
        ]
    return msgspec.convert(
        {
            "metadata": metadata,
            "spec": {
                "schedulerName": scheduler,
                "nodeName": node,
                "priority": priority,
                "containers": [{"name": "main", **({"resources": {"requests": requests}} if requests else {})}],
                **(spec or {}),
            },
            "status": status,
        },
        Pod,
    )


def a_group(
    name: str = "g1",
    *,
    namespace: str = NAMESPACE,
    uid: str = "",
    queue: str = keys.DEFAULT_QUEUE,
    min_available: int = 1,
    min_task_member: Mapping[str, int] | None = None,
    min_resources: Mapping[str, WireQuantity] | None = None,
    priority_class: str = "",
    phase: str = keys.PHASE_PENDING,
    created: float = 0.0,
    annotations: Mapping[str, str] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> PodGroup:
    """Return a PodGroup; ``spec`` takes further fields in their wire form, such as ``networkTopology``."""
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": uid or f"uid-{namespace}-{name}",
                "creationTimestamp": EPOCH + timedelta(seconds=created),
                "annotations": dict(annotations or {}),
            },
            "spec": {
                "minMember": min_available,
                "minTaskMember": dict(min_task_member or {}),
                "queue": queue,
                "priorityClassName": priority_class,
                "minResources": None if min_resources is None else dict(min_resources),
                **(spec or {}),
            },
            "status": {"phase": phase},
        },
        PodGroup,
    )


def a_queue(
    name: str = keys.DEFAULT_QUEUE,
    *,
    weight: int = 1,
    priority: int = 0,
    state: str = keys.QUEUE_OPEN,
    created: float = 0.0,
    capability: Mapping[str, WireQuantity] | None = None,
    guarantee: Mapping[str, WireQuantity] | None = None,
    deserved: Mapping[str, WireQuantity] | None = None,
    parent: str = "",
    fifo: bool = False,
    reclaimable: bool = True,
    hierarchy: str = "",
    hierarchy_weights: str = "",
) -> Queue:
    """Return a queue; ``hierarchy`` and its weights are the annotations that drf reads (``root/eng``, ``1/2``)."""
    notes = {keys.HIERARCHY: hierarchy, keys.HIERARCHY_WEIGHTS: hierarchy_weights}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-{name}",
                "creationTimestamp": EPOCH + timedelta(seconds=created),
                "annotations": {key: text for key, text in notes.items() if text},
            },
            "spec": {
                "weight": weight,
                "priority": priority,
                "capability": _resources(capability or {}),
                **({"guarantee": {"resource": _resources(guarantee)}} if guarantee else {}),
                "deserved": _resources(deserved or {}),
                "parent": parent,
                "dequeueStrategy": keys.DEQUEUE_FIFO if fifo else "",
                **({} if reclaimable else {"reclaimable": False}),
            },
            "status": {"state": state},
        },
        Queue,
    )


def a_priority_class(name: str, value: int, *, global_default: bool = False) -> PriorityClass:
    """Return a priority class."""
    return msgspec.convert(
        {"metadata": {"name": name, "uid": f"uid-{name}"}, "value": value, "globalDefault": global_default},
        PriorityClass,
    )


def a_namespace(
    name: str = NAMESPACE, *, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
) -> Namespace:
    """Return a namespace; like every namespace, it has its name as a label."""
    marked = {keys.LABEL_NAMESPACE: name, **(labels or {})}
    metadata = {"name": name, "uid": f"uid-{name}", "labels": marked, "annotations": dict(annotations or {})}
    return msgspec.convert({"metadata": metadata}, Namespace)


def a_quota(
    name: str = "quota",
    *,
    namespace: str = NAMESPACE,
    weight: WireQuantity | None = None,
    used: Mapping[str, WireQuantity] | None = None,
    **hard: WireQuantity,
) -> ResourceQuota:
    """Return a quota that is enforced; resources without an entry in ``used`` are unused."""
    limits = _resources(hard)
    more = {} if weight is None else {keys.NAMESPACE_WEIGHT: str(weight)}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
            "spec": {"hard": {**limits, **more}},
            "status": {"hard": limits, "used": {**dict.fromkeys(limits, "0"), **_resources(used or {})}},
        },
        ResourceQuota,
    )


def a_service(name: str = "s1", *, namespace: str = NAMESPACE, selector: Mapping[str, str] | None = None) -> Service:
    """Return a service that selects pods with these labels."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-service-{name}"}
    return msgspec.convert({"metadata": metadata, "spec": {"selector": selector}}, Service)


def a_replica_set(
    name: str = "web", *, namespace: str = NAMESPACE, selector: Mapping[str, str] | None = None
) -> ReplicaSet:
    """Return a replica set that selects pods with these labels."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return msgspec.convert(
        {"metadata": metadata, "spec": {"selector": {"matchLabels": dict(selector or {})}}}, ReplicaSet
    )


def a_replication_controller(
    name: str = "web", *, namespace: str = NAMESPACE, selector: Mapping[str, str] | None = None
) -> ReplicationController:
    """Return a replication controller that selects pods with these labels."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return msgspec.convert({"metadata": metadata, "spec": {"selector": selector}}, ReplicationController)


def a_shard(name: str, desired: Sequence[str], in_use: Sequence[str] = ()) -> NodeShard:
    """Return a shard with the names of its nodes: those it shall have, and those its scheduler uses."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": f"uid-shard-{name}"},
            "spec": {"nodesDesired": list(desired)},
            "status": {"nodesInUse": list(in_use)},
        },
        NodeShard,
    )


def a_hyper_node(
    name: str,
    tier: int = 1,
    nodes: Sequence[str] = (),
    *,
    children: Sequence[str] = (),
    pattern: str = "",
    labels: Mapping[str, str] | None = None,
    tier_name: str = "",
) -> HyperNode:
    """Return a HyperNode; its members are nodes by name, HyperNodes, and nodes by a pattern or by labels."""
    members: list[tuple[str, dict[str, Any]]] = [
        *(("Node", {"exactMatch": {"name": node}}) for node in nodes),
        *(("HyperNode", {"exactMatch": {"name": child}}) for child in children),
        *([("Node", {"regexMatch": {"pattern": pattern}})] if pattern else []),
        *([("Node", {"labelMatch": {"matchLabels": dict(labels)}})] if labels is not None else []),
    ]
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": f"uid-hyper-node-{name}"},
            "spec": {
                "tier": tier,
                "tierName": tier_name,
                "members": [{"type": kind, "selector": selector} for kind, selector in members],
            },
        },
        HyperNode,
    )


def a_budget(
    name: str = "budget",
    *,
    namespace: str = NAMESPACE,
    labels: Mapping[str, str] | None = None,
    allowed: int = 0,
    disrupted: Sequence[str] = (),
    seen: bool = True,
) -> PodDisruptionBudget:
    """Return a disruption budget over pods with these labels (over all pods without labels).

    ``allowed`` is the number of disruptions that its controller allows; ``seen`` says whether the controller has seen
    the present spec.
    """
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "generation": 2},
            "spec": {"selector": {"matchLabels": dict(labels or {})}},
            "status": {
                "observedGeneration": 2 if seen else 1,
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, EPOCH),
            },
        },
        PodDisruptionBudget,
    )


@dataclass(frozen=True, slots=True)
class Job:
    """A PodGroup and its pods."""

    group: PodGroup
    pods: tuple[Pod, ...]


def a_job(
    name: str = "j1",
    *,
    tasks: int | Mapping[str, int] = 1,
    min_available: int | None = None,
    namespace: str = NAMESPACE,
    queue: str = keys.DEFAULT_QUEUE,
    priority_class: str = "",
    phase: str = keys.PHASE_PENDING,
    created: float = 0.0,
    min_task_member: Mapping[str, int] | None = None,
    min_resources: Mapping[str, WireQuantity] | None = None,
    group_annotations: Mapping[str, str] | None = None,
    group_spec: Mapping[str, Any] | None = None,
    partition_size: int = 0,
    **pod: Any,
) -> Job:
    """Return a job with identical tasks; further arguments are those of `a_pod`.

    ``tasks=3`` makes pods ``name-0`` to ``name-2``; ``tasks={"ps": 2, "worker": 4}`` makes ``name-ps-0`` and so on,
    with their roles. Without ``min_available`` all of them must run together. With ``partition_size``, the tasks of a
    role have the labels of partitions, as the controller of jobs numbers them.
    """
    members = (
        [(f"{name}-{index}", "", index) for index in range(tasks)]
        if isinstance(tasks, int)
        else [(f"{name}-{role}-{index}", role, index) for role, count in tasks.items() for index in range(count)]
    )
    given = pod.pop("labels", None) or {}
    group = a_group(
        name,
        namespace=namespace,
        queue=queue,
        min_available=len(members) if min_available is None else min_available,
        min_task_member=min_task_member,
        min_resources=min_resources,
        priority_class=priority_class,
        phase=phase,
        created=created,
        annotations=group_annotations,
        spec=group_spec,
    )
    pods = []
    for member, role, index in members:
        labels = {**given, **({keys.PARTITION_ID: str(index // partition_size)} if partition_size else {})}
        labels |= {keys.TASK_SPEC: role} if partition_size and role else {}
        pods.append(a_pod(member, namespace=namespace, group=name, role=role, created=created, labels=labels, **pod))
    return Job(group, tuple(pods))


def as_json(obj: Known, **more: Any) -> dict[str, Any]:
    """Return the JSON of an object as the API server would send it.

    ``more`` adds fields to its sections, which may be fields that the scheduler does not read:
    ``spec={"restartPolicy": "Never"}``.
    """
    written: dict[str, Any] = msgspec.to_builtins(obj)
    return _extended({"apiVersion": _API_VERSIONS[type(obj)], "kind": type(obj).__name__, **written}, more)


def manifest(obj: Known, **more: Any) -> dict[str, Any]:
    """Return the JSON of an object as a client would create it; ``more`` adds fields to its sections.

    It has no uid, no times and no status, except the status of a node. Every container has an image. An object with
    ``namespace=""`` goes to the namespace of the request.
    """
    wire = as_json(obj)
    for field in _SET_BY_THE_SERVER:
        wire["metadata"].pop(field, None)
    if not isinstance(obj, Node):
        wire.pop("status", None)
    for container in wire["spec"].get("containers", ()) if isinstance(obj, Pod) else ():
        container.setdefault("image", IMAGE)
    return _extended(wire, more)


def _extended(wire: Mapping[str, Any], more: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {**wire, **{section: {**wire.get(section, {}), **fields} for section, fields in more.items()}}


def _resources(quantities: Mapping[str, WireQuantity | None]) -> dict[str, str]:
    return {_SHORT_NAMES.get(name, name): str(written) for name, written in quantities.items() if written is not None}


def _taint(text: str) -> dict[str, str]:
    """Parse a taint in kubectl's form."""
    key, colon, effect = text.rpartition(":")
    if not colon:
        raise ValueError(f"taint {text!r} has no effect: write key=value:NoSchedule or key:NoSchedule")
    name, _, value = key.partition("=")
    return {"key": name, "value": value, "effect": effect}
