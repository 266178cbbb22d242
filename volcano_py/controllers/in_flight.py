"""How many requests may be under way at once, and which waiting request is sent next."""

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import AsyncIterator
from typing import Final

AT_ONCE: Final = 0
"""The turn of a request that waits for no other turn."""


class InFlight:
    """Lets a limited number of requests through at once; of those that wait, the earliest turn goes first.

    Requests of the same turn go in the order of their arrival.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()
        self._turns = itertools.count(AT_ONCE + 1)

    def new_turn(self) -> int:
        """Return a turn that is later than all before."""
        return next(self._turns)

    @contextlib.asynccontextmanager
    async def one(self, turn: int = AT_ONCE) -> AsyncIterator[None]:
        """Wait until a request of this turn may be sent; it is under way until the block ends."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(turn)
        try:
            yield
        finally:
            self._give_back()

    async def _wait(self, turn: int) -> None:
        admitted = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (turn, next(self._arrivals), admitted))
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self._give_back()  # cancelled after it was admitted
            raise

    def _give_back(self) -> None:
        while self._waiting:
            admitted = heapq.heappop(self._waiting)[2]
            if not admitted.done():
                admitted.set_result(None)
                return
        self._free += 1
