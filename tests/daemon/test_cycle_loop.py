"""When cycles run, on a clock that is moved by hand; the cycle itself is a stub with the real signature."""

import asyncio
import math
import random
import threading
import time
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.effects.waiting import until
from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.conf.loader import parse_conf
from volcano_py.daemon.cycle_loop import CycleLoop
from volcano_py.daemon.cycle_runner import CycleRunner
from volcano_py.daemon.dispatch import Delivered
from volcano_py.daemon.metrics import DaemonMetrics
from volcano_py.daemon.reporting import CycleReporter
from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Bind, SetPodGroupStatus
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.clock import FakeClock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.scheduler import resolve

PERIOD_S, DEBOUNCE_S = 1.0, 0.02
BIND = Bind(TaskRef("default", "p0", "uid-p0"), "n1", JobKey("default", "g1"))
STATUS = SetPodGroupStatus(JobKey("default", "g1"), "uid-g1", "Inqueue", 0, 0, 0, ())


class Stage:
    """A cycle loop and what its surroundings see of it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.registry = CollectorRegistry()
        self.cache = ClusterCache(clock=self.clock)
        self.backpressure = BindBackpressure()
        self.delivered: list[tuple[object, ...]] = []
        self.up_to_date = True
        self.accepts = 0  # binds of each batch, although it is outdated
        self.report = CycleReport()
        self.problem: Exception | None = None
        self.emits: list[tuple[Bind, ...]] = []
        self.emits_late: list[tuple[Bind, ...]] = []  # after the hold
        self.hold: threading.Event | None = None
        self.reporter = CycleReporter(
            DaemonMetrics.of(self.registry),
            self.cache.store,
            clock=self.clock,
        )
        policy = resolve(parse_conf("actions: allocate", "test.conf"))
        self.runner = CycleRunner(policy, seed=0, clock=self.clock, rng=random.Random(0), cycle=self._cycle)
        self.loop = CycleLoop(
            self.cache,
            self.runner,
            self._deliver,
            self.backpressure,
            self.reporter,
            clock=self.clock,
            rng=random.Random(1),
            period_s=PERIOD_S,
            debounce_s=DEBOUNCE_S,
        )

    def _cycle(self, snapshot, policy, clock, seed, memory, emit):
        for batch in self.emits:
            emit(batch)
        if self.hold is not None:
            self.hold.wait(5)
        for batch in self.emits_late:
            emit(batch)
        if self.problem is not None:
            raise self.problem
        return memory.next(), self.report

    def _deliver(self, batch, decided_at):
        self.delivered.append(batch)
        binds = sum(isinstance(decision, Bind) for decision in batch)
        accepted = binds if self.up_to_date else min(self.accepts, binds)
        return Delivered(accepted, outdated=accepted < binds)

    def change(self, *changes: Change) -> None:
        self.loop._on_change(frozenset(changes))

    async def pass_time(self, seconds: float) -> None:
        """Move the clock in small steps and let everybody act in between."""
        for _ in range(round(seconds / 0.01)):
            self.clock.advance(0.01)
            await self.rest()

    async def begin_cycle(self) -> None:
        """Move the clock until a cycle has begun that will not end before it is told to."""
        self.hold = threading.Event()
        self.change(Change.POD_PENDING)
        while self.loop._running_since is None:
            self.clock.advance(0.01)
            await asyncio.sleep(0)

    async def rest(self) -> None:
        """Let the loop and the cycle's thread come to rest."""
        for _ in range(5):
            await asyncio.sleep(0)
        while self.loop._running_since is not None:  # noqa: ASYNC110 - it says so to nobody
            await asyncio.sleep(0.001)
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    async with Supervisor() as supervisor:
        supervisor.start("cycles", stage.loop.run())
        await stage.pass_time(0.05)
        assert stage.loop.cycles == 1  # the one at the start
        yield stage
        if stage.hold is not None:
            stage.hold.set()
        stage.loop.stop()
    stage.runner.close()


