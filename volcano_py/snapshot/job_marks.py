"""When each job last changed, and its place in the order of names: what cycles compare instead of looking at jobs."""

import itertools
from typing import Final

import numpy as np

from volcano_py.model.arrays import Ints
from volcano_py.model.objects import JobKey
from volcano_py.snapshot.rows import grown

_VERSIONS: Final = itertools.count(1)
"""Versions are unique in the process, so that rows of two stores never seem to be the same state of one job."""


class JobMarks:
    """Version and place of every job row."""

    def __init__(self) -> None:
        self._versions = np.zeros(0, dtype=np.int64)
        self._places = np.zeros(0, dtype=np.int64)
        self._rows: dict[str, int] = {}  # by a text that is in the order of keys; sorted, but for the newest at the end
        self._sorted = True

    def add(self, key: JobKey, row: int) -> None:
        """Note a new job."""
        self._versions = grown(self._versions, row + 1)
        self._places = grown(self._places, row + 1)
        self._rows[_text(key)] = row
        self._sorted = False
        self.changed(row)

    def remove(self, key: JobKey) -> None:
        """Note that a job is gone and its row is free; the order of the others stays."""
        self.changed(self._rows.pop(_text(key)))

    def row(self, key: JobKey) -> int | None:
        """Return the row of a job, None if it has none."""
        return self._rows.get(_text(key))

    def changed(self, row: int) -> None:
        """Note that the record of a job, or one of its tasks, has changed."""
        self._versions[row] = next(_VERSIONS)

    def all_changed(self) -> None:
        """Note that every job may have changed."""
        self._versions[:] = next(_VERSIONS)

    def columns(self, n: int) -> tuple[Ints, Ints]:
        """Return versions and places of the first ``n`` rows, both (n,); no version is used twice for a row."""
        if not self._sorted:
            rows = self._rows
            self._rows = {text: rows[text] for text in sorted(rows)}
            self._places[np.fromiter(self._rows.values(), dtype=np.intp)] = np.arange(len(self._rows))
            self._sorted = True
        return self._versions[:n].copy(), self._places[:n].copy()


def _text(key: JobKey) -> str:
    """Return a text in the order of keys (a zero comes before any character of a name); it is compared much faster."""
    return f"{key.namespace}\0{key.name}"
