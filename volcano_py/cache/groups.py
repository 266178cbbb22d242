"""Converts PodGroups, queues and priority classes to records."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import msgspec

from volcano_py.api import keys, meta
from volcano_py.api import scheduling as wire
from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.api.quantity import milli
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.cache.fields import int32, seconds
from volcano_py.cache.preemptability import budget, preemptable
from volcano_py.model.objects import (
    GroupCondition,
    JobKey,
    JobRecord,
    NodeGroupAffinity,
    NodeGroupLimits,
    QueueRecord,
    TopologyTexts,
)
from volcano_py.model.pod_request import amounts, read_resource_list
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.resources import amount_of, amounts_of, read_quantity
from volcano_py.model.sub_groups import MOST_POLICIES, SubGroupPolicy, network_topology, sub_group_policy

_TRUE: Final = "True"


class PriorityTable:
    """The priorities of PriorityClasses by name, and the default priority."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}
        self._global: dict[str, int] = {}

    @property
    def default(self) -> int:
        """The lowest value among the classes marked as global default, as admission chooses it; 0 if there is none."""
        return min(self._global.values(), default=0)

    def value(self, name: str) -> int:
        """Return the priority of a class; the default for an empty or unknown name (as in Volcano)."""
        found = self._values.get(name)
        return self.default if found is None else found

    def set(self, entry: PriorityClass) -> None:
        """Add or replace a class; raise ValueError if its value cannot be a priority."""
        name = entry.metadata.name
        value = self._values[name] = int32(entry.value, "value")
        if entry.global_default:
            self._global[name] = value
        else:
            self._global.pop(name, None)

    def remove(self, name: str) -> None:
        """Forget a class."""
        self._values.pop(name, None)
        self._global.pop(name, None)


def job_record(group: PodGroup, priorities: PriorityTable, default_queue: str) -> JobRecord:
    """Return the record of a PodGroup; raise ValueError naming the field that cannot be read."""
    meta, spec, status = group.metadata, group.spec, group.status
    least = None if spec.min_resources is None else read_resource_list(spec.min_resources, "spec.minResources")
    return JobRecord(
        key=JobKey(meta.namespace, meta.name),
        uid=meta.uid,
        queue=spec.queue or default_queue,
        min_available=int32(spec.min_member, "spec.minMember"),
        task_min_available={
            role: int32(minimum, f"spec.minTaskMember[{role}]") for role, minimum in spec.min_task_member.items()
        },
        min_resources=None if least is None else amounts(least),
        min_quota={
            name: float(milli(value)) for name, value in (least or {}).items() if amount_of(name, value) is None
        },
        priority=priorities.value(spec.priority_class_name),
        creation=seconds(meta.creation_timestamp),
        waiting_time=_waiting_time(meta.annotations),
        topology=_topology(meta.annotations),
        network_topology=network_topology(spec.network_topology, "spec.networkTopology"),
        sub_group_policies=_policies(spec.sub_group_policy, "spec.subGroupPolicy"),
        preemptable=preemptable(meta),
        budget=budget(meta.annotations),
        follows_pods=_follows_pods(meta),
        phase=status.phase,
        conditions=tuple(
            GroupCondition(c.type, c.status == _TRUE, c.reason, c.message, c.transition_id) for c in status.conditions
        ),
        running=status.running,
        succeeded=status.succeeded,
        failed=status.failed,
    )


def _follows_pods(group: meta.ObjectMeta) -> bool:
    """Say whether a controller of PodGroups, ours or Volcano's, has made a PodGroup for pods that named none.

    Its name has the uid of the owner of the pods, which owns it, too. A vcjob named ``podgroup`` has a PodGroup with
    such a name; the controller of jobs makes the pods of that one when it is enqueued.
    """
    return any(
        group.name == f"{keys.WORKLOAD_GROUP_PREFIX}{owner.uid}"
        and owner.api_version.partition("/")[0] != keys.BATCH_GROUP
        for owner in group.owner_references
    )


def _policies(written: Sequence[wire.SubGroupPolicy], where: str) -> tuple[SubGroupPolicy, ...]:
    if len(written) > MOST_POLICIES:
        raise ValueError(f"{where}: {len(written)} policies are too many: write {MOST_POLICIES} at most")
    return tuple(_policy(policy, f"{where}[{index}]") for index, policy in enumerate(written))


def _policy(written: wire.SubGroupPolicy, where: str) -> SubGroupPolicy:
    policy = sub_group_policy(written, where)
    int32(policy.size, f"{where}.subGroupSize")
    int32(policy.minimum, f"{where}.minSubGroups")
    return policy


def _waiting_time(annotations: Mapping[str, str]) -> float | None:
    """Return how long a PodGroup may wait; None unless the text is a duration above 0 (as in Volcano)."""
    text = annotations.get(keys.SLA_WAITING_TIME, annotations.get(keys.SLA_WAITING_TIME_OLD))
    if text is None:
        return None
    try:
        duration = parse_go_duration(text)
    except DurationError:
        return None
    return duration if duration > 0 else None


