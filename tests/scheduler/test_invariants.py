"""What must hold after any cycle on any cluster."""

from collections import Counter

import pytest
from hypothesis import given, settings

from tests.reference.accounts import READY, best_effort, fits, node_accounts, tasks_by_job
from tests.reference.selection import static_reason
from tests.reference.strategies import worlds
from tests.reference.world import World
from tests.scheduler.running import DEFAULT, WITH_BINPACK, WITHOUT_GANG, Outcome, cycle
from volcano_py.model.statuses import TaskStatus

CONFS = {
    "spread": DEFAULT,
    "spread-and-pack": WITH_BINPACK,
    "no-gang": WITHOUT_GANG,
    "no-predicates": DEFAULT.replace("  - name: predicates\n", ""),
}


@pytest.mark.parametrize("conf", CONFS)
@settings(max_examples=40, derandomize=True)
@given(world=worlds())
def test_a_cycle_keeps_every_invariant(conf: str, world: World) -> None:
    outcome = cycle(world, CONFS[conf])

    _nothing_is_bound_twice(outcome)
    _only_what_is_ours_to_place_is_bound(world, outcome)
    _no_node_takes_more_than_it_has(world, outcome, filtered=conf != "no-predicates")
    if conf != "no-gang":
        _no_gang_is_below_its_minimum(world, outcome)
    _whoever_waits_says_why(world, outcome)


def _nothing_is_bound_twice(outcome: Outcome) -> None:
    assert [name for name, count in Counter(name for name, _ in outcome.binds).items() if count > 1] == []


def _only_what_is_ours_to_place_is_bound(world: World, outcome: Outcome) -> None:
    jobs = {job.key: job for job in world.jobs}
    queues = {queue.name: queue for queue in world.queues}
    for name, _ in outcome.binds:
        task = world.task(name)
        assert task.status is TaskStatus.PENDING
        assert (task.shape.gates, task.shape.unsupported, task.record.foreign) == ((), (), False)
        assert not best_effort(task.shape)
        job = jobs[task.record.key]  # type: ignore[index]
        assert job.queue in queues
        assert job.phase not in ("", "Pending") or queues[job.queue].open


def _no_node_takes_more_than_it_has(world: World, outcome: Outcome, *, filtered: bool) -> None:
    """Go through the binds in order: each must fit what the ones before have left."""
    accounts = node_accounts(world)
    for name, node in outcome.binds:
        shape, account = world.task(name).shape, accounts[node]
        assert not account.record.closed
        assert fits(shape, account), f"{name} does not fit {node}"
        assert not filtered or static_reason(shape, account.record) == ""
        account.put(shape, TaskStatus.BINDING)
        assert not filtered or account.pods <= account.allocatable["pods"]


def _no_gang_is_below_its_minimum(world: World, outcome: Outcome) -> None:
    """After every batch the gang counts at least its minimum, with what ran before and best-effort tasks that wait."""
    members = tasks_by_job(world)
    jobs = {job.key: job for job in world.jobs}
    held = {
        key: sum(
            task.status in READY or (task.status is TaskStatus.PENDING and best_effort(task.shape)) for task in tasks
        )
        for key, tasks in members.items()
    }
    bound: set[str] = set()
    for gang in outcome.gangs:
        keys = {world.task(name).record.key for name in gang}
        assert len(keys) == 1, "a batch is of one job"
        key = keys.pop()
        assert key is not None
        bound.update(gang)
        held[key] += len(gang)
        assert held[key] >= jobs[key].min_available
        minimums = jobs[key].task_min_available
        if jobs[key].min_available >= sum(minimums.values()):
            have = Counter(
                task.record.role
                for task in members[key]
                if task.status in READY
                or task.record.name in bound
                or (task.status is TaskStatus.PENDING and best_effort(task.shape))
            )
            assert all(have[role] >= minimum for role, minimum in minimums.items())


def _whoever_waits_says_why(world: World, outcome: Outcome) -> None:
    bound = {name for name, _ in outcome.binds}
    for task in world.tasks:
        waits = task.status is TaskStatus.PENDING and task.record.name not in bound
        if waits and not task.shape.gates and not task.record.foreign:
            assert outcome.messages.get(task.record.name), f"{task.record.name} waits without a reason"
