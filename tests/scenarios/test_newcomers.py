"""Queues that come to a cluster of which a part cannot be used by queues: they are served, and then there is rest."""

from collections import Counter
from typing import Any

import pytest

from volcano_py.framework.state.pending_evictions import COOLDOWN_S
from volcano_py.testing import Result, Scenario, a_group, a_job, a_node, a_pod, a_queue
from volcano_py.testing.objects import Job

RECLAIM = "enqueue, allocate, backfill, reclaim, preempt"
GANGS = "enqueue, allocate, backfill, gangreclaim, gangpreempt"
TREE = {"name": "capacity", "enableHierarchy": True}


def tiers(sharing: Any, *, beyond_minimum: bool = False) -> list[list[Any]]:
    gang: dict[str, Any] = {"name": "gang", "enablePreemptable": False}
    if beyond_minimum:
        gang["enableJobStarving"] = False
    drf = {"name": "drf", "enablePreemptable": False}
    return [
        ["priority", gang, "conformance", "sla"],
        ["overcommit", drf, "predicates", sharing, "nodeorder", "binpack"],
    ]


def elastic(queue: str, tasks: int, cpu: int = 1, **more: Any) -> Job:
    return a_job(f"j-{queue}", queue=queue, tasks=tasks, min_available=1, cpu=cpu, **more)


def held(result: Result) -> dict[str, int]:
    return dict(Counter(name.split("-")[1] for name in result.running_or_bound if name.startswith("j-")))


def full_cluster(sharing: Any, actions: str, *, taken: str, beyond_minimum: bool = False) -> Scenario:
    """Four nodes of 4 CPU: of each a pod of another scheduler has one, or the last one is closed."""
    foreign = [a_pod(f"f{row}", node=f"n{row}", scheduler="default-scheduler", cpu=1) for row in range(4)]
    deserved = {} if sharing == "proportion" else {"cpu": 6}
    parts = [a_queue(name, deserved=deserved, parent="all") for name in ("q1", "q2", "q3")]
    scenario = Scenario(
        *(a_node(f"n{row}", cpu=4, unschedulable=taken == "closed" and row == 3) for row in range(4)),
        *(foreign if taken == "foreign" else ()),
        queues=[a_queue("root"), a_queue("all", deserved=deserved), *parts],
        actions=actions,
        plugins=tiers(sharing, beyond_minimum=beyond_minimum),
    )
    scenario.add(elastic("q1", 12), elastic("q2", 12))
    assert held(scenario.run()) == {"q1": 6, "q2": 6}
    return scenario


@pytest.mark.parametrize("taken", ["foreign", "closed"])
@pytest.mark.parametrize("actions", [RECLAIM, GANGS], ids=["reclaim", "gangreclaim"])
@pytest.mark.parametrize("sharing", ["proportion", "capacity", TREE], ids=["proportion", "capacity", "tree"])
def test_a_new_queue_gets_its_share_if_part_of_the_cluster_cannot_be_used(
    sharing: Any, actions: str, taken: str
) -> None:
    scenario = full_cluster(sharing, actions, taken=taken)

    scenario.add(elastic("q3", 1, created=10))
    result = scenario.run()

    assert held(result)["q3"] == 1
    assert len(result.evicted) == 1
    for _ in range(6):
        scenario.wait(COOLDOWN_S + 1)
        assert len(scenario.run().evicted) == 1


@pytest.mark.parametrize("sharing", ["proportion", "capacity", TREE], ids=["proportion", "capacity", "tree"])
def test_shares_are_levelled_pod_by_pod_and_not_beyond_equality(sharing: Any) -> None:
    scenario = full_cluster(sharing, RECLAIM, taken="foreign", beyond_minimum=True)

    scenario.add(elastic("q3", 12, created=10))
    result = scenario.run()

    assert held(result) == {"q1": 4, "q2": 4, "q3": 4}
    assert len(result.evicted) == 4
    scenario.wait(COOLDOWN_S + 1)
    assert len(scenario.run().evicted) == 4


def test_a_new_queue_with_one_pod_above_an_equal_share_gets_it_but_no_queues_last_pod() -> None:
    queues = [a_queue("old"), a_queue("new")]
    scenario = Scenario(
        a_node("n1", cpu=8),
        a_pod("f", node="n1", scheduler="default-scheduler", cpu=3),
        elastic("old", 5),
        queues=queues,
        actions=RECLAIM,
        plugins=tiers("proportion"),
    )
    scenario.run()

    scenario.add(elastic("new", 1, cpu=4, created=10))  # what it deserves; five can be used
    assert held(scenario.run()) == {"old": 1, "new": 1}

    scenario.wait(COOLDOWN_S + 1)
    assert held(scenario.run()) == {"old": 1, "new": 1}


def test_a_guarantee_and_a_queue_that_is_not_reclaimable_are_left_alone() -> None:
    queues = [a_queue("kept", reclaimable=False), a_queue("sure", guarantee={"cpu": 3}), a_queue("new")]
    scenario = Scenario(
        a_node("n1", cpu=12),
        a_pod("f", node="n1", scheduler="default-scheduler", cpu=6),
        elastic("kept", 3),
        elastic("sure", 3),
        queues=queues,
        actions=RECLAIM,
        plugins=tiers("proportion"),
    )
    scenario.run()

    scenario.add(elastic("new", 1, created=10))

    assert held(scenario.run()) == {"kept": 3, "sure": 3}


