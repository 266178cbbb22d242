"""Many tasks placed with evictions at once: everybody agrees to each victim as if asked one after the other."""

import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row, task_row
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.actions.preempt import Preempt
from volcano_py.framework.contract.extension_points import JobStarving, Preemptable, Preemptor, Purpose
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo
from volcano_py.model.arrays import Bools
from volcano_py.model.decisions import Decision, Evict, Nominate
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.drf import Drf
from volcano_py.plugins.gang import Gang
from volcano_py.plugins.priority import Priority

ONE, TWO = a_shape(cpu=1), a_shape(cpu=2)
RUNNING = TaskStatus.RUNNING


def full(gang: int, *, surplus: int) -> World:
    """Return eight nodes of two cores, full of one job's tasks of one core, and a gang of tasks of two cores."""
    standing = [
        a_task(f"low-x-{row}", ONE, job="low", status=RUNNING, node=f"n{row % 8}", priority=1) for row in range(16)
    ]
    return World(
        nodes=tuple(a_node(f"n{row}", cpu=2) for row in range(8)),
        jobs=(
            a_job("low", min_available=16 - surplus, phase="Running"),
            a_job("high", min_available=gang, priority=9, phase="Inqueue"),
        ),
        tasks=(*standing, *tasks_of("high", gang, TWO, priority=9)),
    )


def decided(world: World, *plugins: Plugin) -> tuple[list[str], dict[str, str], Session]:
    decisions: list[Decision] = []
    ssn = a_session(world, *plugins, emit=decisions.extend)
    Preempt()(ssn)
    assert ssn.state.report.failures == []
    gone = [one.task.name for one in decisions if isinstance(one, Evict)]
    return gone, {one.task.name: one.node for one in decisions if isinstance(one, Nominate)}, ssn


class Counted(Priority):
    """Notes how often it is asked."""

    counts = Priority.counts

    def __init__(self) -> None:
        self.asked = 0

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        self.asked += 1
        return super().preemptable(preemptor, candidates)


class OneByOne(Plugin, Preemptable, JobStarving):
    """Does not say that it counts who goes before."""

    name = "one-by-one"

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        return np.ones(len(candidates), dtype=bool)

    def job_starving(self, job: JobInfo) -> bool:
        return True


def test_a_gang_is_planned_with_few_plugin_calls() -> None:
    plugin = Counted()
    gone, rooms, _ = decided(full(8, surplus=16), plugin, Gang())

    assert (len(gone), len(rooms)) == (16, 8)
    assert plugin.asked <= 4


def test_a_plugin_that_does_not_count_is_asked_for_every_task() -> None:
    plugin = Counted()
    gone, rooms, _ = decided(full(8, surplus=16), plugin, Gang(), OneByOne())

    assert (len(gone), len(rooms)) == (16, 8)
    assert plugin.asked >= 8


@pytest.mark.parametrize(("gang", "surplus", "evicted"), [(3, 6, 6), (3, 5, 0), (4, 16, 8), (9, 16, 0)])
def test_the_pods_that_a_job_may_lose_are_counted_over_all_nodes(gang: int, surplus: int, evicted: int) -> None:
    gone, rooms, ssn = decided(full(gang, surplus=surplus), Priority(), Gang())

    assert (len(gone), len(rooms)) == (evicted, gang if evicted else 0)
    assert ssn.state.job(job_row(ssn, "low")).ready_count == 16 - evicted


def test_drf_counts_the_tasks_placed_before_a_victim_is_chosen() -> None:
    plugin = Drf()
    ssn = a_session(full(8, surplus=16), plugin)
    rows = np.array([task_row(ssn, f"low-x-{row}") for row in range(12)])
    job = ssn.state.job(job_row(ssn, "high"))
    preemptor = Preemptor(
        Purpose.PREEMPT, job, ssn.state.queues["default"], ssn.state.task_of(ssn.state.classes.shapes.index(TWO)), 9
    )
    groups = np.zeros(len(rows), dtype=np.intp)

    at_once = plugin.preemptable(preemptor, VictimCandidates(ssn.state, rows, groups, np.arange(12) // 2))

    in_turn = []
    statement = ssn.statement()
    waiting = [task_row(ssn, f"high-{index}") for index in range(8)]
    for index, row in enumerate(rows.tolist()):
        one = VictimCandidates(ssn.state, np.array([row]), groups[:1])
        in_turn.append(bool(plugin.preemptable(preemptor, one)[0]))  # type: ignore[index]
        statement.evict(np.array([row]))
        if index % 2:
            task = np.array([waiting.pop(0)])
            statement.pipeline(
                job.row, ssn.state.classes.shapes.index(TWO), task, np.array([int(ssn.state.tasks.node[row])])
            )
    assert at_once is not None
    assert at_once.tolist() == in_turn
    assert True in in_turn
    assert False in in_turn


def with_more_gangs(world: World, *sizes: int) -> World:
    jobs = tuple(a_job(f"more{n}", min_available=size, priority=9, phase="Inqueue") for n, size in enumerate(sizes))
    tasks = (task for n, size in enumerate(sizes) for task in tasks_of(f"more{n}", size, TWO, priority=9))
    return World(world.nodes, world.queues, (*world.jobs, *jobs), (*world.tasks, *tasks))


def test_a_failed_plan_is_not_tried_again_for_an_equal_job() -> None:
    alone, many = Counted(), Counted()
    decided(full(9, surplus=16), alone, Gang())
    gone, _, _ = decided(with_more_gangs(full(9, surplus=16), 9, 9, 10), many, Gang())

    assert gone == []
    assert many.asked == alone.asked


def test_a_smaller_gang_is_tried_after_a_larger_one_has_failed() -> None:
    gone, rooms, _ = decided(with_more_gangs(full(9, surplus=16), 3, 9), Priority(), Gang())

    assert len(gone) == 6
    assert {name.partition("-")[0] for name in rooms} == {"more0"}
