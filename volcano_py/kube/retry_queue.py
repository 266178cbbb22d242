"""The retry queue of the project: keys that need a turn, each at most once, none before its back-off has passed.

    plan ──▶ waiting ──▶ turn ──▶ succeeded      its failures are forgotten
               ▲          │  └──▶ failed         planned again after its back-off, or given up after ``attempts``
               └──────────┴──▶ planned meanwhile: another turn after this one, or after its back-off

All users of the queue share one back-off rule. After a failure a key gets no turn before its back-off has passed. The
back-off doubles with every failure in a row, is at least as long as the server asks (Retry-After), and has a cap
(:class:`~volcano_py.kube.backoff.Backoff`). It belongs to the key, not to the work, so no change, no other delay, no
discard, no giving up and no draining shortens it.

Only an excuse shortens it, because it says that the reason of the failures may be gone: what a key named did not exist,
and now something has appeared. It holds for keys with an ``excusable`` failure since their last success, also for those
that are given up, even long ago. The shortest back-off of an excused key doubles with every excuse that was in vain, up
to the cap, and is never shorter than the server asks. So a flood of excuses costs a key no more turns than the back-off
of a new failure does. The back-off after an excused turn goes on from there: whoever refuses may see later than we do
what has appeared. The attempts that are left are as many as for such a failure, because otherwise they would be used up
before the reason is gone. If there was no excuse for as long as the longest back-off, the next one is the first again.

A key that is planned during its back-off gets one turn when the back-off ends, however many changes came meanwhile.

A success resets the count of failures. So does a time without plans for the key as long as the longest back-off, which
bounds the memory of failures. A key that was given up is remembered longer, so that an excuse finds it; their number is
bounded.
"""

import asyncio
import heapq
import itertools
import math
import random
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from volcano_py.kube.backoff import CAP_S, FIRST_S, Backoff
from volcano_py.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)

_TICK_S: Final = 0.05
_EXCUSABLE: Final = (
    10_000  # given up and forgotten keys that an excuse still finds; if there are more, the oldest ones are dropped
)
_VOID_ITEMS: Final = 64  # void items that the heap may hold beyond the number of waiting keys


class _Failures:
    """The back-off of a key that failed."""

    __slots__ = ("asked_s", "attempts", "backoff", "excusable", "excused", "excused_at", "failed_at", "until")

    def __init__(self, backoff: Backoff) -> None:
        self.backoff = backoff
        self.failed_at = 0.0
        self.until = 0.0  # earliest time of the next turn
        self.asked_s = 0.0  # the pause that the server asked for after the last failure
        self.attempts = 0  # failures since the last success or giving up
        self.excusable = False  # whether one of the failures was
        self.excused = 0  # excuses that were in vain or are not used yet
        self.excused_at = -math.inf


def _at_once(late_s: float) -> float:
    return 0.0


