"""Waiting for a condition with a deadline."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], timeout_s: float = 10) -> None:
    """Wait until a condition holds; fail by a timeout if it does not come to."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - what is waited for knows nothing of events
            await asyncio.sleep(0.005)
