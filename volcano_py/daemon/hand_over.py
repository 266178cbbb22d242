"""Hands the decisions of a cycle over from its thread to the event loop: in small pieces, and only so many at once.

A cycle over a deep queue decides a hundred thousand writes within a second. The loop must stay free for watches, binds
and probes meanwhile. Therefore no piece is larger than the loop takes in a few milliseconds, and the cycle waits while
the loop has enough of them. A plan (binds, evictions and nominations of one batch) is one piece, whatever its size.

The loop takes small pieces of different jobs together if nothing is evicted in them: the pods of a hundred jobs cost
less in one piece than in a hundred. Binds of one job that were decided one after another stay apart, because those of a
piece are refused together.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from volcano_py.model.decisions import Bind, Decision, Evict, Nominate
from volcano_py.model.objects import JobKey

CAPACITY: Final = 256  # decisions that the loop has not taken yet; a piece enters as a whole
PIECE: Final = 64  # decisions, if they are not one plan
_PATIENCE_S: Final = 60.0

Batch = tuple[Decision, ...]


class HandOver:
    """The way from the thread of the cycles to the event loop; both may use it at once."""

    def __init__(self, *, capacity: int = CAPACITY, piece: int = PIECE, patience_s: float = _PATIENCE_S) -> None:
        """``patience_s`` is how long a cycle waits for a loop that takes nothing."""
        self._capacity = capacity
        self._piece = piece
        self._patience_s = patience_s
        self._under_way = 0
        self._waiting: deque[tuple[Batch, Callable[[Batch], None]]] = deque()
        self._called = False  # whether the loop is going to take what waits
        self._closed = False
        self._changed = threading.Condition()

    @property
    def under_way(self) -> int:
        """How many decisions the loop has not taken yet."""
        return self._under_way

    def put(self, loop: asyncio.AbstractEventLoop, batch: Batch, take: Callable[[Batch], None]) -> Batch:
        """Let ``loop`` call ``take`` with each piece of a batch, in order; wait on the cycle's thread for its turn.

        Pieces with the same ``take`` may come together. Returns what could not be handed over in time, or because of
        `close`; it is dropped.
        """
        todo = pieces(batch, self._piece)
        for number, piece in enumerate(todo):
            if not self._enter(loop, piece, take):
                return tuple([decision for left in todo[number:] for decision in left])
        return ()

    async def taken(self) -> None:
        """Return once the loop has taken everything: what is decided next must see it."""
        while self._under_way:  # noqa: ASYNC110 - each turn of the loop takes some
            await asyncio.sleep(0)

    def close(self) -> None:
        """Hand nothing over any more, and wake the cycle if it waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enter(self, loop: asyncio.AbstractEventLoop, piece: Batch, take: Callable[[Batch], None]) -> bool:
        with self._changed:
            if not _runs_here(loop):
                self._changed.wait_for(lambda: self._closed or self._under_way < self._capacity, self._patience_s)
                if self._under_way >= self._capacity:
                    return False
            if self._closed:
                return False
            self._under_way += len(piece)
            self._waiting.append((piece, take))
            if not self._called:  # otherwise the loop goes on by itself
                self._called = True
                loop.call_soon_threadsafe(self._take_next, loop)
            return True

    def _take_next(self, loop: asyncio.AbstractEventLoop) -> None:
        took = 0
        try:
            while self._waiting and took < self._piece:
                with self._changed:
                    together, take = self._together()
                    self._under_way -= len(together)
                    if self._under_way < self._capacity:
                        self._changed.notify_all()
                took += len(together)
                take(together)
        finally:
            with self._changed:
                self._called = bool(self._waiting)
                if self._called:
                    loop.call_soon(self._take_next, loop)

    def _together(self) -> tuple[Batch, Callable[[Batch], None]]:
        """Remove the pieces from the queue that are taken now."""
        waiting = self._waiting
        together, take = waiting.popleft()
        if not waiting or _is_plan(together):
            return together, take
        found, jobs = [*together], _bound(together)
        while waiting and waiting[0][1] is take:
            piece = waiting[0][0]
            more = _bound(piece)
            if len(found) + len(piece) > self._piece or _is_plan(piece) or jobs & more:
                break
            found += piece
            jobs |= more
            waiting.popleft()
        return tuple(found), take


def pieces(batch: Batch, size: int) -> list[Batch]:
    """Return a batch in pieces: its plan as a whole, and then its other decisions, a few at a time."""
    if len(batch) <= size:
        return [batch]
    plan = tuple([one for one in batch if isinstance(one, Bind | Evict | Nominate)])
    rest = batch if not plan else tuple([one for one in batch if not isinstance(one, Bind | Evict | Nominate)])
    return [*([plan] if plan else []), *(rest[start : start + size] for start in range(0, len(rest), size))]


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    """Say whether this thread runs the loop, as in a simulation: then the loop takes nothing while we wait."""
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _is_plan(piece: Batch) -> bool:
    return any(isinstance(one, Evict | Nominate) for one in piece)


def _bound(piece: Batch) -> set[JobKey]:
    return {one.job for one in piece if isinstance(one, Bind)}
