"""How long to wait before trying again: doubling, with jitter, up to a cap."""

import random
from dataclasses import dataclass, field
from typing import Final

FIRST_S: Final = 0.2
CAP_S: Final = 10.0
"""The longest delay after a failed change, before jitter of half its length; a server may ask for more."""
_CAPS: Final = 6  # the longest delay that a server can ask for, in caps


@dataclass(slots=True)
class Backoff:
    """Delays that double from ``first_s`` to ``cap_s``, each spread by half its length either way."""

    rng: random.Random
    first_s: float = FIRST_S
    cap_s: float = CAP_S
    failures: int = field(default=0, init=False)

    @property
    def longest_s(self) -> float:
        """The longest delay possible, which only a server's Retry-After can cause."""
        return _CAPS * self.cap_s

    def next(self, at_least_s: float | None = None) -> float:
        """Count a failure and return the delay after it; a server's Retry-After raises it, up to six caps."""
        # The bound on the exponent prevents a float overflow when a server is away for days.
        delay = min(self.first_s * 2.0 ** min(self.failures, 30), self.cap_s) * self.rng.uniform(0.5, 1.5)
        self.failures += 1
        return min(max(delay, at_least_s or 0.0), self.longest_s)

    def reset(self) -> None:
        """Start again from the first delay, after a success."""
        self.failures = 0
