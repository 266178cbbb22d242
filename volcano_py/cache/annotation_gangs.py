"""Gangs without a PodGroup: annotations of the pods name the gang and its number of pods.

    scheduling.k8s.io/group-name: train      the gang, in the pod's namespace
    scheduling.k8s.io/group-pod-num: "3"     its minimum; if its pods differ, the largest number counts

The whole gang waits if one of its pods has no number, or a number that cannot be read. If the numbers differ, the
reason why the gang waits mentions it. The gang is a job of the default queue that exists only in this process: its
status is kept here and never written. Annotations of pods that have ended do not count.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from heapq import heappop, heappush, nsmallest
from sys import intern
from typing import Final, NamedTuple, TypeVar

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.cache.fields import seconds
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import JobKey, JobRecord, TaskRecord

C = TypeVar("C")

_NUMBER: Final = re.compile(r"0{0,32}[1-9][0-9]{0,9}")  # Python raises on thousands of digits
_INT32_MAX: Final = 2**31 - 1
_ABSENT: Final = 0  # the number of a pod without the annotation
_UNREADABLE: Final = -1
_FEW: Final = 16
_NUMBERS: Final = 5
"""Different numbers of a gang that its text names at most; each of its pods has the text."""
_LONGEST: Final = 32
"""Characters of an annotation that the text of a gang has at most; the annotation may have 256 KiB."""
_UID_PREFIX: Final = "annotations/"  # no object has such a uid


class _Member(NamedTuple):
    gang: JobKey
    number: int
    creation: float
    priority: int


class _Gang:
    """The annotations of the pods of one gang."""

    __slots__ = ("_names", "creations", "numbers", "priorities", "record", "wrong")

    def __init__(self, record: JobRecord) -> None:
        self.record = record
        self.numbers: Counter[int] = Counter()  # number -> pods that have it
        self.creations: Counter[float] = Counter()
        self.priorities: Counter[int] = Counter()
        self.wrong: dict[str, tuple[str, str | None]] = {}  # uid -> name of a pod without a usable number, its text
        self._names: list[tuple[str, str]] = []  # a heap of names and uids of these pods, and of some that are gone

    def count(self, member: _Member, step: int) -> None:
        """Add a pod (``step`` 1) or remove it (-1)."""
        _count(self.numbers, member.number, step)
        _count(self.creations, member.creation, step)
        _count(self.priorities, member.priority, step)

    def add_wrong(self, uid: str, name: str, written: str | None) -> None:
        """Note that a pod has no usable number."""
        self.wrong[uid] = (name, written)
        heappush(self._names, (name, uid))
        if len(self._names) > _FEW + 2 * len(self.wrong):
            self._names = sorted((name, uid) for uid, (name, _) in self.wrong.items())

    def first_wrong(self) -> tuple[str, str | None]:
        """Return the pod without a usable number that comes first by name, with its text: the same after a restart.

        Every event asks, so this takes little time in a gang of any size.
        """
        while self._names[0][1] not in self.wrong:
            heappop(self._names)
        return self.wrong[self._names[0][1]]


def is_annotation_gang(uid: str) -> bool:
    """Say whether a job with this uid is a gang by annotations, which has no PodGroup."""
    return uid.startswith(_UID_PREFIX)


class AnnotationGangs:
    """All gangs by annotations, including those that a PodGroup of the same name replaces."""

    def __init__(self, default_queue: str, count: Callable[[JobKey], int]) -> None:
        self._default_queue = default_queue
        self._count = count  # pods of a job, including ended ones
        self._members: dict[str, _Member] = {}
        self._gangs: dict[JobKey, _Gang] = {}

    def __len__(self) -> int:
        return len(self._gangs)

    def __contains__(self, key: JobKey) -> bool:
        """Say whether pods name this gang in their annotations."""
        return key in self._gangs

    def join(self, key: JobKey, pod: Pod, *, has_group: bool) -> list[JobKey]:
        """Take in the annotations of a pod; return the gangs that may have changed.

        If the gang has a PodGroup, its number does not count. Then a pod without a number is not kept.
        """
        uid = pod.metadata.uid
        written = pod.metadata.annotations.get(keys.GROUP_POD_NUM)
        before = self._members.get(uid)
        if written is None and before is None and has_group and key not in self._gangs:
            return []
        creation, priority = seconds(pod.metadata.creation_timestamp), pod.spec.priority or 0
        member = _Member(key, _read(written), creation, priority)
        if before == member and (member.number > 0 or self._gangs[key].wrong[uid][1] == written):
            return []
        changed = self.leave(uid)
        gang = self._gang(key)
        self._members[uid] = member
        gang.count(member, 1)
        if member.number <= 0:
            gang.add_wrong(uid, intern(pod.metadata.name), written)
        return [key, *(other for other in changed if other != key)]

    def join_without_number(self, tasks: Iterable[TaskRecord]) -> None:
        """Take in the pods of a PodGroup that is gone; those that were not kept because of it have no number."""
        for task in tasks:
            if task.uid in self._members or task.key is None:
                continue
            gang = self._gang(task.key)
            member = self._members[task.uid] = _Member(task.key, _ABSENT, task.creation, task.priority)
            gang.count(member, 1)
            gang.add_wrong(task.uid, task.name, None)

    def _gang(self, key: JobKey) -> _Gang:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = _Gang(JobRecord(key, f"{_UID_PREFIX}{key}", self._default_queue))
        return gang

    def leave(self, uid: str) -> list[JobKey]:
        """Forget a pod that has ended or is gone; return the gangs that may have changed."""
        member = self._members.pop(uid, None)
        if member is None:
            return []
        gang = self._gangs[member.gang]
        gang.wrong.pop(uid, None)
        gang.count(member, -1)
        if not gang.numbers:
            del self._gangs[member.gang]
        return [member.gang]

    def record(self, key: JobKey) -> JobRecord | None:
        """Return a gang as a job; None if no gang has this name, or if it must wait (see `problem`)."""
        gang = self._gangs.get(key)
        if gang is None or self.problem(key):
            return None
        found = (max(gang.numbers), min(gang.creations), max(gang.priorities))
        known = gang.record
        if found != (known.min_available, known.creation, known.priority):
            minimum, creation, priority = found
            gang.record = replace(known, min_available=minimum, creation=creation, priority=priority)
        return gang.record

    def keep(self, status: SetPodGroupStatus) -> None:
        """Remember a status, as the API server does for a PodGroup."""
        gang = self._gangs.get(status.job)
        if gang is not None:
            conditions = {one.type: one for one in (*gang.record.conditions, *status.conditions)}
            gang.record = replace(
                gang.record,
                phase=status.phase,
                running=status.running,
                succeeded=status.succeeded,
                failed=status.failed,
                conditions=tuple(conditions.values()),
            )

    def problem(self, key: JobKey) -> str:
        """Return why a gang must wait because of its numbers, "" if nothing is wrong with them."""
        gang = self._gangs.get(key)
        if gang is None:
            return ""
        if gang.wrong:
            return _wrong_number(key, gang)
        if len(gang.numbers) > 1 and (there := self._count(key)) < max(gang.numbers):
            return f"gang {key} waits for more pods: it has {there}{self.note(key)}"
        return ""

    def note(self, key: JobKey) -> str:
        """Return a remark for the reason why a pod waits: its gang has different numbers; "" if they are all equal."""
        gang = self._gangs.get(key)
        if gang is None or len(gang.numbers) < 2:
            return ""
        said = ", ".join(map(str, nsmallest(_NUMBERS, gang.numbers)))
        if len(gang.numbers) > _NUMBERS:
            said += f" and {len(gang.numbers) - _NUMBERS} more"
        return (
            f"; the pods of the gang differ in the annotation {keys.GROUP_POD_NUM} ({said}): the largest number counts"
        )


def _count(counter: Counter[C], what: C, step: int) -> None:
    counter[what] += step
    if not counter[what]:
        del counter[what]


def _read(written: str | None) -> int:
    if written is None:
        return _ABSENT
    if _NUMBER.fullmatch(written) is None or int(written) > _INT32_MAX:
        return _UNREADABLE
    return int(written)


def _wrong_number(key: JobKey, gang: _Gang) -> str:
    pod, written = gang.first_wrong()
    found = (
        "has none" if written is None else f'has "{written[:_LONGEST]}", which is not a number from 1 to {_INT32_MAX}'
    )
    return (
        f'PodGroup "{key.name}" does not exist in the namespace of the pod: create it, or give every pod of the gang '
        f"the annotation {keys.GROUP_POD_NUM} with their number: pod {pod} {found}"
    )
