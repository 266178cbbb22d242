"""Preempt and reclaim until nothing changes: evicted pods come back waiting under other uids, all actions run, and five
more cycles decide nothing (`Scenario.run`)."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from volcano_py.testing import Scenario, a_job, a_node, a_pod, a_priority_class, a_queue
from volcano_py.testing.scenario import Result

ACTIONS = "enqueue, allocate, backfill, preempt, reclaim"
VOLCANOS = [["priority", "gang", "conformance"], ["overcommit", "drf", "predicates", "proportion", "nodeorder"]]
ONE_TIER = [["priority", "gang", "conformance", "predicates", "proportion", "nodeorder"]]
CLASSES = (a_priority_class("high", 100), a_priority_class("low", 1))


def cluster(*objects: Any, nodes: int = 3, cpu: int = 2, plugins: Any = None, **options: Any) -> Scenario:
    made = (a_node(f"n{row}", cpu=cpu) for row in range(nodes))
    return Scenario(*made, *CLASSES, *objects, actions=ACTIONS, plugins=plugins or VOLCANOS, **options)


def low(name: str = "low", tasks: int = 6, min_available: int = 1, **job: Any) -> Any:
    return a_job(name, tasks=tasks, min_available=min_available, priority_class="low", **{"cpu": 1, **job})


def high(name: str = "high", **job: Any) -> Any:
    return a_job(name, priority_class="high", **{"cpu": 1, **job})


def standing(result: Result) -> Counter[str]:
    """Return how many pods of each job stand on a node."""
    return Counter(name.rpartition("-")[0] for name in result.placements)


# E7: a gang of high priority on a full cluster


@pytest.mark.parametrize("tasks", [1, 4, 5])
def test_a_gang_gets_exactly_the_room_it_needs_in_one_plan(tasks: int) -> None:
    scenario = cluster(low())
    scenario.run()
    scenario.add(high(tasks=tasks))

    result = scenario.run()

    assert standing(result) == {"high": tasks, "low": 6 - tasks}
    assert [len(batch) for batch in result.evictions] == [tasks]
    assert {(one.action, one.beneficiary) for one in result.evicted} == {("preempt", ("default", "high"))}


def test_a_gang_that_would_not_fit_after_evictions_evicts_nobody() -> None:
    scenario = cluster(low())
    before = scenario.run()
    scenario.add(high(tasks=7))

    result = scenario.run()

    assert (result.placements, result.evictions) == (before.placements, [])
    assert "high" in result.waiting()


def test_the_jobs_of_victims_keep_their_minimum() -> None:
    scenario = cluster(low(min_available=3))
    scenario.run()
    scenario.add(high(tasks=4))
    assert scenario.run().evictions == []

    scenario.add(high("fits", tasks=3))
    assert standing(scenario.run()) == {"low": 3, "fits": 3}


@pytest.mark.parametrize(
    "options", [{"namespace": "kube-system"}, {"spec": {"priorityClassName": "system-node-critical"}}]
)
@pytest.mark.parametrize(
    "plugins", [VOLCANOS, [["conformance"], ["priority", "predicates"]]], ids=["volcanos", "fallback"]
)
def test_critical_pods_are_protected_whatever_tier_permits_their_eviction(
    options: dict[str, Any], plugins: Any
) -> None:
    scenario = cluster(low(**options), plugins=plugins)
    scenario.run()
    scenario.add(high(tasks=2))

    assert scenario.run().evictions == []


def test_pods_that_are_not_preemptable_are_not_evicted() -> None:
    scenario = cluster(low("mine", tasks=3, annotations={"volcano.sh/preemptable": "false"}), low("yours", tasks=3))
    scenario.run()
    scenario.add(high(tasks=2))

    result = scenario.run()

    assert {one.job for one in result.evicted} == {("default", "yours")}


def test_nobody_is_evicted_for_a_pod_with_preemption_policy_never() -> None:
    scenario = cluster(low())
    scenario.run()
    scenario.add(high(tasks=2, spec={"preemptionPolicy": "Never"}))

    assert scenario.run().evictions == []


def test_no_second_plan_follows_while_victims_terminate() -> None:
    scenario = cluster(low(), grace=20)
    scenario.run()
    scenario.add(high(tasks=4))

    result = scenario.run()

    assert [len(batch) for batch in result.evictions] == [4]
    assert standing(result) == {"high": 4, "low": 2}


def test_room_that_is_being_cleared_is_not_given_to_others() -> None:
    scenario = cluster(low(), grace=3)
    scenario.run()
    scenario.add(high(tasks=4))
    scenario.run(settle_rounds=0)
    scenario.add(low("late", tasks=2))

    assert standing(scenario.run())["high"] == 4


def test_a_job_preempts_its_own_tasks_of_lower_priority() -> None:
    plugins = [["priority", "conformance", "predicates", "nodeorder"]]
    scenario = cluster(a_job("j", tasks=6, min_available=1, cpu=1, priority=1), plugins=plugins)
    scenario.run()
    scenario.add(a_pod("extra-0", group="j", cpu=1, priority=9))

    result = scenario.run()

    assert "extra-0" in result.placements
    assert [len(batch) for batch in result.evictions] == [1]


def test_a_best_effort_pod_preempts_only_best_effort_pods() -> None:
    scenario = Scenario(
        a_node("n1", cpu=4, pods=2),
        *CLASSES,
        low("idle", tasks=1, min_available=0, cpu=None),
        low("busy", tasks=1, min_available=0),
        actions=ACTIONS,
        plugins=VOLCANOS,
    )
    scenario.run()
    scenario.add(high(tasks=1, cpu=None))

    assert [[one.job.name for one in scenario.run().evicted if one.job]] == [["idle"]]


def test_jobs_that_drf_finds_equal_do_not_evict_each_other_in_turn() -> None:
    plugins = [[{"name": "priority", "enablePreemptable": False}, "conformance", "drf", "predicates", "nodeorder"]]
    scenario = cluster(low("one", tasks=6, min_available=0), plugins=plugins)
    scenario.run()
    scenario.add(low("two", tasks=6, min_available=0))

    result = scenario.run()

    assert standing(result) == {"one": 3, "two": 3}
    assert {one.job for one in result.evicted} == {("default", "one")}


# E6, P2, P4: queues


def newcomer(size: int, plugins: Any, **options: Any) -> tuple[Counter[str], Result]:
    """Let two queues fill 30 places and a third arrive; return pods by queue, and the result."""
    queues = [a_queue(name) for name in "abc"]
    scenario = cluster(nodes=3, cpu=10, plugins=plugins, queues=queues)
    for queue in "ab":
        scenario.add(*(a_job(f"{queue}{n}", tasks=size, queue=queue, cpu=1, **options) for n in range(30 // size)))
    scenario.run()
    scenario.add(*(a_job(f"c{n}", tasks=size, queue="c", cpu=1, **options) for n in range(30 // size)))
    result = scenario.run()
    return Counter(name[0] for name in result.placements), result


@pytest.mark.parametrize(
    ("size", "plugins", "options"),
    [
        pytest.param(1, VOLCANOS, {}, id="single-pods"),
        pytest.param(
            30,
            [["gang", "conformance", "predicates", "proportion", "nodeorder"], [{"name": "priority"}]],
            {"min_available": 12},
            id="large-jobs-up-to-their-minimum",
        ),
    ],
)
def test_a_new_queue_gets_its_third_and_then_nothing_changes(size: int, plugins: Any, options: dict[str, Any]) -> None:
    held, result = newcomer(size, plugins, **options)

    if size == 1:
        assert held == {"a": 10, "b": 10, "c": 10}
    else:  # a gang of 12 does not fit into a third: nobody goes for it
        assert (held["c"], result.evictions) == (0, [])
    taken = Counter((one.job.name[0], one.beneficiary.name[0]) for one in result.evicted if one.job and one.beneficiary)
    assert taken == ({("a", "c"): 5, ("b", "c"): 5} if size == 1 else {})


def test_no_gang_of_a_lending_queue_is_broken() -> None:
    scenario = cluster(nodes=3, cpu=10, plugins=ONE_TIER, queues=[a_queue(name) for name in "abc"])
    scenario.add(*(a_job(f"{queue}0", tasks=15, min_available=8, queue=queue, cpu=1) for queue in "ab"))
    scenario.run()
    scenario.add(*(a_job(f"c{n}", tasks=3, queue="c", cpu=1) for n in range(5)))

    result = scenario.run()

    assert standing(result) == {"a0": 11, "b0": 10, "c0": 3, "c1": 3, "c2": 3}
    assert [len(batch) for batch in result.evictions] == [3, 3, 3]


def test_gangs_at_their_minimum_are_not_broken_if_gang_decides() -> None:
    held, result = newcomer(5, ONE_TIER, min_available=3)

    assert (held, result.evictions) == ({"a": 15, "b": 15}, [])


def test_p2_a_consumer_above_its_share_by_one_pod_loses_it() -> None:
    scenario = Scenario(
        a_node("n1", cpu=2, memory="2Gi"),
        queues=[a_queue("c1"), a_queue("c2")],
        actions=ACTIONS,
        plugins=VOLCANOS,
    )
    request = {"cpu": 1, "memory": "1Gi", "min_available": 1, "tasks": 2}
    scenario.add(a_job("one", queue="c1", **request))
    assert standing(scenario.run()) == {"one": 2}  # T1

    scenario.add(a_job("two", queue="c2", **request))
    result = scenario.run()

    assert standing(result) == {"one": 1, "two": 1}  # T3
    assert [len(batch) for batch in result.evictions] == [1]  # T2


def test_p4_after_an_eviction_no_more_follow_until_demand_grows() -> None:
    scenario = cluster(nodes=1, cpu=4, queues=[a_queue("a"), a_queue("b")])
    scenario.add(a_job("one", tasks=4, min_available=1, cpu=1, queue="a"))
    scenario.run()
    scenario.add(a_job("two", tasks=1, cpu=1, queue="b"))
    once = len(scenario.run().evictions)

    again = scenario.run(settle_rounds=10)

    assert (once, len(again.evictions)) == (1, 1)
    scenario.add(a_job("three", tasks=1, cpu=1, queue="b"))
    assert standing(scenario.run()) == {"one": 2, "two": 1, "three": 1}


def test_a_queue_that_is_not_reclaimable_loses_nothing() -> None:
    lender = a_queue("a")
    fixed = msgspec.structs.replace(lender, spec=msgspec.structs.replace(lender.spec, reclaimable=False))
    scenario = cluster(nodes=1, cpu=4, queues=[fixed, a_queue("b")])
    scenario.add(a_job("one", tasks=4, min_available=1, cpu=1, queue="a"))
    scenario.run()
    scenario.add(a_job("two", tasks=1, cpu=1, queue="b"))

    assert scenario.run().evictions == []


def test_the_queue_that_is_furthest_above_its_share_loses_first() -> None:
    scenario = cluster(nodes=4, cpu=3, queues=[a_queue("a"), a_queue("b"), a_queue("c")])
    scenario.add(a_job("much", tasks=8, min_available=1, cpu=1, queue="b"))
    scenario.run()
    scenario.add(a_job("some", tasks=4, min_available=1, cpu=1, queue="a"))
    scenario.run()
    scenario.add(a_job("new", tasks=2, cpu=1, queue="c"))

    result = scenario.run()

    assert {one.job.name for one in result.evicted if one.job} == {"much"}
