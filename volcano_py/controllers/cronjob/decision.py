"""Decides about a cron job: the job for the start that has come, its status, and the jobs it keeps.

A start takes two looks. The first creates the job, under a name that follows from the start. The second sees the job,
and writes it into the status with its start. A process that ends between the two leaves a job that the next one takes
over. A status is written before the finished jobs that it counts are deleted, and jobs that are replaced are deleted
before the new one is created. A history that cannot be trimmed keeps no job from its start.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from volcano_py.api.batch import CronJob, CronJobStatus
from volcano_py.api.schedule import Schedule, ScheduleError, ZoneError, names_a_zone, parse_schedule, zone_named
from volcano_py.api.timestamp import wire_time
from volcano_py.controllers.cronjob import child, reports, status
from volcano_py.controllers.cronjob.starts import MANY, NeverError, Starts
from volcano_py.controllers.cronjob.status import Observed
from volcano_py.controllers.plan import Plan
from volcano_py.controllers.writes import Create, Delete, Write
from volcano_py.kube.resource import VCJOBS
from volcano_py.model.decisions import RecordEvent

LATE_S: Final = 0.1
"""A look for a start comes this much after it."""
LOCAL: Final = "Local"  # the zone of this process, in Go
_AGES_S: Final = 10 * 365 * 24 * 3600  # a deadline that is as good as none
_NO_EARLIER: Final = datetime(1971, 1, 1, tzinfo=UTC)  # of all times up to 1970, schedules know only the last year
_FORBID, _REPLACE = "Forbid", "Replace"


Steps = tuple[Write | tuple[Write, ...], ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a look at a cron job leads to."""

    plan: Plan
    warnings: tuple[RecordEvent, ...] = ()
    """To be recorded at once, but only if the look before did not lead to the same."""
    problem: str = ""
    """Why no job will be started until the cron job is changed."""


