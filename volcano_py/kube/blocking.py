"""Reading files without holding up the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Blocking:
    """Does blocking work in a thread, one piece at a time.

    A thread cannot be ended. Work that hangs (a file on a server that is away) is therefore waited for by those who
    come after it, and never takes a second thread.
    """

    def __init__(self) -> None:
        self._under_way: asyncio.Future[Any] | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns; who calls sets the time limit, and is free at once when it is over."""
        while self._under_way is not None and not self._under_way.done():
            await asyncio.wait((self._under_way,))
        under_way = asyncio.get_running_loop().run_in_executor(None, work)
        under_way.add_done_callback(_take_note)
        self._under_way = under_way
        return await asyncio.shield(under_way)


def _take_note(work: asyncio.Future[Any]) -> None:
    """Fetch the error of work whose caller has gone, or asyncio reports it as forgotten."""
    if not work.cancelled():
        work.exception()