class RetryQueue(Generic[K]):
    """Hands keys to workers in order of their due times; one turn per key at a time.

    A worker calls `next`, does the work, calls `succeeded` or `failed`, and calls `release` in any case.
    """

    def __init__(
        self,
        *,
        attempts: int,
        clock: Clock,
        rng: random.Random,
        first_retry_s: float = FIRST_S,
        retry_cap_s: float = CAP_S,
    ) -> None:
        self._attempts = attempts
        self._clock = clock
        self._rng = rng
        self._first_retry_s = first_retry_s
        self._retry_cap_s = retry_cap_s
        self._planned: dict[K, tuple[float, int, K]] = {}  # key -> its item: (due time, sequence number, key)
        self._due: list[tuple[float, int, K]] = []  # heap; an item is void unless it is its key's item in _planned
        self._sequence = itertools.count()
        self._working: dict[K, int] = {}  # key -> excuses before its turn; none of these is in the heap
        self._excusable: dict[K, None] = {}  # keys with a failure that may be excused, in order
        self._excuses = 0
        self._failures: dict[K, _Failures] = {}
        self._remember_s = self._new_backoff().longest_s  # after the end of the back-off
        self._forget_at = clock.monotonic() + self._remember_s
        self._turn = asyncio.Lock()  # held by the one worker that looks for work
        self._changed = asyncio.Event()  # another item may be first now
        self._hurry = False

    def __len__(self) -> int:
        """Return how many keys wait."""
        return len(self._planned)

    def __contains__(self, key: K) -> bool:
        """Say whether a key waits."""
        return key in self._planned

    @property
    def backlog(self) -> int:
        """The number of keys that wait or have their turn."""
        return len(self._planned) + sum(key not in self._planned for key in self._working)

    @property
    def overdue(self) -> int:
        """The number of keys that are due, back off after a failure, or have their turn; others are for later."""
        now = self._clock.monotonic()
        waiting = ((key, item[0]) for key, item in self._planned.items() if key not in self._working)
        return len(self._working) + sum(due <= now or key in self._failures for key, due in waiting)

    @property
    def due(self) -> Sequence[tuple[float, int, K]]:
        """The heap of turns, void items included."""
        return self._due

    @property
    def remembered(self) -> int:
        """The number of keys with remembered failures."""
        return len(self._failures)

    def is_working(self, key: K) -> bool:
        """Say whether a key has its turn."""
        return key in self._working

    # Plans

    def plan(self, key: K, delay_s: float = 0.0) -> None:
        """Ask for a turn after a delay; the earlier of two requests counts, but no turn comes before a back-off ends.

        A negative delay puts the key before others that are due.
        """
        if self._hurry:
            delay_s = min(delay_s, 0.0)
        due = self._clock.monotonic() + delay_s
        if self._failures:
            due = max(due, self._backoff_until(key))
        item = self._planned.get(key)
        if item is None or due < item[0]:
            self._planned[key] = item = (due, next(self._sequence), key)
            if key not in self._working:
                self._push(item)

    def pause_s(self, key: K) -> float:
        """Return in how many seconds the back-off of a key ends, 0 if it has none."""
        return max(0.0, self._backoff_until(key) - self._clock.monotonic())

    def excuse(self) -> list[K]:
        """Shorten the back-off of all keys with an excusable failure, and return them; the caller plans them.

        A turn that fails later, but began before, is excused, too.
        """
        self._excuses += 1
        keys = list(self._excusable)
        self._excusable.clear()
        for key in keys:
            if (failures := self._failures.get(key)) is not None:
                self._shorten(failures)
        return keys

    def discard(self, key: K) -> bool:
        """Withdraw the request for a turn; say whether there was one."""
        self._excusable.pop(key, None)
        if self._planned.pop(key, None) is None:
            return False
        self._compact()
        return True

    def hurry(self) -> None:
        """Skip delays from now on, but no back-off."""
        self._hurry = True
        now = self._clock.monotonic()
        for key, (due, sequence, _) in self._planned.items():
            self._planned[key] = (max(min(due, now), self._backoff_until(key)), sequence, key)
        self._rebuild()
        self._changed.set()

    async def drained(self, timeout_s: float) -> bool:
        """Wait until no key is left; return False as soon as that cannot happen within the timeout."""
        deadline = self._clock.monotonic() + timeout_s
        while self._planned or self._working:
            first = self._first()
            too_late = first is not None and first > deadline and not self._working
            if too_late or self._clock.monotonic() >= deadline:
                return False
            await self._clock.sleep(_TICK_S)
        return True

    # Turns

    async def next(self, pause_s: Callable[[float], float] = _at_once) -> K:
        """Wait for the first key that is due, begin its turn and return it.

        ``pause_s`` receives how late the key is and returns how long to wait before any turn begins, 0 to begin now.
        """
        async with self._turn:
            while True:
                self._changed.clear()
                due = self._first()
                now = self._clock.monotonic()
                if due is None:
                    await self._changed.wait()
                elif due > now:
                    await self._wait(due - now)
                elif pause := pause_s(now - due):
                    await self._clock.sleep(pause)
                else:
                    _, _, key = heapq.heappop(self._due)
                    del self._planned[key]
                    self._working[key] = self._excuses
                    self._excusable.pop(key, None)
                    self._compact()
                    return key

    def succeeded(self, key: K) -> None:
        """Forget the failures of a key that has its turn."""
        self._failures.pop(key, None)

    def failed(
        self, key: K, retry_after_s: float | None = None, *, again: bool = True, excusable: bool = False
    ) -> float | None:
        """Count a failure of a key that has its turn and plan its next attempt; return the back-off before it.

        Returns None if the key is given up: without ``again``, or because all attempts are used up. If it is planned
        later, it gets as many attempts again, after the back-off.
        """
        now = self._clock.monotonic()
        failures = self._failures.get(key)
        if failures is None:
            failures = self._failures[key] = _Failures(self._new_backoff())
        backoff_s = failures.backoff.next(retry_after_s)
        failures.failed_at, failures.until = now, now + backoff_s
        failures.asked_s = min(retry_after_s or 0.0, failures.backoff.longest_s)
        failures.attempts += 1
        failures.excusable |= excusable
        excused = failures.excusable and self._working[key] != self._excuses
        if excused:
            self._shorten(failures)
        elif failures.excusable:
            self._excusable[key] = None
        if not again or (failures.attempts >= self._attempts and not excused):
            failures.attempts = 0
            return None
        self.plan(key)
        return failures.until - now

    def release(self, key: K) -> None:
        """End the turn of a key, whatever its result."""
        self._working.pop(key, None)
        item = self._planned.get(key)
        if item is not None:
            due, sequence, _ = item
            self._planned[key] = item = (max(due, self._backoff_until(key)), sequence, key)
            self._push(item)
        self._forget()

    # Inside

    def _new_backoff(self) -> Backoff:
        return Backoff(self._rng, first_s=self._first_retry_s, cap_s=self._retry_cap_s)

    def _backoff_until(self, key: K) -> float:
        """Return the end of a key's back-off."""
        failures = self._failures.get(key)
        return -math.inf if failures is None else failures.until

    def _shorten(self, failures: _Failures) -> None:
        """Excuse a key: let its back-off end earlier, by the rule for excuses."""
        now = self._clock.monotonic()
        if now - failures.excused_at > self._remember_s:
            failures.excused = 0
        least_s = min(self._first_retry_s * 2.0 ** min(failures.excused, 30), self._retry_cap_s)
        failures.until = min(failures.until, failures.failed_at + max(least_s, failures.asked_s))
        failures.excused += 1
        failures.backoff.failures = min(failures.backoff.failures, failures.excused)
        failures.attempts = min(failures.attempts, failures.excused)
        failures.excused_at = now

    def _push(self, item: tuple[float, int, K]) -> None:
        heapq.heappush(self._due, item)
        if self._due[0] is item:
            self._changed.set()
        self._compact()

    def _first(self) -> float | None:
        """Return when the first turn is due."""
        while self._due:
            item = self._due[0]
            if self._planned.get(item[2]) is item:
                return item[0]
            heapq.heappop(self._due)
        return None

    def _compact(self) -> None:
        """Remove void items from the heap when there are too many."""
        if len(self._due) > 2 * len(self._planned) + _VOID_ITEMS:
            self._rebuild()

    def _rebuild(self) -> None:
        self._due = [item for key, item in self._planned.items() if key not in self._working]
        heapq.heapify(self._due)

    def _forget(self) -> None:
        """Now and then, forget the failures of keys that were not planned for long after their back-off."""
        now = self._clock.monotonic()
        if now < self._forget_at:
            return
        self._forget_at = now + self._remember_s
        self._failures = {
            key: failures
            for key, failures in self._failures.items()
            if key in self._planned or key in self._working or now < failures.until + self._remember_s
        }
        given_up = [key for key in self._excusable if key not in self._failures]
        for key in given_up[:-_EXCUSABLE]:
            del self._excusable[key]

    async def _wait(self, seconds: float) -> None:
        """Wait for that many seconds, or until another item may be first."""
        alarm = asyncio.create_task(self._clock.sleep(seconds), name="alarm of a retry queue")
        alarm.add_done_callback(lambda task: None if task.cancelled() else self._changed.set())
        try:
            await self._changed.wait()
        finally:
            alarm.cancel()
            await asyncio.gather(alarm, return_exceptions=True)
