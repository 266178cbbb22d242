"""Runs a daemon inside a local system: on the same event loop as everything else, and ended with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol

from volcano_py.runtime.signals import Shutdown

START_S: Final = 20.0
STOP_S: Final = 15.0


class Daemon(Protocol):
    """What scheduler and controller manager have in common."""

    ready: asyncio.Event

    async def run(self, shutdown: Shutdown) -> int:
        """Work until asked to end."""

    def not_ready(self) -> list[str]:
        """Return what the start still waits for."""


@asynccontextmanager
async def running(name: str, daemon: Daemon, shutdown: Shutdown) -> AsyncIterator[asyncio.Task[int]]:
    """Run a daemon until the block ends; it is ready when the block begins, unless a shutdown was requested before."""
    task = asyncio.create_task(daemon.run(shutdown), name=name)
    ready = asyncio.create_task(daemon.ready.wait(), name=f"{name}-ready")
    try:
        await asyncio.wait({task, ready}, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task  # it ended before it was ready: raise its error
        if not daemon.ready.is_set() and not shutdown.graceful.is_set():
            raise TimeoutError(f"the {name} was not ready after {START_S:.0f} s: {', '.join(daemon.not_ready())}")
        yield task
    finally:
        ready.cancel()
        if not shutdown.graceful.is_set():
            shutdown.request("the local system ends")
        await asyncio.wait({task}, timeout=STOP_S)
        if not task.done():
            task.cancel()
        await asyncio.gather(task, ready, return_exceptions=True)
