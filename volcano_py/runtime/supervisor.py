"""Supervised tasks: each has a name and an owner, no failure goes unnoticed, and all end before their owner does."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

import structlog

log = structlog.get_logger()

DEFAULT_STOP_TIMEOUT_S = 10.0
_LAST_CALL_S = 1.0  # for all cancelled tasks together, after the timeout has passed


class TaskFailed(Exception):
    """A supervised task ended with an exception, which is the cause of this one."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"task {name!r} failed: {type(error).__name__}: {error}")
        self.name = name


class Foreseen(Exception):
    """A failure whose message tells operators all; its place in the code does not matter."""


class TasksDidNotStop(Exception):
    """Some tasks ignored their cancellation; the message names them."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"tasks did not stop when cancelled: {', '.join(names)}")
        self.names = names


class _CancelledElsewhere(Exception):
    def __init__(self) -> None:
        super().__init__("its task was cancelled, but not by its supervisor")


class Supervisor:
    """Owns tasks as an asynchronous context manager.

    When a task fails, the supervisor cancels the body of ``async with``, stops the other tasks and raises
    :class:`TaskFailed`. When the body ends, it stops tasks in the reverse order of their start. A task that ends
    normally is forgotten. A task that something else cancelled has failed, because its work is no longer done.
    """

    def __init__(self, *, stop_timeout_s: float = DEFAULT_STOP_TIMEOUT_S) -> None:
        self._stop_timeout_s = stop_timeout_s
        self._tasks: dict[str, asyncio.Task[Any]] = {}  # in the order of their start
        self._failure: TaskFailed | None = None
        self._owner: asyncio.Task[Any] | None = None
        self._owner_cancelled = False
        self._stopping = False

    @property
    def running(self) -> list[str]:
        """Names of the tasks that have not ended, oldest first."""
        return list(self._tasks)

    @property
    def failure(self) -> TaskFailed | None:
        """The first failure, if there was one."""
        return self._failure

    async def __aenter__(self) -> "Supervisor":
        """Become the owner of tasks started from here on."""
        self._owner = asyncio.current_task()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop what still runs; raise the failure that ended the body, if one did."""
        owner = self._owner
        self._owner = None
        stubborn: TasksDidNotStop | None = None
        try:
            await self.stop(self._stop_timeout_s)
        except TasksDidNotStop as problem:
            stubborn = problem
        except asyncio.CancelledError:
            await self._abandon()  # a second cancellation leaves no time for an orderly end
            raise
        ours = self._owner_cancelled and owner is not None and owner.uncancel() == 0
        if kind is not None and not (ours and issubclass(kind, asyncio.CancelledError)):
            return  # an exception of the body, or a cancellation from outside, propagates
        if self._failure is not None:
            raise self._failure
        if stubborn is not None:
            raise stubborn

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine as a task with a name; names of running tasks are unique."""
        if self._stopping or name in self._tasks:
            work.close()
            reason = "the supervisor is stopping" if self._stopping else "a task of that name is running"
            raise RuntimeError(f"cannot start task {name!r}: {reason}")
        task = asyncio.create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(self._ended)
        return task

    async def stop(self, timeout_s: float | None = None) -> None:
        """Cancel the tasks one by one, the youngest first, and wait for each to end; all within the timeout.

        After the timeout, cancel the rest at once. TasksDidNotStop names the tasks that run even then.
        """
        self._stopping = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._stop_timeout_s if timeout_s is None else timeout_s)
        for task in reversed(list(self._tasks.values())):
            task.cancel()
            await asyncio.wait([task], timeout=max(0.0, deadline - loop.time()))
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=_LAST_CALL_S)
        await asyncio.sleep(0)  # lets done callbacks run before names are read
        if self._tasks:
            log.error("tasks did not stop when cancelled", tasks=self.running)
            raise TasksDidNotStop(self.running)

    async def _abandon(self) -> None:
        """Cancel everything at once and wait only briefly."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=_LAST_CALL_S)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        name = task.get_name()
        self._tasks.pop(name, None)
        error = _CancelledElsewhere() if task.cancelled() else task.exception()
        if error is None or (task.cancelled() and self._stopping):
            return
        if not isinstance(error, Foreseen):
            log.error("task failed", task=name, exc_info=error)
        if self._failure is not None:
            self._failure.add_note(f"task {name!r} failed too: {type(error).__name__}: {error}")
            return
        self._failure = TaskFailed(name, error)
        self._failure.__cause__ = error
        if self._owner is not None and not self._owner.done():
            self._owner_cancelled = True
            self._owner.cancel()
