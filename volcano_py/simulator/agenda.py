"""A queue of calls on virtual time, which jumps straight to the next call."""

import heapq
from collections.abc import Callable


class Agenda:
    """Planned calls by time in seconds since the beginning; calls of one time run in the order they were added."""

    def __init__(self) -> None:
        self.now = 0.0
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, time: float, do: Callable[[], None]) -> None:
        """Plan a call at a time; raise ValueError for a time in the past."""
        if time < self.now:
            raise ValueError(f"{time:g} s is in the past: the time is {self.now:g} s")
        self._count += 1
        heapq.heappush(self._entries, (time, self._count, do))

    def after(self, delay: float, do: Callable[[], None]) -> None:
        """Plan a call some seconds from now."""
        self.at(self.now + delay, do)

    def step(self, until: float) -> bool:
        """Advance to the time of the next call and run all calls of that time; False if there is none by ``until``."""
        if not self._entries or self._entries[0][0] > until:
            self.now = max(self.now, until)
            return False
        self.now = self._entries[0][0]
        while self._entries and self._entries[0][0] <= self.now:
            heapq.heappop(self._entries)[2]()
        return True
