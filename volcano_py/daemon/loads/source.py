"""The interface of a source of node loads."""

from collections.abc import Collection
from typing import Final, NamedTuple, Protocol

PERIOD: Final = "10m"
"""Loads are averages over this time (Volcano: NODE_METRICS_PERIOD)."""
TIMEOUT_S: Final = 30.0


class Unmeasured(Exception):
    """The loads of nodes could not be measured; the message says which source failed and why."""


class Measured(NamedTuple):
    """Averages of one node in percent, and when they were taken; None for now."""

    cpu: float
    memory: float
    at: float | None = None  # seconds since the epoch


class LoadSource(Protocol):
    """A source of node loads."""

    async def loads(self, nodes: Collection[str]) -> dict[str, Measured]:
        """Return the loads of those of these nodes that are known; raise Unmeasured."""
        ...


def joined(cpu: dict[str, float], memory: dict[str, float]) -> dict[str, Measured]:
    """Return the nodes whose averages are both known."""
    return {name: Measured(percent, memory[name]) for name, percent in cpu.items() if name in memory}
