"""Where times, uids and random names in objects come from: the machine, unless a context says otherwise.

A simulation sets :data:`ORIGIN` in the context in which its server runs. Then the same seed gives the same objects.
"""

from __future__ import annotations

import random
import time
import uuid
from contextvars import ContextVar
from typing import Final


class Origin:
    """The clock and the random numbers of the machine."""

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def uid(self) -> str:
        """A new random UUID."""
        return str(uuid.uuid4())

    def random(self) -> random.Random:
        """The generator for generated names and for the lengths of watches."""
        return _RANDOM


_RANDOM: Final = random.Random()
_MACHINE: Final = Origin()
ORIGIN: Final[ContextVar[Origin]] = ContextVar("origin", default=_MACHINE)