def _topology(annotations: Mapping[str, str]) -> TopologyTexts | None:
    texts = TopologyTexts(
        annotations.get(keys.TOPOLOGY_AFFINITY),
        annotations.get(keys.TOPOLOGY_ANTI_AFFINITY),
        annotations.get(keys.TOPOLOGY_ORDER),
    )
    return None if texts == (None, None, None) else texts


def same_gang(before: JobRecord | None, after: JobRecord | None) -> bool:
    """Say whether two states of a PodGroup ask for the same; their statuses may differ."""
    if before is None or after is None:
        return before is after
    return (
        before.uid == after.uid
        and before.queue == after.queue
        and before.min_available == after.min_available
        and before.task_min_available == after.task_min_available
        and before.min_resources == after.min_resources
        and before.min_quota == after.min_quota
        and before.network_topology == after.network_topology
        and before.sub_group_policies == after.sub_group_policies
    )


def queue_record(queue: Queue) -> QueueRecord:
    """Return the record of a queue; raise ValueError naming the field that cannot be read."""
    spec = queue.spec
    return QueueRecord(
        name=queue.metadata.name,
        uid=queue.metadata.uid,
        weight=spec.weight,
        priority=spec.priority,
        creation=seconds(queue.metadata.creation_timestamp),
        state=queue.status.state,
        capability=_resource_list(_limits(spec.capability), "spec.capability"),
        deserved=_resource_list(spec.deserved, "spec.deserved"),
        guarantee=_resource_list(spec.guarantee.resource, "spec.guarantee.resource"),
        reclaimable=spec.reclaimable is not False,
        node_groups=_node_groups(spec.affinity),
        node_group_limits=_node_group_limits(queue.metadata.annotations.get(keys.NODE_GROUP_LIMITS)),
        parent=spec.parent,
        fifo=spec.dequeue_strategy == keys.DEQUEUE_FIFO,
        hierarchy=_hierarchy(queue.metadata.annotations),
    )


def _node_groups(affinity: wire.QueueAffinity | None) -> NodeGroupAffinity | None:
    if affinity is None:
        return None
    wanted = affinity.node_group_affinity or wire.NodeGroups()
    unwanted = affinity.node_group_anti_affinity or wire.NodeGroups()
    return NodeGroupAffinity(
        tuple(wanted.required), tuple(wanted.preferred), tuple(unwanted.required), tuple(unwanted.preferred)
    )


def _node_group_limits(text: str | None) -> NodeGroupLimits | None:
    """Return the limits in an annotation; if it cannot be read, the reason (Volcano then places nothing).

    There are no limits if the text is empty, and none for a group whose limits are null.
    """
    if not text:
        return None
    try:
        groups = msgspec.json.decode(text, type=dict[str, meta.ResourceList | None] | None) or {}
        limits = {group: amounts_of(quantities, group) for group, quantities in groups.items() if quantities}
    except (msgspec.MsgspecError, ValueError) as error:
        return NodeGroupLimits(problem=f"annotation {keys.NODE_GROUP_LIMITS}: {error}")
    return NodeGroupLimits(limits)


def shown_allocated(queue: Queue) -> dict[str, float]:
    """Return what the status of a queue shows as allocated; {} if it cannot be read, so that it is written again."""
    try:
        return {name: amount for name, amount in amounts_of(queue.status.allocated, "status").items() if amount}
    except ValueError:
        return {}


def _hierarchy(annotations: Mapping[str, str]) -> tuple[tuple[str, float], ...]:
    """Return the path of a queue through drf's tree, as pairs of name and weight, without the root.

    The first element of the annotation is the root, whatever its name. A weight counts as 1 if it is missing, not a
    number, or below 1 (as in Volcano; there the process ends if a weight is missing).
    """
    names = annotations.get(keys.HIERARCHY, "").split("/")
    weights = annotations.get(keys.HIERARCHY_WEIGHTS, "").split("/")
    weights += [""] * (len(names) - len(weights))
    return tuple((name, _weight(weight)) for name, weight in zip(names[1:], weights[1:], strict=False))


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 1 <= weight < inf else 1.0


def _limits(quantities: meta.ResourceList) -> meta.ResourceList:
    """Return a capability without the negative amounts of cpu and memory: like 0, they set no limit, as in Volcano."""
    plain = (keys.CPU, keys.MEMORY)
    return {
        name: 0 if name in plain and read_quantity(written, f"spec.capability[{name}]") < 0 else written
        for name, written in quantities.items()
    }


def _resource_list(quantities: meta.ResourceList, where: str) -> ResourceList:
    """Return a resource list with every name in it: an amount of 0 is not the same as no amount."""
    amounts = ((name, amount_of(name, value)) for name, value in read_resource_list(quantities, where).items())
    return ResourceList.of({name: amount for name, amount in amounts if amount is not None})
