"""A cycle carries out a limited number of plans of evictions, and the next ones go on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from importlib import import_module
from random import Random

import msgspec
import pytest

from tests.reference.crowded import SHAPES, crowded_world, ready
from tests.reference.world import Task, World, a_job, a_node, a_task
from tests.scheduler.running import cycle
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.evicting import plan_results
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Bind, Decision, Evict, Nominate
from volcano_py.model.objects import JobRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import resolve, run_cycle

allocate = import_module("volcano_py.actions.allocate")  # the package has a function of that name

CONF = """\
actions: "allocate, ACTIONS"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: conformance}
  - {name: SHARES}
  - {name: predicates}
  - {name: nodeorder}
"""
NUMBERS = range(12)
MOST_CYCLES = 60
Case = tuple[str, tuple[str, ...]]


def conf(actions: str, shares: str) -> str:
    return CONF.replace("ACTIONS", actions).replace("SHARES", shares)


CASES = [
    pytest.param((conf("preempt", "drf"), ("default",)), id="preempt"),
    pytest.param((conf("preempt, reclaim", "proportion"), ("a", "b", "c")), id="reclaim-proportion"),
    pytest.param((conf("preempt, reclaim", "capacity"), ("a", "b", "c")), id="reclaim-capacity"),
    pytest.param((conf("gangpreempt, gangreclaim", "proportion"), ("a", "b")), id="gangs"),
]


@dataclass
class Rest:
    """What has happened until cycles decided nothing any more."""

    world: World
    victims: set[str] = field(default_factory=set)
    beneficiaries: set[str] = field(default_factory=set)
    plans: list[int] = field(default_factory=list)  # by cycle
    said_more: list[bool] = field(default_factory=list)  # by cycle, whether the report said that more is to be evicted


def with_newcomers(number: int, queues: tuple[str, ...]) -> World:
    """Return a crowded world in which more jobs wait."""
    world, random = crowded_world(number, queues), Random(number)
    jobs, tasks = list(world.jobs), list(world.tasks)
    for row in range(6):
        record = a_job(f"late{row}", queue=random.choice(queues), priority=random.choice((5, 10)), creation=20.0 + row)
        jobs.append(replace(record, min_available=1, phase="Inqueue"))
        tasks.append(a_task(f"late{row}-x-0", random.choice(SHAPES[:3]), job=f"late{row}", priority=record.priority))
    return replace(world, jobs=tuple(jobs), tasks=tuple(tasks))


def of_equal_pods(number: int) -> World:
    """Return a full cluster of pods of 1 CPU: running jobs, and waiting jobs of one pod and of higher priorities.

    If victims differed in priority, it would matter which of them go first, and that follows from the scores of nodes.
    """
    random, size = Random(number), SHAPES[0]
    nodes = tuple(a_node(f"n{row}", cpu=4, memory="6Gi", pods=20) for row in range(4))
    jobs, tasks = list[JobRecord](), list[Task]()
    for row in range(4):
        jobs.append(a_job(f"run{row}", min_available=random.randint(1, 3), phase="Running", priority=0))
        tasks += [
            a_task(f"run{row}-x-{i}", size, job=f"run{row}", status=TaskStatus.RUNNING, node=f"n{i}") for i in range(4)
        ]
    for row in range(random.randint(2, 16)):
        priority = random.choice((1, 5))
        record = a_job(f"new{row}", min_available=1, phase="Inqueue", priority=priority, creation=9.0 + row)
        jobs.append(record)
        tasks.append(a_task(f"new{row}-x-0", size, job=f"new{row}", priority=priority))
    return World(nodes, jobs=tuple(jobs), tasks=tuple(tasks))


def to_rest(world: World, conf: str) -> Rest:
    """Run cycles until one decides nothing and nobody terminates; victims terminate for one cycle."""
    policy, memory, found = resolve(parse_conf(conf, "test")), Memory(), Rest(world)
    for number in range(MOST_CYCLES):
        store, batches = found.world.store(), list[tuple[Decision, ...]]()
        leaving = {task.record.name for task in found.world.tasks if task.status is TaskStatus.RELEASING}
        memory, report = run_cycle(store.snapshot(), policy, CycleClock(float(number)), 0, memory, batches.append)
        evicting = [[one for one in batch if isinstance(one, Evict)] for batch in batches]
        decisions = [one for batch in batches for one in batch if isinstance(one, Bind | Evict | Nominate)]
        found.plans.append(sum(len(evictions) > 0 for evictions in evicting))
        found.said_more.append(report.evictions_left)
        for one in [one for evictions in evicting for one in evictions]:
            assert one.beneficiary is not None
            found.victims.add(one.task.name)
            found.beneficiaries.add(one.beneficiary.name)
        if not decisions and not leaving:
            return found
        found.world = carried_out(found.world, decisions, leaving)
    raise AssertionError(f"no rest after {MOST_CYCLES} cycles: {decisions}")


def carried_out(world: World, decisions: Iterable[Decision], gone: set[str]) -> World:
    tasks = {task.record.name: task for task in world.tasks if task.record.name not in gone}
    for one in decisions:
        match one:
            case Bind():
                tasks[one.task.name] = replace(tasks[one.task.name], status=TaskStatus.RUNNING, node=one.node)
            case Evict():
                tasks[one.task.name] = replace(tasks[one.task.name], status=TaskStatus.RELEASING)
            case Nominate():
                task = tasks[one.task.name]
                tasks[one.task.name] = replace(task, record=msgspec.structs.replace(task.record, nominated=one.node))
    return replace(world, tasks=tuple(tasks.values()))


def served(world: World) -> set[str]:
    """Return the jobs that have their minimum."""
    have = ready(world, ())
    return {job.key.name for job in world.jobs if have[job.key.name] >= max(job.min_available, 1)}


@pytest.fixture
def at_most(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that sets the limit."""
    return lambda plans: monkeypatch.setattr(plan_results, "MOST_PLANS", plans)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_with_a_limit_nobody_is_evicted_in_vain_and_nothing_is_left_to_do_at_rest(
    case: Case, most: int, at_most: Callable[[int], None]
) -> None:
    text, queues = case
    stopped = 0
    for number in NUMBERS:
        at_most(most)
        world = with_newcomers(number, queues)
        found = to_rest(world, text)

        assert max(found.plans) <= most, f"with_newcomers({number})"
        for plans, more in zip(found.plans, found.said_more, strict=True):
            assert plans == most or not more, f"with_newcomers({number}): it stopped before the limit"
        got = {job for job in found.beneficiaries if ready(found.world, ())[job] > ready(world, ())[job]}
        at_most(200)
        unlimited = to_rest(world, text)
        got_without = {
            job for job in unlimited.beneficiaries if ready(unlimited.world, ())[job] > ready(world, ())[job]
        }
        in_vain, in_vain_without = found.beneficiaries - got, unlimited.beneficiaries - got_without
        assert len(in_vain) <= len(in_vain_without), f"with_newcomers({number}): {in_vain} got nothing"
        assert not to_rest(found.world, text).plans[0], f"with_newcomers({number}): somebody is left who could evict"
        stopped += any(found.said_more)
    assert stopped >= 2


