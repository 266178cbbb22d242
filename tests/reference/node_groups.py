"""Node groups of queues, one task and one node at a time."""

from collections.abc import Mapping

from tests.reference.world import World
from volcano_py.model.objects import NodeGroupAffinity, NodeRecord, QueueRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus

LABEL = "volcano.sh/nodegroup-name"
HELD = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)


def affinity_of(queue: QueueRecord, queues: Mapping[str, QueueRecord], inherits: bool) -> NodeGroupAffinity:
    seen = set()
    while inherits and queue.node_groups is None and (queue.parent or "root") in queues and queue.name not in seen:
        seen.add(queue.name)
        queue = queues[queue.parent or "root"]
    return queue.node_groups or NodeGroupAffinity()


def refusal(
    world: World, queue: QueueRecord, affinity: NodeGroupAffinity, shape: Shape, node: NodeRecord, strict: bool
) -> str | None:
    """The code of the first reason, None if the node accepts the task."""
    limits = queue.node_group_limits
    if limits is not None and limits.problem:
        return "limit-annotation-invalid"
    group = node.labels.get(LABEL)
    unset = not any(affinity)
    if group is None:
        return None if unset and not strict else "label-not-found"
    if unset:
        return "affinity-not-specified"
    fits = group in affinity.required or group in affinity.preferred
    fits = (fits and group not in affinity.anti_required) or group in affinity.anti_preferred
    if not fits:
        return "affinity-mismatch"
    for resource, ceiling in (limits.amounts.get(group, {}) if limits is not None else {}).items():
        after = held(world, queue.name, group, resource) + dict(shape.request).get(resource, 0.0)
        if after - ceiling >= 0.1:
            return "limit-exceeded"
    return None


def held(world: World, queue: str, group: str, resource: str) -> float:
    jobs = {job.key for job in world.jobs if job.queue == queue}
    nodes = {node.name for node in world.nodes if node.labels.get(LABEL) == group}
    return sum(
        dict(task.shape.request).get(resource, 0.0)
        for task in world.tasks
        if task.record.key in jobs and task.node in nodes and task.status in HELD
    )


def score(affinity: NodeGroupAffinity, node: NodeRecord, ordered: bool) -> float:
    group = node.labels.get(LABEL)
    if group is None:
        return 0.0
    if group in affinity.anti_preferred:
        return -1.0
    found = 100.0 if group in affinity.required else 0.0
    if group in affinity.preferred:
        last = max(place for place, name in enumerate(affinity.preferred) if name == group)
        n = len(set(affinity.preferred))
        found += 50.0 * (n - last) / n if ordered else 50.0
    return found
