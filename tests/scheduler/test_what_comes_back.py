"""What a cycle wrote comes back through the watch: it is no news, but anything else that an object shows is."""

import random
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.strategies import worlds
from tests.reference.world import World, a_job, a_node, a_queue, a_shape, tasks_of
from tests.scheduler.running import Outcome, a_policy, cycle
from tests.scheduler.test_settling import carry_out
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.told import Told
from volcano_py.model.objects import GroupCondition, JobKey
from volcano_py.model.wording import without_numbers
from volcano_py.scheduler import Policy
from volcano_py.snapshot.store import ClusterStore

CONDITION = GroupCondition("Unschedulable", True, "NotEnoughResources", "written by somebody else")


@pytest.fixture
def world() -> World:
    """Return a cluster in which one gang waits."""
    return World(
        nodes=[a_node("n0", cpu="1")],
        queues=[a_queue("default")],
        jobs=[a_job("waits", min_available=2, phase="Inqueue")],
        tasks=tasks_of("waits", 2, a_shape(cpu="2")),
    )


def test_a_job_is_not_looked_at_again_because_its_objects_show_what_was_decided(world: World) -> None:
    store, policy = world.store(), a_policy()
    first = cycle(store, policy)
    assert first.messages
    assert first.groups
    carry_out(world, store, first)

    second = cycle(store, policy, memory=first.memory)

    assert second.decisions == []
    (key,) = first.report.jobs
    assert second.report.jobs[key] is first.report.jobs[key]


def test_a_condition_that_somebody_else_writes_to_a_pod_is_replaced(world: World) -> None:
    store, policy = world.store(), a_policy()
    first = cycle(store, policy)
    carry_out(world, store, first)
    second = cycle(store, policy, memory=first.memory)
    show(world, store, "waits-0", "written by somebody else")

    third = cycle(store, policy, memory=second.memory)

    assert third.messages == {"waits-0": first.messages["waits-0"]}


def test_a_status_that_somebody_else_writes_to_a_group_is_replaced(world: World) -> None:
    store, policy = world.store(), a_policy()
    first = cycle(store, policy)
    carry_out(world, store, first)
    second = cycle(store, policy, memory=first.memory)
    record = store.job(JobKey("ns", "waits"))
    assert record is not None
    store.set_job(replace(record, running=7, conditions=(CONDITION,)))

    third = cycle(store, policy, memory=second.memory)

    assert third.groups["waits"].running == 0
    assert third.groups["waits"].conditions[0][:4] == first.groups["waits"].conditions[0][:4]


def test_a_condition_that_came_and_went_between_two_cycles_is_written_again(world: World) -> None:
    store, policy = world.store(), a_policy()
    first = cycle(store, policy)
    carry_out(world, store, first)
    show(world, store, "waits-0", "")

    second = cycle(store, policy, memory=first.memory)

    assert second.messages == {"waits-0": first.messages["waits-0"]}


def test_a_change_of_the_group_that_comes_with_our_status_is_looked_at(world: World) -> None:
    store, policy = world.store(), a_policy()
    first = cycle(store, policy)
    carry_out(world, store, first)
    record = store.job(JobKey("ns", "waits"))
    assert record is not None
    store.set_job(replace(record, min_available=1))

    second = cycle(store, policy, memory=first.memory)

    assert "1 minAvailable" in second.groups["waits"].conditions[0].message


@settings(max_examples=60, derandomize=True, deadline=None)
@given(worlds(), st.randoms(use_true_random=False))
def test_objects_show_the_same_in_the_end_whether_a_cycle_looks_at_changed_jobs_or_at_all(
    world: World, rng: random.Random
) -> None:
    policy, seed = a_policy(), rng.randrange(1000)
    kept, plain = settled(world, policy, seed, keeps=True), settled(world, policy, seed, keeps=False)

    assert shown(kept) == shown(plain)


def settled(world: World, policy: Policy, seed: int, *, keeps: bool) -> ClusterStore:
    """Return the cluster after cycles between which writes arrive late, and others write over ours."""
    rng, store, memory = random.Random(seed), world.store(), Memory()
    late: list[Outcome] = []
    for number in range(10):
        outcome = cycle(store, policy, memory=memory)
        memory = outcome.memory if keeps else replace(outcome.memory, told=Told())
        late.append(outcome)
        if rng.random() < 0.6 or number >= 6:
            for one in late:
                carry_out(world, store, one)
            late.clear()
        if number < 6:
            meddle(world, store, rng)
    return store


def meddle(world: World, store: ClusterStore, rng: random.Random) -> None:
    """Let somebody else write a condition of a pod, or the status of a group."""
    task = rng.choice(world.tasks) if world.tasks and rng.random() < 0.5 else None
    if task is not None:
        show(world, store, task.record.name, rng.choice(("", "written by somebody else")))
    elif world.jobs:
        record = store.job(rng.choice(world.jobs).key)
        if record is not None:
            changed = rng.choice(({"running": 9}, {"conditions": ()}, {"conditions": (CONDITION,)}))
            store.set_job(replace(record, **changed))  # type: ignore[arg-type]


def show(world: World, store: ClusterStore, name: str, text: str) -> None:
    """Let a pod show a condition."""
    place = store.task(world.task(name).record.uid)
    assert place is not None
    record = msgspec.structs.replace(place.record, condition=text)
    store.set_task(record, world.task(name).shape, place.status, place.node)


def shown(store: ClusterStore) -> object:
    """Return what pods and groups show, but for numbers in texts."""
    snapshot = store.snapshot()
    pods = {
        record.name: (without_numbers(record.condition), int(snapshot.tasks.status[row]))
        for row, record in enumerate(snapshot.tasks.records)
        if record is not None and int(snapshot.tasks.node[row]) < 0
    }
    groups = {
        record.key: (
            (record.phase, record.running, record.succeeded, record.failed),
            {(one.type, one.status, one.reason, without_numbers(one.message)) for one in record.conditions},
        )
        for record in snapshot.jobs.records
        if record is not None
    }
    return pods, groups
