"""Waiting for a condition with a deadline, and knowing how long the machine let a test wait."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_EVERY_S = 0.01


async def until(condition: Callable[[], object], timeout_s: float = 10) -> None:
    """Wait until a condition holds; fail by a timeout if it never does.

    Time in which the event loop got no turn does not count: on a busy machine, the subject got none either.
    """
    loop, left_s = asyncio.get_running_loop(), timeout_s
    while not condition():
        if left_s <= 0:
            raise TimeoutError
        before = loop.time()
        await asyncio.sleep(0.005)
        left_s -= min(loop.time() - before, 0.02)


class Standstill:
    """For how many seconds the event loop got no turn: next to none on a quiet machine."""

    def __init__(self) -> None:
        self._seconds = 0.0

    async def seconds(self) -> float:
        """Return it, including a standstill that has just ended."""
        await asyncio.sleep(5 * _EVERY_S)
        return self._seconds

    async def watch(self) -> None:
        """Look now and then whether the loop is late."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(_EVERY_S)
            self._seconds += max(loop.time() - before - 2 * _EVERY_S, 0.0)


@asynccontextmanager
async def standstill() -> AsyncIterator[Standstill]:
    """Measure how long the loop stands still, for a test whose subject has to act within a time."""
    found = Standstill()
    watching = asyncio.create_task(found.watch(), name="standstill")
    try:
        yield found
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
