"""Work queues with a clock that stands still, for tests."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from volcano_py.kube import errors
from volcano_py.kube.workqueue import WorkQueue, WorkQueueOptions
from volcano_py.runtime.clock import FakeClock
from volcano_py.runtime.supervisor import Supervisor

Reconcile = Callable[[str], Awaitable[None]]
BUSY = errors.TooManyRequests("create", "/api/v1/pods", "slow down", status=429, retry_after_s=30)
REFUSED = errors.ServerError("create", "/api/v1/pods", "no", status=500)
NO_CLASS = errors.Forbidden("create", "/api/v1/pods", "no PriorityClass with name high was found", status=403)


@asynccontextmanager
async def a_workqueue(
    reconcile: Reconcile, clock: FakeClock | None = None, *, more: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[WorkQueue[str]]:
    queue = WorkQueue(
        "test",
        reconcile,
        WorkQueueOptions(**{"workers": 2, **options}),
        clock=clock or FakeClock(),
        rng=random.Random(1),
        **(more or {}),
    )
    async with Supervisor() as supervisor:
        queue.start(supervisor)
        yield queue


async def settle() -> None:
    """Let everything run that can run without time passing."""
    for _ in range(30):
        await asyncio.sleep(0)


async def advance(clock: FakeClock, seconds: float) -> None:
    """Let time pass in steps that are finer than any pause that counts here."""
    end = clock.monotonic() + seconds
    await settle()
    while (left := end - clock.monotonic()) > 1e-9:
        clock.advance(min(left, 0.05 if left <= 3 else 1.0))
        await settle()
