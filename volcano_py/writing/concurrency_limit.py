"""How many requests may be in flight: a little more while all goes well, half as many when the server pushes back."""

from typing import Final

DEFAULT_HIGHEST: Final = 64  # a quarter of what the API server gives to all ServiceAccounts together
DEFAULT_START: Final = DEFAULT_HIGHEST  # with fewer in flight, the server needs more CPU for each (docs/performance.md)

_PUSHED_BACK: Final = 0.5  # 429, 5xx, no answer
_SLOWER: Final = 0.8
_RECENT: Final = 0.1  # weight of one answer in the recent latency
_USUAL: Final = 0.005  # and in the usual one
_SLOW_FACTOR: Final = 4.0  # a recent latency above this multiple of the usual one is a rise,
_SLOW_S: Final = 0.25  # if it is above this, too: shorter latencies come from the number of our own requests


class AdaptiveLimit:
    """Additive increase, multiplicative decrease.

    The limit falls at most once per round trip: answers to requests that were sent before a decrease do not lower it
    again.
    """

    __slots__ = ("_highest", "_limit", "_lowered_at", "_lowest", "_recent_s", "_usual_s")

    def __init__(self, start: int = DEFAULT_START, lowest: int = 1, highest: int = DEFAULT_HIGHEST) -> None:
        if not 1 <= lowest <= start <= highest:
            raise ValueError(f"need 1 <= lowest <= start <= highest, not {lowest}, {start}, {highest}")
        self._limit = float(start)
        self._lowest = lowest
        self._highest = highest
        self._lowered_at = float("-inf")
        self._recent_s = -1.0  # no answer yet
        self._usual_s = -1.0

    @property
    def current(self) -> int:
        """How many may be in flight now."""
        return int(self._limit)

    def answered(self, sent_at: float, now: float, used_up: bool) -> None:
        """Take a clear answer; ``used_up`` says that requests waited because of the limit."""
        seconds = now - sent_at
        if self._recent_s < 0:
            self._recent_s = self._usual_s = seconds
        self._recent_s += (seconds - self._recent_s) * _RECENT
        self._usual_s += (seconds - self._usual_s) * _USUAL
        if self._recent_s > _SLOW_S and self._recent_s > self._usual_s * _SLOW_FACTOR:
            self._lower(_SLOWER, sent_at, now)
        elif used_up:
            self._limit = min(self._limit + 1 / self._limit, self._highest)

    def pushed_back(self, sent_at: float, now: float) -> None:
        """Take a 429, a 5xx or the lack of an answer."""
        self._lower(_PUSHED_BACK, sent_at, now)

    def _lower(self, factor: float, sent_at: float, now: float) -> None:
        if sent_at >= self._lowered_at:
            self._limit = max(self._limit * factor, self._lowest)
            self._lowered_at = now