@pytest.mark.parametrize("most", [1, 2, 3])
def test_of_equal_pods_the_same_jobs_get_room_whatever_the_limit_is(most: int, at_most: Callable[[int], None]) -> None:
    stopped = 0
    for number in NUMBERS:
        world = of_equal_pods(number)
        at_most(200)
        unlimited = to_rest(world, conf("preempt", "drf"))
        at_most(most)
        found = to_rest(world, conf("preempt", "drf"))

        assert served(found.world) == served(unlimited.world), f"of_equal_pods({number})"
        assert len(found.victims) == len(unlimited.victims), f"of_equal_pods({number})"
        assert not any(unlimited.said_more), f"of_equal_pods({number})"
        # A cycle that has just reached its limit says so if some job is left that might have evicted somebody.
        assert -(-sum(unlimited.plans) // most) - 1 <= sum(found.said_more) <= sum(unlimited.plans) // most
        stopped += any(found.said_more)
    assert stopped >= 6


def test_the_reasons_of_jobs_without_a_turn_are_those_of_allocate(at_most: Callable[[int], None]) -> None:
    at_most(1)
    world = next(
        world for world in map(of_equal_pods, NUMBERS) if sum(to_rest(world, conf("preempt", "drf")).plans) > 2
    )
    first = cycle(world, conf("preempt", "drf"))

    (preemptor,) = {one.beneficiary.name for one in first.decisions if isinstance(one, Evict) and one.beneficiary}
    others = {task.record.name for task in world.tasks if task.status is TaskStatus.PENDING} - {f"{preemptor}-x-0"}
    assert {first.messages[name] for name in others} == {"0/4 nodes are unavailable: 4 Insufficient cpu."}


def a_mixed_world(number: int) -> World:
    return with_newcomers(number, ("a", "b", "c"))


@pytest.mark.parametrize("shares", ["capacity", "proportion"])
def test_columns_decide_who_has_a_turn_also_while_room_is_nominated(
    shares: str, at_most: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = conf("preempt, reclaim", shares)
    at_most(1)  # then the next jobs wait while room is nominated
    for number in NUMBERS:
        with monkeypatch.context() as patch:
            patch.setattr(allocate, "_MANY", 1000)
            expected = to_rest(a_mixed_world(number), text)
            patch.setattr(allocate, "_MANY", -1)
            patch.setattr(allocate, "_IN_VAIN", 1)
            found = to_rest(a_mixed_world(number), text)
        assert (found.world, found.plans) == (expected.world, expected.plans), f"a_mixed_world({number})"
