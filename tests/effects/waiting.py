"""Waiting for a condition with a deadline."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], timeout_s: float = 10) -> None:
    """Wait until a condition holds; fail by a timeout if it never does."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - the condition has no event
            await asyncio.sleep(0.005)
