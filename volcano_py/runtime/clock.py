"""Time as a dependency: the real clock for processes, a hand-driven one for tests."""

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The source of time for code that waits or measures."""

    def monotonic(self) -> float:
        """Return seconds that never decrease; only differences are meaningful."""
        ...

    def now(self) -> datetime:
        """Return the wall time in UTC, for what is shown or sent."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for that many seconds of this clock."""
        ...


class RealClock:
    """The clock of the machine."""

    def monotonic(self) -> float:
        """Return the machine's monotonic time in seconds."""
        return time.monotonic()

    def now(self) -> datetime:
        """Return the machine's wall time in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Wait for that many real seconds."""
        await asyncio.sleep(seconds)


class FakeClock:
    """A clock that moves only through :meth:`advance`; sleepers wake in the order of their deadlines."""

    def __init__(self, start: datetime = datetime(2024, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def monotonic(self) -> float:
        """Return the seconds advanced so far."""
        return self._elapsed

    def now(self) -> datetime:
        """Return the start time plus what was advanced."""
        return self._start + timedelta(seconds=self._elapsed)

    @property
    def sleepers(self) -> int:
        """The number of sleepers now; a test can wait until its subject sleeps."""
        return sum(not future.done() for _, _, future in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has advanced by that many seconds; zero or less only yields once."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed + seconds, next(self._order), future))
        await future

    def advance(self, seconds: float) -> None:
        """Move time forward and wake every sleeper whose deadline has come."""
        target = self._elapsed + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            deadline, _, future = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, deadline)
            if not future.done():
                future.set_result(None)
        self._elapsed = target
