"""Evictions for pods that may not stand beside others: only where somebody's going helps, and only who must go goes."""

from typing import Any

import pytest

from tests.scenarios.test_inter_pod_terms import HOST, ZONE, apart, even, nodes, together
from volcano_py.testing import Result, Scenario, a_group, a_job, a_pod, a_priority_class

CONF = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
"""


def job(name: str, priority: str, spec: dict[str, Any], node: str = "", app: str = "", **options: Any) -> Any:
    pinned = {"nodeSelector": {HOST: node}} if node else {}
    more = {
        "min_available": 0 if priority == "low" else None,
        "cpu": 1,
        "labels": {"app": app or name},
        "annotations": {"volcano.sh/preemptable": "true"},
        **options,
    }
    return a_job(name, priority_class=priority, spec={**spec, **pinned}, **more)


def run(*jobs: Any, cluster: Any = None) -> tuple[Result, set[str]]:
    """Let the first jobs run, then add the last one; return how it ends and who was evicted."""
    classes = (a_priority_class("low", 1), a_priority_class("high", 100))
    scenario = Scenario(*(cluster or nodes("a")), *classes, *jobs[:-1], conf=CONF, recreated=False)
    scenario.run()
    scenario.add(jobs[-1])
    result = scenario.run()
    return result, {name for batch in result.evictions for name in batch}


def test_a_pod_evicts_lower_priorities_that_its_anti_affinity_excludes() -> None:
    others = [job("low", "low", {}), job("idle", "low", {})]

    result, evicted = run(*others, job("boss", "high", apart("low")))

    assert evicted == {"low-0"}
    assert result.placements["boss-0"] == "n0"
    assert "idle-0" in result.placements


def test_lower_priorities_whose_anti_affinity_excludes_the_preemptor_are_evicted() -> None:
    result, evicted = run(job("idle", "low", {}), job("guard", "low", apart("boss")), job("boss", "high", {}))

    assert evicted == {"guard-0"}
    assert result.placements["boss-0"] == "n0"


def test_nobody_is_evicted_for_a_pod_whose_required_affinity_has_no_match() -> None:
    result, evicted = run(job("low", "low", {}, cpu=8), job("boss", "high", together("db")))

    assert evicted == set()
    assert "boss-0" not in result.placements


def test_a_plan_that_evicts_a_pod_needed_by_its_earlier_task_is_rejected() -> None:
    friend = a_pod("gang-0", group="gang", cpu=1, priority=100, spec=together("low", HOST))
    large = a_pod("gang-1", group="gang", cpu=7, priority=100)

    result, evicted = run(
        job("low", "low", {}, cpu=4), a_group("gang", min_available=2, priority_class="high"), friend, large
    )

    assert evicted == set()
    assert set(result.placements) == {"low-0"}


def test_nobody_is_evicted_on_a_node_where_a_protected_pod_blocks_as_well() -> None:
    stranger = a_pod("wall", node="n0", cpu=1, labels={"app": "low"}, scheduler="kube")

    _, evicted = run(stranger, job("low", "low", {}), job("boss", "high", apart("low")))

    assert evicted == set()


def test_pods_are_evicted_from_the_domain_with_too_many() -> None:
    """Three of the app in zone a, none in zone b, which is full of others of equal rank: one skew is allowed."""
    cluster = nodes("a", "b")
    low = [job(f"low{row}", "low", {}, node="n0", app="web") for row in range(2)]
    full = job("full", "high", {}, node="n1", cpu=8)

    result, evicted = run(full, *low, job("boss", "high", even("web"), app="web"), cluster=cluster)

    assert len(evicted) == 2
    assert result.placements["boss-0"] == "n0"


@pytest.mark.parametrize("tasks", [2, 3])
def test_a_gang_with_anti_affinity_evicts_one_pod_per_node_or_none(tasks: int) -> None:
    cluster = nodes("a", "a")
    low = [job(f"low{row}", "low", {}, node=f"n{row}", cpu=8) for row in range(2)]

    result, evicted = run(*low, job("ha", "high", apart("ha"), tasks=tasks), cluster=cluster)

    placed = {node for name, node in result.placements.items() if name.startswith("ha")}
    assert (len(evicted), len(placed)) == ((2, 2) if tasks == 2 else (0, 0))


def test_anti_affinity_by_zone_evicts_pods_of_that_zone() -> None:
    cluster = nodes("a", "a", "b")
    low, wall = job("low", "low", {}, node="n0"), job("wall", "high", {}, node="n2", cpu=8)

    result, evicted = run(low, wall, job("boss", "high", apart("low", ZONE), node="n0"), cluster=cluster)

    assert evicted == {"low-0"}
    assert result.placements["boss-0"] == "n0"
