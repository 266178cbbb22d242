import gc
import weakref
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from tests.framework.failures import without_places
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from tests.scheduler.running import DEFAULT, Outcome, a_policy, cycle
from volcano_py.framework.contract.extension_points import (
    Allocatable,
    JobOrder,
    JobPipelined,
    JobReady,
    JobValid,
    NodeOrder,
    Overused,
    Predicate,
    QueueOrder,
    StaticPredicate,
    TaskOrder,
    Vote,
)
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.state import State
from volcano_py.model.decisions import Bind, Decision
from volcano_py.model.objects import QueueRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import run_cycle
from volcano_py.snapshot.columns import JobColumns, NodeColumns, TaskColumns

ONE = a_shape(cpu=1)
TWO_JOBS = World(
    (a_node("n1", cpu=8),),
    queues=(QueueRecord("default"), QueueRecord("other", creation=1.0)),
    jobs=(a_job("a", min_available=2), a_job("b", queue="other", min_available=2)),
    tasks=(*tasks_of("a", 2, ONE), *tasks_of("b", 2, ONE)),
)


def test_binds_of_one_gang_are_on_their_way_before_the_next_is_placed() -> None:
    """What is emitted first must not wait for what is decided later."""
    seen: list[tuple[str, int]] = []
    snapshot = TWO_JOBS.store().snapshot()

    def emit(batch: tuple[Decision, ...]) -> None:
        binds = [one for one in batch if isinstance(one, Bind)]
        if binds:
            seen.append((binds[0].job.name, int((snapshot.tasks.status == TaskStatus.PENDING).sum())))

    run_cycle(snapshot, a_policy(), CycleClock(), 0, Memory(), emit)

    assert seen == [("a", 2), ("b", 0)]


def test_the_memory_counts_cycles_and_names_sessions() -> None:
    memory = Memory(41, "east")
    outcome = cycle(TWO_JOBS, memory=memory)

    assert memory.session_id == "east-41"
    assert (outcome.memory.cycle, outcome.memory.session_id) == (42, "east-42")
    assert {one.transition_id for group in outcome.groups.values() for one in group.conditions} == {"east-41"}
    assert Memory(3).session_id == "3"


def test_durations_come_from_the_stopwatch_alone() -> None:
    ticks = iter(range(100))
    _, report = run_cycle(
        TWO_JOBS.store().snapshot(),
        a_policy(),
        CycleClock(stopwatch=lambda: float(next(ticks))),
        0,
        Memory(),
        lambda batch: None,
    )

    assert set(report.seconds) == {"open", "enqueue", "allocate", "close"}
    assert all(duration >= 1 for duration in report.seconds.values())


def test_a_cycle_does_not_change_the_store() -> None:
    store = TWO_JOBS.store()
    first = cycle(store)

    assert cycle(store).batches == first.batches
    assert first.binds != []


class Failing(
    Plugin, JobOrder, TaskOrder, QueueOrder, JobValid, JobReady, JobPipelined, StaticPredicate, Predicate, NodeOrder
):
    """Raises in the hook that it is told, for everybody or for the job ``a`` only; elsewhere it has no opinion."""

    name = "failing"
    depends_on: ClassVar = DependsOn.NODE_ALONE
    static_reasons: ClassVar[tuple[Reason, ...]] = ()
    reasons: ClassVar[tuple[Reason, ...]] = ()
    where: ClassVar[str] = ""

    def _trip(self, hook: str, job: JobInfo | None = None) -> None:
        if hook == self.where and (job is None or job.key.name == "a"):
            raise RuntimeError("tripped")

    def on_session_open(self, ssn: State) -> None:
        self._trip("on_session_open")

    def on_session_close(self, ssn: State) -> None:
        self._trip("on_session_close")

    def job_order(self, jobs: JobColumns) -> Any:
        self._trip("job_order")
        return np.zeros(len(jobs))

    def task_order(self, tasks: TaskColumns) -> Any:
        self._trip("task_order")
        return np.zeros(len(tasks.status))

    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        self._trip("queue_order")
        return 0.0

    def job_valid(self, job: JobInfo) -> None:
        self._trip("job_valid", job)

    def missing(self, job: JobInfo) -> int:
        self._trip("missing", job)
        return 0

    def job_pipelined(self, job: JobInfo) -> Vote:
        self._trip("job_pipelined", job)
        return Vote.ABSTAIN

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Any:
        self._trip("static_predicate")
        return np.zeros(len(nodes), dtype=np.int16)

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Any:
        self._trip("predicate")
        return np.zeros(len(nodes), dtype=np.int16)

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Any:
        self._trip("node_order")
        return np.zeros(len(nodes))


def with_failing(where: str, world: World = TWO_JOBS) -> Outcome:
    plugin = type("Failing", (Failing,), {"where": where})
    conf = DEFAULT.replace("  - name: priority\n", "  - name: failing\n  - name: priority\n")
    return cycle(world, a_policy(conf, plugins={**PLUGINS, "failing": plugin}))


def test_a_plugin_without_opinions_changes_nothing() -> None:
    assert with_failing("nowhere").batches == cycle(TWO_JOBS).batches


@pytest.mark.parametrize("where", ["static_predicate", "predicate", "node_order"])
def test_a_plugin_that_fails_at_every_job_is_reported_for_each_and_stops_nothing(where: str) -> None:
    outcome = with_failing(where)

    assert outcome.binds == []
    assert without_places(outcome.report.failures) == [
        f"plugin failing failed in {where}: RuntimeError: tripped; PodGroup ns/{name} waits for the next cycle"
        for name in ("a", "b")
    ]
    assert set(outcome.messages) == {"a-0", "a-1", "b-0", "b-1"}


