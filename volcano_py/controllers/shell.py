"""The shell around a controller that decides in plain functions: it queues keys, looks, and carries out plans.

    change of an object ──▶ `changed(key)` ──▶ work queue ──▶ look: key -> Plan ──▶ writes, events, next look

A controller passes ``look``, which reads its views and returns the plan of one key. A look that first must ask the
server something returns an awaitable instead. Looks are repeated after failures, after the time that a plan names, and
now and then for all keys (``refill``).
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Generic, TypeVar

from volcano_py.controllers.controller import ControllerContext
from volcano_py.controllers.plan import Plan
from volcano_py.controllers.writes import Write, is_needed
from volcano_py.kube import errors
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.runtime.supervisor import Supervisor

K = TypeVar("K", bound=Hashable)


class Shell(Generic[K]):
    """Carries out the plans of one controller."""

    def __init__(
        self,
        context: ControllerContext,
        name: str,
        look: Callable[[K], Plan | Awaitable[Plan]],
        *,
        workers: int,
        refill: Callable[[], Iterable[K]],
        on_written: Callable[[K, Write, bytes], None] = lambda _, __, ___: None,
        on_refused: Callable[[K, Write, errors.ApiError], None] = lambda _, __, ___: None,
        on_given_up: Callable[[K, errors.ApiError], None] = lambda _, __: None,
    ) -> None:
        self._writer = context.writer
        self._events = context.events
        self._look = look
        self._on_written = on_written
        self._on_refused = on_refused
        self._queue: WorkQueue[K] = WorkQueue(
            name,
            self._reconcile,
            context.options.work_queue(workers),
            clock=context.clock,
            rng=context.rng,
            refill=refill,
            on_given_up=on_given_up,
            observe=context.metrics.turn,
            outage=context.client.outage,
        )

    @property
    def backlog(self) -> int:
        """How many keys wait for a look that is due, or have it."""
        return self._queue.overdue

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers; until then, changes are only collected."""
        self._queue.start(supervisor)

    def changed(self, key: K, after_s: float = 0.0) -> None:
        """Ask for a look at a key, at once or after a delay."""
        self._queue.add_later(key, after_s)

    def excuse(self) -> None:
        """Look again at keys whose writes were refused; see `WorkQueue.excuse`."""
        self._queue.excuse()

    async def _reconcile(self, key: K) -> None:
        looked = self._look(key)
        plan = looked if isinstance(looked, Plan) else await looked
        for step in plan.steps:
            if isinstance(step, tuple):
                await self._all(key, step)
            else:
                await self._one(key, step)
        for event in plan.events:
            self._events.record(event)
        if plan.look_again_s is not None:
            self._queue.add_later(key, plan.look_again_s)

    async def _one(self, key: K, write: Write) -> None:
        try:
            answer = await self._writer.sent(write)
        except errors.ApiError as error:
            self._on_refused(key, write, error)
            if is_needed(write, error):
                raise
        else:
            self._on_written(key, write, answer)

    async def _all(self, key: K, writes: tuple[Write, ...]) -> None:
        """Carry out writes at once; after a failure, the others still go on."""
        results = await asyncio.gather(*(self._one(key, write) for write in writes), return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        for failure in failures:
            if not isinstance(failure, errors.ApiError):
                raise failure
        if failures:
            raise failures[0]
