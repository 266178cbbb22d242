"""PodGroups of LeaderWorkerSets (leaderworkerset.x-k8s.io): one gang for each group, which is a leader and its workers.

    LeaderWorkerSet ─▶ StatefulSet of leaders ─▶ leader pod ─▶ StatefulSet of its workers ─▶ worker pods

The PodGroup is named after the uid of the leader, which owns it; so a group that is made again gets a new one. It is
what the LeaderWorkerSet writes itself if its gang scheduling is set to ``volcano``: minMember is the size of the group,
or 1 with startup policy LeaderReady, where workers come only after the leader runs; minResources are those of the
whole group. In that case, its pods name their PodGroup already, and nothing is written here.
"""

from typing import Final

import msgspec

from volcano_py.api.core import Pod
from volcano_py.api.meta import ObjectMeta, OwnerReference, Wire
from volcano_py.controllers.podgroup import decision, names
from volcano_py.controllers.podgroup.decision import GroupKey, PodTemplate, Workload
from volcano_py.controllers.writes import Create
from volcano_py.kube.resource import LEADER_WORKER_SETS, PODGROUPS, PODS, STATEFUL_SETS

_LEADER_READY: Final = "LeaderReady"


class LeaderWorkerTemplate(Wire, frozen=True):
    """The pods of a group."""

    leader_template: PodTemplate | None = None
    """None: the leader is like a worker."""
    worker_template: PodTemplate = PodTemplate()
    size: int = 1


class LeaderWorkerSetSpec(Wire, frozen=True):
    """The groups of a LeaderWorkerSet."""

    leader_worker_template: LeaderWorkerTemplate = LeaderWorkerTemplate()
    startup_policy: str = ""


class LeaderWorkerSet(Wire, frozen=True):
    """A LeaderWorkerSet, reduced to the fields that are needed."""

    metadata: ObjectMeta
    spec: LeaderWorkerSetSpec = LeaderWorkerSetSpec()


def owner_name(pod: ObjectMeta | None, workload: Workload | None) -> str | None:
    """Return the name of the LeaderWorkerSet that a pod or its stateful set is part of; None if they are of none.

    Users write labels too, so either may have the label alone, it may be empty, and pods of others may have it.
    """
    if not _may_be_of_one(pod, workload):
        return None
    found = (pod, None if workload is None else workload.metadata)
    return next((name for meta in found if meta is not None and (name := meta.labels.get(names.LWS_NAME))), None)


def _may_be_of_one(pod: ObjectMeta | None, workload: Workload | None) -> bool:
    """Say whether the owners of a pod and its workload are as those of a group are."""
    if workload is not None:
        owner = decision.controller_of(workload.metadata)
        return owner is not None and owner.kind in (LEADER_WORKER_SETS.kind, PODS.kind)
    if pod is None or decision.is_leader(pod):
        return True
    owner = decision.controller_of(pod)
    return owner is not None and owner.kind == STATEFUL_SETS.kind


def reference(leader: ObjectMeta) -> OwnerReference:
    """Return the reference to a leader as an owner."""
    return OwnerReference(
        api_version=PODS.api_version, kind=PODS.kind, name=leader.name, uid=leader.uid, controller=True
    )


def leader(workers: ObjectMeta) -> OwnerReference | None:
    """Return the leader that owns a stateful set of workers; None if it owns none."""
    owner = decision.controller_of(workers)
    return owner if owner is not None and owner.kind == PODS.kind else None


def without_annotations(owner: LeaderWorkerSet) -> LeaderWorkerSet:
    """Return a LeaderWorkerSet whose annotations do not count."""
    return msgspec.structs.replace(owner, metadata=msgspec.structs.replace(owner.metadata, annotations={}))


def create(key: GroupKey, leader: OwnerReference, pod: Pod, owner: LeaderWorkerSet | None) -> Create:
    """Return the write that creates the PodGroup of a group; ``pod`` is any pod of it.

    Without a LeaderWorkerSet, all pods of the group count as equal, and its size is what the pod's annotation says.
    """
    annotations = {} if owner is None else owner.metadata.annotations
    reference = {**msgspec.to_builtins(leader), "blockOwnerDeletion": True}
    body = decision.pod_group(key, pod.metadata, pod.spec, [reference], annotations)
    template = _template(pod) if owner is None else owner.spec.leader_worker_template
    size = max(template.size, 1)
    first = template.leader_template or template.worker_template
    minimum = 1 if owner is not None and owner.spec.startup_policy == _LEADER_READY else size
    if names.GROUP_MIN_MEMBER in annotations:
        minimum = body["spec"]["minMember"]
    least = decision.min_resources(key, [(first.spec, 1), (template.worker_template.spec, size - 1)])
    queue = annotations.get(names.QUEUE_NAME)
    spec = {
        **({"queue": queue} if queue else {}),
        **body["spec"],
        "minMember": minimum,
        **({"minResources": least} if least else {}),
    }
    return Create(PODGROUPS, key.namespace, {**body, "spec": spec})


def _template(pod: Pod) -> LeaderWorkerTemplate:
    written = pod.metadata.annotations.get(names.LWS_SIZE, "")
    size = int(written) if written.isdecimal() and len(written) < 10 else 1
    return LeaderWorkerTemplate(worker_template=PodTemplate(spec=pod.spec), size=size)
