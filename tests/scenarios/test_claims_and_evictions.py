"""Pods with volume claims in the actions that evict, and in backfill: what an eviction can free, and what it cannot."""

from typing import Any

from volcano_py.model.decisions import BindClaim
from volcano_py.testing import Scenario, a_group, a_node, a_pod, a_priority_class, a_queue
from volcano_py.testing.storage import (
    PROVISIONER,
    a_claim,
    a_csi_node,
    a_local_class,
    a_storage_class,
    a_volume,
    with_claims,
)

PREEMPT = "enqueue, allocate, preempt, backfill"
PLUGINS = ("priority", "gang", "conformance", "predicates", "nodeorder")


def a_running(name: str, claim: str, node: str, **options: Any) -> list[Any]:
    return [
        a_group(f"g-{name}", min_available=0, phase="Running", priority_class="low"),
        a_pod(name, group=f"g-{name}", cpu=1, node=node, priority=1, spec=with_claims(claim), **options),
    ]


def a_waiting(name: str, claim: str, **options: Any) -> list[Any]:
    return [
        a_group(f"g-{name}", min_available=1, priority_class="high"),
        a_pod(name, group=f"g-{name}", priority=100, spec=with_claims(claim), **({"cpu": 1} | options)),
    ]


CLASSES = (a_priority_class("low", 1), a_priority_class("high", 100))


def preempting(*objects: Any) -> Scenario:
    return Scenario(*CLASSES, *objects, actions=PREEMPT, plugins=PLUGINS, recreated=False)


def test_an_eviction_frees_the_place_of_a_volume_on_a_node() -> None:
    limit = a_csi_node("n1", **{PROVISIONER.replace(".", "_"): 1})
    scenario = preempting(
        a_node("n1", cpu=8),
        limit,
        a_storage_class(),
        a_volume("v", claim="old", driver=PROVISIONER),
        a_claim("old", volume="v"),
        a_claim("new"),
        *a_running("r", "old", "n1"),
        *a_waiting("w", "new"),
    )

    result = scenario.run()

    assert result.evictions == [["r"]]
    assert result.placements == {"w": "n1"}


def test_an_eviction_frees_a_claim_that_only_one_pod_may_use() -> None:
    scenario = preempting(
        a_node("n1", cpu=8),
        a_node("n2", cpu=8),
        a_storage_class(),
        a_volume("v", claim="one", modes=["ReadWriteOncePod"]),
        a_claim("one", volume="v", modes=["ReadWriteOncePod"]),
        *a_running("r", "one", "n2"),
        *a_waiting("w", "one"),
    )

    result = scenario.run()

    assert result.evictions == [["r"]]
    assert sorted(result.placements) == ["w"]


def test_nobody_is_evicted_for_a_volume_that_no_node_reaches() -> None:
    scenario = preempting(
        a_node("n1", cpu=1),
        a_node("n2", cpu=8),
        a_local_class(),
        a_volume("v", storage_class="local", node="n1", claim="old"),
        a_claim("old", storage_class="local", volume="v"),
        a_claim("new", storage_class="local"),
        *a_running("r", "old", "n1"),
        *a_waiting("w", "new"),
    )

    result = scenario.run()

    assert result.evictions == []
    assert "1 node(s) didn't find available persistent volumes to bind" in result.why_not("g-w").message


def test_a_victim_makes_room_where_the_volume_is() -> None:
    scenario = preempting(
        a_node("n1", cpu=1),
        a_node("n2", cpu=8),
        a_local_class(),
        a_storage_class(),
        a_volume("v", storage_class="local", node="n1"),
        a_volume("o", claim="old"),
        a_claim("old", volume="o"),
        a_claim("new", storage_class="local"),
        *a_running("r", "old", "n1"),
        *a_waiting("w", "new"),
    )

    result = scenario.run()

    assert result.evictions == [["r"]]
    assert result.placements == {"w": "n1"}
    assert [step.volume for step in result.prepared if isinstance(step, BindClaim)] == ["v"]


def test_backfill_places_a_pod_without_requests_where_its_volume_is() -> None:
    result = preempting(
        a_node("n1"),
        a_node("n2"),
        a_local_class(),
        a_volume("v", storage_class="local", node="n2"),
        a_claim("new", storage_class="local"),
        *a_waiting("w", "new", cpu=None),
    ).run()

    assert result.placements == {"w": "n2"}
    assert [step.volume for step in result.prepared if isinstance(step, BindClaim)] == ["v"]


def test_reclaim_takes_back_the_node_with_the_volume() -> None:
    scenario = Scenario(
        a_node("n1", cpu=2),
        a_node("n2", cpu=2),
        a_local_class(),
        a_volume("v", storage_class="local", node="n2"),
        a_claim("new", storage_class="local"),
        a_group("greedy", queue="red", min_available=0, phase="Running"),
        *(a_pod(f"r{i}", group="greedy", cpu=2, node=f"n{i + 1}") for i in range(2)),
        a_group("g-w", queue="blue", min_available=1),
        a_pod("w", group="g-w", cpu=2, spec=with_claims("new")),
        queues=[a_queue("red"), a_queue("blue")],
        actions="enqueue, allocate, reclaim",
        plugins=("gang", "conformance", "proportion", "predicates"),
        recreated=False,
    )

    result = scenario.run()

    assert result.evictions == [["r1"]]
    assert result.placements == {"w": "n2"}


def test_a_shared_claim_that_waits_keeps_its_pods_on_the_node_that_it_got() -> None:
    result = Scenario(
        *(a_node(f"n{i}", cpu=3) for i in range(3)),
        a_storage_class(),
        a_claim("common"),
        a_group("g", min_available=3),
        *(a_pod(f"p{i}", group="g", cpu=1, spec=with_claims("common")) for i in range(3)),
    ).run()

    assert sorted(result.placements) == ["p0", "p1", "p2"]
    assert len(set(result.placements.values())) == 1


def test_a_claim_of_one_pod_only_is_never_given_to_two() -> None:
    result = Scenario(
        a_node("n1", cpu=8),
        a_storage_class(),
        a_claim("one", modes=["ReadWriteOncePod"]),
        *(one for i in range(2) for one in a_waiting(f"w{i}", "one")),
        *CLASSES,
    ).run()

    assert list(result.placements) == ["w0"]
    assert "already in-use by another pod" in result.why_not("g-w1").message
