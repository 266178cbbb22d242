"""Decides when cycles run: soon after a helpful change; else once per period while something waits; else never.

    idle ──── helpful change ───▶ debounce ──▶ cycle ──▶ nothing waits: idle
      │                                          │
      └── other change ──▶ within the period ──▶ ├─────▶ something waits: again within the period
                                                 └─────▶ the next would decide nothing, too: after ten periods

With the action ``shuffle``, time alone may ask for evictions, so cycles go on while nothing waits: after ten periods.

A change is helpful if it could let a pending job be placed. A cycle that raises is reported, and the next one starts
after a pause that grows. If all decisions of one cycle after the other are refused, the refusals alone cause the next
one only after a pause; other changes cause one as ever. Only the end of the process ends the loop.
"""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from volcano_py.cache.changes import HELPFUL, Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.state import SnapshotToken
from volcano_py.daemon.alarm import wait_for
from volcano_py.daemon.cycle_runner import CycleRunner
from volcano_py.daemon.debug import LastCycle
from volcano_py.daemon.dispatch import Delivered
from volcano_py.daemon.hand_over import HandOver
from volcano_py.daemon.reporting import CycleReporter, Timing
from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.framework.state.report import CycleReport
from volcano_py.kube.backoff import Backoff
from volcano_py.model.decisions import Bind, Decision
from volcano_py.runtime.clock import Clock
from volcano_py.scheduler import Policy
from volcano_py.writing.throttled_log import ThrottledLog

log = structlog.get_logger()

_FAILED_FIRST_S: Final = 0.5
_FAILED_CAP_S: Final = 30.0
_BROKEN_AFTER: Final = 5  # failed cycles in a row
_BROKEN_AFTER_S: Final = 30.0
_REFUSED_FIRST_S: Final = 0.2
_REFUSED_CAP_S: Final = 5.0
"""After which pause refusals cause the next cycle if those of the last one did not help.

A few times, this is a change that came during the cycle, as with a second scheduler. Again and again, it may be a
fault, and cycles would run back to back.
"""
_FRUITLESS: Final = 5  # from how many cycles in a row on there is a pause
_CROWDED: Final = 128  # binds under way: twice as many as are sent at once
_CROWDED_PAUSE_S: Final = 0.1
"""While more binds are under way, new decisions would wait behind them, and cycles would slow down the sending."""
_GATHERED: Final = 0.5
"""For which part of the duration of a cycle changes are gathered after it, at most for a period.

A cycle that lasts would otherwise begin anew with every change, and use the processor without end. After a short cycle
they are gathered for this part of the debounce, once the cycle is reported.
"""
_PERIODS_AT_REST: Final = 10
_AT_REST_S: Final = 10.0
"""When a cycle runs again at the latest that would decide nothing again: only `shuffle` or a fault of ours needs it."""
_AT_ONCE: Final = HELPFUL - {Change.BIND_FAILED, Change.EVICTION_FAILED}
"""A failed bind or eviction is decided again after a period, so that a final refusal is not repeated endlessly."""

Deliver = Callable[[tuple[Decision, ...], SnapshotToken], Delivered]
"""Takes a batch of decisions on the event loop, with the state they were made on."""


