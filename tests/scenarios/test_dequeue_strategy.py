"""Queues that serve strictly in order (fifo), and those that go past a job that gets nothing (traverse)."""

from typing import Any

import pytest

from volcano_py.testing import Result, Scenario, a_group, a_job, a_node, a_queue

GANG = ("priority", "gang", "predicates", "proportion")
ALONE = ("priority", "predicates")


def run(*objects: Any, fifo: bool, plugins: Any = GANG, **options: Any) -> Result:
    queues = (a_queue("q", fifo=fifo), a_queue("other"))
    return Scenario(*objects, a_node("n1", cpu=4), queues=queues, plugins=plugins, **options).run()


@pytest.mark.parametrize(("fifo", "placed"), [(True, set()), (False, {"small-0", "small-1"})], ids=["fifo", "traverse"])
def test_a_gang_that_does_not_fit_blocks_later_jobs_only_under_fifo(fifo: bool, placed: set[str]) -> None:
    big = a_job("big", tasks=5, cpu=1, queue="q")
    small = a_job("small", tasks=2, cpu=1, queue="q", created=1)

    assert set(run(big, small, fifo=fifo).placements) == placed


def test_jobs_of_a_blocked_queue_name_the_job_that_they_wait_for() -> None:
    big = a_job("big", tasks=5, cpu=1, queue="q")
    small = a_job("small", tasks=2, cpu=1, queue="q", created=1)

    result = run(big, small, fifo=True, plugins=GANG[:-1])

    text = 'queue "q" serves in order (dequeueStrategy fifo), and PodGroup default/big is first'
    assert text in result.why_not("small").message
    assert "Insufficient cpu" in result.why_not("big").message


def test_an_enqueued_job_gives_its_own_reason_even_if_another_is_blocked() -> None:
    kept_out = a_group("big", queue="q", min_resources={"cpu": 9})
    enqueued = a_job("small", tasks=5, cpu=1, queue="q", created=1, phase="Inqueue")

    message = run(kept_out, enqueued, fifo=True).why_not("small").message

    assert 'queue "q" may not hold more' in message


def test_other_queues_go_on() -> None:
    big = a_job("big", tasks=5, cpu=1, queue="q")
    small = a_job("small", tasks=2, cpu=1, queue="other", created=1)

    assert set(run(big, small, fifo=True).placements) == {"small-0", "small-1"}


def test_if_the_first_job_fits_the_next_is_tried() -> None:
    jobs = [a_job(name, tasks=2, cpu=1, queue="q", created=age) for age, name in enumerate(("a", "b", "c"))]

    assert set(run(*jobs, fifo=True).placements) == {"a-0", "a-1", "b-0", "b-1"}


@pytest.mark.parametrize(("fifo", "placed"), [(True, set()), (False, {"small-0"})], ids=["fifo", "traverse"])
def test_without_gang_a_job_blocks_later_ones_if_none_of_its_tasks_fits(fifo: bool, placed: set[str]) -> None:
    big = a_job("big", tasks=2, cpu=5, queue="q")
    small = a_job("small", tasks=1, cpu=1, queue="q", created=1)

    assert set(run(big, small, fifo=fifo, plugins=ALONE).placements) == placed


def test_a_job_with_its_minimum_does_not_block_later_jobs_while_it_still_gets_tasks_placed() -> None:
    elastic = a_job("elastic", tasks=2, min_available=1, cpu=1, queue="q")
    gang = a_job("gang", tasks=3, cpu=1, queue="q", created=1)

    assert {"gang-0", "gang-1", "gang-2"} <= set(run(elastic, gang, fifo=True).placements)


def test_best_effort_tasks_are_placed_even_if_the_queue_is_blocked() -> None:
    big = a_job("big", tasks=5, cpu=1, queue="q")
    light = a_job("light", queue="q", created=1)

    result = run(big, light, fifo=True, actions="enqueue, allocate, backfill")

    assert set(result.placements) == {"light-0"}


@pytest.mark.parametrize(("fifo", "phase"), [(True, "Pending"), (False, "Inqueue")], ids=["fifo", "traverse"])
def test_a_job_that_is_not_enqueued_blocks_later_jobs_only_under_fifo(fifo: bool, phase: str) -> None:
    head = a_group("head", queue="q", min_resources={"cpu": 5})
    behind = a_group("behind", queue="q", min_resources={"cpu": 1}, created=1)

    result = run(head, behind, fifo=fifo)

    assert result.phases == {"head": "Pending", "behind": phase}
    assert [event.name for event in result.events] == (["head", "behind"] if fifo else ["head"])


def test_jobs_that_are_not_enqueued_behind_another_are_told_so() -> None:
    groups = [a_group(name, queue="q", min_resources={"cpu": 5}, created=age) for age, name in enumerate("abc")]
    scenario = Scenario(*groups, a_node("n1", cpu=4), queues=(a_queue("q", fifo=True),), plugins=GANG)

    told = [event.message for event in scenario.run().events if event.name in ("b", "c")]

    assert told == ['queue "q" serves in order (dequeueStrategy fifo), and a job before this one waits'] * 2


@pytest.mark.parametrize(("fifo", "evicted"), [(True, 0), (False, 1)], ids=["fifo", "traverse"])
def test_nobody_is_evicted_for_blocked_jobs(fifo: bool, evicted: int) -> None:
    queues = (a_queue("q", fifo=fifo, deserved={"cpu": 2}), a_queue("other", deserved={"cpu": 2}))
    lent = [a_job(f"lent-{row}", cpu=1, queue="other") for row in range(4)]
    plugins = (("priority", "gang"), ("predicates", "capacity"))
    scenario = Scenario(
        *lent, a_node("n1", cpu=4), queues=queues, plugins=plugins, actions="enqueue, allocate, preempt, reclaim"
    )
    scenario.run()

    scenario.add(a_job("big", tasks=3, cpu=1, queue="q", created=1), a_job("small", cpu=1, queue="q", created=2))

    assert len(scenario.run().evicted) == evicted
