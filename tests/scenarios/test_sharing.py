"""Users' cases: packing, fair shares of jobs and queues, best effort, and jobs that are not enqueued."""

from collections import Counter

import pytest

from volcano_py.conf.defaults import BUILT_IN_CONF
from volcano_py.testing import Scenario, a_job, a_node, a_queue

PACKING = (
    BUILT_IN_CONF
    + """\
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.cpu: 5
      binpack.memory: 1
"""
)


@pytest.mark.parametrize(("pods", "expected"), [(16, [16]), (24, [4, 20])])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_small_pods_fill_one_node_before_the_next(pods: int, expected: list[int], seed: int) -> None:
    """Two nodes of four cores, and pods of 200m: twenty fit on one."""
    nodes = [a_node(name, cpu=4, memory="8Gi") for name in ("n1", "n2")]
    scenario = Scenario(*nodes, a_job("j", tasks=pods, cpu="200m"), conf=PACKING, seed=seed)

    placed = Counter(scenario.run().placements.values())

    assert sorted(placed.values()) == expected


def test_a_large_and_a_small_job_of_one_queue_run_equally_many_pods() -> None:
    nodes = [a_node(f"n{index}", cpu=10, memory="40Gi") for index in range(5)]
    large = a_job("large", tasks=300, min_available=1, cpu=1)
    small = a_job("small", tasks=60, min_available=1, cpu=1, created=1.0)

    placed = Scenario(*nodes, large, small, conf=BUILT_IN_CONF).run().placements

    counts = Counter(name.split("-")[0] for name in placed)
    assert counts.total() == 50
    assert abs(counts["large"] - counts["small"]) <= 1


def backlog(name: str, queue: str, jobs: int, created: float = 0.0) -> list[object]:
    return [
        a_job(f"{name}{index}", tasks=1, queue=queue, cpu=1, created=created, min_available=1) for index in range(jobs)
    ]


@pytest.mark.parametrize(("weights", "expected"), [((3, 1), (15, 5)), ((1, 1), (10, 10)), ((2, 1), (13, 7))])
def test_backlogged_queues_end_within_one_pod_of_their_weights(
    weights: tuple[int, int], expected: tuple[int, int]
) -> None:
    nodes = [a_node(f"n{index}", cpu=5) for index in range(4)]
    queues = [a_queue(name, weight=weight) for name, weight in zip("ab", weights, strict=True)]

    placed = (
        Scenario(*nodes, *backlog("a", "a", 30), *backlog("b", "b", 30), queues=queues, conf=BUILT_IN_CONF)
        .run()
        .placements
    )

    counts = Counter(name[0] for name in placed)
    assert counts.total() in (19, 20)  # a share that is no whole number of pods leaves its part of one
    assert all(abs(counts[name] - share) <= 1 for name, share in zip("ab", expected, strict=True))


def test_a_queue_alone_may_use_the_whole_cluster() -> None:
    nodes = [a_node(f"n{index}", cpu=5) for index in range(4)]
    queues = [a_queue("a"), a_queue("b", weight=99)]

    placed = Scenario(*nodes, *backlog("a", "a", 30), queues=queues, conf=BUILT_IN_CONF).run().placements

    assert len(placed) == 20


def test_a_queue_never_holds_more_than_its_capability() -> None:
    queues = [a_queue("a", capability={"cpu": 3}), a_queue("b")]

    scenario = Scenario(a_node("n1", cpu=20), *backlog("a", "a", 30), queues=queues, conf=BUILT_IN_CONF)
    result = scenario.run()

    assert len(result.placements) == 3
    assert set(result.conditions.values()) == {
        'queue "a" may not hold more: 1 cpu asked, 3 held, 3 allowed (its capability)'
    }


def test_the_share_of_a_finished_job_goes_to_the_next() -> None:
    queues = [a_queue("a", capability={"cpu": 2}), a_queue("b")]
    scenario = Scenario(a_node("n1", cpu=20), *backlog("a", "a", 4), queues=queues, conf=BUILT_IN_CONF)
    scenario.run()

    scenario.finish("a0", "a1")

    assert sorted(scenario.run().placements) == ["a0-0", "a1-0", "a2-0", "a3-0"]


def test_pods_that_ask_for_nothing_are_placed_after_the_others() -> None:
    jobs = (a_job("free", tasks=2), a_job("paid", tasks=1, cpu=1, created=1.0))

    result = Scenario(a_node("n1", cpu=4), *jobs, conf=BUILT_IN_CONF).run()

    assert result.batches == [["paid-0"], ["free-0", "free-1"]]


def test_a_job_whose_minimum_does_not_fit_is_not_enqueued_and_blocks_nobody() -> None:
    big = a_job("big", tasks=4, cpu=8, min_resources={"cpu": 32})
    small = a_job("small", tasks=2, cpu=1, min_resources={"cpu": 2}, created=1.0)
    scenario = Scenario(a_node("n1", cpu=8), big, small, conf=BUILT_IN_CONF)

    result = scenario.run()

    assert (result.phases["big"], result.phases["small"]) == ("Pending", "Running")
    assert result.why_not("big").message.endswith("resource in cluster is overused: overused cpu")
    refused = [event for event in result.events if event.name == "big" and event.type == "Normal"]
    assert [event.message for event in refused] == ["resource in cluster is overused: overused cpu"]

    scenario.add(*(a_node(f"n{index}", cpu=8) for index in range(2, 6)))

    assert scenario.run().phases["big"] == "Running"


def test_a_queue_without_a_state_is_open_and_a_closed_one_is_not() -> None:
    queues = [a_queue("new", state=""), a_queue("closed", state="Closed")]
    jobs = (a_job("one", queue="new", cpu=1), a_job("two", queue="closed", cpu=1))

    result = Scenario(a_node("n1"), *jobs, queues=queues, conf=BUILT_IN_CONF).run()

    assert list(result.placements) == ["one-0"]
    assert result.conditions["two-0"].endswith('queue "closed" is Closed, not Open: it takes no new job')
