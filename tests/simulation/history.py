"""What happens in a simulation, line by line, and a hash over all of it."""

import hashlib
from collections.abc import Callable
from typing import Final, NamedTuple

KEPT: Final = 20_000


class Line(NamedTuple):
    """Something that happened."""

    at: float
    kind: str
    """A word: start, kill, fault, write, answer, violation, log ..."""
    what: str


class History:
    """Everything that happened, in order."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.lines: list[Line] = []
        self._now = now
        self._hash = hashlib.sha256()

    def note(self, kind: str, *what: str) -> None:
        """Add a line; it counts for the hash."""
        line = Line(self._now(), kind, " ".join(part for part in what if part))
        self._hash.update(f"{line.at!r} {kind} {line.what}\n".encode())
        if len(self.lines) < KEPT:
            self.lines.append(line)

    def remark(self, kind: str, what: str) -> None:
        """Add a line that does not count: what a program has logged."""
        if len(self.lines) < KEPT:
            self.lines.append(Line(self._now(), kind, what))

    @property
    def digest(self) -> str:
        """The hash of all that was noted so far."""
        return self._hash.hexdigest()[:16]
