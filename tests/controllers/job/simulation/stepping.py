"""An event loop that runs only what is ready, at the caller's word: no threads, no time, the same order each time."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any


class StepLoop(asyncio.AbstractEventLoop):
    """Runs coroutines of the controller; whatever they wait for, the simulation provides by resolving a future."""

    def __init__(self) -> None:
        self._ready: deque[asyncio.Handle] = deque()
        self.broken: list[BaseException] = []
        """Exceptions that nobody caught: faults of the code under test."""

    def run_ready(self) -> None:
        """Run callbacks until none is ready."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(before)

    def call_soon(  # type: ignore[override]  # the stub's TypeVarTuple says no more than this
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback at the next `run_ready`."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # as above
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        """Return a task of this loop."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def get_debug(self) -> bool:
        """Say that this loop has no debug mode."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep an exception for the test to raise."""
        self.broken.append(context.get("exception") or RuntimeError(str(context.get("message"))))
