"""Cycles come to rest: what was decided and done is not decided again, and nothing is written twice."""

from dataclasses import replace

import msgspec
from hypothesis import given, settings

from tests.reference.strategies import worlds
from tests.reference.world import World
from tests.scheduler.running import WITH_BINPACK, Outcome, a_policy, cycle
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Bind, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import JobRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.store import ClusterStore

ENOUGH = 6


def carry_out(world: World, store: ClusterStore, outcome: Outcome) -> None:
    """Do what was decided: bound pods run at once, statuses and conditions are written at once."""
    for decision in outcome.decisions:
        match decision:
            case Bind():
                store.move_task(decision.task.uid, TaskStatus.RUNNING, decision.node)
            case SetPodCondition():
                place = store.task(decision.task.uid)
                assert place is not None
                record = msgspec.structs.replace(place.record, condition=decision.message)
                store.set_task(record, world.task(record.name).shape, place.status, place.node)
            case SetPodGroupStatus():
                before = store.job(decision.job)
                assert before is not None
                store.set_job(_written(before, decision))


def _written(record: JobRecord, status: SetPodGroupStatus) -> JobRecord:
    conditions = {one.type: one for one in record.conditions} | {one.type: one for one in status.conditions}
    return replace(
        record,
        phase=status.phase,
        running=status.running,
        succeeded=status.succeeded,
        failed=status.failed,
        conditions=tuple(conditions.values()),
    )


@settings(max_examples=40, derandomize=True)
@given(worlds())
def test_decisions_end_after_a_few_cycles(world: World) -> None:
    store, policy, memory = world.store(), a_policy(WITH_BINPACK), Memory()
    for _ in range(ENOUGH):
        outcome = cycle(store, policy, memory=memory)
        memory = outcome.memory
        if not outcome.decisions:
            break
        carry_out(world, store, outcome)

    for _ in range(2):
        outcome = cycle(store, policy, memory=memory)
        memory = outcome.memory
        assert outcome.decisions == []


@settings(max_examples=40, derandomize=True)
@given(worlds())
def test_a_bound_gang_is_whole_in_the_next_cycle_too(world: World) -> None:
    """A PodGroup whose gang was bound says Scheduled and not Unschedulable, and its bound pods are bound once."""
    store, policy = world.store(), a_policy(WITH_BINPACK)
    first = cycle(store, policy)
    carry_out(world, store, first)
    second = cycle(store, policy)

    assert not set(first.binds) & set(second.binds)
    bound = {one.job.name for one in first.decisions if isinstance(one, Bind)}
    for name in bound & set(second.groups):
        conditions = {one.type: one.status for one in second.groups[name].conditions}
        assert conditions.get("Unschedulable") is not True
