"""Waiting for something to happen, or for a time on a given clock, whichever comes first."""

import asyncio

from volcano_py.runtime.clock import Clock


async def wait_for(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Return True as soon as the event is set, False when that many seconds have passed without it."""
    if event.is_set():
        return True
    tasks = [
        asyncio.create_task(event.wait(), name="alarm: event"),
        asyncio.create_task(clock.sleep(seconds), name="alarm: time"),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return event.is_set()