@pytest.mark.parametrize(("binds", "cycles"), [(128, 1), (129, 0)])
async def test_while_many_binds_are_queued_the_debounce_is_longer(stage, binds, cycles):
    await stage.pass_time(0.1)
    before = stage.loop.cycles
    stage.backpressure.enter(binds)

    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.06)
    assert stage.loop.cycles == before + cycles

    await stage.pass_time(0.1)
    assert stage.loop.cycles == before + 1


@pytest.mark.parametrize(("lasts_s", "gathers_s"), [(0.4, 0.2), (30.0, PERIOD_S)])
async def test_after_a_cycle_that_lasted_changes_are_gathered_longer(stage, lasts_s, gathers_s):
    """Otherwise changes that keep coming start it again and again, and it uses a processor without end."""
    await stage.begin_cycle()
    stage.clock.advance(lasts_s)
    stage.hold.set()
    stage.change(Change.POD_PENDING)
    await stage.rest()
    before = stage.loop.cycles

    await stage.pass_time(gathers_s - 0.03)
    assert stage.loop.cycles == before

    await stage.pass_time(0.06)
    assert stage.loop.cycles == before + 1


async def test_a_change_during_a_cycle_has_waited_for_its_debounce_already(stage):
    await stage.begin_cycle()
    stage.change(Change.POD_GONE)
    stage.clock.advance(DEBOUNCE_S)
    stage.hold.set()
    await stage.rest()
    before = stage.loop.cycles

    await stage.pass_time(DEBOUNCE_S / 2)  # half of the time that the cycle took

    assert stage.loop.cycles == before + 1


async def test_after_a_cycle_that_took_long_to_report_changes_are_gathered_still(stage, monkeypatch):
    def reporting(report, timing):
        stage.clock.advance(0.1)  # the event loop has much to do
        yield

    monkeypatch.setattr(stage.reporter, "reporting", reporting)
    await stage.begin_cycle()
    stage.change(Change.POD_GONE)
    stage.hold.set()
    await stage.rest()
    before = stage.loop.cycles
    await stage.rest()
    assert stage.loop.cycles == before

    await stage.pass_time(DEBOUNCE_S / 2)
    assert stage.loop.cycles == before + 1


async def test_what_could_not_be_handed_over_is_decided_again(stage):
    lost: list[Change] = []
    stage.cache.on_change(lost.extend)
    stage.loop._hand_over.put = lambda loop, batch, take: batch  # type: ignore[method-assign]
    stage.emits = [(BIND,)]

    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.03)

    assert lost == [Change.WRITE_LOST]
    assert stage.backpressure.count == 0


async def test_binds_that_the_back_pressure_refuses_are_decided_again(stage):
    lost: list[Change] = []
    stage.cache.on_change(lost.extend)
    stage.backpressure.enter = lambda binds: False  # type: ignore[method-assign]
    stage.emits = [(BIND,)]

    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.03)
    assert lost == [Change.WRITE_LOST]
    before, stage.emits = stage.loop.cycles, []
    await stage.pass_time(1.1)

    assert stage.loop.cycles == before + 1


async def test_without_changes_no_cycle_runs(stage):
    await stage.pass_time(3)

    assert stage.loop.cycles == 1


async def test_with_shuffle_cycles_go_on_without_changes(stage):
    stage.loop.use(resolve(parse_conf("actions: allocate, shuffle", "test.conf")))
    await stage.pass_time(0.1)
    assert stage.loop.cycles == 2  # at the start, and for the policy

    await stage.pass_time(30.0)

    assert stage.loop.cycles == 5


async def test_a_helpful_change_starts_a_cycle_after_the_debounce(stage):
    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.01)
    assert stage.loop.cycles == 1

    await stage.pass_time(0.02)

    assert stage.loop.cycles == 2
    assert stage.registry.get_sample_value("volcano_py_wakeups_total", {"why": "pod_pending"}) == 1


async def test_changes_that_come_together_are_one_cycle(stage):
    for _ in range(3):
        stage.change(Change.NODE, Change.POD)
        await stage.rest()

    await stage.pass_time(0.1)

    assert stage.loop.cycles == 2


