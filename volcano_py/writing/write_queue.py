"""A write queue, for writes that may wait: one write per object at a time, the newest content only, at a bounded rate.

Binds do not pass through a write queue (:mod:`volcano_py.effects.binder`). A write queue never blocks its caller: a
write that comes while it is full is dropped and counted. The cycle decides a write again that was dropped or given up:
`WriteQueue.on_lost` asks for that cycle, because none runs while nothing waits. If writes were dropped, it asks once,
when the queue is nearly empty: a million reasons of pods fill it again and again. A dropped event is lost.

A write that fails is tried again under the rule of :mod:`volcano_py.kube.retry_queue`. The back-off belongs to the
object: newer content waits for its end, too, even if the older write was given up. The same holds if the object was not
found, because each cycle decides about what is gone while a watch is silent.
"""

import random
from collections.abc import Awaitable, Callable, Hashable, Sized
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from volcano_py.kube import errors
from volcano_py.kube.outage import Outage
from volcano_py.kube.retry_queue import RetryQueue
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.rate import TokenBucket
from volcano_py.writing.throttled_log import ThrottledLog

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_TICK_S: Final = 0.05
_NEARLY_EMPTY: Final = 10  # when a tenth of the capacity waits, what was dropped is asked for again
_AGAIN = (errors.TooManyRequests, errors.ServerError, errors.Timeout, errors.ConnectionFailed, errors.Conflict)


@dataclass(frozen=True, slots=True)
class WriteQueueOptions:
    """How fast a write queue writes, and how much may wait in it."""

    rate_per_s: float
    burst: int
    workers: int = 4
    capacity: int = 10_000
    delay_s: float = 0.0  # content that is replaced within this time is never written
    patience_s: float = 2.0  # how long `hold` may delay the next write
    each_s: float | None = None  # if given, instead: how long `hold` may delay each write
    attempts: int = 5


class WriteQueue(Generic[K, V]):
    """Writes values by key with ``write``, which returns the result in one word ("written", "unchanged", ...).

    ``merge`` joins a value with the one that waits; without it, the newer value replaces the older one. ``hold`` says
    whether more important requests are under way; writes then wait, within the limits of the options.
    Lines about writes that fail in an ``outage`` are withheld.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[K, V], Awaitable[str]],
        options: WriteQueueOptions,
        metrics: WriteQueueMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        merge: Callable[[V, V], V] | None = None,
        hold: Callable[[], bool] | None = None,
        outage: Outage | None = None,
    ) -> None:
        self.name = name
        self._write = write
        self._options = options
        self._metrics = metrics
        self._clock = clock
        self._merge = merge
        self._hold = hold
        self._on_lost: Callable[[K | None], None] = lambda _: None
        self._dropped = False  # whether something was, since the queue was nearly empty
        self._bucket = TokenBucket(options.rate_per_s, options.burst, clock.monotonic())
        self._queue: RetryQueue[K] = RetryQueue(attempts=options.attempts, clock=clock, rng=rng)
        self._waiting: dict[K, V] = {}  # by the keys that wait in the queue
        self._delayed_s = 0.0  # how long `hold` has delayed the next write
        self._hurry = False
        self._throttled_log = ThrottledLog("write given up", clock, outage=outage)
        metrics.watch(name, lambda: self.backlog)

    @property
    def backlog(self) -> int:
        """How many keys wait or are being written."""
        return self._queue.backlog

    def __contains__(self, key: K) -> bool:
        """Say whether a key waits or is being written."""
        return key in self._queue or self._queue.is_working(key)

    @property
    def _due(self) -> Sized:
        """The heap of what waits."""
        return self._queue.due

    def on_lost(self, callback: Callable[[K | None], None]) -> None:
        """Call ``callback`` with each key whose value was given up, and with None when what was dropped has room."""
        self._on_lost = callback

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers."""
        for number in range(self._options.workers):
            supervisor.start(f"{self.name} {number}", self._work())

    def put(self, key: K, value: V, delay_s: float | None = None) -> bool:
        """Take a value; return False if it was dropped because the queue is full.

        It is written after ``delay_s`` (None: that of the options), or as early as the value that it replaces, but not
        before the back-off of its key has passed.
        """
        waiting = self._waiting
        if key in waiting:
            waiting[key] = value if self._merge is None else self._merge(waiting[key], value)
            self._metrics.count(self.name, "merged")
        elif len(waiting) >= self._options.capacity:
            self._metrics.count(self.name, "dropped")
            self._dropped = True
            return False
        else:
            waiting[key] = value
        self._queue.plan(key, self._options.delay_s if delay_s is None else delay_s)
        return True

    def discard(self, key: K) -> None:
        """Drop the value that waits under a key."""
        if self._queue.discard(key):
            del self._waiting[key]
            self._metrics.count(self.name, "obsolete")
            self._ask_for_dropped()

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits without further delay, except for back-offs; return whether all was written in time."""
        self._hurry = True
        self._queue.hurry()
        return await self._queue.drained(timeout_s)

    async def _work(self) -> None:
        while True:
            key = await self._queue.next(self._pause_s)
            value = self._waiting.pop(key)
            self._ask_for_dropped()
            try:
                self._metrics.count(self.name, await self._write(key, value))
            except errors.ApiError as error:
                self._failed(key, value, error)
            else:
                self._queue.succeeded(key)
            finally:
                self._queue.release(key)

    def _ask_for_dropped(self) -> None:
        if self._dropped and len(self._waiting) <= self._options.capacity // _NEARLY_EMPTY:
            self._dropped = False
            self._on_lost(None)

    def _pause_s(self, late_s: float) -> float:
        """Return how long the next write waits for more important requests, or for the rate, in seconds."""
        if self._hold is not None and not self._hurry and self._may_wait(late_s) and self._hold():
            self._delayed_s += _TICK_S
            return _TICK_S
        wait_s = self._bucket.take(self._clock.monotonic())
        if not wait_s:
            self._delayed_s = 0.0
        return wait_s

    def _may_wait(self, late_s: float) -> bool:
        each_s = self._options.each_s
        return self._delayed_s < self._options.patience_s if each_s is None else late_s < each_s

    def _failed(self, key: K, value: V, error: errors.ApiError) -> None:
        backoff_s = self._queue.failed(key, error.retry_after_s, again=isinstance(error, _AGAIN))
        if backoff_s is not None:
            if key not in self._waiting:
                self._waiting[key] = value
            elif self._merge is not None:
                self._waiting[key] = self._merge(value, self._waiting[key])
            self._metrics.count(self.name, "retried")
        elif isinstance(error, errors.NamespaceTerminating | errors.NotFound):
            self._metrics.count(self.name, "obsolete")
        else:
            self._metrics.count(self.name, "failed")
            self._on_lost(key)
            self._throttled_log.log(why=error, write_queue=self.name, object=str(key), error=str(error))
