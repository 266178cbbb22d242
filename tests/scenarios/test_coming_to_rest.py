"""Random clusters under complete lists of actions settle and stay settled: jobs of all priorities arrive in batches,
queues lend and reclaim, and evicted pods come back under other uids."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from volcano_py.framework.state.pending_evictions import COOLDOWN_S
from volcano_py.testing import Scenario, a_job, a_node, a_priority_class, a_queue
from volcano_py.testing.objects import Job

SINGLE = "enqueue, allocate, backfill, preempt, reclaim"
GANGS = "enqueue, allocate, backfill, gangpreempt, gangreclaim"
ALL = f"{SINGLE}, gangpreempt, gangreclaim"
CLASSES = {"low": 1, "middle": 50, "high": 100}


def helm(share: Any) -> list[list[Any]]:
    drf = {"name": "drf", "enablePreemptable": False}
    return [
        ["priority", {"name": "gang", "enablePreemptable": False}, "conformance"],
        ["overcommit", drf, "predicates", share, "nodeorder", "binpack"],
    ]


def without_priority(share: Any) -> list[list[Any]]:
    """Return tiers in which the order of jobs does not follow their priorities, while gang actions do."""
    return [["gang", "conformance"], ["drf", "predicates", share, "nodeorder"]]


def with_drf(share: Any) -> list[list[Any]]:
    """Return tiers of which the second decides about victims when priority permits none."""
    gang = {"name": "gang", "enablePreemptable": False}
    return [["priority", gang, "conformance"], ["overcommit", "drf", "predicates", share, "nodeorder"]]


def tree_of_queues(rng: random.Random, total: int) -> tuple[list[Any], list[str]]:
    names = [f"q{number}" for number in range(rng.randint(1, 4))]
    leaves = [
        a_queue(
            name,
            parent="all",
            weight=rng.choice([1, 1, 2, 5]),
            deserved={"cpu": rng.randint(0, total), "memory": f"{rng.randint(1, 4 * total)}Gi"},
        )
        for name in names
    ]
    deserved = {"cpu": total * 4, "memory": f"{16 * total}Gi"}
    return [a_queue("root"), a_queue("all", parent="root", deserved=deserved), *leaves], names


def arriving_jobs(rng: random.Random, number: int, queues: Sequence[str], cpu: int, total: int) -> list[Job]:
    jobs = []
    for place in range(rng.randint(1, 6)):
        tasks = rng.randint(1, min(8, total))
        priority = rng.choice(list(CLASSES))
        jobs.append(
            a_job(
                f"w{number}j{place}",
                tasks=tasks,
                min_available=rng.choice([0, 1, tasks, tasks, rng.randint(1, tasks)]),
                queue=rng.choice(queues),
                cpu=rng.randint(1, cpu // 2 + 1),
                memory=f"{rng.randint(1, 4)}Gi",
                priority_class=priority,
                priority=CLASSES[priority],
                created=number * 10 + place,
            )
        )
    return jobs


# Each once led to endless evictions: jobs preempted each other in a circle, or victims took their room back, by their
# priority or by the order of their queue.
ONCE_WITHOUT_END = [
    (helm, "capacity", SINGLE, 26),
    (helm, "capacity", GANGS, 3),
    (helm, "capacity", GANGS, 10),
    (helm, "capacity", ALL, 11),
    (without_priority, "capacity", SINGLE, 26),
    (without_priority, "capacity", GANGS, 3),
    (without_priority, "proportion", ALL, 11),
    (with_drf, "capacity", SINGLE, 0),
    (with_drf, "capacity", ALL, 9),
    (with_drf, "proportion", SINGLE, 11),
]
OTHERS = [(tiers, share, ALL, 7) for tiers in (helm, without_priority) for share in ("capacity", "proportion")]


@pytest.mark.parametrize(("tiers", "sharing", "actions", "seed"), [*ONCE_WITHOUT_END, *OTHERS])
def test_a_cluster_comes_to_rest(tiers: Any, sharing: str, actions: str, seed: int) -> None:
    rng = random.Random(seed)
    nodes, cpu = rng.randint(1, 4), rng.choice([2, 4, 8])
    queues, names = tree_of_queues(rng, nodes * cpu)
    scenario = Scenario(
        *(a_node(f"n{row}", cpu=cpu, memory=f"{4 * cpu}Gi") for row in range(nodes)),
        *(a_priority_class(name, value) for name, value in CLASSES.items()),
        queues=queues,
        actions=actions,
        plugins=tiers({"name": sharing, "enableHierarchy": True} if sharing == "capacity" else sharing),
        grace=rng.randint(0, 3),
    )
    for number in range(rng.randint(2, 4)):
        scenario.add(*arriving_jobs(rng, number, names, cpu, nodes * cpu))

        scenario.run()  # raises NotSettled

    if tiers is without_priority and "gangpreempt" in actions:  # then `gang` lets any job evict any other
        return
    evicted = len(scenario.run().evicted)
    for _ in range(3):  # a victim may take room back once its cool-down is over
        scenario.wait(COOLDOWN_S + 1)
        assert len(scenario.run().evicted) == evicted


TREE = {"name": "capacity", "enableHierarchy": True}
HDRF = {"name": "drf", "enableHierarchy": True}


# Each but proportion once led to endless evictions: once a cool-down was over, the victim took everything back. In the
# last case two plans of one action had the same victims.
@pytest.mark.parametrize(
    ("sharing", "actions", "wanted", "standing"),
    [
        pytest.param("proportion", SINGLE, 6, {"old": 3, "new": 3}, id="proportion"),
        pytest.param("capacity", SINGLE, 6, {"old": 3, "new": 3}, id="capacity"),
        pytest.param(TREE, SINGLE, 6, {"old": 3, "new": 3}, id="capacity-in-a-tree"),
        pytest.param(HDRF, SINGLE, 6, {"old": 4, "new": 2}, id="drf-in-a-tree"),
        pytest.param("capacity", GANGS, 3, {"old": 3, "new": 3}, id="gangs"),
    ],
)
def test_a_queue_keeps_its_share_even_if_an_earlier_tier_permits_its_eviction(
    sharing: Any, actions: str, wanted: int, standing: dict[str, int]
) -> None:
    def elastic(queue: str, tasks: int) -> Job:
        return a_job(queue, queue=queue, tasks=tasks, min_available=1, cpu=1)

    def a_part(queue: str) -> Any:
        return a_queue(queue, deserved={"cpu": 4}, hierarchy=f"root/{queue}", hierarchy_weights="1/1")

    gang = {"name": "gang", "enableJobStarving": False}  # else reclaim serves only the minimum
    scenario = Scenario(
        a_node("n1", cpu=6),
        elastic("old", 6),
        queues=(a_queue("root"), a_part("old"), a_part("new")),
        actions=actions,
        plugins=(("priority", gang, "conformance"), ("predicates", sharing, "nodeorder")),
    )
    scenario.run()
    scenario.add(elastic("new", wanted))
    evicted = len(scenario.run().evicted)

    scenario.wait(COOLDOWN_S + 1)
    later = scenario.run()

    assert Counter(name.rpartition("-")[0] for name in later.running_or_bound) == standing
    assert len(later.evicted) == evicted == standing["new"]
