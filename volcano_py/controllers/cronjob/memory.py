"""What the cronjob controller knows beside its watches: its own writes, which the watches show later, and what it said.

All of it may be lost at a restart. Without it, a look that comes before the watches leads to writes that the server
refuses, or to an event twice, but to no job twice.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from volcano_py.api.batch import CronJob, Job
from volcano_py.api.nesting import decoded
from volcano_py.controllers.cronjob import child, reports
from volcano_py.controllers.cronjob.status import Observed
from volcano_py.controllers.recent import Recent
from volcano_py.controllers.writes import Create, Delete, Patch, Write
from volcano_py.kube import errors
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import Clock

_CRON_JOB: Final = msgspec.json.Decoder(CronJob)
_JOB: Final = msgspec.json.Decoder(Job)


class Memory:
    """The own writes of late, and the last warnings; keys are ``namespace/name``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._newest: dict[str, CronJob] = {}  # as the server answered, until the watch shows it
        self._created: dict[str, dict[str, Job]] = {}  # by cron job and by job, until the watch shows them
        self._fresh: Recent[str] = Recent(clock)  # keys of these jobs; a job that is never shown is forgotten
        self._taken: dict[str, str] = {}  # by cron job: the name of a job that could not be created because it exists
        self._deleted: Recent[str] = Recent(clock)  # uids of jobs
        self._edited: dict[str, datetime] = {}
        self._told: dict[str, frozenset[RecordEvent]] = {}  # the warnings of the last look
        self._refused: dict[str, set[RecordEvent]] = {}  # about writes since the last one that succeeded

    # What is known

    def newest(self, key: str, watched: CronJob) -> CronJob:
        """Return the later state of a cron job: the one that the watch shows, or the answer to the last write."""
        answered = self._newest.get(key)
        if answered is None or answered.metadata.uid != watched.metadata.uid or not _is_later(answered, watched):
            self._newest.pop(key, None)
            return watched
        return answered

    def created(self, key: str) -> list[Job]:
        """Return the jobs that were created lately for a cron job and that the watch has not shown yet."""
        jobs = {name: job for name, job in self._created.pop(key, {}).items() if name in self._fresh}
        if jobs:
            self._created[key] = jobs
        return list(jobs.values())

    def taken(self, key: str) -> list[str]:
        """Return the name of the last job that could not be created for a cron job because it exists."""
        return [self._taken[key]] if key in self._taken else []

    def is_deleted(self, uid: str) -> bool:
        """Say whether a job was deleted lately; the watch may still show it."""
        return uid in self._deleted

    def edited(self, key: str) -> datetime | None:
        """Return when the schedule or time zone of a cron job was last changed."""
        return self._edited.get(key)

    # What happens

    def cron_job_changed(self, key: str, before: CronJob | None, after: CronJob | None) -> None:
        """Take note of a change that the watch shows."""
        if after is None or (before is not None and before.metadata.uid != after.metadata.uid):
            self._forget(key)
        elif before is not None and _timing(before) != _timing(after):
            self._edited[key] = self._clock.now()

    def job_changed(self, key: str) -> None:
        """Take note that the watch shows a job, or its end."""
        self._fresh.discard(key)

    def written(self, key: str, write: Write, answer: bytes) -> None:
        """Take note of a write for a cron job that was carried out."""
        match write:
            case Patch():
                self._newest[key] = decoded(_CRON_JOB.decode, answer)
            case Create():
                job = decoded(_JOB.decode, answer)
                name = f"{job.metadata.namespace}/{job.metadata.name}"
                self._created.setdefault(key, {})[name] = job
                self._fresh.add(name)
                self._taken.pop(key, None)
            case Delete(uid=uid):
                self._deleted.add(uid)
        self._refused.pop(key, None)

    def refused(self, key: str, write: Write, error: errors.ApiError) -> None:
        """Take note of a write for a cron job that was refused."""
        match write:
            case Create() if isinstance(error, errors.AlreadyExists):
                self._taken[key] = child.metadata_of(write)["name"]
            case Delete(uid=uid) if isinstance(error, errors.NotFound):
                self._deleted.add(uid)

    def _forget(self, key: str) -> None:
        self._newest.pop(key, None)
        self._created.pop(key, None)
        self._taken.pop(key, None)
        self._edited.pop(key, None)
        self._told.pop(key, None)
        self._refused.pop(key, None)

    # What is said

    def new_warnings(self, key: str, warnings: Iterable[RecordEvent]) -> list[RecordEvent]:
        """Return the warnings of a look that the look before did not have."""
        told, self._told[key] = self._told.get(key, frozenset()), frozenset(warnings)
        return [event for event in self._told[key] if event not in told]

    def new_refusal(self, cron_job: CronJob, key: str, write: Write, error: errors.ApiError) -> RecordEvent | None:
        """Return the event about a refused write, unless it was returned before and nothing has succeeded since."""
        event = reports.refused(cron_job, write, error)
        told = self._refused.setdefault(key, set())
        if event is None or event in told:
            return None
        told.add(event)
        return event


def observed(
    cron_job: CronJob,
    known: Iterable[Job],
    memory: Memory,
    key: str,
    read: Mapping[str, Job | None],
    named: Callable[[str], Job | None],
) -> Observed:
    """Put together what is known about a cron job: the jobs known to be its own, those that were read, and the memory.

    A finished job that was only read does not count as its own yet: the watch will show it.
    """
    found = [job for job in read.values() if job is not None]
    jobs = [*known, *(job for job in found if not child.is_finished(job))]
    children = {
        job.metadata.uid: job
        for job in jobs
        if child.is_child(cron_job, job) and not memory.is_deleted(job.metadata.uid)
    }
    return Observed(
        cron_job,
        tuple(children.values()),
        lambda name: named(name) or read.get(name),
        memory.is_deleted,
        memory.edited(key),
    )


def _timing(cron_job: CronJob) -> tuple[str, str | None]:
    return cron_job.spec.schedule, cron_job.spec.time_zone


def _is_later(one: CronJob, other: CronJob) -> bool:
    """Compare versions; those of one API server are growing numbers (Kubernetes says so from 1.35 on)."""
    first, second = one.metadata.resource_version, other.metadata.resource_version
    return first.isdigit() and second.isdigit() and int(first) > int(second)
