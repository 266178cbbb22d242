"""Random numbers that depend only on the seed, the name of what draws, and how often it has drawn.

What draws under one name does not shift what others get. A fault that is taken out of a schedule therefore leaves the
delays of everything else as they were, as long as the same things happen.
"""

import hashlib
import random
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")
_SCALE: Final = 1.0 / 2**64


class Draws:
    """The numbers of one name."""

    __slots__ = ("_count", "_prefix")

    def __init__(self, seed: int, name: str) -> None:
        self._prefix = hashlib.blake2b(f"{seed}/{name}/".encode(), digest_size=8)
        self._count = 0

    def fraction(self) -> float:
        """Return the next number from 0 up to 1."""
        self._count += 1
        state = self._prefix.copy()
        state.update(b"%d" % self._count)
        return int.from_bytes(state.digest(), "little") * _SCALE

    def between(self, low: float, high: float) -> float:
        """Return the next number between two bounds."""
        return low + (high - low) * self.fraction()

    def whole(self, low: int, high: int) -> int:
        """Return the next whole number between two bounds, both included."""
        return low + int((high - low + 1) * self.fraction())

    def one_of(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return choices[self.whole(0, len(choices) - 1)]

    def happens(self, probability: float) -> bool:
        """Say whether something of that probability happens now."""
        return self.fraction() < probability


def generator(seed: int, name: str) -> random.Random:
    """Return a generator for code that asks for one; its numbers depend on the seed and the name only."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()
    return random.Random(int.from_bytes(digest, "little"))
