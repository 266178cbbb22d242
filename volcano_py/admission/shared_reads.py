"""Reads that callers share: per key at most one is under way, and one waits for its end."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from volcano_py.kube import errors

T = TypeVar("T")


@dataclass(slots=True)
class _Turn(Generic[T]):
    running: "asyncio.Future[T]"
    waiting: "asyncio.Future[T] | None" = None


class SharedReads(Generic[T]):
    """Reads by key that callers share; a caller never gets a read that began before it asked."""

    def __init__(self, read: Callable[[str], Awaitable[T]]) -> None:
        self._read = read
        self._turns: dict[str, _Turn[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def get(self, key: str) -> T:
        """Return what a read finds that begins now or later."""
        turn = self._turns.get(key)
        if turn is None:
            return await asyncio.shield(self._begin(key))
        if turn.waiting is None:
            turn.waiting = asyncio.get_running_loop().create_future()
        return await asyncio.shield(turn.waiting)

    def begin(self, key: str) -> None:
        """Begin a read that nobody waits for, unless one is under way."""
        if key not in self._turns:
            self._begin(key)

    def _begin(self, key: str) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        turn = self._turns[key] = _Turn(loop.create_future())
        task = loop.create_task(self._run(key, turn), name=f"live read {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return turn.running

    async def _run(self, key: str, turn: _Turn[T]) -> None:
        """Read until nobody waits any more."""
        try:
            while True:
                await self._once(key, turn.running)
                if turn.waiting is None:
                    return
                turn.running, turn.waiting = turn.waiting, None
        finally:
            self._turns.pop(key, None)
            for future in (turn.running, turn.waiting):
                if future is not None and not future.done():
                    future.cancel()

    async def _once(self, key: str, future: "asyncio.Future[T]") -> None:
        try:
            found = await self._read(key)
        except (errors.ApiError, ValueError) as error:
            future.set_exception(error)
            future.exception()  # whoever asked may have stopped waiting
        else:
            future.set_result(found)