def test_of_two_queues_within_what_they_deserve_the_one_with_the_greater_share_loses_whatever_its_priority() -> None:
    queues = [a_queue("much", priority=5), a_queue("less"), a_queue("new")]
    scenario = Scenario(
        a_node("n1", cpu=16),
        a_pod("f", node="n1", scheduler="default-scheduler", cpu=8),
        elastic("much", 5),
        elastic("less", 3),
        queues=queues,
        actions=RECLAIM,
        plugins=tiers("proportion"),
    )
    assert held(scenario.run()) == {"much": 5, "less": 3}

    scenario.add(elastic("new", 1, created=10))

    assert held(scenario.run()) == {"much": 4, "less": 3, "new": 1}


def test_in_capacity_pods_that_request_no_deserved_resource_are_evicted_first_and_reclaim_nothing() -> None:
    queues = [
        a_queue("due", deserved={"cpu": 4}),
        a_queue("guest", deserved={"memory": "1Gi"}),
        a_queue("new", deserved={"cpu": 4}),
    ]
    scenario = Scenario(
        a_node("n1", cpu=8),
        a_pod("f", node="n1", scheduler="default-scheduler", cpu=2),
        elastic("due", 4),
        a_job("j-guest", queue="guest", tasks=2, min_available=0, cpu=1),
        queues=queues,
        actions=RECLAIM,
        plugins=tiers("capacity", beyond_minimum=True),
    )
    assert held(scenario.run()) == {"due": 4, "guest": 2}

    scenario.add(elastic("new", 3, created=10))
    result = scenario.run()

    assert held(result) == {"due": 3, "new": 3}
    assert [evict.task.name.split("-")[1] for evict in result.evicted] == ["guest", "guest", "due"]


@pytest.mark.parametrize("actions", ["enqueue, allocate, reclaim", "enqueue, reclaim, allocate"])
def test_pending_evictions_count_before_more_pods_are_evicted(actions: str) -> None:
    due = {"old": 4, "new": 2, "idle": 4}
    queues = [a_queue(name, deserved={"cpu": cpu}) for name, cpu in due.items()]
    jobs = [a_job(f"j-new-{row}", queue="new", cpu=1, created=10) for row in range(6)]
    scenario = Scenario(
        a_node("n1", cpu=10),
        elastic("old", 10),
        queues=queues,
        actions=actions,
        plugins=tiers("capacity"),
        grace=5,
    )
    scenario.run()

    scenario.add(*jobs)
    result = scenario.run()

    assert len(result.evicted) == 2, "it deserves two, however long the victims take to go"
    assert held(result) == {"old": 8, "new": 2}


# Each queue holds so much of one resource that it cannot lose: more than it deserves, or as much as makes both equal in
# their largest share. They once took the other pods from each other whenever a cool-down was over.
@pytest.mark.parametrize("kept", [6, 4], ids=["too-much", "equal"])
@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_queues_that_hold_much_of_different_resources_do_not_exchange_pods_of_a_third(sharing: str, kept: int) -> None:
    deserved = {} if sharing == "proportion" else {"cpu": 2, "memory": "4Gi", "gpu": 4}
    stays: dict[str, Any] = {"labels": {"volcano.sh/preemptable": "false"}}
    scenario = Scenario(
        a_node("n1", cpu=4, memory="8Gi", gpu=8),
        a_pod("f", node="n1", scheduler="default-scheduler", cpu=1),
        a_job("gpus", queue="one", tasks=kept, gpu=1, **stays),
        a_job("memories", queue="two", tasks=kept, memory="1Gi", **stays),
        queues=[a_queue("one", deserved=deserved), a_queue("two", deserved=deserved)],
        actions=RECLAIM,
        plugins=tiers(sharing, beyond_minimum=True),
    )
    scenario.run()
    scenario.add(a_job("j-one", queue="one", tasks=4, min_available=0, cpu=1, created=2))
    if kept > 4:  # who wants the rest makes that too much
        scenario.add(a_job("more-gpus", queue="two", tasks=4, gpu=1, created=1))
        scenario.add(a_job("more-memories", queue="one", tasks=4, memory="1Gi", created=1))
    scenario.run()
    scenario.add(a_job("j-two", queue="two", tasks=4, min_available=0, cpu=1, created=3))

    assert held(scenario.run()) == {"one": 2, "two": 1}
    for _ in range(4):
        scenario.wait(COOLDOWN_S + 1)
        assert len(scenario.run().evicted) == 1


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_gangreclaim_breaks_no_gang_with_victims_on_several_nodes(plugin: str) -> None:
    """The victims of two gangs alternate from node to node; each gang has one task more than its minimum."""
    nodes = [a_node("n1", cpu=2), a_node("n2", cpu=2), a_node("n3", cpu=2, labels={"zone": "b"})]
    gangs = [
        a_pod(f"{name}-{number}", group=name, cpu=1, node=node, phase="Running")
        for name in "ab"
        for number, node in enumerate(("n3", "n1", "n2"))
    ]
    scenario = Scenario(
        *nodes,
        *(a_group(name, min_available=2, queue="l") for name in "ab"),
        *gangs,
        queues=[a_queue("l", deserved={"cpu": 1}), a_queue("t", weight=4, deserved={"cpu": 4})],
        plugins=(("priority", "gang", "conformance"), ("predicates", plugin, "nodeorder")),
        actions="enqueue, allocate, gangreclaim",
        recreated=False,
    )
    scenario.step()
    apart = {
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}]
                }
            }
        }
    }
    scenario.add(a_job("big", tasks=2, cpu=2, queue="t", created=1, spec=apart))

    result = scenario.step(6)

    left = Counter(name[0] for name in result.running_or_bound)
    assert all(left[name] in (0, 2, 3) for name in "ab")