class _ProblemError(Exception):
    """The spec of a cron job cannot be used."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Start:
    """The job to create for a start that has come, and the running ones that it replaces."""

    writes: Steps = ()
    warnings: tuple[RecordEvent, ...] = ()


def unseen(cron_job: CronJob, uids: Container[str], taken: Iterable[str]) -> list[str]:
    """Return the names of jobs to look up by name: those in the status that are not known, and those that are taken."""
    named = (entry.name for entry in cron_job.status.active if entry.name and entry.uid not in uids)
    return sorted({*taken, *named})


def decide(observed: Observed, now: datetime, local: tzinfo = UTC) -> Decision:
    """Decide about a cron job; ``local`` is the zone of a schedule that names none."""
    cron_job = observed.cron_job
    if cron_job.metadata.deletion_timestamp is not None:
        return Decision(Plan())
    settled = status.settle(observed, now)
    patch, trimmed = status.status_patch(cron_job, settled.status), status.trimmed(observed)
    first: Steps = () if patch is None else (patch,)
    last: Steps = (trimmed,) if trimmed else ()
    events, warnings = tuple(settled.completed), tuple(settled.warnings)
    if cron_job.spec.suspend:
        return Decision(Plan(first + last, events), warnings)
    try:
        schedule, zone = read(cron_job, local, edited=observed.edited is not None)
        starts = starts_of(cron_job, settled.status, schedule, zone, now)
        start = _due(observed, settled.status, starts, now)
        again_s = seconds_to_next(starts, now)
    except _ProblemError as problem:
        warnings += (reports.warning(cron_job, problem.reason, str(problem)),)
        return Decision(Plan(first + last, events), warnings, str(problem))
    except NeverError as never:
        text = f"spec.schedule {cron_job.spec.schedule!r} starts no job: {never}"
        warnings += (reports.warning(cron_job, reports.INVALID_SCHEDULE, text),)
        return Decision(Plan(first + last, events), warnings, text)
    warnings += _about_zone(cron_job)
    return Decision(Plan(first + start.writes + last, events, again_s), warnings + start.warnings)


def read(cron_job: CronJob, local: tzinfo, *, edited: bool = False) -> tuple[Schedule, tzinfo]:
    """Return the schedule and the time zone of a cron job, or raise what is wrong with them."""
    spec = cron_job.spec
    zone = local
    if spec.time_zone is not None and spec.time_zone != LOCAL:
        try:
            zone = zone_named(spec.time_zone)
        except ZoneError as error:
            raise _ProblemError(reports.INVALID_TIME_ZONE, f"spec.timeZone: {error}") from None
    try:
        return parse_schedule(spec.schedule), zone
    except ScheduleError as error:
        reason = reports.UNPARSABLE_SCHEDULE if edited else reports.INVALID_SCHEDULE
        raise _ProblemError(reason, f"spec.schedule: {error}") from None


def starts_of(cron_job: CronJob, current: CronJobStatus, schedule: Schedule, zone: tzinfo, now: datetime) -> Starts:
    """Return the starts after the last one, or after the creation of the cron job."""
    since = current.last_schedule_time or cron_job.metadata.creation_timestamp or now
    return Starts(schedule, zone, max(since, _NO_EARLIER).astimezone(UTC).replace(microsecond=0))


def seconds_to_next(starts: Starts, now: datetime) -> float:
    """Return the seconds until a look for the next start; raises NeverError."""
    return (starts.after(now) - now).total_seconds() + LATE_S


def _due(observed: Observed, current: CronJobStatus, starts: Starts, now: datetime) -> _Start:
    """Decide about the last start that has come; raises NeverError."""
    cron_job, spec = observed.cron_job, observed.cron_job.spec
    limits = [] if observed.edited is None else [observed.edited]  # the past of a new schedule was not missed
    if spec.starting_deadline_seconds is not None:
        limits.append(now - timedelta(seconds=min(spec.starting_deadline_seconds, _AGES_S)))
    missed = starts.missed(now, max(limits, default=None))
    warnings = [reports.too_many_missed(cron_job, starts.since)] if missed.count > MANY else []
    start = missed.latest
    if start is None:
        return _Start((), tuple(warnings))
    name = child.child_name(cron_job.metadata.name, starts.schedule, start)
    if any(entry.name == name for entry in current.active):
        return _Start((), tuple(warnings))
    holder = observed.named(name)
    if holder is not None:
        if not child.is_child(cron_job, holder):
            owner = child.controller_of(holder.metadata)
            whose = f"{owner.kind} {owner.name}" if owner is not None else "nobody"
            text = f"job {name} exists and is controlled by {whose}: the start of {wire_time(start)} has no job"
            warnings.append(reports.warning(cron_job, reports.FOREIGN_JOB, text))
        return _Start((), tuple(warnings))
    deletions: tuple[Delete, ...] = ()
    if current.active and spec.concurrency_policy == _FORBID:
        text = f"the start of {wire_time(start)} waits: {_running(current)}"
        warnings.append(reports.warning(cron_job, reports.FORBID_CONCURRENT, text))
        return _Start((), tuple(warnings))
    if current.active and spec.concurrency_policy == _REPLACE:
        text = f"the start of {wire_time(start)} replaces what runs: {_running(current)}"
        warnings.append(reports.warning(cron_job, reports.REPLACE_CONCURRENT, text))
        running = {entry.uid for entry in current.active}
        deletions = tuple(
            status.deletion(job)
            for job in observed.children
            if job.metadata.uid in running and job.metadata.deletion_timestamp is None
        )
    body = child.build(cron_job, name, start, starts.zone)
    created = Create(VCJOBS, cron_job.metadata.namespace, body)
    return _Start((deletions, created) if deletions else (created,), tuple(warnings))


def _running(current: CronJobStatus) -> str:
    names = [entry.name for entry in current.active]
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} {'is' if len(names) == 1 else 'are'} not finished"


def _about_zone(cron_job: CronJob) -> tuple[RecordEvent, ...]:
    if not names_a_zone(cron_job.spec.schedule):
        return ()
    text = "spec.schedule names a time zone, which counts before spec.timeZone: write it into spec.timeZone instead"
    return (reports.warning(cron_job, reports.UNSUPPORTED_SCHEDULE, text),)