class CycleLoop:
    """Runs cycles over snapshots of a cache, and passes on their decisions while they run."""

    def __init__(
        self,
        cache: ClusterCache,
        runner: CycleRunner,
        deliver: Deliver,
        backpressure: BindBackpressure,
        reporter: CycleReporter,
        *,
        clock: Clock,
        rng: random.Random,
        period_s: float,
        debounce_s: float,
    ) -> None:
        self._cache = cache
        self._runner = runner
        self._deliver = deliver
        self._backpressure = backpressure
        self._hand_over = HandOver()
        self._reporter = reporter
        self._clock = clock
        self._period_s = period_s
        self._debounce_s = debounce_s
        self._failures = Backoff(rng, first_s=_FAILED_FIRST_S, cap_s=_FAILED_CAP_S)
        self._refusals = Backoff(rng, first_s=_REFUSED_FIRST_S, cap_s=_REFUSED_CAP_S)
        self._fruitless = 0  # cycles in a row whose binds and evictions were all refused
        self._all_refused = ThrottledLog(
            "all decisions refused; unless something changes, the next cycle starts after a pause",
            clock,
            _REFUSED_CAP_S,
        )
        self._not_before = float("-inf")  # after a failure
        self._failing_since: float | None = None  # when the first of the failures in a row happened
        self._gathers_until = float("-inf")  # after a cycle that lasted
        self._why = ""  # why a cycle is needed now, "" if none is
        self._asked_at = float("-inf")  # since when it is needed
        self._due: tuple[float, str] | None = None  # when the next cycle must begin at the latest, and why
        self._changed = asyncio.Event()
        self._running_since: float | None = None
        self._stopped = False
        self._accepted = 0  # binds and evictions of the cycle that runs
        self._outdated = False  # whether others of it were refused and must be decided again
        self._lost = False  # whether decisions of the cycle that runs were dropped
        self._broken: Exception | None = None  # the error of a delivery that failed
        self.cycles = 0
        """How many cycles have ended."""
        cache.on_change(self._on_change)

    @property
    def running_for_s(self) -> float:
        """For how long the present cycle has been running, 0 if there is none."""
        return 0.0 if self._running_since is None else self._clock.monotonic() - self._running_since

    @property
    def broken(self) -> str:
        """What is wrong if every cycle has failed for a while, "" otherwise.

        A restart would not help if the cause lies in the cluster, and it would stop the actions that still work: what
        they decide before the failure is carried out.
        """
        failures, since = self._failures.failures, self._failing_since
        if since is None or failures < _BROKEN_AFTER or self._clock.monotonic() - since < _BROKEN_AFTER_S:
            return ""
        return f"the last {failures} cycles have failed; the log line 'cycle failed' has the error"

    @property
    def policy(self) -> Policy:
        """What the next cycle runs."""
        return self._runner.policy

    @property
    def last(self) -> LastCycle | None:
        """The cycle that ended last; None before the first one has ended."""
        return self._reporter.last

    def use(self, policy: Policy) -> None:
        """Run another policy from the next cycle on, and ask for that cycle."""
        self._runner.policy = policy
        self._reporter.new_policy()
        self.wake("configuration")

    def wake(self, why: str) -> None:
        """Ask for a cycle after the debounce, which begins with the first reason."""
        if not self._why:
            self._why, self._asked_at = why, self._clock.monotonic()
        self._changed.set()

    def wake_within_period(self) -> None:
        """Ask for a cycle within a period."""
        self._wake_within(self._period_s, "period")

    def _wake_within(self, seconds: float, why: str) -> None:
        due = self._clock.monotonic() + seconds
        if self._due is None or due < self._due[0]:
            self._due = (due, why)
            self._changed.set()

    def stop(self) -> None:
        """Start no further cycle, and ignore further decisions of the running one."""
        self._stopped = True
        self._hand_over.close()
        self._backpressure.close()
        self._changed.set()

    def close(self) -> None:
        """Release the thread of the cycles; one that is under way ends by itself."""
        self._runner.close()

    async def run(self) -> None:
        """Run cycles until stopped."""
        self.wake("start")
        while not self._stopped:
            why = await self._next()
            if not self._stopped:
                self._reporter.woken(why)
                await self._cycle(why)

    def _on_change(self, changes: frozenset[Change]) -> None:
        helpful = changes & _AT_ONCE
        if helpful:
            self.wake(min(change.name.lower() for change in helpful))
        else:
            self.wake_within_period()

    async def _next(self) -> str:
        """Wait until a cycle is due and return why."""
        while not self._stopped:
            if self._broken is not None:
                # Some decisions of the batch are assumed, others are not: only a restart brings a correct view again.
                raise self._broken
            self._changed.clear()
            now = self._clock.monotonic()
            if self._not_before > now:
                await wait_for(self._changed, self._clock, self._not_before - now)
            elif self._why:
                await self._clock.sleep(self._pause_s())
                break
            elif self._due is None:
                await self._changed.wait()
            elif self._due[0] > now:
                await wait_for(self._changed, self._clock, self._due[0] - now)
            else:
                break
        why = self._why or (self._due[1] if self._due else "")
        self._why, self._due = "", None
        return why

    def _pause_s(self) -> float:
        """Return how much longer changes are gathered, in seconds.

        A change that came during a cycle has waited already, so its debounce may be over when the cycle ends. The pause
        is longer while more binds are under way than can be sent, and after a cycle that lasted.
        """
        now = self._clock.monotonic()
        crowded_s = _CROWDED_PAUSE_S if self._backpressure.count > _CROWDED else 0.0
        return max(self._asked_at + self._debounce_s - now, crowded_s, self._gathers_until - now)

    def _pause_for(self, report: CycleReport) -> float:
        """Return after how many seconds something that waits is looked at again if nothing changes."""
        holds_s = report.repeats_until - self._clock.now().timestamp()
        return max(self._period_s, min(holds_s, self._at_rest_s))

    @property
    def _at_rest_s(self) -> float:
        return max(self._period_s, min(self._period_s * _PERIODS_AT_REST, _AT_REST_S))

    async def _cycle(self, why: str) -> None:
        started = self._running_since = self._clock.monotonic()
        self._accepted, self._outdated = 0, False
        try:
            token, snapshot = self._cache.token, self._cache.snapshot()
            taken = self._clock.monotonic()
            emit = partial(self._emit, asyncio.get_running_loop(), partial(self._take, token))
            report = await self._runner.decide(snapshot, emit)
            await self._hand_over.taken()  # the next snapshot must show what this cycle has decided
        except Exception:
            await self._hand_over.taken()
            pause_s = self._failures.next()
            self._not_before = self._clock.monotonic() + pause_s
            log.exception("cycle failed; the next one starts after a pause", why=why, pause_s=round(pause_s, 3))
            self._note_failure()
        else:
            self._failures.reset()
            self._failing_since = None
            lasted_s = self._clock.monotonic() - started
            for _ in self._reporter.reporting(report, Timing(why, taken - started, lasted_s)):
                await asyncio.sleep(0)
            self._gathers_until = max(
                started + lasted_s + min(lasted_s * _GATHERED, self._period_s),
                # To report takes long while the event loop has much to do. Then, too, changes are gathered for a while.
                self._clock.monotonic() + self._debounce_s * _GATHERED,
            )
            self._wake_if_refused()
            if self._lost:
                self._lost = False
                self._cache.write_lost()
            if report.pending_tasks or report.jobs_refused:
                self._wake_within(self._pause_for(report), "period")
            elif self.policy.shuffles:
                self._wake_within(self._at_rest_s, "period")
            if report.evictions_left:
                self.wake("evictions")
            if report.tells_in is not None:
                self._wake_within(report.tells_in, "arrivals")
        finally:
            self._running_since = None
            self.cycles += 1

    def _note_failure(self) -> None:
        """Count a cycle that failed, and ask for another one."""
        if self._failing_since is None:
            self._failing_since = self._clock.monotonic()
        self._reporter.failed()
        self.wake_within_period()

    def _wake_if_refused(self) -> None:
        """Ask for another cycle if refusals need it: after a pause if all was refused, for the fifth time in a row."""
        if self._accepted or not self._outdated:
            self._fruitless = 0
            self._refusals.reset()
        else:
            self._fruitless += 1
        if not self._outdated:
            return
        if self._fruitless < _FRUITLESS:
            self.wake("refused")
            return
        pause_s = min(self._refusals.next(), _REFUSED_CAP_S)
        self._wake_within(pause_s, "refused")
        self._all_refused.log(
            cycles=self._fruitless,
            pause_s=round(pause_s, 3),
            what_to_do="the log says at level debug why each bind was refused",
        )

    def _emit(
        self,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[tuple[Decision, ...]], None],
        batch: tuple[Decision, ...],
    ) -> None:
        """Hand a batch to the event loop; the cycle's thread waits here while the loop or the binds are behind."""
        binds = _binds(batch)
        if binds and not self._backpressure.enter(binds):
            log.warning("decisions dropped: too many binds are on their way, or the process ends", binds=binds)
            self._lost = True  # nothing that waits is left, as far as the cycle knows, so nothing else asks for another
            return
        dropped = self._hand_over.put(loop, batch, take)
        if dropped:
            self._lost = True
            if left := _binds(dropped):
                self._backpressure.leave(left)
            if not self._stopped:
                log.warning("decisions dropped: the event loop takes none", decisions=len(dropped))

    def _take(self, token: SnapshotToken, batch: tuple[Decision, ...]) -> None:
        if self._stopped:
            if binds := _binds(batch):
                self._backpressure.leave(binds)
            return
        try:
            delivered = self._deliver(batch, token)
        except Exception as error:  # noqa: BLE001 - raised by `run`: out of here it would only be logged by the loop
            self._broken = error
            self._changed.set()
            return
        self._accepted += delivered.accepted
        self._outdated |= delivered.outdated
        if delivered.outdated and self._fruitless + 1 < _FRUITLESS:  # else the end of the cycle shows what to do
            self.wake("refused")


def _binds(batch: tuple[Decision, ...]) -> int:
    return sum(isinstance(decision, Bind) for decision in batch)
