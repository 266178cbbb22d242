"""A lane for writes that may wait: one per object at a time, the newest content only, at most so many per second.

Binds have their own way (:mod:`volcano_py.effects.binder`). A lane never holds anybody back: what comes while it is
full is dropped and counted, and whoever decided it decides it again, or it was an event.
"""

import asyncio
import heapq
import itertools
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from volcano_py.effects.complaints import Complaints
from volcano_py.effects.rate import TokenBucket
from volcano_py.kube import errors
from volcano_py.kube.backoff import Backoff
from volcano_py.metrics.effects import LaneMetrics
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_TICK_S: Final = 0.05
_AGAIN = (errors.TooManyRequests, errors.ServerError, errors.Timeout, errors.ConnectionFailed, errors.Conflict)


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """How a lane paces itself."""

    rate_per_s: float
    burst: int
    workers: int = 4
    capacity: int = 10_000
    delay_s: float = 0.0  # what is superseded within this time is never written
    patience_s: float = 2.0  # how long one write lets itself be held back by more important ones
    each_s: float | None = None  # instead: how late every one of them may be written for the sake of those
    attempts: int = 5


class _Entry(Generic[V]):
    __slots__ = ("backoff", "sequence", "value")

    def __init__(self, value: V, sequence: int) -> None:
        self.value = value
        self.sequence = sequence
        self.backoff: Backoff | None = None


class Lane(Generic[K, V]):
    """Writes values by key with ``write``, which says in a word what it came to ("written", "unchanged", ...)."""

    def __init__(
        self,
        name: str,
        write: Callable[[K, V], Awaitable[str]],
        options: LaneOptions,
        metrics: LaneMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        merge: Callable[[V, V], V] | None = None,
        hold: Callable[[], bool] | None = None,
    ) -> None:
        self.name = name
        self._write = write
        self._options = options
        self._metrics = metrics
        self._clock = clock
        self._rng = rng
        self._merge = merge
        self._hold = hold
        self._bucket = TokenBucket(options.rate_per_s, options.burst, clock.monotonic())
        self._waiting: dict[K, _Entry[V]] = {}
        self._due: list[tuple[float, int, K]] = []  # heap; an item whose sequence is not its entry's is void
        self._sequence = itertools.count()
        self._writing: set[K] = set()
        self._turn = asyncio.Lock()  # one worker at a time looks for work
        self._changed = asyncio.Event()
        self._hurry = False
        self._complaints = Complaints("write given up", clock)
        metrics.watch(name, lambda: self.backlog)

    @property
    def backlog(self) -> int:
        """How many entries wait or are being written."""
        return len(self._waiting) + len(self._writing)

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers."""
        for number in range(self._options.workers):
            supervisor.start(f"{self.name} {number}", self._work())

    def put(self, key: K, value: V, delay_s: float | None = None) -> bool:
        """Take a value; False if it was dropped because the lane is full.

        It is written after ``delay_s`` (None: the lane's), or as early as one that it takes the place of.
        """
        entry = self._waiting.get(key)
        if entry is not None:
            entry.value = value if self._merge is None else self._merge(entry.value, value)
            if delay_s is not None:
                self._schedule(key, entry, delay_s)  # the earlier of its two places counts
            self._metrics.count(self.name, "merged")
            return True
        if len(self._waiting) >= self._options.capacity:
            self._metrics.count(self.name, "dropped")
            return False
        self._enter(key, _Entry(value, next(self._sequence)), self._options.delay_s if delay_s is None else delay_s)
        return True

    def discard(self, key: K) -> None:
        """Forget what waits under a key."""
        if self._waiting.pop(key, None) is not None:
            self._metrics.count(self.name, "obsolete")
            self._changed.set()

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits without further delay; say whether all of it was written in time."""
        self._hurry = True
        self._changed.set()
        deadline = self._clock.monotonic() + timeout_s
        while self._waiting or self._writing:
            if self._clock.monotonic() >= deadline:
                return False
            await self._clock.sleep(_TICK_S)
        return True

    def _enter(self, key: K, entry: _Entry[V], delay_s: float) -> None:
        self._waiting[key] = entry
        self._schedule(key, entry, delay_s)

    def _schedule(self, key: K, entry: _Entry[V], delay_s: float) -> None:
        heapq.heappush(self._due, (self._clock.monotonic() + delay_s, entry.sequence, key))
        self._changed.set()

    async def _work(self) -> None:
        while True:
            async with self._turn:
                key, entry = await self._next()
                self._writing.add(key)
            try:
                self._metrics.count(self.name, await self._write(key, entry.value))
            except errors.ApiError as error:
                self._failed(key, entry, error)
            finally:
                self._writing.discard(key)
                self._changed.set()

    async def _next(self) -> tuple[K, _Entry[V]]:
        """Return the first entry that is due, once nothing more important goes on and the rate allows it."""
        held_s = 0.0
        while True:
            found = self._first()
            if found is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            due, key = found
            now = self._clock.monotonic()
            if due > now and not self._hurry:
                await self._clock.sleep(min(due - now, _TICK_S))  # one that is due earlier may come meanwhile
            elif self._hold is not None and not self._hurry and self._may_wait(held_s, now - due) and self._hold():
                held_s += _TICK_S
                await self._clock.sleep(_TICK_S)
            elif wait_s := self._bucket.take(now):
                await self._clock.sleep(wait_s)
            else:
                return key, self._waiting.pop(key)

    def _may_wait(self, held_s: float, late_s: float) -> bool:
        each_s = self._options.each_s
        return held_s < self._options.patience_s if each_s is None else late_s < each_s

    def _first(self) -> tuple[float, K] | None:
        """Return the time and key of the entry that is due first and whose key is not being written."""
        passed_over: list[tuple[float, int, K]] = []
        found = None
        while self._due:
            due, sequence, key = self._due[0]
            entry = self._waiting.get(key)
            if entry is None or entry.sequence != sequence:
                heapq.heappop(self._due)
            elif key in self._writing:
                passed_over.append(heapq.heappop(self._due))
            else:
                found = (due, key)
                break
        for item in passed_over:
            heapq.heappush(self._due, item)
        return found

    def _failed(self, key: K, entry: _Entry[V], error: errors.ApiError) -> None:
        if isinstance(error, errors.NamespaceTerminating):
            self._metrics.count(self.name, "obsolete")
            return
        if not isinstance(error, _AGAIN):
            self._metrics.count(self.name, "failed")
            self._complaints.tell(lane=self.name, object=str(key), error=str(error))
            return
        if key in self._waiting:
            return  # something newer waits anyway
        if entry.backoff is None:
            entry.backoff = Backoff(self._rng)
        if entry.backoff.failures + 1 >= self._options.attempts:
            self._metrics.count(self.name, "failed")
            self._complaints.tell(lane=self.name, object=str(key), error=str(error))
            return
        self._metrics.count(self.name, "retried")
        entry.sequence = next(self._sequence)
        self._enter(key, entry, entry.backoff.next(error.retry_after_s))
