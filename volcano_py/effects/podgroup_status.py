"""Writes the status of PodGroups when it changes, merged with what others wrote, one write per object at a time.

A PodGroup has no status subresource. Its status is therefore patched on the object itself, at the version that was
read. If somebody else has changed the object, the patch fails, and only then the object is read again.
"""

import random
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from volcano_py.api.timestamp import wire_time
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PODGROUPS
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobKey, JobRecord
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_dedup import VersionOf, WriteDedup
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

NAME: Final = "podgroup status"
DEFAULT_OPTIONS: Final = WriteQueueOptions(rate_per_s=400, burst=400, workers=8, capacity=100_000, each_s=5.0)
SETTLES_S: Final = 0.25
"""How long a status waits for one that replaces it: pods of a gang start and end one after another."""
BINDING_S: Final = 5.0
"""The same while pods of the gang are being bound: the phase changes again when they are bound."""
STARTING_S: Final = 2.0
"""The same while pods of a running gang have a node and do not run yet: kubelets report them within a second or two."""
NEW_TEXT_S: Final = 10.0
"""The same if only the text of a condition is new: why a gang waits changes with every pod that ends anywhere."""
_TIMEOUT_S: Final = 10.0
_READS: Final = 4
"""How often the object may change meanwhile before the write queue tries again later.

A write that is refused although the object has not changed is not tried again here, because it would be refused again.
"""
_OUTDATED: Final = 1_000
"""How many PodGroups are remembered whose last known version was outdated, while their writes are tried again."""


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: list[dict[str, Any]] = msgspec.field(default_factory=list)  # whole, to be written back


class _PodGroup(msgspec.Struct):
    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class Shown(NamedTuple):
    """A PodGroup without conditions, as the watch shows it; its status can be written without reading it first."""

    uid: str
    resource_version: str
    phase: str
    running: int
    succeeded: int
    failed: int


