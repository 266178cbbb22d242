"""Gangs without a PodGroup: pods that say in annotations which gang they are of and how many pods it has.

    scheduling.k8s.io/group-name: train      the gang, in the pod's namespace
    scheduling.k8s.io/group-pod-num: "3"     its minimum; if its pods differ, the largest number counts

A gang of which a pod has no number, or one that cannot be read, waits as a whole; one whose numbers differ says so
while it waits for pods. Such a gang is a job of the default queue that exists only here: its status is kept here and
never written. Pods that have ended have no say.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from sys import intern
from typing import Final, NamedTuple, TypeVar

from volcano_py.api.core import Pod
from volcano_py.cache.fields import seconds
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import JobKey, JobRecord

C = TypeVar("C")

GROUP_POD_NUM: Final = "scheduling.k8s.io/group-pod-num"  # pod annotation: how many pods the gang has

_NUMBER: Final = re.compile(r"0*[1-9][0-9]{0,9}")
_INT32_MAX: Final = 2**31 - 1
_ABSENT: Final = 0  # stands for the number of a pod that has none
_UNREADABLE: Final = -1
_UID_PREFIX: Final = "annotations/"  # no object has such a uid


class _Member(NamedTuple):
    gang: JobKey
    number: int
    creation: float
    priority: int


class _Gang:
    """What the pods of one gang say."""

    __slots__ = ("creations", "numbers", "priorities", "record", "wrong")

    def __init__(self, record: JobRecord) -> None:
        self.record = record
        self.numbers: Counter[int] = Counter()  # number -> pods that say so
        self.creations: Counter[float] = Counter()
        self.priorities: Counter[int] = Counter()
        self.wrong: dict[str, tuple[str, str | None]] = {}  # uid -> name of the pod and what it says instead

    def count(self, member: _Member, step: int) -> None:
        """Add what a pod says, or take it away."""
        _count(self.numbers, member.number, step)
        _count(self.creations, member.creation, step)
        _count(self.priorities, member.priority, step)


def is_annotation_gang(uid: str) -> bool:
    """Say whether a job of this uid is a gang by annotations, without an object."""
    return uid.startswith(_UID_PREFIX)


class AnnotationGangs:
    """All gangs that pods form by annotations, whether or not a PodGroup of their name takes their place."""

    def __init__(self, default_queue: str, count: Callable[[JobKey], int]) -> None:
        self._default_queue = default_queue
        self._count = count  # of the pods of a job, ended ones included
        self._members: dict[str, _Member] = {}
        self._gangs: dict[JobKey, _Gang] = {}

    def __len__(self) -> int:
        return len(self._gangs)

    def __contains__(self, key: JobKey) -> bool:
        """Say whether pods form a gang of this name."""
        return key in self._gangs

    def join(self, key: JobKey, pod: Pod, *, has_group: bool) -> list[JobKey]:
        """Take what a pod says of its gang; return the gangs that may have changed.

        With a PodGroup the number means nothing, so that a pod without one is not worth remembering.
        """
        uid = pod.metadata.uid
        written = pod.metadata.annotations.get(GROUP_POD_NUM)
        before = self._members.get(uid)
        if written is None and before is None and has_group and key not in self._gangs:
            return []
        creation, priority = seconds(pod.metadata.creation_timestamp), pod.spec.priority or 0
        member = _Member(key, _read(written), creation, priority)
        if before == member and (member.number > 0 or self._gangs[key].wrong[uid][1] == written):
            return []
        changed = self.leave(uid)
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = _Gang(JobRecord(key, f"{_UID_PREFIX}{key}", self._default_queue))
        self._members[uid] = member
        gang.count(member, 1)
        if member.number <= 0:
            gang.wrong[uid] = (intern(pod.metadata.name), written)
        return [key, *(other for other in changed if other != key)]

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
        """Return a gang as a job; None if there is none of this name or if it has to wait, see `problem`."""
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
        """Return why the pods of a gang wait whatever room there is, "" if nothing is wrong with their numbers."""
        gang = self._gangs.get(key)
        if gang is None:
            return ""
        if gang.wrong:
            return _wrong_number(key, gang)
        if len(gang.numbers) > 1 and (there := self._count(key)) < max(gang.numbers):
            return f"gang {key} waits for its pods, {there} are there{self.note(key)}"
        return ""

    def note(self, key: JobKey) -> str:
        """Return what to add to the reason why a pod waits: that the pods of its gang differ, "" if they do not."""
        gang = self._gangs.get(key)
        if gang is None or len(gang.numbers) < 2:
            return ""
        said = ", ".join(str(number) for number in sorted(gang.numbers))
        return f"; the pods of the gang differ in the annotation {GROUP_POD_NUM} ({said}): the largest number counts"


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
    pod, written = next(iter(gang.wrong.values()))
    found = "has none" if written is None else f'has "{written}", which is not a number from 1 to {_INT32_MAX}'
    return (
        f'PodGroup "{key.name}" does not exist in the namespace of the pod: create it; or say in the annotation '
        f"{GROUP_POD_NUM} of all pods of the gang how many they are: pod {pod} {found}"
    )
