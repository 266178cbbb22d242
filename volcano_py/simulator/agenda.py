"""Virtual time: what is to happen and when. Nothing waits; time goes straight to the next thing."""

import heapq
from collections.abc import Callable


class Agenda:
    """Things to do by their time, in seconds since the beginning; those of one time in the order they were put in."""

    def __init__(self) -> None:
        self.now = 0.0
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def at(self, time: float, do: Callable[[], None]) -> None:
        """Put something in; nothing can be put into the past."""
        if time < self.now:
            raise ValueError(f"{time:g} s is past: it is {self.now:g} s")
        self._count += 1
        heapq.heappush(self._entries, (time, self._count, do))

    def after(self, delay: float, do: Callable[[], None]) -> None:
        """Put something in that is to happen some seconds from now."""
        self.at(self.now + delay, do)

    def step(self, until: float) -> bool:
        """Go on to the next time at which something is to happen and do it all; False if there is none by ``until``."""
        if not self._entries or self._entries[0][0] > until:
            self.now = max(self.now, until)
            return False
        self.now = self._entries[0][0]
        while self._entries and self._entries[0][0] <= self.now:
            heapq.heappop(self._entries)[2]()
        return True
