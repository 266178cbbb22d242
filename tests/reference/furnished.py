"""Crowded clusters with the inputs of single policies: node groups, measured load, task topology."""

from dataclasses import replace
from random import Random

import msgspec

from tests.reference.busy import busy_world
from tests.reference.node_groups import LABEL
from tests.reference.world import Task, World
from volcano_py.model.hyper_nodes import HyperNode, NodeMember
from volcano_py.model.loads import NodeLoad
from volcano_py.model.objects import (
    JobRecord,
    NodeGroupAffinity,
    NodeGroupLimits,
    NodeRecord,
    QueueRecord,
    TopologyTexts,
)
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.store import ClusterStore

GROUPS = ("a", "b", "c")
LIMITS = {"a": {"cpu": 512.0}, "b": {"pods": 2.0, "memory": 2.0**28}}


def with_racks(number: int) -> World:
    """Return a crowded cluster whose nodes are in racks, some below a spine; a node may be in none or in two."""
    world, random = busy_world(number), Random(-2 - number)
    racks = [
        HyperNode(
            f"rack-{rack}", 1, nodes=tuple(NodeMember(name=node.name) for node in world.nodes if random.random() < 0.4)
        )
        for rack in range(random.randint(1, 4))
    ]
    spine = HyperNode("spine", 2, children=tuple(rack.name for rack in racks if random.random() < 0.7))
    return replace(world, hyper_nodes=(*racks, spine))


def with_node_groups(number: int) -> World:
    """Return a crowded cluster whose nodes are in groups and whose queues name groups."""
    world, random = busy_world(number), Random(-1 - number)

    def some() -> tuple[str, ...]:
        return tuple(random.choices(GROUPS, k=random.choice((0, 0, 1, 2, 3))))

    def affinity() -> NodeGroupAffinity | None:
        return None if random.random() < 0.3 else NodeGroupAffinity(some(), some(), some(), some())

    nodes = tuple(
        replace(node, labels={**node.labels, LABEL: random.choice(GROUPS)} if random.random() < 0.8 else node.labels)
        for node in world.nodes
    )
    queues = tuple(
        replace(
            queue,
            parent="root" if queue.name != "root" else "",
            node_groups=affinity(),
            node_group_limits=random.choice(
                (
                    None,
                    None,
                    NodeGroupLimits(LIMITS),
                    NodeGroupLimits(problem="?"),
                )
            ),
        )
        for queue in (*world.queues, QueueRecord("root"))
    )
    return replace(world, nodes=nodes, queues=queues)


def with_topology(number: int) -> World:
    """Return a crowded cluster whose jobs have a task topology, most of them a valid one."""
    world, random = busy_world(number), Random(-1 - number)
    roles = ("a", "b", "c", "")

    def text() -> str | None:
        groups = (",".join(random.sample("abc", random.choice((1, 1, 2, 2, 3)))) for _ in range(random.choice((1, 2))))
        return None if random.random() < 0.3 else ";".join(groups)

    def job(record: JobRecord) -> JobRecord:
        order = random.choice((None, "a", "b,a", "c,b,a"))
        texts = TopologyTexts(text(), text(), order)
        return replace(record, topology=None if random.random() < 0.2 else texts)

    tasks = tuple(
        replace(task, record=msgspec.structs.replace(task.record, role=random.choice(roles))) for task in world.tasks
    )
    return replace(world, jobs=tuple(job(record) for record in world.jobs), tasks=tasks)


def with_usage(number: int) -> tuple[World, dict[str, NodeLoad]]:
    """Return a crowded cluster and the loads of its nodes: old and new, near and far from the risk threshold."""
    world, random = busy_world(number), Random(-1 - number)

    def node(record: NodeRecord) -> NodeRecord:
        known = record.allocatable
        return replace(record, capacity=(known["cpu"] + random.choice((0, 100)), known["memory"]))

    shapes = {
        task.shape: replace(task.shape, limits=random.choice(((0.0, 0.0), (700.0, 2.0**29), (100.0, 0.0))))
        for task in world.tasks
    }

    def task(one: Task) -> Task:
        started = random.choice((0.0, -10.0, -30.0, -900.0)) if one.status is TaskStatus.RUNNING else 0.0
        record = msgspec.structs.replace(one.record, started=started, creation=float(random.randint(0, 3)))
        return replace(one, record=record, shape=shapes[one.shape])

    loads = {
        record.name: NodeLoad(
            random.choice((10.0, 40.0, 55.0, 79.0, 81.0)),
            random.choice((10.0, 50.0, 60.0, 80.0, 90.0)),
            random.choice((0.0, -5.0, -300.0, -301.0)),
        )
        for record in world.nodes
        if random.random() < 0.9
    }
    return replace(world, nodes=tuple(map(node, world.nodes)), tasks=tuple(map(task, world.tasks))), loads


def measured(world: World, loads: dict[str, NodeLoad]) -> ClusterStore:
    """Return the store of a cluster whose nodes are measured every 30 s."""
    store = world.store()
    store.loads.set(loads, 30.0)
    return store
