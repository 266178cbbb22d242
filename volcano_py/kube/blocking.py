"""Reading files without blocking the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Blocking:
    """Does blocking work in a thread, one piece at a time.

    A thread cannot be ended. If work hangs (a file on a server that is away), later calls therefore wait for it
    instead of taking a second thread.
    """

    def __init__(self) -> None:
        self._under_way: asyncio.Future[Any] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns; the caller sets the time limit and returns at once when it has passed."""
        while self._under_way is not None and not self._under_way.done():
            await asyncio.wait((self._under_way,))
        under_way = asyncio.get_running_loop().run_in_executor(None, work)
        under_way.add_done_callback(_consume_error)
        self._under_way = under_way
        return await asyncio.shield(under_way)


def _consume_error(work: asyncio.Future[Any]) -> None:
    """Fetch the error of work whose caller is gone; otherwise asyncio reports it as never retrieved."""
    if not work.cancelled():
        work.exception()
