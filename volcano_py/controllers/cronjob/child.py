"""The jobs of a cron job: their names, how they are built, and which are whose."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final

import msgspec

from volcano_py.api.batch import CronJob, Job, ObjectReference
from volcano_py.api.meta import ObjectMeta, OwnerReference
from volcano_py.api.schedule import Every, Schedule
from volcano_py.controllers.writes import Create
from volcano_py.kube.resource import CRON_JOBS, VCJOBS

SCHEDULED_TIME: Final = "volcano.sh/cronjob-scheduled-timestamp"  # annotation of a job: the time it was created for
FINISHED: Final = frozenset({"Completed", "Failed", "Terminated"})
COMPLETED: Final = "Completed"
_MINUTE: Final = timedelta(minutes=1)
_SECOND: Final = timedelta(seconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME: Final = datetime.max.replace(tzinfo=UTC)
_COPIED: Final = ("labels", "annotations", "finalizers")  # of the template's metadata


def child_name(cron_job: str, schedule: Schedule, start: datetime) -> str:
    """Return the name of the job for a start: with the minutes since 1970, so that no start is made twice.

    Starts that are less than a minute apart are told apart by the seconds since 1970.
    """
    several = isinstance(schedule, Every) and schedule.interval < _MINUTE
    return f"{cron_job}-{(start - _EPOCH) // (_SECOND if several else _MINUTE)}"


def build(cron_job: CronJob, name: str, start: datetime, zone: tzinfo) -> dict[str, Any]:
    """Return the job for a start, with everything that the template says."""
    template = cron_job.spec.job_template
    copied = template.get("metadata") or {}
    meta: dict[str, Any] = {key: copied[key] for key in _COPIED if copied.get(key)}
    meta["annotations"] = {**meta.get("annotations", {}), SCHEDULED_TIME: _in_zone(start, zone)}
    owner = {
        "apiVersion": CRON_JOBS.api_version,
        "kind": CRON_JOBS.kind,
        "name": cron_job.metadata.name,
        "uid": cron_job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    meta |= {"name": name, "namespace": cron_job.metadata.namespace, "ownerReferences": [owner]}
    return {
        "apiVersion": VCJOBS.api_version,
        "kind": VCJOBS.kind,
        "metadata": meta,
        "spec": template.get("spec") or {},
    }


def metadata_of(write: Create) -> Mapping[str, Any]:
    """Return the metadata of the job that a write creates."""
    if isinstance(write.body, msgspec.Raw):
        raise TypeError("the jobs of cron jobs are created from objects, not from JSON")
    metadata: Mapping[str, Any] = write.body["metadata"]
    return metadata


def reference(job: Job) -> ObjectReference:
    """Return the entry of a job in ``status.active``."""
    meta = job.metadata
    return ObjectReference(
        api_version=VCJOBS.api_version, kind=VCJOBS.kind, namespace=meta.namespace, name=meta.name, uid=meta.uid
    )


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner that controls an object."""
    return next((owner for owner in meta.owner_references if owner.controller), None)


def is_child(cron_job: CronJob, job: Job) -> bool:
    """Say whether a cron job controls a job."""
    owner, meta = controller_of(job.metadata), cron_job.metadata
    return (
        owner is not None
        and job.metadata.namespace == meta.namespace
        and (owner.kind, owner.name, owner.uid) == (CRON_JOBS.kind, meta.name, meta.uid)
    )


def is_finished(job: Job) -> bool:
    """Say whether a job is finished for good; a job that was aborted can be resumed."""
    return job.status.state.phase in FINISHED


def scheduled_time(job: Job) -> datetime | None:
    """Return the time for which a job was created; None if it does not say, or if its name says otherwise."""
    try:
        start = datetime.fromisoformat(job.metadata.annotations.get(SCHEDULED_TIME, ""))
        since = start.astimezone(UTC) - _EPOCH if start.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
    number = job.metadata.name.rpartition("-")[2]
    if since is None or number not in (str(since // _MINUTE), str(since // _SECOND)):
        return None
    return _EPOCH + since


def oldest_first(jobs: Iterable[Job]) -> list[Job]:
    """Return jobs by creation and then name; those without a time of creation come last."""
    return sorted(jobs, key=lambda job: (job.metadata.creation_timestamp or _NO_TIME, job.metadata.name))


def _in_zone(moment: datetime, zone: tzinfo) -> str:
    """Return a time as RFC 3339 writes it."""
    return moment.astimezone(zone).isoformat(timespec="seconds").replace("+00:00", "Z")
