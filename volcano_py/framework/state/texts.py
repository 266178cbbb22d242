"""What a cycle must remember of the texts that users read; see `framework.state.told` for what it may forget.

Everything is by row, as one store numbers its objects. A process that starts remembers nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from volcano_py.model.arrays import Floats, Ints, Objects
from volcano_py.model.objects import QueueRecord
from volcano_py.snapshot.shown import Shown


class Expected(NamedTuple):
    """What pods, or PodGroups, will show once what was decided is written; each column is (n,)."""

    what: Ints
    """Numbers of what they will show (`snapshot.shown`)."""
    kind: Ints
    """The same without the numbers in texts, where something is on its way."""
    versions: Ints
    """Versions of what they showed when the cycle ended. A row that has another one by now waits for nothing."""


def is_on_its_way(before: Expected, shown: Shown, row: int) -> bool:
    """Say whether the object of a row does not show yet what the last cycle expected, and nothing else either."""
    if row >= len(before.what) or row >= len(before.versions):
        return False
    return bool(shown.versions[row] == before.versions[row] and shown.what[row] != before.what[row])


def _nothing() -> Expected:
    return Expected(*(np.zeros(0, dtype=np.int64) for _ in range(3)))


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """What is remembered of texts: when they were made, what is on its way, and how queues were."""

    keys: Objects = field(default_factory=lambda: np.zeros(0, dtype=object))
    """The JobKey of each row, or None, (n_jobs,)."""
    renewed: Floats = field(default_factory=lambda: np.zeros(0))
    """When the texts of each waiting job were made last with their numbers, infinity for other jobs, (n_jobs,)."""
    turns: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """How often the kind of what each waiting job was told has changed: one more when it is told another kind, one less
    when its texts are made again and their kinds are the same, (n_jobs,)."""
    pods: Expected = field(default_factory=_nothing)
    groups: Expected = field(default_factory=_nothing)
    queues: Mapping[str, QueueRecord] = field(default_factory=dict)
    """The queues of the last cycle: users look for the new limits of one that was edited since."""

    def __eq__(self, other: object) -> bool:
        """Say whether two cycles that remember these would write the same."""
        return isinstance(other, Texts) and (
            self.queues == other.queues and all(map(np.array_equal, self._columns(), other._columns()))
        )

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def _columns(self) -> tuple[Floats | Ints | Objects, ...]:
        return (self.keys, self.renewed, self.turns, *self.pods[:2], *self.groups[:2])  # versions belong to one store
