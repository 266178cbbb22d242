"""A token bucket: so many writes per second, with a reserve for bursts."""


class TokenBucket:
    """Allows ``burst`` writes at once and ``rate_per_s`` in the long run; the caller passes the time."""

    __slots__ = ("_at", "_burst", "_rate", "_tokens")

    def __init__(self, rate_per_s: float, burst: int, now: float) -> None:
        if rate_per_s <= 0 or burst < 1:
            raise ValueError(f"a rate above 0 and a burst of at least 1 are needed, not {rate_per_s} and {burst}")
        self._rate = rate_per_s
        self._burst = burst
        self._tokens = float(burst)
        self._at = now

    def take(self, now: float) -> float:
        """Take one token and return 0, or return the seconds after which there will be one."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate
