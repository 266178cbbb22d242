"""Random clusters under whole lists of actions come to rest and stay there: jobs of all priorities arrive in waves,
queues lend and take back, and evicted pods come back under other uids."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

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


def a_wave(rng: random.Random, number: int, queues: Sequence[str], cpu: int, total: int) -> list[Job]:
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


# Each was once without an end: jobs took from each other in a circle, losers took back room by their priority, or what
# their queue may hold because its order put them first.
ONCE_WITHOUT_END = [
    (helm, "capacity", SINGLE, 26),
    (helm, "capacity", GANGS, 3),
    (helm, "capacity", GANGS, 10),
    (helm, "capacity", ALL, 11),
    (without_priority, "capacity", SINGLE, 26),
    (without_priority, "capacity", GANGS, 3),
    (without_priority, "proportion", ALL, 11),
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
        scenario.add(*a_wave(rng, number, names, cpu, nodes * cpu))

        scenario.run()  # raises NotSettled
