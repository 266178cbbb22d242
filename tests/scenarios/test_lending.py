"""Queues that lend what they do not use and get it back: the plugin capacity with reclaim, to the end and at rest."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from volcano_py.testing import Result, Scenario, a_budget, a_group, a_job, a_node, a_pod, a_queue

ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"
FLAT = (("priority", "gang", "conformance"), ("predicates", "capacity", "nodeorder"))
TREE = (("priority", "gang", "conformance"), ("predicates", {"name": "capacity", "enableHierarchy": True}, "nodeorder"))


def a_scenario(*objects: Any, queues: Any, plugins: Any = FLAT, **options: Any) -> Scenario:
    return Scenario(*objects, queues=queues, actions=ACTIONS, plugins=plugins, **options)


def of(queue: str, pods: int, created: float = 0.0, **pod: Any) -> list[Any]:
    """Return so many jobs of one pod of one core: each of them may have others evicted for it."""
    return [a_job(f"j-{queue}-{row}", queue=queue, created=created, **{"cpu": 1, **pod}) for row in range(pods)]


def running(result: Result) -> dict[str, int]:
    """Return how many pods of each queue run."""
    return dict(Counter(name.split("-")[1] for name in result.running_or_bound))


# P1: services 40 %, big data 60 % with two clusters below it

AREAS = (
    a_queue("root"),
    a_queue("services", deserved={"cpu": 4}),
    a_queue("bigdata", deserved={"cpu": 6}),
    a_queue("spark", parent="bigdata", deserved={"cpu": 3}),
    a_queue("hadoop", parent="bigdata", deserved={"cpu": 3}),
)


def test_an_idle_queue_lends_everything_and_gets_its_share_back_on_demand() -> None:
    scenario = a_scenario(*of("spark", 12), a_node("n1", cpu=10), queues=AREAS, plugins=TREE)
    assert running(scenario.run()) == {"spark": 10}

    scenario.add(*of("services", 12, created=1))
    assert running(scenario.run()) == {"services": 4, "spark": 6}

    scenario.add(*of("hadoop", 12, created=2))
    result = scenario.run()

    assert running(result) == {"services": 4, "spark": 3, "hadoop": 3}
    assert len(result.evicted) == 7, "nobody goes who need not go"


def test_resources_that_a_queue_no_longer_uses_are_lent_again() -> None:
    jobs = [job for name in ("services", "spark", "hadoop") for job in of(name, 12)]
    scenario = a_scenario(*jobs, a_node("n1", cpu=10), queues=AREAS, plugins=TREE)
    assert running(scenario.run()) == {"services": 4, "spark": 3, "hadoop": 3}

    scenario.delete(*(f"j-services-{row}" for row in range(12)))

    found = running(scenario.run())
    assert sum(found.values()) == 10
    assert min(found.values()) >= 3


def test_branches_with_demand_from_the_start_share_as_deserved_without_evictions() -> None:
    jobs = [job for name in ("services", "spark", "hadoop") for job in of(name, 12)]

    result = a_scenario(*jobs, a_node("n1", cpu=10), queues=AREAS, plugins=TREE).run()

    assert running(result) == {"services": 4, "spark": 3, "hadoop": 3}
    assert result.evicted == []


# P2: two consumers on one node


def test_a_consumer_that_arrives_gets_half_by_one_eviction() -> None:
    half = {"cpu": 1, "memory": "1Gi"}
    queues = [a_queue(name, deserved=half) for name in ("one", "two")]
    scenario = a_scenario(*of("one", 2, memory="1Gi"), a_node("n1", cpu=2, memory="2Gi"), queues=queues)
    assert running(scenario.run()) == {"one": 2}  # T1

    scenario.add(*of("two", 2, created=1, memory="1Gi"))
    first = scenario.step()  # T2
    assert len(first.evicted) == 1
    result = scenario.run()  # T3

    assert running(result) == {"one": 1, "two": 1}
    assert len(result.evicted) == 1  # P4: nobody is evicted again


# P3: what is never taken


@pytest.mark.parametrize("grace", [1, 3])
def test_a_guarantee_is_never_reclaimed(grace: int) -> None:
    queues = [a_queue("old", guarantee={"cpu": 3}), a_queue("new", deserved={"cpu": 9})]
    scenario = a_scenario(*of("old", 8), a_node("n1", cpu=8), queues=queues, grace=grace)
    scenario.run()

    scenario.add(*of("new", 9, created=1))
    result = scenario.run()

    assert running(result)["old"] == 3
    assert running(result)["new"] == 5


def test_the_queue_furthest_above_its_deserved_share_loses_pods_first() -> None:
    queues = [a_queue(name, deserved={"cpu": 3}) for name in ("far", "near", "new")]
    jobs = [*of("far", 6), *of("near", 4, created=-1)]
    scenario = a_scenario(a_node("n1", cpu=10), queues=queues)
    scenario.add(*jobs)
    assert running(scenario.run()) == {"far": 6, "near": 4}

    scenario.add(*of("new", 2, created=1))
    result = scenario.run()

    assert running(result) == {"far": 4, "near": 4, "new": 2}


def test_a_budget_that_allows_nothing_is_respected() -> None:
    plugins = (("priority", "gang", "conformance", "pdb"), ("predicates", "capacity", "nodeorder"))
    queues = [a_queue(name, deserved={"cpu": 1}) for name in ("one", "two")]
    pods = {"labels": {"app": "kept"}}
    budget = a_budget(labels={"app": "kept"}, allowed=0)
    scenario = a_scenario(*of("one", 2, **pods), budget, a_node("n1", cpu=2), queues=queues, plugins=plugins)
    scenario.run()

    scenario.add(*of("two", 1, created=1))
    result = scenario.run()

    assert running(result) == {"one": 2}
    assert result.evicted == []


def test_a_gang_reclaims_all_it_needs_or_nothing() -> None:
    queues = [a_queue("lender", deserved={"cpu": 4}), a_queue("other", deserved={"cpu": 4})]
    scenario = a_scenario(*of("other", 8), a_node("n1", cpu=8), queues=queues)
    scenario.run()

    scenario.add(a_job("too-big", queue="lender", tasks=5, cpu=1, created=1))
    result = scenario.run()
    assert result.evicted == [], "five are more than the queue deserves"

    scenario.add(a_job("fits", queue="lender", tasks=4, cpu=1, created=2))
    result = scenario.run()
    assert {name for name in result.running_or_bound if name.startswith("fits")} == {f"fits-{row}" for row in range(4)}
    assert len(result.evicted) == 4


def test_a_queue_that_is_not_reclaimable_keeps_what_it_holds() -> None:
    queues = [a_queue("one", deserved={"cpu": 1}), a_queue("two", deserved={"cpu": 1})]
    kept = a_group("g", queue="one")
    pods = [
        a_pod(f"g-{row}", group="g", cpu=1, node="n1", labels={"volcano.sh/preemptable": "false"}) for row in range(2)
    ]
    scenario = a_scenario(kept, *pods, *of("two", 1, created=1), a_node("n1", cpu=2), queues=queues)

    assert scenario.run().evicted == []


# P4: at rest


@pytest.mark.parametrize("number", range(5))
def test_reclaim_always_terminates_and_keeps_its_guarantees(number: int) -> None:
    dice = Random(number)
    due = {f"q{row}": (dice.randint(0, 6), dice.choice((0, 0, 1, 2))) for row in range(dice.randint(2, 4))}
    queues = [
        a_queue(name, deserved={"cpu": deserved}, guarantee={"cpu": kept}) for name, (deserved, kept) in due.items()
    ]
    scenario = a_scenario(a_node("n1", cpu=6), a_node("n2", cpu=6), queues=queues)
    asked: dict[str, int] = {}
    for step, name in enumerate(dice.sample(sorted(due), len(due))):
        asked[name] = dice.randint(1, 10)
        scenario.add(*of(name, asked[name], created=step))
        if dice.random() < 0.7:
            scenario.run()  # five more cycles that change nothing are part of it
    found = running(scenario.run())

    due = {name: (max(deserved, kept), kept) for name, (deserved, kept) in due.items()}
    for name, (deserved, kept) in due.items():
        assert found.get(name, 0) >= min(kept, asked[name])
        if sum(deserved for deserved, _ in due.values()) <= 12:
            assert found.get(name, 0) >= min(deserved, asked[name]), "who deserves it and asks for it has it"
    assert sum(found.values()) == min(12, sum(asked.values()))


# Minimums of roles: every PodGroup of a Volcano Job has them


def full_of_lent_pods(actions: str = ACTIONS) -> Scenario:
    halves = (a_queue("root", reclaimable=False), *(a_queue(name, deserved={"cpu": 4}) for name in ("mine", "theirs")))
    scenario = Scenario(a_node("n1", cpu=8), queues=halves, actions=actions, plugins=FLAT)
    scenario.add(a_job("lent", tasks=8, min_available=1, queue="theirs", cpu=1))
    scenario.run()
    return scenario


@pytest.mark.parametrize("minimums", [None, {"w": 10}, {"w": 1}])
def test_a_job_larger_than_its_queue_deserves_takes_room_for_its_minimum(minimums: dict[str, int] | None) -> None:
    scenario = full_of_lent_pods()
    scenario.add(a_job("big", tasks={"w": 10}, min_available=1, min_task_member=minimums, queue="mine", cpu=1))

    assert len(scenario.run().evicted) == 1


@pytest.mark.parametrize("actions", [ACTIONS, "enqueue, allocate, gangreclaim, backfill"])
@pytest.mark.parametrize("server", ["ps", "zs"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_gang_with_roles_takes_room_for_its_minimum_only(actions: str, server: str, workers: int) -> None:
    """Also if the tasks of the role that lacks one come last in task order."""
    scenario = full_of_lent_pods(actions)
    minimums = {server: 1, "w": 1}
    job = a_job(
        "big", tasks={server: 1, "w": 9}, min_available=1 + workers, min_task_member=minimums, queue="mine", cpu=1
    )
    scenario.add(job)

    result = scenario.run()

    assert len(result.evicted) == 1 + workers
    assert {name for name in result.running_or_bound if "big" in name} == {
        f"big-{server}-0",
        *(f"big-w-{number}" for number in range(workers)),
    }
