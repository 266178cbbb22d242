"""Time in a simulation: one virtual clock for all, and on each machine a wall clock that may be wrong."""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

import aiohttp.connector

from tests.simulation.loop import SimulationLoop
from volcano_py.apiserver.origin import Origin

EPOCH: Final = datetime(2030, 1, 1, tzinfo=UTC)
"""When every simulation begins."""


class MachineClock:
    """The clock of one machine (:class:`volcano_py.runtime.clock.Clock`)."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop
        self.ahead_s = 0.0
        """By how much the wall clock is wrong; a monotonic clock does not jump."""

    def monotonic(self) -> float:
        """Return the virtual time in seconds."""
        return self._loop.time()

    def now(self) -> datetime:
        """Return what the machine believes that the time is."""
        return EPOCH + timedelta(seconds=self._loop.time() + self.ahead_s)

    async def sleep(self, seconds: float) -> None:
        """Wait for that many virtual seconds."""
        await asyncio.sleep(seconds)


class SimulatedOrigin(Origin):
    """Times, uids and names of objects that the seed decides."""

    def __init__(self, clock: MachineClock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng

    def time(self) -> float:
        """Return seconds since 1970 on the machine of the API server."""
        return self._clock.now().timestamp()

    def uid(self) -> str:
        """Return a new UUID."""
        return str(uuid.UUID(int=self._rng.getrandbits(128), version=4))

    def random(self) -> Random:
        """Return the generator of this server."""
        return self._rng


@contextmanager
def connections_age_by(loop: SimulationLoop) -> Iterator[None]:
    """Let aiohttp measure by the virtual clock for how long a connection has been idle; it has no other way in.

    By the real clock, a slow machine would open a watch over a new connection where a fast one keeps the old one.
    """
    connector: Any = aiohttp.connector
    real = connector.monotonic
    connector.monotonic = loop.time
    try:
        yield
    finally:
        connector.monotonic = real