def too_big(name: str) -> World:
    """Return the two jobs, of which one has a task that fits nowhere, so that its promises are put to the vote."""
    tasks = tuple(
        replace(task, shape=a_shape(cpu=99)) if task.record.name == f"{name}-1" else task for task in TWO_JOBS.tasks
    )
    return replace(TWO_JOBS, tasks=tasks)


def test_a_plugin_that_fails_in_the_pipelined_vote_costs_the_job_its_turn() -> None:
    outcome = with_failing("job_pipelined", too_big("a"))

    assert outcome.gangs == [["b-0", "b-1"]]
    assert without_places(outcome.report.failures) == [
        "plugin failing failed in job_pipelined: RuntimeError: tripped; PodGroup ns/a waits for the next cycle"
    ]


@pytest.mark.parametrize("where", ["job_valid", "missing"])
def test_a_plugin_that_fails_at_one_job_costs_only_that_job(where: str) -> None:
    outcome = with_failing(where)

    assert outcome.gangs == [["b-0", "b-1"]]
    assert len(outcome.report.failures) > 0


@pytest.mark.parametrize("where", ["on_session_close", "job_order", "task_order"])
def test_a_failing_score_or_session_close_is_reported_and_left_out(where: str) -> None:
    outcome = with_failing(where)

    assert outcome.gangs == [["a-0", "a-1"], ["b-0", "b-1"]]
    assert without_places(outcome.report.failures) == [f"plugin failing failed in {where}: RuntimeError: tripped"]


def test_a_failing_queue_order_is_reported_once_and_ignored() -> None:
    outcome = with_failing("queue_order")

    assert sorted(outcome.gangs) == [["a-0", "a-1"], ["b-0", "b-1"]]
    assert without_places(outcome.report.failures) == ["plugin failing failed in queue_order: RuntimeError: tripped"]


def test_nothing_is_placed_if_the_plugin_of_a_rule_failed_to_open() -> None:
    outcome = with_failing("on_session_open")

    assert outcome.binds == []
    assert "plugin failing failed in on_session_open: RuntimeError: tripped" in without_places(outcome.report.failures)
    assert set(outcome.messages) == {"a-0", "a-1", "b-0", "b-1"}


@pytest.mark.parametrize("call", range(1, 13))
@pytest.mark.parametrize(
    "where",
    [
        "job_order",
        "task_order",
        "queue_order",
        "job_valid",
        "missing",
        "job_pipelined",
        "overused",
        "allocatable",
        "static_predicate",
        "predicate",
        "node_order",
    ],
)
def test_a_plugin_that_fails_at_any_one_call_does_not_end_the_cycle(where: str, call: int) -> None:
    """Also when reasons are looked for, after the turns of the jobs."""

    class FailsOnce(Failing, Overused, Allocatable):
        calls = 0

        def _trip(self, hook: str, job: JobInfo | None = None) -> None:
            if hook == where:
                type(self).calls += 1
                if self.calls == call:
                    raise RuntimeError("tripped")

        def overused(self, queue: QueueInfo) -> bool:
            self._trip("overused")
            return False

        def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
            self._trip("allocatable")
            return wanted

    conf = DEFAULT.replace("  - name: priority\n", "  - name: failing\n  - name: priority\n")
    outcome = cycle(too_big("a"), a_policy(conf, plugins={**PLUGINS, "failing": FailsOnce}))

    assert any("tripped" in failure for failure in outcome.report.failures) is (FailsOnce.calls >= call)
    assert outcome.gangs in ([["b-0", "b-1"]], [])
    assert {"a-0", "a-1"} <= set(outcome.messages)


class BrokenScore(Plugin, NodeOrder):
    """Only prefers nodes, and fails before it can."""

    name = "broken"

    def on_session_open(self, ssn: State) -> None:
        raise RuntimeError("no data")

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Any:
        raise AssertionError("asked after a failed open")


def test_the_score_of_a_plugin_that_failed_to_open_is_left_out() -> None:
    conf = DEFAULT.replace("  - name: priority\n", "  - name: broken\n  - name: priority\n")
    outcome = cycle(TWO_JOBS, a_policy(conf, plugins={**PLUGINS, "broken": BrokenScore}))

    assert outcome.gangs == [["a-0", "a-1"], ["b-0", "b-1"]]
    assert without_places(outcome.report.failures) == ["plugin broken failed in on_session_open: RuntimeError: no data"]


@pytest.mark.parametrize("conf", ["DEFAULT", "with evictions"])
def test_the_snapshot_of_a_cycle_is_freed_at_its_end_without_a_garbage_collection(conf: str) -> None:
    text = (
        DEFAULT if conf == "DEFAULT" else DEFAULT.replace('"enqueue, allocate', '"enqueue, allocate, preempt, reclaim')
    )
    snapshot = TWO_JOBS.store().snapshot()
    parts = [weakref.ref(part) for part in (snapshot.tasks.status, snapshot.jobs.block, snapshot.nodes.idle)]
    policy = a_policy(text)
    gc.collect()
    gc.disable()
    try:
        memory, _ = run_cycle(snapshot, policy, CycleClock(), 0, Memory(), lambda batch: None)
        del snapshot

        assert all(part() is None for part in parts)
        assert memory.cycle == 1
    finally:
        gc.enable()
