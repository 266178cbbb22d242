"""The time of a cycle: one fixed "now" for decisions, and a stopwatch for reports only."""

from collections.abc import Callable
from dataclasses import dataclass


def _stopped() -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class CycleClock:
    """The time of a cycle."""

    now: float = 0.0  # seconds since the epoch, the same during the whole cycle
    stopwatch: Callable[[], float] = _stopped  # monotonic seconds; measured durations must not change a decision
    utc_offset: float = 0.0  # seconds by which local time is ahead of UTC: users write times of day
