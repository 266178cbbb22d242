"""A queue of object names for controllers: each name once, worked on by one worker at a time, retried after errors.

    add ──▶ waiting ──▶ worker: reconcile ──▶ done
              ▲            │ error: again after a pause that grows, up to a number of attempts
              └────────────┴ added meanwhile: once more, at once or after that pause

A name says only that work may be needed. The worker finds out what to do when the turn comes, so ten changes of an
object cost one turn. A name that failed gets no turn before its pause is over, even if it is added meanwhile. That is
the rule of :mod:`volcano_py.kube.retry_queue`, whose cap bounds how long a change waits. If a write was refused because
something that it names does not exist, `WorkQueue.excuse` shortens the pause. The queue is bounded, too.
Names that did not fit or were given up come back through ``refill``, which returns all names that may need work. If
these do not fit at once, the rest follows as soon as half of the queue is free.

An exception that nobody expected costs one turn of one name, not the process (:mod:`volcano_py.kube.own_faults`).
Whoever observes the queue must say so if nothing but such faults happens.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import structlog

from volcano_py.kube import errors
from volcano_py.kube.backoff import CAP_S, FIRST_S
from volcano_py.kube.outage import Outage, is_unanswered
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.kube.retry_queue import RetryQueue
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()

K = TypeVar("K", bound=Hashable)

_AGAIN: Final = "trying again"
_GIVEN_UP: Final = "given up after repeated errors; the next attempt follows a change of the object or a refill"

Observer = Callable[[str, str], None]
"""Called with the queue's name and the result of a turn: done, retried, given_up; refused if a name did not fit.

