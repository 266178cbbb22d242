"""What was written a moment ago and the watch may not have shown yet."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from volcano_py.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)


class Recent(Generic[K]):
    """Remembers for a while, so that a write is not repeated only because its echo is late."""

    def __init__(self, clock: Clock, lasts_s: float = 30.0, capacity: int = 100_000) -> None:
        self._clock = clock
        self._lasts_s = lasts_s
        self._capacity = capacity
        self._until: OrderedDict[K, float] = OrderedDict()  # in the order of their time, which is that of their coming

    def add(self, entry: K) -> None:
        """Remember; the oldest is forgotten when there are too many."""
        self._until[entry] = self._clock.monotonic() + self._lasts_s
        self._until.move_to_end(entry)
        now = self._clock.monotonic()
        while self._until and (len(self._until) > self._capacity or next(iter(self._until.values())) <= now):
            self._until.popitem(last=False)

    def discard(self, entry: K) -> None:
        """Forget."""
        self._until.pop(entry, None)

    def __contains__(self, entry: K) -> bool:
        """Say whether this was added not long ago."""
        until = self._until.get(entry)
        return until is not None and self._clock.monotonic() < until
