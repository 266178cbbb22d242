"""Preempt and reclaim on crowded clusters, with every plan checked by plain arithmetic (`tests.reference.crowded`)."""

from dataclasses import replace
from functools import cache

import pytest

from tests.reference import crowded
from tests.reference.crowded import Plan, crowded_world, plans_of
from tests.reference.world import NAMESPACE, World
from tests.scheduler.running import Outcome, cycle
from volcano_py.model.decisions import Bind
from volcano_py.model.facts import BudgetRecord
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import TaskStatus

PREEMPT = """\
actions: "{actions}"
tiers:
- plugins:
  - {{name: priority}}
  - {{name: gang}}
  - {{name: conformance}}
  - {{name: predicates}}
  - {{name: nodeorder}}
"""
RECLAIM = """\
actions: "{actions}"
tiers:
- plugins:
  - {{name: gang}}
  - {{name: conformance}}
  - {{name: proportion}}
  - {{name: predicates}}
  - {{name: nodeorder}}
"""
NUMBERS = range(150)
CASES = [
    pytest.param((PREEMPT, "preempt", ("default",)), id="preempt"),
    pytest.param((RECLAIM, "reclaim", ("a", "b", "c")), id="reclaim"),
]
Case = tuple[str, str, tuple[str, ...]]


@cache
def decided(case: Case, number: int) -> tuple[World, list[Plan], Outcome]:
    conf, action, queues = case
    world = crowded_world(number, queues)
    outcome = cycle(world, conf.format(actions=f"allocate, {action}"))
    # What allocate has bound stands there when the plans are made.
    bound = {one.task.name: one.node for one in outcome.decisions if isinstance(one, Bind)}
    tasks = tuple(
        task
        if task.record.name not in bound
        else type(task)(task.record, task.shape, TaskStatus.BOUND, bound[task.record.name])
        for task in world.tasks
    )
    return World(world.nodes, world.queues, world.jobs, tasks), plans_of(outcome.batches), outcome


@pytest.mark.parametrize("case", CASES)
def test_the_random_clusters_lead_to_enough_evictions(case: Case) -> None:
    found = [decided(case, number)[1] for number in NUMBERS]

    assert sum(len(plans) > 0 for plans in found) >= 20
    assert any(len(plan.victims) > 2 for plans in found for plan in plans)
    assert any(len(plan.rooms) > 1 for plans in found for plan in plans)
    assert any(len(plans) > 1 for plans in found)


@pytest.mark.parametrize("case", CASES)
def test_nominated_tasks_fit_once_the_victims_are_gone_and_every_victim_is_needed(case: Case) -> None:
    for number in NUMBERS:
        world, plans, _ = decided(case, number)
        gone: list[str] = []
        rooms: dict[str, str] = {}
        for plan in plans:
            assert plan.rooms, f"crowded_world({number}): {plan} makes room for nobody"
            assert not set(plan.victims) & set(gone), f"crowded_world({number}): somebody goes twice"
            gone += plan.victims
            rooms |= plan.rooms
            assert crowded.fits(crowded.room(world, gone, rooms)), f"crowded_world({number}): {plan} does not fit"
            for victim in plan.victims:
                without = [name for name in gone if name != victim]
                assert not crowded.fits(crowded.room(world, without, rooms)), (
                    f"crowded_world({number}): {victim} of {plan}"
                )


@pytest.mark.parametrize("case", CASES)
def test_no_gang_is_broken_and_no_protected_pod_is_evicted(case: Case) -> None:
    for number in NUMBERS:
        world, plans, _ = decided(case, number)
        gone = {name for plan in plans for name in plan.victims}
        before, left = crowded.ready(world, ()), crowded.ready(world, gone)
        for job in world.jobs:
            name = job.key.name
            assert left[name] >= min(job.min_available, before[name]), f"crowded_world({number}): {name}"
        for name in gone:
            record = world.task(name).record
            assert record.traits == TaskTrait.PREEMPTABLE, f"crowded_world({number}): {name}"


@pytest.mark.parametrize("case", CASES)
def test_a_budget_limits_evictions_that_would_happen_without_it(case: Case) -> None:
    conf, action, queues = case
    text = conf.format(actions=f"allocate, {action}") + "  - {name: pdb}\n"
    fewer = 0
    for number in NUMBERS:
        allowed = number % 3
        budgets = (BudgetRecord(NAMESPACE, "all", allowed=allowed),)
        plans = plans_of(cycle(replace(crowded_world(number, queues), budgets=budgets), text).batches)
        gone = sum(len(plan.victims) for plan in plans)
        assert gone <= allowed, f"crowded_world({number}): {plans}"
        fewer += gone < sum(len(plan.victims) for plan in decided(case, number)[1])
    assert fewer >= 30


@pytest.mark.parametrize("case", CASES)
def test_a_plan_gives_its_job_the_minimum(case: Case) -> None:
    for number in NUMBERS:
        world, plans, _ = decided(case, number)
        got = crowded.ready(world, ())
        for plan in plans:
            jobs = {world.task(name).record.job for name in plan.rooms}
            assert len(jobs) == 1
            got.update(world.task(name).record.job for name in plan.rooms)
            (job,) = (one for one in world.jobs if one.key.name in jobs)
            assert got[job.key.name] >= job.min_available, f"crowded_world({number}): {plan}"


@pytest.mark.parametrize("case", CASES)
def test_a_plan_is_carried_out_once_the_victims_are_gone(case: Case) -> None:
    conf, action, _ = case
    for number in NUMBERS:
        world, plans, outcome = decided(case, number)
        if not plans:
            continue
        later = cycle(
            crowded.after(world, plans), conf.format(actions=f"allocate, {action}"), memory=outcome.memory, now=1.0
        )
        bound = dict(later.binds)
        for plan in plans:
            assert plan.rooms.items() <= bound.items(), f"crowded_world({number}): {plan}"


def test_reclaim_leaves_every_queue_its_guaranteed_and_deserved_resources() -> None:
    case: Case = CASES[1].values[0]  # type: ignore[assignment]
    for number in NUMBERS:
        world, plans, _ = decided(case, number)
        gone = {name for plan in plans for name in plan.victims}
        of_job = {job.key.name: job.queue for job in world.jobs}
        for queue in world.queues:
            victims = [name for name in gone if of_job[world.task(name).record.job or ""] == queue.name]
            assert not victims or queue.reclaimable, f"crowded_world({number}): {victims}"
            held: dict[str, float] = {}
            for task in world.tasks:
                if task.node and task.record.name not in gone and of_job[task.record.job or ""] == queue.name:
                    for name, amount in task.shape.request:
                        held[name] = held.get(name, 0.0) + amount
            guaranteed = {"cpu": queue.guarantee.cpu, "memory": queue.guarantee.memory}
            if victims:
                assert all(held.get(name, 0.0) >= due for name, due in guaranteed.items()), (
                    f"crowded_world({number}): {queue}"
                )


@pytest.mark.parametrize("case", CASES)
def test_the_order_in_which_objects_arrive_changes_nothing(case: Case) -> None:
    conf, action, queues = case
    text = conf.format(actions=f"allocate, {action}")
    for number in range(0, 150, 5):
        world = crowded_world(number, queues)
        assert cycle(world.store(shuffle=number), text).decisions == cycle(world, text).decisions
