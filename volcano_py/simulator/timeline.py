"""The events of a simulation, and queries on them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Entry(NamedTuple):
    """One event."""

    time: float  # seconds since the beginning
    what: str  # submitted, bound, started, ended, evicted, gone (it ran and was deleted) or cancelled
    work: str
    pod: str
    node: str = ""
    by: str = ""  # the action that evicted it


@dataclass(slots=True)
class Timeline:
    """All events, in order."""

    entries: list[Entry] = field(default_factory=list)
    cycles: int = 0

    def of(self, what: str, work: str | None = None) -> list[Entry]:
        """Return the entries of a kind, of all work or of one."""
        return [entry for entry in self.entries if entry.what == what and work in (None, entry.work)]

    def ended(self, work: str) -> float | None:
        """Return when the last pod of some work had ended, None if any has not."""
        submitted = {entry.pod for entry in self.of("submitted", work)}
        ended = {entry.pod: entry.time for entry in (*self.of("ended", work), *self.of("cancelled", work))}
        return max(ended.values()) if submitted and submitted == set(ended) else None

    def running(self, of: Callable[[str], str] = lambda work: work) -> dict[str, list[tuple[float, int]]]:
        """Return the number of running pods per group of work, as steps (time, number); ``of`` maps work to a group."""
        counts: dict[str, int] = {}
        steps: dict[str, list[tuple[float, int]]] = {}
        for entry in self.entries:
            change = {"started": 1, "gone": -1, "ended": -1}.get(entry.what, 0)
            if not change:
                continue
            group = of(entry.work)
            counts[group] = counts.get(group, 0) + change
            line = steps.setdefault(group, [])
            if line and line[-1][0] == entry.time:
                line[-1] = (entry.time, counts[group])
            else:
                line.append((entry.time, counts[group]))
        return steps

    def running_at(self, time: float, of: Callable[[str], str] = lambda work: work) -> dict[str, int]:
        """Return the number of running pods per group of work at a time, after all events of that time."""
        return {group: _at(line, time) for group, line in self.running(of).items()}


def _at(line: Iterable[tuple[float, int]], time: float) -> int:
    found = 0
    for when, number in line:
        if when > time:
            break
        found = number
    return found
