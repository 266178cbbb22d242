"""What the cluster shows of our decisions, as numbers: a cycle compares them instead of texts.

Equal texts have equal numbers, in every process. Nothing is ordered by them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from volcano_py.model.arrays import Ints, Rows
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobRecord, TaskRecord
from volcano_py.snapshot.rows import grown


class Shown(NamedTuple):
    """What pods, or PodGroups, show."""

    what: Ints  # (n,)
    times: NDArray[np.int32]  # (n,), how often it has changed

    def rows_view(self, rows: Rows) -> "Shown":
        """Return a copy of these rows."""
        return Shown(self.what[rows], self.times[rows])


class ShownTable:
    """What pods or PodGroups show, kept up to date by the store."""

    def __init__(self) -> None:
        self._what = np.zeros(0, dtype=np.int64)
        self._times = np.zeros(0, dtype=np.int32)

    def put(self, row: int, what: int) -> None:
        """Note what the object of a row shows now."""
        if row >= len(self._what):
            self._what, self._times = grown(self._what, row + 1), grown(self._times, row + 1)
        if self._what[row] != what:
            self._what[row] = what
            self._times[row] += 1

    def columns(self, n: int) -> Shown:
        """Return a copy of the first ``n`` rows."""
        self._what, self._times = grown(self._what, n), grown(self._times, n)
        return Shown(self._what[:n].copy(), self._times[:n].copy())


@lru_cache(maxsize=4096)
def shown_condition(text: str) -> int:
    """Return the number of the text that a pod shows."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)


def shown_status(record: JobRecord) -> int:
    """Return the number of the status that a PodGroup shows."""
    return _number(record.phase, record.running, record.succeeded, record.failed, record.conditions)


def shown_after(record: JobRecord, status: SetPodGroupStatus) -> int:
    """Return the number of the status that a PodGroup will show once a new one is written."""
    conditions: Mapping[str, GroupCondition] = {one.type: one for one in (*record.conditions, *status.conditions)}
    return _number(status.phase, status.running, status.succeeded, status.failed, conditions.values())


def with_status_of(record: JobRecord, other: JobRecord) -> JobRecord:
    """Return a record with the status of another one."""
    return replace(
        record,
        phase=other.phase,
        conditions=other.conditions,
        running=other.running,
        succeeded=other.succeeded,
        failed=other.failed,
    )


def alike_but_for_condition(before: TaskRecord, after: TaskRecord) -> bool:
    """Say whether two records of a task are equal, except for the condition that says why it waits."""
    return structs.replace(before, condition=after.condition) == after


def _number(phase: str, running: int, succeeded: int, failed: int, conditions: Iterable[GroupCondition]) -> int:
    return shown_condition(repr((phase, running, succeeded, failed, sorted(condition[:4] for condition in conditions))))