A turn with a fault of ours counts as ``fault``, and then as retried or given_up.
"""


@dataclass(frozen=True, slots=True)
class WorkQueueOptions:
    """How a queue paces itself."""

    workers: int = 4
    capacity: int = 100_000
    attempts: int = 15
    """Failed turns in a row after which a name waits for its next change or refill."""
    first_retry_s: float = FIRST_S
    retry_cap_s: float = CAP_S
    refill_every_s: float = 300.0
    """Pause between two refills with all names that may need work."""
    turn_timeout_s: float = 300.0
    """The longest that one turn may take."""


class WorkQueue(Generic[K]):
    """Gives names to workers; ``reconcile`` does the work for one name and raises ApiError if it failed."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[None]],
        options: WorkQueueOptions | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        refill: Callable[[], Iterable[K]] = tuple,
        on_given_up: Callable[[K, errors.ApiError], None] = lambda _, __: None,
        observe: Observer = lambda _, __: None,
        outage: Outage | None = None,
        describe: Callable[[K], str] = str,
    ) -> None:
        """Prepare; ``describe`` names the object of a key in the log, and lines that follow from an ``outage`` are not
        logged.
        """
        self.name = name
        self._reconcile = reconcile
        self._options = options or WorkQueueOptions()
        self._clock = clock
        self._refill = refill
        self._on_given_up = on_given_up
        self._observe = observe
        self._outage = outage
        self._describe = describe
        self._queue: RetryQueue[K] = RetryQueue(
            attempts=self._options.attempts,
            clock=clock,
            rng=rng,
            first_retry_s=self._options.first_retry_s,
            retry_cap_s=self._options.retry_cap_s,
        )
        self._overflowed = False  # since the last refill began
        self._left: Iterator[K] = iter(())  # of the refill that is under way
        self._faults = OwnFaults(name, clock)

    @property
    def backlog(self) -> int:
        """The number of names that wait for a worker or their next attempt, or are being worked on."""
        return self._queue.backlog

    @property
    def overdue(self) -> int:
        """The same without names that were added for later: they do not count before their time."""
        return self._queue.overdue

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers."""
        for number in range(self._options.workers):
            supervisor.start(f"{self.name} worker {number}", self._work())
        supervisor.start(f"{self.name} refill", self._refill_now_and_then())

    def add(self, key: K) -> bool:
        """Ask for a turn as soon as a pause after a failure is over; return False if the queue is full.

        Names that did not fit come back through ``refill`` once half of the queue is free.
        """
        return self._plan(key, 0.0)

    def add_later(self, key: K, seconds: float) -> None:
        """Ask for a turn after a delay, so that changes during the delay cost no turn of their own.

        A name that waits already gets its turn at the earlier of the two times.
        """
        self._plan(key, seconds)

    def pause_s(self, key: K) -> float:
        """Return in how many seconds the pause of a name after a failure is over, 0 if there is none."""
        return self._queue.pause_s(key)

    def excuse(self) -> None:
        """Try names that were refused again at once, because something has appeared that their objects may name.

        A name that is refused again and again has its turns no more often than after a new failure.
        """
        for key in self._queue.excuse():
            self._plan(key, 0.0)

    async def drained(self, timeout_s: float) -> bool:
        """Wait until no name is left; return False as soon as that cannot happen within the timeout."""
        return await self._queue.drained(timeout_s)

    def _plan(self, key: K, delay_s: float) -> bool:
        queue = self._queue
        if key not in queue and not queue.is_working(key) and self._is_full():
            self._overflowed = True
            self._observe(self.name, "refused")
            return False
        queue.plan(key, delay_s)
        return True

    async def _work(self) -> None:
        while True:
            key = await self._queue.next()
            try:
                await self._turn(key)
            finally:
                self._queue.release(key)
            self._make_up_for_overflow()
            await asyncio.sleep(0)  # a turn that waits for nothing would keep the event loop from all else

    async def _turn(self, key: K) -> None:
        try:
            async with asyncio.timeout(self._options.turn_timeout_s):
                await self._reconcile(key)
        except errors.ApiError as error:
            self._failed(key, error)
        except TimeoutError:
            problem = f"its turn took longer than {self._options.turn_timeout_s:g} s"
            self._failed(key, errors.Timeout("reconcile", str(key), problem, maybe_applied=True))
        except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
            fault = self._faults.survive(self._describe(key), error)
            self._observe(self.name, "fault")
            self._failed(key, fault)
        else:
            self._queue.succeeded(key)
            self._observe(self.name, "done")

    def _failed(self, key: K, error: errors.ApiError) -> None:
        pause_s = self._queue.failed(key, error.retry_after_s, excusable=errors.is_refusal(error))
        if pause_s is None:
            self._observe(self.name, "given_up")
            if not self._withheld(_GIVEN_UP, error):
                log.warning(
                    _GIVEN_UP,
                    queue=self.name,
                    object=self._describe(key),
                    attempts=self._options.attempts,
                    again_within_s=self._options.refill_every_s,
                    error=str(error),
                )
            self._tell_given_up(key, error)
            return
        self._observe(self.name, "retried")
        # A connection that breaks once is no news, and an outage has a line of its own.
        quiet = isinstance(error, errors.Conflict) or self._withheld(_AGAIN, error) or is_unanswered(error)
        level = log.debug if quiet else log.info
        level(_AGAIN, queue=self.name, object=self._describe(key), error=str(error), pause_s=round(pause_s, 2))

    def _tell_given_up(self, key: K, error: errors.ApiError) -> None:
        try:
            self._on_given_up(key, error)
        except Exception as fault:  # noqa: BLE001 - a fault of ours may be anything
            self._faults.survive(self._describe(key), fault)

    def _withheld(self, event: str, error: errors.ApiError) -> bool:
        return self._outage is not None and self._outage.withholds(event, error)

    def _make_up_for_overflow(self) -> None:
        """Refill the queue after an overflow, or go on with a refill that did not fit, once half of it is free."""
        if len(self._queue) > self._options.capacity // 2 or self._goes_on():
            return
        if self._overflowed:
            self._begin_refill()

    def _begin_refill(self) -> None:
        self._overflowed = False
        try:
            self._left = iter(tuple(self._refill()))
        except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
            self._faults.survive("all that may need work", error)
        self._goes_on()

    def _goes_on(self) -> bool:
        """Add names of the refill that is under way until the queue is full; say whether there were any."""
        added = False
        while not self._is_full() and (key := next(self._left, None)) is not None:
            added = self._plan(key, 0.0)
        return added

    def _is_full(self) -> bool:
        return len(self._queue) >= self._options.capacity

    async def _refill_now_and_then(self) -> None:
        """Add all names that may need work, now and then."""
        while True:
            await self._clock.sleep(self._options.refill_every_s)
            if not self._goes_on():
                self._begin_refill()
