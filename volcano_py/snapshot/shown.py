"""What the cluster shows of our decisions, as numbers: a cycle compares them instead of texts.

Equal texts have equal numbers, in every process. Nothing is ordered by them.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Final, NamedTuple

import numpy as np
from msgspec import structs

from volcano_py.model.arrays import Ints, Rows
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobRecord, TaskRecord
from volcano_py.snapshot.rows import grown

_VERSIONS: Final = itertools.count(1)
"""Versions are unique in the process, so that rows of two stores never seem to show the same object."""


Wording = Callable[[str], str]


class Shown(NamedTuple):
    """What pods, or PodGroups, show."""

    what: Ints  # (n,)
    versions: Ints  # (n,); it differs if what is shown has changed, even if it changed back

    def rows_view(self, rows: Rows) -> "Shown":
        """Return a copy of these rows."""
        return Shown(self.what[rows], self.versions[rows])


class ShownTable:
    """What pods or PodGroups show, kept up to date by the store."""

    def __init__(self) -> None:
        self._what = np.zeros(0, dtype=np.int64)
        self._versions = np.zeros(0, dtype=np.int64)

    def put(self, row: int, what: int, *, new: bool = False) -> None:
        """Note what the object of a row shows now; a ``new`` object does not wait for what was decided about others."""
        if row >= len(self._what):
            self._what, self._versions = grown(self._what, row + 1), grown(self._versions, row + 1)
        if new or self._what[row] != what:
            self._what[row] = what
            self._versions[row] = next(_VERSIONS)

    def forget(self, row: int) -> None:
        """Note that the object of a row is gone, or that what was decided about it may not be on its way."""
        if row < len(self._versions):
            self._versions[row] = next(_VERSIONS)

    def nothing_awaited(self) -> None:
        """Note that what was decided may not be on its way."""
        self._versions[:] = next(_VERSIONS)

    def columns(self, n: int) -> Shown:
        """Return a copy of the first ``n`` rows."""
        self._what, self._versions = grown(self._what, n), grown(self._versions, n)
        return Shown(self._what[:n].copy(), self._versions[:n].copy())


class ShownTables:
    """What all pods and PodGroups show."""

    def __init__(self) -> None:
        self.pods = ShownTable()
        self.groups = ShownTable()

    def put_pod(self, row: int, record: TaskRecord) -> None:
        """Note what the pod of a row shows now."""
        self.pods.put(row, shown_condition(record.condition))

    def put_group(self, row: int, record: JobRecord, before: JobRecord | None) -> None:
        """Note what the PodGroup of a row shows now; it may be another one than before."""
        self.groups.put(row, shown_status(record), new=before is None or before.uid != record.uid)

    def nothing_awaited(self) -> None:
        """Note that what was decided may not be on its way to any of them."""
        self.pods.nothing_awaited()
        self.groups.nothing_awaited()


@lru_cache(maxsize=512)
def shown_condition(text: str) -> int:
    """Return the number of the text that a pod shows."""
    return _number(text)


def shown_status(record: JobRecord) -> int:
    """Return the number of the status that a PodGroup shows."""
    numbers = (record.phase, record.running, record.succeeded, record.failed)
    return _number(_text(numbers, record.conditions))


def shown_after(record: JobRecord, status: SetPodGroupStatus, wording: Wording) -> tuple[int, int]:
    """Return the number of the status that a PodGroup will show once a new one is written, and that of its kind.

    The kind is the same with what ``wording`` leaves of the messages of its conditions.
    """
    conditions = status.conditions
    if record.conditions:
        conditions = tuple({one.type: one for one in (*record.conditions, *conditions)}.values())
    numbers = (status.phase, status.running, status.succeeded, status.failed)
    if len(conditions) == 1 and not conditions[0].message:  # as of most jobs that run: many have the same
        number = _without_message(numbers, *conditions[0][:3])
        return number, number
    return _number(_text(numbers, conditions)), _number(_text(numbers, conditions, wording))


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


@lru_cache(maxsize=4096)
def _without_message(numbers: tuple[str, int, int, int], type_: str, status: bool, reason: str) -> int:
    return _number(_text(numbers, [GroupCondition(type_, status, reason, "")]))


def _text(
    numbers: tuple[str, int, int, int], conditions: Iterable[GroupCondition], wording: Wording | None = None
) -> str:
    """Return all that counts of a status as one text; texts, which may contain anything, come with their lengths."""
    texts = []
    # A Python loop over the conditions of one PodGroup: one or two.
    for type_, status, reason, message, _ in conditions:
        said = message if wording is None else wording(message)
        texts.append(f"{_before_message(type_, status, reason)}{len(said)} {said}")
    if len(texts) > 1:
        texts.sort()
    return f"{_counts(*numbers)} {' '.join(texts)}"


@lru_cache(maxsize=1024)
def _before_message(type_: str, status: bool, reason: str) -> str:
    return f"{len(type_)} {type_} {status} {len(reason)} {reason} "


@lru_cache(maxsize=1024)
def _counts(phase: str, running: int, succeeded: int, failed: int) -> str:
    return f"{(phase, running, succeeded, failed)}"


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)
