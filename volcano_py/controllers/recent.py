"""Remembers recent writes that the watch may not have shown yet."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from volcano_py.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)


class Recent(Generic[K]):
    """A set whose entries expire: a write is not repeated only because the watch is late."""

    def __init__(self, clock: Clock, lasts_s: float = 30.0, capacity: int = 100_000) -> None:
        self._clock = clock
        self._lasts_s = lasts_s
        self._capacity = capacity
        self._until: OrderedDict[K, float] = OrderedDict()  # oldest first

    def add(self, entry: K) -> None:
        """Add an entry, and remove expired entries, or the oldest if there are too many."""
        self._until[entry] = self._clock.monotonic() + self._lasts_s
        self._until.move_to_end(entry)
        now = self._clock.monotonic()
        while self._until and (len(self._until) > self._capacity or next(iter(self._until.values())) <= now):
            self._until.popitem(last=False)

    def discard(self, entry: K) -> None:
        """Remove an entry."""
        self._until.pop(entry, None)

    def __contains__(self, entry: K) -> bool:
        """Say whether an entry was added and has not expired."""
        until = self._until.get(entry)
        return until is not None and self._clock.monotonic() < until
