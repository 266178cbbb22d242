"""Cron jobs and their jobs as tests write them."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from volcano_py.api.batch import CronJob, Job
from volcano_py.controllers.cronjob.status import Observed

MORNING = datetime(2025, 3, 11, 10, tzinfo=UTC)
"""When cron jobs are created."""
EVERY_FIVE = "*/5 * * * *"


def at(hour: int, minute: int, second: int = 0) -> datetime:
    """Return a time of that day."""
    return MORNING.replace(hour=hour, minute=minute, second=second)


def a_cron_job(
    schedule: str = EVERY_FIVE,
    *,
    active: tuple[str, ...] = (),
    last: datetime | None = None,
    meta: dict[str, Any] | None = None,
    **spec: Any,
) -> CronJob:
    """Return a cron job; ``active`` are numbers of its jobs, ``spec`` has the names of the wire."""
    references = [{"name": f"nightly-{number}", "uid": f"uid-{number}", "namespace": "ns"} for number in active]
    body = {
        "metadata": {
            "name": "nightly",
            "namespace": "ns",
            "uid": "cron",
            "resourceVersion": "7",
            "creationTimestamp": MORNING.isoformat(),
            **(meta or {}),
        },
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"minAvailable": 2}}, **spec},
        "status": {"active": references, **({} if last is None else {"lastScheduleTime": last.isoformat()})},
    }
    return msgspec.convert(body, CronJob)


def number_of(start: datetime) -> str:
    """Return the number in the name of the job for a start."""
    return str(int(start.timestamp()) // 60)


def a_vcjob(
    start: datetime,
    phase: str = "Running",
    *,
    ended: datetime | None = None,
    owner: str = "cron",
    deleting: bool = False,
    name: str = "",
) -> Job:
    """Return the job that a cron job created for a start."""
    number = number_of(start)
    body = {
        "metadata": {
            "name": name or f"nightly-{number}",
            "namespace": "ns",
            "uid": f"uid-{number}",
            "creationTimestamp": start.isoformat(),
            "annotations": {"volcano.sh/cronjob-scheduled-timestamp": start.isoformat()},
            "ownerReferences": [{"kind": "CronJob", "name": "nightly", "uid": owner, "controller": True}],
            **({"deletionTimestamp": start.isoformat()} if deleting else {}),
        },
        "status": {"state": {"phase": phase, "lastTransitionTime": (ended or start).isoformat()}},
    }
    return msgspec.convert(body, Job)


def seen(cron_job: CronJob, *children: Job, others: tuple[Job, ...] = (), **more: Any) -> Observed:
    """Return what is known of a cron job whose jobs the watch shows, and perhaps jobs of others."""
    by_name = {job.metadata.name: job for job in (*children, *others)}
    return Observed(cron_job, children, by_name.get, **more)
