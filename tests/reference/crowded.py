"""Full clusters, one for each number, with running and starving jobs; and the invariants of evictions.

The checks are plain arithmetic over names, independent of how the scheduler plans evictions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random

import msgspec

from tests.reference.world import Task, World, a_job, a_node, a_shape, a_task, amounts
from volcano_py.model.decisions import Decision, Evict, Nominate
from volcano_py.model.objects import JobRecord, QueueRecord, TaskRecord, TaskTrait
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.statuses import TaskStatus

SHAPES = (
    a_shape(cpu=1, memory="1Gi"),
    a_shape(cpu=2, memory="1Gi"),
    a_shape(cpu=1, memory="2Gi"),
    a_shape(cpu=3, memory="2Gi"),
)
PREEMPTABLE = TaskTrait.PREEMPTABLE
TRAITS = (PREEMPTABLE, PREEMPTABLE, PREEMPTABLE, PREEMPTABLE, TaskTrait(0), PREEMPTABLE | TaskTrait.CRITICAL)


def crowded_world(number: int, queues: tuple[str, ...] = ("default",)) -> World:
    """Return the cluster of a number: jobs fill its nodes, and a few more jobs wait."""
    random = Random(number)
    nodes = tuple(a_node(f"n{row}", cpu=random.choice((4, 6)), memory="6Gi", pods=20) for row in range(4))
    free = {node.name: Counter(node.allocatable) for node in nodes}
    jobs: list[JobRecord] = []
    tasks: list[Task] = []
    for row in range(random.randint(4, 8)):
        name, shape = f"run{row}", random.choice(SHAPES)
        members = []
        for index in range(random.randint(1, 5)):
            places = [node for node in free if all(free[node][key] >= need for key, need in shape.request)]
            if places:
                node = random.choice(places)
                free[node].subtract(dict(shape.request))
                traits = random.choice(TRAITS)
                members.append(
                    a_task(
                        f"{name}-x-{index}",
                        shape,
                        job=name,
                        status=random.choice((TaskStatus.RUNNING, TaskStatus.RUNNING, TaskStatus.BOUND)),
                        node=node,
                        priority=random.choice((1, 1, 5)),
                        traits=traits.value,
                    )
                )
        minimum = random.randint(0, len(members))
        phase = "Running" if members else "Inqueue"
        record = a_job(
            name, queue=random.choice(queues), min_available=minimum, phase=phase, priority=random.choice((0, 5))
        )
        jobs.append(record)
        tasks += members
    for row in range(random.randint(1, 3)):
        name, count = f"new{row}", random.randint(1, 4)
        minimum = random.randint(1, count)
        priority = random.choice((5, 10))
        queue = random.choice(queues)
        jobs.append(
            a_job(name, queue=queue, min_available=minimum, phase="Inqueue", priority=priority, creation=9.0 + row)
        )
        tasks += [
            a_task(f"{name}-x-{index}", random.choice(SHAPES[: random.randint(1, 4)]), job=name, priority=priority)
            for index in range(count)
        ]
    return World(nodes, tuple(_queue(random, name) for name in queues), tuple(jobs), tuple(tasks))


def _queue(random: Random, name: str) -> QueueRecord:
    guarantee = random.choice(({}, {}, {"cpu": 2}, {"cpu": 4, "memory": "4Gi"}))
    return QueueRecord(
        name,
        state="Open",
        weight=random.choice((1, 1, 3)),
        guarantee=ResourceList.of(amounts(**guarantee)),
        reclaimable=random.random() < 0.9,
    )


@dataclass(frozen=True)
class Plan:
    """One batch of evictions: the victims, and the nodes to which the preemptor's tasks are nominated."""

    victims: tuple[str, ...]
    rooms: Mapping[str, str]  # task -> node
    action: str


def plans_of(batches: Iterable[tuple[Decision, ...]]) -> list[Plan]:
    """Return the plans among the batches of a cycle."""
    found = []
    for batch in batches:
        evictions = [one for one in batch if isinstance(one, Evict)]
        if evictions:
            rooms = {one.task.name: one.node for one in batch if isinstance(one, Nominate) and one.node}
            found.append(Plan(tuple(one.task.name for one in evictions), rooms, evictions[0].action))
    return found


def room(world: World, gone: Iterable[str], promised: Mapping[str, str]) -> dict[str, Counter[str]]:
    """Return what is idle on each node without some tasks (``gone``) and with others (``promised``)."""
    without = set(gone)
    left = {node.name: Counter(node.allocatable) for node in world.nodes}
    for task in world.tasks:
        node = promised.get(task.record.name, task.node)
        if node and task.record.name not in without:
            left[node].subtract(dict(task.shape.request))
    return left


def fits(left: Mapping[str, Mapping[str, float]]) -> bool:
    return all(amount >= 0 for amounts_left in left.values() for amount in amounts_left.values())


def ready(world: World, gone: Iterable[str]) -> Counter[str]:
    """Return how many tasks of each job have a node and are not among ``gone``."""
    without = set(gone)
    return Counter(
        task.record.job for task in world.tasks if task.node and task.record.name not in without and task.record.job
    )


def after(world: World, plans: Iterable[Plan]) -> World:
    """Return the cluster without the victims and with the nominations of the pending pods."""
    plans = list(plans)
    gone = {name for plan in plans for name in plan.victims}
    rooms = {task: node for plan in plans for task, node in plan.rooms.items()}
    tasks = [
        replace(task, record=_nominated(task, rooms.get(task.record.name, "")))
        for task in world.tasks
        if task.record.name not in gone
    ]
    return replace(world, tasks=tuple(tasks))


def _nominated(task: Task, node: str) -> TaskRecord:
    return msgspec.structs.replace(task.record, nominated=node)
