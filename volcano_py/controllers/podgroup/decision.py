"""Decides which pods need a PodGroup, what it contains, and what must be written: objects in, writes out.

our pod without a group annotation    create podgroup-<uid of its controller, or its own uid>; then annotate the pod;
                                      for pods of a LeaderWorkerSet see `leader_worker`
copy of a pod                         the same, once the PodGroup of the pod that it was copied from is gone; several
                                      bare pods that name one PodGroup are a gang that waits for it
workload scaled to zero               delete its PodGroup
workload scaled up                    create its PodGroup again with the first pod
PodGroup deleted while pods exist     create it again
workload changed                      write what its annotations and its template say to its PodGroup
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
import structlog

from volcano_py.api import keys
from volcano_py.api.core import Pod, PodSpec
from volcano_py.api.meta import LabelSelector, ObjectMeta, OwnerReference, Wire
from volcano_py.api.quantity import QuantityError
from volcano_py.api.scheduling import NetworkTopology, PodGroup
from volcano_py.controllers.podgroup import names
from volcano_py.controllers.quota_usage import admitted, quota_usage, same_amounts, usage_sum, usage_text
from volcano_py.controllers.writes import Create, Delete, Patch, Write
from volcano_py.kube.client import PatchType
from volcano_py.kube.resource import PODGROUPS, PODS, REPLICA_SETS, STATEFUL_SETS

log = structlog.get_logger()

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_GROUP_OF_UID: Final = re.compile(names.GROUP_PREFIX + "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_INT32_MAX: Final = 2**31 - 1
_DEFAULT_MIN_MEMBER: Final = 1
_PARALLEL: Final = "Parallel"
_DEPLOYMENT: Final = "Deployment"
_ADOPTING: Final = frozenset({REPLICA_SETS.kind, STATEFUL_SETS.kind})
_TOPOLOGY_MODES: Final = ("hard", "soft")


class GroupKey(NamedTuple):
    """The PodGroup of the pods of one owner, or of one bare pod."""

    namespace: str
    uid: str

    @property
    def name(self) -> str:
        """The name of the PodGroup."""
        return f"{names.GROUP_PREFIX}{self.uid}"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodTemplate(Wire, frozen=True):
    """The pod template of a workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class WorkloadSpec(Wire, frozen=True):
    """The number of pods of a workload, which pods are its own, their template, and for a StatefulSet their order."""

    replicas: int = 1
    pod_management_policy: str = ""
    selector: LabelSelector = LabelSelector()
    template: PodTemplate = PodTemplate()


class WorkloadStatus(Wire, frozen=True):
    """How many pods a workload has and how many are ready, and for a StatefulSet the revision that new pods have."""

    replicas: int = 0
    ready_replicas: int = 0
    update_revision: str = ""


class Workload(Wire, frozen=True):
    """A ReplicaSet or a StatefulSet."""

    kind: ClassVar[str] = ""
    metadata: ObjectMeta
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class ReplicaSet(Workload, frozen=True):
    """A ReplicaSet, reduced to the fields that are needed."""

    kind: ClassVar[str] = REPLICA_SETS.kind


class StatefulSet(Workload, frozen=True):
    """A StatefulSet, reduced to the fields that are needed."""

    kind: ClassVar[str] = STATEFUL_SETS.kind


class Plan(NamedTuple):
    """The writes: first the PodGroup, then the pods."""

    group: Write | None
    pods: tuple[Patch, ...] = ()


def needs_group(pod: Pod, scheduler_names: Collection[str]) -> bool:
    """Say whether a pod is ours, has not ended, is not being deleted, and names no PodGroup or another one's."""
    return (
        pod.spec.scheduler_name in scheduler_names
        and (not pod.metadata.annotations.get(keys.GROUP_NAME) or bool(copied_group(pod)))
        and pod.metadata.deletion_timestamp is None
        and pod.status.phase not in _ENDED
    )