class PodGroupStatusWriter:
    """Writes :class:`~volcano_py.model.decisions.SetPodGroupStatus`."""

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        version_of: VersionOf,
        shown: Callable[[JobKey], Shown | None] = lambda _: None,
        hold: Callable[[], bool] | None = None,
        options: WriteQueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._shown = shown
        self._overdue_s = -(options.each_s or 0.0)  # with this delay, `hold` does not delay a write
        self._dedup: WriteDedup[JobKey, _PodGroup] = WriteDedup(version_of)
        self._outdated: dict[JobKey, str] = {}  # the version at which the API server refused the last attempt
        self._write_queue: WriteQueue[JobKey, SetPodGroupStatus] = WriteQueue(
            NAME, self._write, options, metrics, clock=clock, rng=rng, hold=hold, outage=client.outage
        )

    @property
    def backlog(self) -> int:
        """How many PodGroups wait for a write."""
        return self._write_queue.backlog

    def on_lost(self, callback: Callable[[JobKey | None], None]) -> None:
        """Call ``callback`` as `WriteQueue.on_lost` does."""
        self._write_queue.on_lost(callback)

    def start(self, supervisor: Supervisor) -> None:
        """Start writing."""
        self._write_queue.start(supervisor)

    def put(self, status: SetPodGroupStatus, delay_s: float = SETTLES_S) -> None:
        """Take a status and write it after a delay; a later one for the same PodGroup replaces it.

        While ``hold`` is true, a status with a delay waits up to ``each_s`` longer.
        """
        if not self._dedup.repeats(status.job, _content(status), status.job):
            self._write_queue.put(status.job, status, delay_s or self._overdue_s)

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits; return whether all was written in time."""
        return await self._write_queue.drained(timeout_s)

    async def _write(self, key: JobKey, wanted: SetPodGroupStatus) -> str:
        shown = self._dedup.shown(str(key))
        found = self._known(key)
        conflict: errors.ApiError | None = None
        refused_version = ""
        for _ in range(_READS):
            if found is None:
                found = await self._read(key)
            version = found.metadata.resource_version
            if conflict is not None and version == refused_version:
                break
            if found.metadata.uid != wanted.uid:
                # Another of the same name. The cycle decides this status until the watch shows the other one.
                self._dedup.remember(key, key, _content(wanted), found, shown, version)
                return "obsolete"
            patch = status_patch(found.status, wanted, self._clock.now())
            if not patch:
                self._dedup.remember(key, key, _content(wanted), found, shown, version)
                return "unchanged"
            body = {"metadata": {"resourceVersion": version}, "status": patch}
            try:
                written = await self._client.patch(
                    PODGROUPS, key.name, body, _PodGroup, namespace=key.namespace, timeout_s=_TIMEOUT_S
                )
            except errors.Conflict as error:
                conflict, refused_version, found = error, version, None
                self._outdate(key, version)
                continue
            self._outdated.pop(key, None)
            self._dedup.remember(key, key, _content(wanted), written, shown, written.metadata.resource_version)
            return "written"
        assert conflict is not None
        raise conflict

    def _known(self, key: JobKey) -> _PodGroup | None:
        """Return the PodGroup if it need not be read: as our last write left it, or one without conditions.

        One that an earlier attempt has found to be outdated must be read.
        """
        known = self._dedup.answer(key, str(key))
        if known is None and (shown := self._shown(key)) is not None:
            uid, version, phase, running, succeeded, failed = shown
            known = _PodGroup(_Metadata(uid, version), _Status(phase, running, succeeded, failed))
        if known is not None and known.metadata.resource_version == self._outdated.get(key):
            return None
        return known

    def _outdate(self, key: JobKey, version: str) -> None:
        if len(self._outdated) >= _OUTDATED:
            self._outdated.clear()  # a forgotten one costs one more request
        self._outdated[key] = version

    async def _read(self, key: JobKey) -> _PodGroup:
        return await self._client.get(PODGROUPS, key.name, _PodGroup, namespace=key.namespace, timeout_s=_TIMEOUT_S)


def status_patch(found: _Status, wanted: SetPodGroupStatus, now: datetime) -> dict[str, Any]:
    """Return the merge patch that turns a status into the wanted one; fields that do not change are left out.

    A merge patch replaces lists. Therefore it contains the conditions of others as they were found.
    """
    patch: dict[str, Any] = {}
    for name in ("phase", "running", "succeeded", "failed"):
        if getattr(found, name) != getattr(wanted, name):
            patch[name] = getattr(wanted, name)
    conditions = {str(condition.get("type")): condition for condition in found.conditions}
    changed = [new for new in wanted.conditions if not _stands(conditions.get(new.type), new)]
    if changed:
        conditions.update({new.type: _condition(conditions.get(new.type), new, now) for new in changed})
        patch["conditions"] = list(conditions.values())
    return patch


def _stands(old: dict[str, Any] | None, new: GroupCondition) -> bool:
    """Say whether a condition is there already; another time or transition id alone is no reason to write."""
    if old is None:
        return False
    has = (old.get("status"), old.get("reason", ""), old.get("message", ""))
    return has == (_truth(new.status), new.reason, new.message)


def _condition(old: dict[str, Any] | None, new: GroupCondition, now: datetime) -> dict[str, Any]:
    """Return a condition as it is written; its time is that of the last change of its status, not of its text."""
    same_truth = old is not None and old.get("status") == _truth(new.status)
    since = old.get("lastTransitionTime") if old is not None and same_truth else None
    fields = {"reason": new.reason, "message": new.message, "transitionID": new.transition_id}
    return {
        "type": new.type,
        "status": _truth(new.status),
        "lastTransitionTime": since or wire_time(now),
        **{name: text for name, text in fields.items() if text},
    }


def only_text_differs(job: JobRecord, status: SetPodGroupStatus) -> bool:
    """Say whether a status differs from the shown one in the messages of conditions alone."""
    shown = {(one.type, one.status, one.reason) for one in job.conditions}
    numbers = (job.uid, job.phase, job.running, job.succeeded, job.failed)
    return numbers == (status.uid, status.phase, status.running, status.succeeded, status.failed) and all(
        (new.type, new.status, new.reason) in shown for new in status.conditions
    )


def _content(status: SetPodGroupStatus) -> tuple[object, ...]:
    """Return what two equal writes have in common; ids of sessions may differ."""
    conditions = tuple((one.type, one.status, one.reason, one.message) for one in status.conditions)
    return (status.uid, status.phase, status.running, status.succeeded, status.failed, conditions)


def _truth(status: bool) -> str:
    return "True" if status else "False"
