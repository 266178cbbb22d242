"""A queue of object names for controllers: each name once, worked on by one worker at a time, tried again after errors.

    add ──▶ waiting ──▶ worker: reconcile ──▶ done
              ▲            │ API error: again after a pause that grows, up to a number of attempts
              └────────────┴ added meanwhile: once more at once

A name says only *that* something may have to be done; what, the worker finds out when its turn comes, so ten changes of
an object cost one look at it. The queue is bounded. What did not fit, and what was given up, is asked for again from
``refill``: all names that still need work.
"""

import asyncio
import heapq
import itertools
import random
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import structlog

from volcano_py.kube import errors
from volcano_py.kube.backoff import Backoff
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()

K = TypeVar("K", bound=Hashable)

_TICK_S: Final = 0.05

Observer = Callable[[str, str], None]
"""Told the queue's name and what a turn came to: done, retried, given_up; refused for a name that did not fit."""


@dataclass(frozen=True, slots=True)
class WorkQueueOptions:
    """How a queue paces itself."""

    workers: int = 4
    capacity: int = 10_000
    attempts: int = 15
    """Turns in a row that may fail before a name is left to the next change or refill."""
    first_retry_s: float = 0.2
    retry_cap_s: float = 30.0
    refill_every_s: float = 300.0
    """How often all names that still need work are asked for."""
    turn_timeout_s: float = 300.0
    """The longest that one turn may take."""


class WorkQueue(Generic[K]):
    """Gives names to workers; ``reconcile`` brings about what one of them needs and raises ApiError if it could not."""

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
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._options = options or WorkQueueOptions()
        self._clock = clock
        self._rng = rng
        self._refill = refill
        self._on_given_up = on_given_up
        self._observe = observe
        self._ready: OrderedDict[K, None] = OrderedDict()
        self._later: dict[K, float] = {}  # when a name that failed may have another turn
        self._due: list[tuple[float, int, K]] = []  # heap over _later; an item whose time differs from _later is void
        self._sequence = itertools.count()
        self._working: set[K] = set()
        self._again: set[K] = set()  # added while being worked on
        self._backoffs: dict[K, Backoff] = {}
        self._overflowed = False
        self._changed = asyncio.Event()
        self._rescheduled = asyncio.Event()

    @property
    def backlog(self) -> int:
        """How many names wait, for a worker or for their next attempt, or are being worked on."""
        return len(self._ready) + len(self._later) + len(self._working)

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers."""
        for number in range(self._options.workers):
            supervisor.start(f"{self.name} worker {number}", self._work())
        supervisor.start(f"{self.name} clockwork", self._wake_in_time())

    def add(self, key: K) -> bool:
        """Ask for a turn, at once even if the name waits for its next attempt; False if the queue is full.

        What did not fit is asked for from ``refill`` as soon as there is room.
        """
        if key in self._working:
            self._again.add(key)
            return True
        if key in self._ready:
            return True
        if self._later.pop(key, None) is None and len(self._ready) + len(self._later) >= self._options.capacity:
            self._overflowed = True
            self._observe(self.name, "refused")
            return False
        self._ready[key] = None
        self._changed.set()
        return True

    def add_later(self, key: K, seconds: float) -> None:
        """Ask for a turn after a while, so that what changes meanwhile costs no turn of its own.

        A name that waits already is left as it is.
        """
        if key not in self._ready and key not in self._later:
            if len(self._ready) + len(self._later) >= self._options.capacity:
                self._overflowed = True
                self._observe(self.name, "refused")
                return
            self._plan(key, seconds)

    async def drained(self, timeout_s: float) -> bool:
        """Wait until nothing is left to do; say whether that was so in time."""
        deadline = self._clock.monotonic() + timeout_s
        while self.backlog:
            if self._clock.monotonic() >= deadline:
                return False
            await self._clock.sleep(_TICK_S)
        return True

    async def _work(self) -> None:
        while True:
            while not self._ready:
                self._changed.clear()
                await self._changed.wait()
            key, _ = self._ready.popitem(last=False)
            self._working.add(key)
            try:
                async with asyncio.timeout(self._options.turn_timeout_s):
                    await self._reconcile(key)
            except errors.ApiError as error:
                self._failed(key, error)
            except TimeoutError:
                problem = f"its turn took longer than {self._options.turn_timeout_s:g} s"
                self._failed(key, errors.Timeout("reconcile", str(key), problem, maybe_applied=True))
            else:
                self._backoffs.pop(key, None)
                self._observe(self.name, "done")
            finally:
                self._working.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)
            self._make_up_for_overflow()

    def _failed(self, key: K, error: errors.ApiError) -> None:
        options = self._options
        backoff = self._backoffs.setdefault(
            key, Backoff(self._rng, first_s=options.first_retry_s, cap_s=options.retry_cap_s)
        )
        if backoff.failures + 1 >= options.attempts:
            del self._backoffs[key]
            self._observe(self.name, "given_up")
            log.warning(
                "given up after repeated errors; tried again when the object changes, or later",
                queue=self.name,
                object=str(key),
                attempts=options.attempts,
                again_within_s=options.refill_every_s,
                error=str(error),
            )
            self._on_given_up(key, error)
            return
        self._observe(self.name, "retried")
        pause_s = backoff.next(error.retry_after_s)
        level = log.debug if isinstance(error, errors.Conflict) else log.info
        level("trying again", queue=self.name, object=str(key), error=str(error), pause_s=round(pause_s, 2))
        self._plan(key, pause_s)

    def _plan(self, key: K, seconds: float) -> None:
        due = self._clock.monotonic() + seconds
        self._later[key] = due
        heapq.heappush(self._due, (due, next(self._sequence), key))
        self._rescheduled.set()

    def _make_up_for_overflow(self) -> None:
        """Ask for what did not fit, once half of the queue is free."""
        if self._overflowed and len(self._ready) + len(self._later) <= self._options.capacity // 2:
            self._overflowed = False
            self._add_all()

    def _add_all(self) -> None:
        for key in self._refill():
            if not self.add(key):
                break

    async def _wake_in_time(self) -> None:
        """Give names their next attempt when its time has come, and ask for forgotten ones now and then."""
        refill_at = self._clock.monotonic() + self._options.refill_every_s
        while True:
            self._rescheduled.clear()
            now = self._clock.monotonic()
            while self._due and self._due[0][0] <= now:
                due, _, key = heapq.heappop(self._due)
                if self._later.get(key) == due:
                    self.add(key)
            if now >= refill_at:
                refill_at = now + self._options.refill_every_s
                self._add_all()
            await self._pause(min(refill_at, self._due[0][0]) - now if self._due else refill_at - now)

    async def _pause(self, seconds: float) -> None:
        """Wait so long, or until another attempt is planned."""
        waits = [
            asyncio.create_task(self._clock.sleep(seconds), name=f"{self.name} pause"),
            asyncio.create_task(self._rescheduled.wait(), name=f"{self.name} rescheduled"),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
