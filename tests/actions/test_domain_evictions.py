"""Evictions for gangs with a hard topology: all in one domain, and none where the gang could not be placed."""

from random import Random
from typing import Any

import pytest

from tests.framework.placing.test_topology_placement import hard, partitioned, racks
from volcano_py.api import keys
from volcano_py.testing import a_job, a_node, a_priority_class, a_queue
from volcano_py.testing.scenario import Result, Scenario

CLASSES = [a_priority_class("high", 1000), a_priority_class("low", 1)]
PLUGINS = [["priority", "gang", "conformance"], ["predicates", "proportion", "binpack", "network-topology-aware"]]
ACTIONS = {
    "preempt": "allocate, preempt",
    "gangpreempt": "allocate, gangpreempt",
    "reclaim": "allocate, reclaim",
    "gangreclaim": "allocate, gangreclaim",
}


def low(name: str, node: str, cpu: int = 4, queue: str = keys.DEFAULT_QUEUE) -> Any:
    """Return a job of one pod that may be evicted."""
    return a_job(
        name,
        tasks=1,
        min_available=0,
        cpu=cpu,
        node=node,
        phase="Running",
        queue=queue,
        priority_class="low",
        priority=1,
        annotations={keys.PREEMPTABLE: "true"},
    )


def high(name: str = "h", queue: str = keys.DEFAULT_QUEUE, tasks: Any = 3, **more: Any) -> Any:
    return a_job(
        name,
        tasks=tasks,
        cpu=4,
        phase="Inqueue",
        queue=queue,
        priority_class="high",
        priority=1000,
        **({"group_spec": {"networkTopology": hard(1)}} | more),
    )


def played(action: str, *objects: Any) -> Result:
    queues = [a_queue("default", weight=1), a_queue("lender", weight=1)]
    return Scenario(*CLASSES, *objects, queues=queues, actions=ACTIONS[action], plugins=PLUGINS, recreated=False).run()


@pytest.mark.parametrize("action", ACTIONS)
def test_victims_are_in_the_one_rack_that_the_gang_gets(action: str):
    queue = "lender" if "reclaim" in action else "default"
    full = [low(f"low-{rack}-{node}", f"r{rack}-{node}", queue=queue) for rack in range(3) for node in range(3)]

    result = played(action, *racks(3, 3), *full, high())

    mine = {node.partition("-")[0] for pod, node in result.running_or_bound.items() if pod.startswith("h-")}
    assert len(mine) == 1
    assert {name.split("-")[1] for batch in result.evictions for name in batch} == {rack[1:] for rack in mine}
    assert len([name for batch in result.evictions for name in batch]) == 3


@pytest.mark.parametrize("action", ACTIONS)
def test_nobody_is_evicted_if_no_rack_could_take_the_gang(action: str):
    queue = "lender" if "reclaim" in action else "default"
    full = [low(f"low-{rack}-{node}", f"r{rack}-{node}", queue=queue) for rack in range(3) for node in range(2)]

    result = played(action, *racks(3, 2), *full, high())

    assert result.evictions == []


@pytest.mark.parametrize("action", ACTIONS)
def test_a_rack_with_enough_cpu_but_too_small_for_whole_pods_is_left_alone(action: str):
    queue = "lender" if "reclaim" in action else "default"
    nodes = racks(2, 4, cpu=3)  # 12 cpu in a rack, and no node for a pod of 4
    full = [low(f"low-{rack}-{node}", f"r{rack}-{node}", 3, queue) for rack in range(2) for node in range(4)]

    result = played(action, *nodes, *full, high())

    assert result.evictions == []


def test_the_rack_that_needs_fewest_victims_is_emptied_first():
    full = [low(f"low-{rack}-{node}", f"r{rack}-{node}") for rack in range(2) for node in range(3)]

    result = played("gangpreempt", *racks(2, 3), *full[:3], *full[4:], high())

    assert [sorted(batch) for batch in result.evictions] == [["low-1-1-0", "low-1-2-0"]]


def test_a_whole_gang_that_is_evicted_may_have_tasks_in_another_rack():
    victim = a_job("v", tasks=4, phase="Running", priority_class="low", priority=1, cpu=4)
    nodes = ["r0-0", "r0-1", "r0-2", "r1-0"]
    pods = [_on(pod, node) for pod, node in zip(victim.pods, nodes, strict=True)]
    others = [high(f"top-{node}", tasks=1, node=f"r1-{node}", group_spec={}) for node in (1, 2)]

    result = played("gangpreempt", *racks(2, 3), victim.group, *pods, *others, high())

    assert sorted(name for batch in result.evictions for name in batch) == ["v-0", "v-1", "v-2", "v-3"]
    assert {node.partition("-")[0] for pod, node in result.running_or_bound.items() if pod.startswith("h-")} == {"r0"}


def test_sub_groups_get_a_rack_each_when_others_are_evicted():
    spec = {"networkTopology": hard(2), "subGroupPolicy": [partitioned(2, 2, hard(1))]}
    full = [low(f"low-{rack}-{node}", f"r{rack}-{node}") for rack in range(4) for node in range(2)]

    result = played(
        "gangpreempt",
        *racks(4, 2, per_block=2),
        *full,
        high(tasks={"w": 4}, group_spec=spec, partition_size=2),
    )

    placed = {pod: node.partition("-")[0] for pod, node in result.running_or_bound.items() if pod.startswith("h-")}
    assert len(placed) == 4
    assert placed["h-w-0"] == placed["h-w-1"] != placed["h-w-2"] == placed["h-w-3"]
    assert set(placed.values()) in ({"r0", "r1"}, {"r2", "r3"})


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("seed", range(12))
def test_no_gang_spans_more_than_its_tier_after_evictions(action: str, seed: int):
    random = Random(seed)
    count, per_rack = random.randint(2, 4), random.randint(2, 4)
    queue = "lender" if "reclaim" in action else "default"
    full = [
        low(f"low-{rack}-{node}", f"r{rack}-{node}", random.choice((1, 2, 4)), queue)
        for rack in range(count)
        for node in range(per_rack)
        if random.random() < 0.9
    ]
    jobs = [
        high(f"h{number}", tasks=random.randint(1, per_rack), group_spec={"networkTopology": hard(1)})
        for number in range(2)
    ]

    result = played(action, *racks(count, per_rack), a_node("loose", cpu=64, memory="64Gi", taints=[]), *full, *jobs)

    for job in jobs:
        nodes = {
            result.running_or_bound[pod.metadata.name]
            for pod in job.pods
            if pod.metadata.name in result.running_or_bound
        }
        assert len({node.partition("-")[0] for node in nodes}) <= 1
        assert "loose" not in nodes
        assert len([pod for pod in job.pods if pod.metadata.name in result.running_or_bound]) in (0, len(job.pods))


def _on(pod: Any, node: str) -> Any:
    import msgspec

    spec = msgspec.structs.replace(pod.spec, node_name=node)
    meta = msgspec.structs.replace(pod.metadata, annotations={**pod.metadata.annotations, keys.PREEMPTABLE: "true"})
    return msgspec.structs.replace(
        pod, metadata=meta, spec=spec, status=msgspec.structs.replace(pod.status, phase="Running")
    )