@pytest.mark.parametrize("change", [Change.POD, Change.GROUP_STATUS, Change.BIND_FAILED, Change.NODE_WORSE])
async def test_any_other_change_starts_a_cycle_within_the_period(stage, change):
    stage.change(change)
    await stage.pass_time(0.5)
    assert stage.loop.cycles == 1

    await stage.pass_time(0.55)

    assert stage.loop.cycles == 2


async def test_while_something_is_pending_there_is_a_cycle_per_period(stage):
    stage.report = CycleReport(pending_tasks=1)
    stage.change(Change.POD_PENDING)

    await stage.pass_time(3.3)

    assert stage.loop.cycles == 5  # at the start, for the change, and three periods


async def test_a_cycle_that_would_decide_nothing_again_is_run_again_after_ten_periods(stage):
    stage.report = CycleReport(pending_tasks=1, repeats_until=math.inf)
    stage.change(Change.POD_PENDING)

    await stage.pass_time(9.5)
    assert stage.loop.cycles == 2  # at the start, and for the change
    await stage.pass_time(1.0)
    assert stage.loop.cycles == 3

    stage.change(Change.POD)  # a change is looked at within a period, as ever
    await stage.pass_time(1.1)
    assert stage.loop.cycles == 4


@pytest.mark.parametrize(("holds_s", "pause_s"), [(0.2, 1.0), (4.0, 4.0), (-math.inf, 1.0)])
async def test_such_a_cycle_runs_again_when_the_answer_may_change_but_not_before_a_period(stage, holds_s, pause_s):
    until = stage.clock.now().timestamp() + 0.02 + holds_s
    stage.report = CycleReport(pending_tasks=1, repeats_until=until)
    stage.change(Change.POD_PENDING)

    await stage.pass_time(pause_s - 0.1)
    assert stage.loop.cycles == 2
    await stage.pass_time(0.2)
    assert stage.loop.cycles == 3


async def test_a_cycle_that_stopped_evicting_is_followed_by_another_one_at_once(stage):
    stage.report = CycleReport(pending_tasks=1, evictions_left=True)
    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.03)
    assert stage.loop.cycles == 2  # at the start, and for the change

    stage.report = CycleReport(pending_tasks=1)
    await stage.pass_time(0.03)
    assert stage.loop.cycles == 3
    await stage.pass_time(0.5)
    assert stage.loop.cycles == 3


async def test_a_refused_decision_asks_for_another_cycle(stage):
    stage.emits = [(BIND,)]
    stage.up_to_date = False
    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.03)
    stage.emits = []

    await stage.pass_time(0.05)

    assert stage.loop.cycles == 3


async def all_refused(stage: Stage, seconds: float) -> None:
    """Let everything be refused for a while, beginning with a change."""
    stage.emits = stage.emits or [(BIND,)]
    stage.up_to_date = False
    stage.change(Change.POD_PENDING)
    await stage.pass_time(seconds)


@pytest.mark.parametrize("emits", [[(BIND,)], [(BIND,), (STATUS,)]], ids=["binds", "a status is no success"])
async def test_cycles_whose_decisions_are_all_refused_do_not_run_back_to_back(stage, emits):
    stage.emits = emits
    with capture_logs() as logs:
        await all_refused(stage, 0.15)
        at_once = stage.loop.cycles
        await stage.pass_time(30.0)

    assert at_once == 6  # at the start, and five in vain
    assert 12 <= stage.loop.cycles <= 18
    warnings = [entry for entry in logs if entry["event"].startswith("all decisions refused")]
    assert warnings[0]["cycles"] == 5
    assert warnings[-1]["pause_s"] > 2.0
    assert len(warnings) <= 8


async def test_the_pause_after_refusals_has_a_limit(stage, monkeypatch):
    monkeypatch.setattr(stage.loop._refusals.rng, "uniform", lambda low, high: high)
    await all_refused(stage, 40.0)
    cycles = stage.loop.cycles

    await stage.pass_time(51.0)

    assert stage.loop.cycles == cycles + 10  # every 5 s


async def test_during_the_pause_after_refusals_any_other_change_starts_a_cycle_as_ever(stage):
    await all_refused(stage, 15.0)
    cycles = stage.loop.cycles

    for _ in range(5):
        stage.change(Change.POD_PENDING)
        await stage.pass_time(0.03)

    assert stage.loop.cycles == cycles + 5