def copied_group(pod: Pod) -> str:
    """Return the PodGroup of the pod that a waiting pod was copied from, "" if it names none.

    A backup, or ``kubectl replace --force`` with what ``kubectl get`` printed, makes a pod anew with the annotation of
    the old one. The PodGroup of the old pod goes with that pod, or with the workload that had it. A ReplicaSet or
    StatefulSet of a new uid adopts such pods. A pod with the size of its gang needs no PodGroup.
    """
    meta, owner = pod.metadata, controller_of(pod.metadata)
    group = meta.annotations.get(keys.GROUP_NAME, "")
    if pod.spec.node_name or meta.labels.get(names.LWS_NAME) or keys.GROUP_POD_NUM in meta.annotations:
        return ""
    if owner is not None and owner.kind not in _ADOPTING:
        return ""
    uid = meta.uid if owner is None else owner.uid
    return group if _GROUP_OF_UID.fullmatch(group) and group != f"{names.GROUP_PREFIX}{uid}" else ""


def makes_our_pods(workload: Workload, scheduler_names: Collection[str]) -> bool:
    """Say whether the pods of a workload will be ours and name no PodGroup."""
    template = workload.spec.template
    return template.spec.scheduler_name in scheduler_names and not template.metadata.annotations.get(keys.GROUP_NAME)


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner that controls an object."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


def group_key(pod: Pod) -> GroupKey:
    """Return the PodGroup that a pod should have; the leader of a group of a LeaderWorkerSet has one of its own."""
    owner = None if is_leader(pod.metadata) else controller_of(pod.metadata)
    return GroupKey(pod.metadata.namespace, owner.uid if owner is not None else pod.metadata.uid)


def is_leader(meta: ObjectMeta) -> bool:
    """Say whether a pod leads a group of a LeaderWorkerSet."""
    return bool(meta.labels.get(names.LWS_NAME)) and meta.labels.get(names.LWS_WORKER_INDEX) == "0"


def min_member(owner_annotations: Mapping[str, str], pod_annotations: Mapping[str, str]) -> int:
    """Return the minimum that the owner of pods asks for, else the pods; 1 unless it is an integer from 0."""
    written = owner_annotations.get(names.GROUP_MIN_MEMBER, pod_annotations.get(names.GROUP_MIN_MEMBER))
    wanted = None if written is None else _integer(written)
    return _DEFAULT_MIN_MEMBER if wanted is None or not 0 <= wanted <= _INT32_MAX else wanted


def plan(
    key: GroupKey,
    group: PodGroup | None,
    pods: Sequence[Pod],
    workload: Workload | None,
    owner_annotations: Mapping[str, str],
) -> Plan:
    """Return the writes for one PodGroup and the pods that wait for it."""
    annotations = annotate(pods, key)
    if group is None:
        if pods:
            return Plan(create(key, pods[0], owner_annotations, workload), annotations)
    elif workload is not None and _is_owned_by(group, workload):
        if workload.spec.replicas == 0 and not pods:
            return Plan(Delete(PODGROUPS, key.namespace, key.name, group.metadata.uid))
        return Plan(_follow(key, group, pods, workload, owner_annotations), annotations)
    return Plan(None, annotations)


def pod_group(
    key: GroupKey,
    meta: ObjectMeta,
    spec: PodSpec,
    owners: Sequence[Mapping[str, Any]],
    owner_annotations: Mapping[str, str],
    most: int = 0,
) -> dict[str, Any]:
    """Return the PodGroup of pods with this metadata and spec.

    Its minimum is at most ``most``, unless that is 0.
    """
    minimum = min_member(owner_annotations, meta.annotations)
    minimum = min(minimum, most) if most else minimum
    queue = meta.annotations.get(names.QUEUE_NAME)
    topology = network_topology(meta.annotations)
    least = min_resources(key, [(spec, minimum)])
    annotations = {
        **{name: text for name, text in owner_annotations.items() if name.startswith(names.INHERITED_PREFIX)},
        **_chosen(meta.annotations, names.POD_ANNOTATIONS),
    }
    labels = _chosen(meta.labels, names.POD_LABELS)
    return {
        "apiVersion": PODGROUPS.api_version,
        "kind": PODGROUPS.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "ownerReferences": [dict(owner) for owner in owners],
            **({"annotations": annotations} if annotations else {}),
            **({"labels": labels} if labels else {}),
        },
        "spec": {
            "minMember": minimum,
            **({"queue": queue} if queue else {}),
            **({"priorityClassName": spec.priority_class_name} if spec.priority_class_name else {}),
            **({"minResources": least} if least else {}),
            **({"networkTopology": topology} if topology is not None else {}),
        },
        "status": {"phase": keys.PHASE_PENDING},
    }


