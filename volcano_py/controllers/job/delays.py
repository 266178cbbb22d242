"""Actions that policies delay (``timeout``), and how the ones that cannot be derived again are kept on the job.

A pod that is pending or has failed says so for as long as it exists, and since when. After a restart of the controller
the action is therefore armed again, for the same time. That a pod was evicted, that a task used up its restarts, and
since when a PodGroup is unknown, cannot be read later. Such an action stands in ``status.controlledResources`` of the
job from the moment it is armed.
"""

import heapq
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from volcano_py.controllers.job import policies

PREFIX: Final = "delayed-"
KEPT: Final = frozenset({policies.POD_EVICTED, policies.TASK_COMPLETED, policies.TASK_FAILED, policies.UNKNOWN})
"""Events that cannot be read from the cluster later."""
MOST_KEPT: Final = 1000
"""Delayed actions that one job keeps; more would not fit into an object."""


class Delayed(NamedTuple):
    """An action that waits for its time."""

    due: datetime
    action: str
    request: policies.Request
    task: str = ""
    """The task whose policy asks for it, "" for a policy of the job."""

    @property
    def key(self) -> str:
        """Where it stands: one delayed action per event and pod, or per task that has completed."""
        pod = "" if self.request.event == policies.TASK_COMPLETED else self.request.pod
        return f"{self.request.event}/{self.request.task}/{pod}"


class _Kept(msgspec.Struct, array_like=True):
    due: datetime
    action: str
    request: policies.Request
    task: str


def kept(delayed: Delayed) -> tuple[str, str]:
    """Return key and value of an action in ``status.controlledResources``."""
    text = msgspec.json.encode(_Kept(delayed.due, delayed.action, delayed.request, delayed.task)).decode()
    return f"{PREFIX}{delayed.key}", text


def restored(resources: Mapping[str, str]) -> list[Delayed]:
    """Return the actions that stand on a job; what cannot be read is left out."""
    found = []
    for key, text in sorted(resources.items()):
        if not key.startswith(PREFIX):
            continue
        try:
            one = msgspec.json.decode(text.encode(), type=_Kept)
            found.append(Delayed(one.due.astimezone(UTC), one.action, one.request, one.task))
        except (msgspec.DecodeError, OverflowError):
            continue
    return found


class ArmedActions:
    """The delayed actions of one job that wait for their time."""

    def __init__(self) -> None:
        self.by_key: dict[str, Delayed] = {}
        self._by_time: list[tuple[datetime, str]] = []  # a heap; an item is void unless it is its key's

    def arm(self, new: Iterable[Delayed]) -> None:
        """Arm delayed actions."""
        for one in new:
            self.by_key[one.key] = one
            heapq.heappush(self._by_time, (one.due, one.key))

    def disarm(self, keys: Iterable[str]) -> None:
        """Disarm delayed actions."""
        for key in keys:
            self.by_key.pop(key, None)

    def due(self, now: datetime) -> list[Delayed]:
        """Return the actions whose time has come, in order."""
        found = []
        if self._by_time and self._by_time[0][0] <= now:
            for due, key in sorted(item for item in self._by_time if item[0] <= now):
                one = self.by_key.get(key)
                if one is not None and one.due == due:
                    found.append(one)
        return found

    def next_due_s(self, now: datetime) -> float | None:
        """Return the seconds until the next delayed action, None if there is none."""
        while self._by_time:
            due, key = self._by_time[0]
            one = self.by_key.get(key)
            if one is not None and one.due == due:
                return max(0.0, (due - now).total_seconds())
            heapq.heappop(self._by_time)
        return None