async def test_a_cycle_with_any_accepted_decision_is_followed_by_another_at_once(stage):
    stage.emits = [(BIND, BIND, BIND)]
    stage.accepts = 1

    await all_refused(stage, 1.0)

    assert stage.loop.cycles > 30


async def test_after_one_accepted_decision_the_next_refusals_are_looked_at_at_once(stage):
    await all_refused(stage, 5.0)
    stage.up_to_date = True
    await stage.pass_time(8.0)
    cycles = stage.loop.cycles

    await all_refused(stage, 0.15)

    assert stage.loop.cycles == cycles + 5


async def test_a_cycle_has_ended_when_all_that_it_has_decided_is_accepted(stage, monkeypatch):
    """Otherwise the next one would decide without it, and a queue could get more than it may hold."""
    accepted, at_the_end = [], []
    reporting = stage.reporter.reporting

    def slowly(batch, decided_at):
        time.sleep(0.001)
        accepted.extend(batch)
        return Delivered(len(batch), outdated=False)

    def ended(report, timing):
        at_the_end.append(len(accepted))
        yield from reporting(report, timing)

    monkeypatch.setattr(stage.loop, "_deliver", slowly)
    monkeypatch.setattr(stage.reporter, "reporting", ended)
    stage.emits = [(BIND,)] * 200  # of one job, so each is accepted on its own
    stage.change(Change.POD_PENDING)

    await stage.pass_time(0.1)
    await until(lambda: stage.loop.cycles == 2)

    assert at_the_end[-1] == 200


async def test_a_cycle_that_raises_is_followed_by_another_after_a_pause(stage):
    stage.problem = ZeroDivisionError("a bug")
    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.1)
    assert stage.loop.cycles == 2
    stage.problem = None

    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.1)
    assert stage.loop.cycles == 2  # not even a helpful change ends the pause

    await stage.pass_time(0.8)
    assert stage.loop.cycles == 3
    assert stage.registry.get_sample_value("volcano_py_cycles_total", {"result": "failed"}) == 1


async def test_a_loop_in_which_every_cycle_fails_for_a_while_is_broken_until_one_succeeds(stage):
    def failed() -> float:
        return stage.registry.get_sample_value("volcano_py_cycles_total", {"result": "failed"})

    stage.problem = ZeroDivisionError("a bug")
    stage.change(Change.POD_PENDING)
    await stage.pass_time(29)
    assert (failed() >= 5, stage.loop.broken) == (True, "")

    await stage.pass_time(3)
    assert stage.loop.broken.startswith(f"the last {failed():.0f} cycles have failed")

    stage.problem = None
    await stage.pass_time(50)
    assert stage.loop.broken == ""


async def test_decisions_are_carried_out_while_the_cycle_still_runs(stage):
    stage.emits = [(BIND,), (BIND,)]
    await stage.begin_cycle()

    await until(lambda: len(stage.delivered) == 2)

    assert stage.loop.cycles == 1
    assert stage.backpressure.count == 2


async def test_decisions_after_the_stop_request_are_dropped(stage):
    stage.emits_late = [(BIND,)]
    await stage.begin_cycle()
    stage.loop.stop()

    stage.hold.set()
    await until(lambda: stage.loop.cycles == 2)

    assert stage.delivered == []
    assert stage.backpressure.count == 0


async def test_an_error_while_accepting_a_decision_ends_the_loop(monkeypatch):
    stage = Stage()
    stage.emits = [(BIND,)]

    def broken(batch, decided_at):
        raise RuntimeError("a bug")

    monkeypatch.setattr(stage.loop, "_deliver", broken)
    running = asyncio.create_task(stage.loop.run())
    await stage.pass_time(0.05)

    with pytest.raises(RuntimeError, match="a bug"):
        await running
    stage.runner.close()


async def test_memory_is_passed_from_cycle_to_cycle(stage):
    before = stage.runner.memory

    stage.change(Change.POD_PENDING)
    await stage.pass_time(0.1)

    assert stage.runner.memory == before.next()
    assert before.lineage
