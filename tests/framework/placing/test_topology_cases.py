"""Gangs with topologies in cases that once went wrong: terminating pods, pods without requests, limits, odd racks."""

from typing import Any

import pytest

from tests.framework.placing.test_topology_placement import INQUEUE, hard, racks, scenario
from volcano_py.api import keys
from volcano_py.testing import a_group, a_hyper_node, a_job, a_node, a_pod, a_priority_class, a_queue
from volcano_py.testing.scenario import Scenario

FILLED = "enqueue, allocate, backfill"


def policy(name: str, size: int, minimum: int, topology: Any = None) -> dict[str, Any]:
    """Return a policy for the pods of a role."""
    written = {
        "name": name,
        "labelSelector": {"matchLabels": {"role": name}},
        "matchLabelKeys": [keys.PARTITION_ID],
        "subGroupSize": size,
        "minSubGroups": minimum,
    }
    return written | ({"networkTopology": topology} if topology else {})


def members(role: str, part: str, count: int, **more: Any) -> list[Any]:
    """Return the pods ``g-<role>-<part>-0``, ... of one sub-group."""
    labels = {"role": role, keys.PARTITION_ID: part}
    return [a_pod(f"g-{role}-{part}-{number}", group="g", labels=labels, **more) for number in range(count)]


def gang(minimum: int, **spec: Any) -> Any:
    return a_group("g", min_available=minimum, phase=INQUEUE, spec=spec)


@pytest.mark.parametrize("topology", [hard(1), {"mode": "soft"}])
def test_an_idle_domain_is_taken_before_one_where_pods_still_terminate(topology: dict[str, Any]):
    leaving = [a_pod(f"old-{node}", cpu=2, node=f"r0-{node}", terminating=True) for node in range(4)]
    job = a_job("g", tasks=2, cpu=4, phase=INQUEUE, group_spec={"networkTopology": topology})

    result = scenario(*racks(2, 4), *leaving, job, grace=99).step(2)

    assert set(result.placements) == {"g-0", "g-1"}


def test_a_gang_waits_for_room_that_is_promised_where_nothing_is_idle():
    leaving = [a_pod(f"old-{node}", cpu=2, node=f"r0-{node}", terminating=True) for node in range(2)]
    full = [a_pod(f"full-{node}", cpu=4, node=f"r1-{node}") for node in range(2)]
    job = a_job("g", tasks=2, cpu=4, phase=INQUEUE, group_spec={"networkTopology": hard(1)})
    played = scenario(*racks(2, 2), *leaving, *full, job)

    played.delete("old-0", "old-1")

    assert set(played.run().placements) == {"g-0", "g-1"}


def test_pods_without_requests_go_into_the_rack_with_places_for_the_whole_gang():
    small = [a_node("r0-0", cpu=4, memory="64Gi", pods=4), a_node("r1-0", cpu=4, memory="64Gi", pods=4)]
    tiers = [a_hyper_node("rack-0", 1, ["r0-0"]), a_hyper_node("rack-1", 1, ["r1-0"])]
    others = [a_pod(f"other-{number}", cpu=1, node="r0-0") for number in range(2)]
    pods = [a_pod(f"g-{number}", group="g", **({"cpu": 1} if number < 2 else {})) for number in range(4)]

    result = scenario(*small, *tiers, *others, gang(4, networkTopology=hard(1)), *pods, actions=FILLED).run()

    assert {result.placements[f"g-{number}"] for number in range(4)} == {"r1-0"}


def test_sub_groups_without_requests_are_placed_in_one_block_that_has_places_for_all():
    small = [a_node(f"r{rack}-0", cpu=4, memory="64Gi", pods=4) for rack in range(4)]
    tiers = [a_hyper_node(f"rack-{rack}", 1, [f"r{rack}-0"]) for rack in range(4)]
    blocks = [
        a_hyper_node(f"block-{block}", 2, children=[f"rack-{2 * block}", f"rack-{2 * block + 1}"]) for block in (0, 1)
    ]
    others = [a_pod(f"other-{rack}-{n}", cpu="100m", node=f"r{rack}-0") for rack, n in ((0, 0), (0, 1))]
    others += [a_pod(f"other-1-{number}", cpu="100m", node="r1-0") for number in range(4)]
    group = gang(4, networkTopology=hard(2), subGroupPolicy=[policy("w", 2, 2, hard(1))])

    pods = [*members("w", "0", 2), *members("w", "1", 2)]
    result = scenario(*small, *tiers, *blocks, *others, group, *pods, actions=FILLED).run()

    assert {node[:2] for pod, node in result.placements.items() if pod.startswith("g-")} <= {"r2", "r3"}
    assert len([pod for pod in result.placements if pod.startswith("g-")]) == 4


def test_a_sub_group_over_the_limit_of_its_queue_does_not_stop_a_smaller_one():
    group = gang(1, subGroupPolicy=[policy("a", 3, 0), policy("b", 2, 0)])
    pods = [*members("z", "9", 1, cpu=1, node="r0-0"), *members("a", "0", 3, cpu=1), *members("b", "0", 2, cpu=1)]

    result = scenario(*racks(2, 4), group, *pods, queues=[a_queue(capability={"cpu": 3})]).run()

    assert set(result.placements) == {"g-b-0-0", "g-b-0-1"}


