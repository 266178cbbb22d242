"""The time of a cycle: one fixed "now" for decisions, and a stopwatch for reports only."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def _stopped() -> float:
    return 0.0


class CycleClock:
    """The time of one cycle; it notes until when no decision can depend on it."""

    __slots__ = ("_now", "_utc_offset", "holds_until", "stopwatch")

    def __init__(self, now: float = 0.0, stopwatch: Callable[[], float] = _stopped, utc_offset: float = 0.0) -> None:
        """Take the time in seconds since the epoch, and by how many seconds local time is ahead of UTC."""
        self._now = now
        self._utc_offset = utc_offset
        self.stopwatch = stopwatch
        """Returns monotonic seconds; measured durations must not change a decision."""
        self.holds_until = math.inf
        """Until when all answers of this clock stay the same, seconds since the epoch."""

    @property
    def now(self) -> float:
        """Seconds since the epoch, the same during the whole cycle."""
        self.holds_until = -math.inf
        return self._now

    def is_before(self, moment: float) -> bool:
        """Say whether a moment (seconds since the epoch) is still to come; this answer holds until then."""
        if self._now < moment:
            self.holds_until = min(self.holds_until, moment)
            return True
        return False

    def have_come(self, moments: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Say which moments have come, any shape; the answers hold until the next of the others."""
        come = np.asarray(moments <= self._now)
        self.holds_until = min(self.holds_until, float(moments.min(initial=math.inf, where=~come)))
        return come

    def expire(self) -> None:
        """Note that the next cycle may decide something else at any time."""
        self.holds_until = -math.inf

    @property
    def stamp(self) -> float:
        """Now, to be remembered: whoever decides by it later must ask `is_before` or `have_come`."""
        return self._now

    @property
    def utc_offset(self) -> float:
        """Seconds by which local time is ahead of UTC: users write times of day."""
        self.holds_until = -math.inf
        return self._utc_offset