def network_topology(annotations: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the topology limit that a pod's annotations ask for; an unknown mode counts as hard."""
    mode, tier = annotations.get(names.TOPOLOGY_MODE), annotations.get(names.TOPOLOGY_TIER)
    if mode is None and tier is None:
        return None
    chosen = (mode or "").lower()
    topology: dict[str, Any] = {"mode": chosen if chosen in _TOPOLOGY_MODES else _TOPOLOGY_MODES[0]}
    highest = None if tier is None else _integer(tier)
    if highest is not None and highest >= 0:
        topology["highestTierAllowed"] = highest
    return topology


def create(key: GroupKey, pod: Pod, owner_annotations: Mapping[str, str], workload: Workload | None) -> Create:
    """Return the creation of the PodGroup of a pod, which the workload has made if it is one that is watched."""
    alone = controller_of(pod.metadata) is None  # no other pod will ever belong to its PodGroup
    most = 1 if alone else _most(workload)
    body = pod_group(key, pod.metadata, pod.spec, _owners_of(pod), owner_annotations, most)
    return Create(PODGROUPS, key.namespace, body)


def _most(workload: Workload | None) -> int:
    """Return the largest minimum that the PodGroup of a workload may have, 0 for any.

    Without a limit, a rolling update could never begin: the new ReplicaSet of a Deployment has few replicas at first,
    and gets more only when its pods run.
    """
    owners = () if workload is None else workload.metadata.owner_references
    rolled_out = any(owner.controller and owner.kind == _DEPLOYMENT for owner in owners)
    return workload.spec.replicas if workload is not None and rolled_out else 0


def needs_its_group(pod: Pod, key: GroupKey) -> bool:
    """Say whether a pod names this PodGroup and has not ended."""
    return pod.metadata.annotations.get(keys.GROUP_NAME) == key.name and pod.status.phase not in _ENDED


def selector_of(workload: Workload) -> str:
    """Return a selector that finds the pods of a workload, and perhaps others."""
    return ",".join(f"{label}={text}" for label, text in sorted(workload.spec.selector.match_labels.items()))


def never_complete(workload: Workload | None, pods: int, owner_annotations: Mapping[str, str]) -> str:
    """Return why the new pods of a workload can never be a gang of the size that it asks for, "" if they can.

    Pods that are ready are placed and count: a pod that replaces one of them, or is the last one, completes the gang.
    The status follows the pods, so it may not count the new ones yet.
    """
    if workload is None or workload.kind != STATEFUL_SETS.kind or workload.spec.pod_management_policy == _PARALLEL:
        return ""
    asked = min_member(owner_annotations, workload.spec.template.metadata.annotations)
    status = workload.status
    if asked <= 1 or asked > workload.spec.replicas or max(status.replicas, status.ready_replicas + pods) >= asked:
        return ""  # if it has too few replicas, the conditions of its pods say so
    return (
        f"the pods wait for a gang of {asked}, but this StatefulSet makes a pod only when the one before it is ready: "
        f"create it with podManagementPolicy: {_PARALLEL}, or remove the annotation {names.GROUP_MIN_MEMBER}"
    )


def _follow(
    key: GroupKey,
    group: PodGroup,
    pods: Sequence[Pod],
    workload: Workload,
    owner_annotations: Mapping[str, str],
) -> Patch | None:
    """Return the patch that gives a PodGroup what its workload says now; what the workload leaves out is not changed.

    A new pod goes before the template, because its requests are those after admission. Without one, the resources only
    follow a new minimum: those that are there may be those of a pod.
    """
    pod = next((pod for pod in pods if _is_up_to_date(pod, workload)), None)
    source = workload.spec.template if pod is None else pod
    wanted = pod_group(key, source.metadata, source.spec, [], owner_annotations, _most(workload))
    spec, now = wanted["spec"], group.spec
    changed: dict[str, Any] = {}
    if spec["minMember"] != now.min_member:
        changed["minMember"] = spec["minMember"]
    least, had = spec.get("minResources", {}), now.min_resources or {}
    if (changed or (pod is not None and least)) and not same_amounts(least, had):
        changed["minResources"] = {**dict.fromkeys(had), **least}  # a merge patch removes what is null
    if spec.get("queue", now.queue) != now.queue:
        changed["queue"] = spec["queue"]
    if spec.get("priorityClassName", now.priority_class_name) != now.priority_class_name:
        changed["priorityClassName"] = spec["priorityClassName"]
    if topology := _other_topology(spec.get("networkTopology", {}), now.network_topology):
        changed["networkTopology"] = topology
    meta = {
        **_news("annotations", wanted["metadata"], group.metadata.annotations),
        **_news("labels", wanted["metadata"], group.metadata.labels),
    }
    if not changed and not meta:
        return None
    meta |= {"uid": group.metadata.uid, "resourceVersion": group.metadata.resource_version}
    return Patch(PODGROUPS, key.namespace, key.name, {"metadata": meta, "spec": changed})


def _other_topology(wanted: Mapping[str, Any], now: NetworkTopology | None) -> dict[str, Any]:
    """Return the topology limit that is wanted if the present one says something else, else {}."""
    present = {} if now is None else msgspec.to_builtins(now)
    if all(present.get(name) == value for name, value in wanted.items()):
        return {}
    return {**wanted, "highestTierName": None} if "highestTierAllowed" in wanted else dict(wanted)


def _is_up_to_date(pod: Pod, workload: Workload) -> bool:
    """Say whether a pod is made from the present template, as far as its workload says."""
    revision = workload.status.update_revision
    return not revision or pod.metadata.labels.get(names.REVISION) == revision


def _news(name: str, wanted: Mapping[str, Any], now: Mapping[str, str]) -> dict[str, Any]:
    """Return the annotations or labels that differ, below their name; {} if none does."""
    found = {key: text for key, text in wanted.get(name, {}).items() if now.get(key) != text}
    return {name: found} if found else {}


def annotate(pods: Iterable[Pod], key: GroupKey) -> tuple[Patch, ...]:
    """Return the patches that write the name of their PodGroup on pods."""
    return tuple(_annotate(pod, key.name) for pod in pods)


def _annotate(pod: Pod, group: str) -> Patch:
    meta = pod.metadata
    body = {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": {keys.GROUP_NAME: group},
        }
    }
    return Patch(PODS, meta.namespace, meta.name, body, PatchType.STRATEGIC)


