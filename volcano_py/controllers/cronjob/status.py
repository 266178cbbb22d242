"""The status of a cron job after a look at its jobs, and which finished jobs are more than it keeps."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from volcano_py.api.batch import CronJob, CronJobStatus, Job
from volcano_py.api.timestamp import wire_time
from volcano_py.controllers.cronjob import child, reports
from volcano_py.controllers.writes import Delete, Patch
from volcano_py.kube.resource import CRON_JOBS, VCJOBS
from volcano_py.model.decisions import RecordEvent

BACKGROUND = "Background"


@dataclass(frozen=True, slots=True)
class Observed:
    """What is known about a cron job at a look."""

    cron_job: CronJob
    children: tuple[Job, ...] = ()
    """The jobs that it controls."""
    named: Callable[[str], Job | None] = lambda _: None
    """Finds a job of its namespace by name, whoever controls it."""
    is_deleted: Callable[[str], bool] = lambda _: False
    """Says whether the job with a uid was deleted for it; such a job is not among the children."""
    edited: datetime | None = None
    """When its schedule or time zone was last changed, as far as it was seen."""


@dataclass(slots=True)
class Settled:
    """A status that agrees with the jobs, and what was noticed on the way."""

    status: CronJobStatus
    completed: list[RecordEvent] = field(default_factory=list)
    """To be recorded when the status is written."""
    warnings: list[RecordEvent] = field(default_factory=list)


def settle(observed: Observed, now: datetime) -> Settled:
    """Return the status that agrees with the jobs.

    A job of ours that is not in the status, for a start that is later than the last one there, was created just before
    a crash, or just now: the status takes it over with its start. Any other unfinished job that is not in the status is
    reported and left alone.
    """
    cron_job = observed.cron_job
    status, settled = cron_job.status, Settled(cron_job.status)
    children = {job.metadata.uid: job for job in observed.children}
    active = []
    for entry in status.active:
        job = children.get(entry.uid)
        if job is None:
            if not observed.is_deleted(entry.uid):
                text = f"job {entry.name} of status.active does not exist any more: it is removed from the list"
                if observed.named(entry.name) is not None:
                    text = f"job {entry.name} is not the one of status.active: the old one is removed from the list"
                settled.warnings.append(reports.warning(cron_job, reports.STALE_REFERENCE, text))
        elif child.is_finished(job):
            text = f"job {entry.name} is finished: {job.status.state.phase}"
            settled.completed.append(reports.normal(cron_job, reports.COMPLETED_JOB, text))
        else:
            active.append(entry)
    listed = {entry.uid for entry in status.active}
    last, since = status.last_schedule_time, status.last_schedule_time or cron_job.metadata.creation_timestamp
    for job in child.oldest_first(observed.children):
        if job.metadata.uid in listed:
            continue
        start = child.scheduled_time(job)
        if start is not None and since is not None and since < start <= now:
            last = start if last is None else max(last, start)
            if not child.is_finished(job):
                active.append(child.reference(job))
        elif not child.is_finished(job) and job.metadata.deletion_timestamp is None:
            text = f"job {job.metadata.name} is controlled by this cron job but not in status.active: it is left alone"
            settled.warnings.append(reports.warning(cron_job, reports.ORPHANED_JOB, text))
    settled.status = CronJobStatus(
        active=active, last_schedule_time=last, last_successful_time=_last_success(status, observed.children)
    )
    return settled


def trimmed(observed: Observed) -> tuple[Delete, ...]:
    """Return the deletions of the oldest finished jobs beyond the limits; jobs that were terminated count as failed."""
    spec = observed.cron_job.spec
    finished = [job for job in observed.children if child.is_finished(job) and job.metadata.deletion_timestamp is None]
    completed = [job for job in finished if job.status.state.phase == child.COMPLETED]
    failed = [job for job in finished if job.status.state.phase != child.COMPLETED]
    return (
        *_beyond(completed, spec.successful_jobs_history_limit),
        *_beyond(failed, spec.failed_jobs_history_limit),
    )


def deletion(job: Job) -> Delete:
    """Return the deletion of a job; its pods are deleted after it."""
    meta = job.metadata
    return Delete(VCJOBS, meta.namespace, meta.name, meta.uid, BACKGROUND)


def status_patch(cron_job: CronJob, status: CronJobStatus) -> Patch | None:
    """Return the write of a status, if it is another one; it fails if anybody has changed the cron job since."""
    before, changed = cron_job.status, dict[str, Any]()
    if status.active != before.active:
        changed["active"] = msgspec.to_builtins(status.active)
    if status.last_schedule_time is not None and status.last_schedule_time != before.last_schedule_time:
        changed["lastScheduleTime"] = wire_time(status.last_schedule_time.astimezone(UTC))
    if status.last_successful_time is not None and status.last_successful_time != before.last_successful_time:
        changed["lastSuccessfulTime"] = wire_time(status.last_successful_time.astimezone(UTC))
    if not changed:
        return None
    meta = cron_job.metadata
    body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, "status": changed}
    return Patch(CRON_JOBS, meta.namespace, meta.name, body, subresource="status")


def _last_success(status: CronJobStatus, children: Iterable[Job]) -> datetime | None:
    ends = [job.status.state.last_transition_time for job in children if job.status.state.phase == child.COMPLETED]
    times = [end.replace(microsecond=0) for end in ends if end is not None]  # a status has whole seconds
    if status.last_successful_time is not None:
        times.append(status.last_successful_time)
    return max(times, default=None)


def _beyond(jobs: list[Job], limit: int | None) -> list[Delete]:
    if limit is None:
        return []
    return [deletion(job) for job in child.oldest_first(jobs)[: max(0, len(jobs) - max(0, limit))]]
