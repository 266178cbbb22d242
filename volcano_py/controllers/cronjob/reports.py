"""The events of a cron job: their reasons are Volcano's, and each says what to do about it."""

from datetime import datetime
from typing import Final

from volcano_py.api import keys
from volcano_py.api.batch import CronJob
from volcano_py.api.timestamp import wire_time
from volcano_py.controllers.cronjob import child
from volcano_py.controllers.writes import Create, Delete, Write
from volcano_py.kube import errors
from volcano_py.kube.resource import CRON_JOBS
from volcano_py.model.decisions import RecordEvent

COMPLETED_JOB: Final = "SawCompletedJob"
ORPHANED_JOB: Final = "OrphanedJob"
STALE_REFERENCE: Final = "StaleReference"
INVALID_TIME_ZONE: Final = "InvalidTimeZone"
UNSUPPORTED_SCHEDULE: Final = "UnsupportedSchedule"
INVALID_SCHEDULE: Final = "InvalidSchedule"
UNPARSABLE_SCHEDULE: Final = "UnParseableCronJobSchedule"
TOO_MANY_MISSED: Final = "TooManyMissedTimes"
FORBID_CONCURRENT: Final = "ForbidConcurrent"
REPLACE_CONCURRENT: Final = "ReplaceConcurrent"
FOREIGN_JOB: Final = "ForeignJob"
SUCCESSFUL_CREATE: Final = "SuccessfulCreate"
FAILED_CREATE: Final = "FailedCreate"
SUCCESSFUL_DELETE: Final = "SuccessfulDelete"
FAILED_DELETE: Final = "FailedDelete"
NAMESPACE_TERMINATING: Final = "NamespaceTerminating"


def warning(cron_job: CronJob, reason: str, message: str) -> RecordEvent:
    """Return a warning on a cron job."""
    return _event(cron_job, keys.EVENT_WARNING, reason, message)


def normal(cron_job: CronJob, reason: str, message: str) -> RecordEvent:
    """Return a normal event on a cron job."""
    return _event(cron_job, keys.EVENT_NORMAL, reason, message)


def too_many_missed(cron_job: CronJob, since: datetime) -> RecordEvent:
    """Return the warning that more starts were missed than are counted."""
    text = (
        f"more than 100 starts were missed since {wire_time(since)}: only the last of them still happens; set or lower "
        "spec.startingDeadlineSeconds, and check the clocks of the cluster"
    )
    return warning(cron_job, TOO_MANY_MISSED, text)


def written(cron_job: CronJob, write: Write) -> RecordEvent | None:
    """Return the event about a write that was carried out; a written status has none."""
    match write:
        case Create():
            return normal(cron_job, SUCCESSFUL_CREATE, f"created job {child.metadata_of(write)['name']}")
        case Delete(name=name):
            return normal(cron_job, SUCCESSFUL_DELETE, f"deleted job {name}")
        case _:
            return None


def refused(cron_job: CronJob, write: Write, error: errors.ApiError) -> RecordEvent | None:
    """Return the event about a write that the server refused; None if nobody needs to know."""
    match write:
        case Create(namespace=namespace) if isinstance(error, errors.NamespaceTerminating):
            text = f"no job is created: namespace {namespace} is being deleted"
            return warning(cron_job, NAMESPACE_TERMINATING, text)
        case Create() if not isinstance(error, errors.AlreadyExists):
            return warning(cron_job, FAILED_CREATE, f"the job cannot be created: {error}")
        case Delete(name=name) if not isinstance(error, errors.NotFound):
            return warning(cron_job, FAILED_DELETE, f"job {name} cannot be deleted: {error}")
        case _:
            return None


def _event(cron_job: CronJob, kind: str, reason: str, message: str) -> RecordEvent:
    meta = cron_job.metadata
    return RecordEvent(CRON_JOBS.kind, meta.namespace, meta.name, meta.uid, kind, reason, message)