def _owners_of(pod: Pod) -> list[dict[str, Any]]:
    """Return the pod's owners if one of them controls it, else the pod itself."""
    meta = pod.metadata
    if controller_of(meta) is not None:
        owners: list[dict[str, Any]] = [msgspec.to_builtins(owner) for owner in meta.owner_references]
        return owners
    return [{**_controller("v1", "Pod", meta), "blockOwnerDeletion": True}]


def _controller(api_version: str, kind: str, meta: ObjectMeta) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": meta.name, "uid": meta.uid, "controller": True}


def _is_owned_by(group: PodGroup, workload: Workload) -> bool:
    return any(owner.uid == workload.metadata.uid for owner in group.metadata.owner_references)


def min_resources(key: GroupKey, parts: Iterable[tuple[PodSpec, int]]) -> dict[str, str]:
    """Return what so many pods of each spec use; {} if that cannot be read."""
    try:
        return usage_text(usage_sum([(quota_usage(admitted(spec)), pods) for spec, pods in parts]))
    except QuantityError as error:
        log.warning(
            "PodGroup without minResources: the pods' requests cannot be read", group=str(key), error=str(error)
        )
        return {}


def _chosen(found: Mapping[str, str], wanted: Collection[str]) -> dict[str, str]:
    return {name: found[name] for name in wanted if name in found}


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None