def test_a_sub_group_that_finds_no_room_behind_another_is_tried_first():
    nodes = [a_node(f"r0-{node}", cpu=4, memory="64Gi") for node in range(4)]
    nodes += [a_node(f"r1-{node}", cpu=3 if node else 8, memory="64Gi") for node in range(4)]
    tiers = [a_hyper_node(f"rack-{rack}", 1, [f"r{rack}-{node}" for node in range(4)]) for rack in (0, 1)]
    group = gang(6, subGroupPolicy=[policy("a", 2, 1, hard(1)), policy("b", 4, 1, hard(1))])
    pods = [*members("a", "0", 2, cpu=4), *members("b", "0", 4, cpu=4)]
    plugins = [["gang"], ["predicates", "network-topology-aware"]]

    result = Scenario(*nodes, *tiers, group, *pods, plugins=plugins).run()

    assert len(result.placements) == 6


def test_a_gang_that_has_begun_may_use_every_overlapping_domain_that_has_its_nodes():
    nodes = [a_node(f"n{number}", cpu=4, memory="64Gi") for number in range(3)]
    tiers = [a_hyper_node("a", 1, ["n0", "n1"]), a_hyper_node("b", 1, ["n0", "n2"])]
    pods = [a_pod("g-0", group="g", cpu=4, node="n0"), a_pod("g-1", group="g", cpu=4), a_pod("x", cpu=4, node="n1")]

    result = scenario(*nodes, *tiers, gang(1, networkTopology=hard(1)), *pods).run()

    assert result.placements["g-1"] == "n2"


def test_a_filter_is_blamed_if_there_is_room():
    ports, resources = [{"hostPort": 80, "containerPort": 80}], {"requests": {"cpu": "1"}}
    container = {"containers": [{"name": "c", "ports": ports, "resources": resources}]}
    pods = [a_pod(f"g-{number}", group="g", spec=container) for number in range(3)]

    result = scenario(*racks(2, 2), gang(3, networkTopology=hard(1)), *pods).run()

    assert "takes 3 more tasks, filters refuse some of its nodes" in result.why_not("g").message


def test_the_sub_group_that_found_no_domain_is_named_with_the_room_that_the_others_left():
    """By itself, each of the two sub-groups would find room in the first rack."""
    nodes = [a_node(f"n{number}", cpu=4, memory="64Gi") for number in range(3)]
    tiers = [a_hyper_node("s0", 1, ["n0", "n1"]), a_hyper_node("s1", 1, ["n2"])]
    group = gang(4, subGroupPolicy=[policy("r", 2, 2, hard(1))])
    pods = [pod for number in "01" for pod in members("r", number, 2, cpu=3)]

    message = scenario(*nodes, *tiers, group, *pods).run().why_not("g").message

    assert (
        "r-1: no HyperNode up to tier 1 has room for 2 more tasks: the best of tier 1 is s1 with room for 1" in message
    )
    assert "filters" not in message


def test_no_filter_is_blamed_if_none_refuses_a_node():
    """There is room in another rack than that of the task that runs."""
    began = a_pod("g-0", group="g", cpu=4, node="r0-0")
    waiting = [a_pod(f"g-{number}", group="g", cpu=4) for number in (1, 2)]

    result = scenario(*racks(2, 2), gang(3, networkTopology=hard(1)), began, *waiting).run()

    message = result.why_not("g").message
    assert "takes 2 more tasks: the best of tier 1 is" in message


@pytest.mark.parametrize("action", ["preempt", "reclaim", "gangpreempt", "gangreclaim"])
def test_an_elastic_gang_with_sub_groups_evicts_for_its_minimum_only(action: str):
    queue = "lender" if "reclaim" in action else "default"
    nodes = [a_node(f"n{number}", cpu=4, memory="64Gi") for number in range(12)]
    low = [
        a_job(
            f"low-{number}-{slot}",
            tasks=1,
            min_available=0,
            cpu=1,
            node=f"n{number}",
            phase="Running",
            queue=queue,
            priority_class="low",
            priority=1,
            annotations={keys.PREEMPTABLE: "true"},
        )
        for number in range(12)
        for slot in range(4)
    ]
    group = a_group(
        "g",
        min_available=2,
        phase=INQUEUE,
        priority_class="high",
        spec={"minMember": 2, "subGroupPolicy": [policy("w", 2, 0)]},
    )
    pods = [pod for part in range(6) for pod in members("w", str(part), 2, cpu=4, priority=1000)]

    result = Scenario(
        a_priority_class("high", 1000),
        a_priority_class("low", 1),
        *nodes,
        *low,
        group,
        *pods,
        queues=[a_queue("default", weight=1), a_queue("lender", weight=1)],
        actions=f"allocate, {action}",
        plugins=[["priority", "gang", "conformance"], ["predicates", "proportion", "network-topology-aware"]],
        recreated=False,
    ).step(1)

    assert sum(map(len, result.evictions)) == 8
