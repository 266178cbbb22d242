"""Decides when a finished job is deleted.

A job lives for ``spec.ttlSecondsAfterFinished`` seconds after it was completed, has failed or was terminated. A job
that was aborted can be resumed, so it is never deleted. The deletion names the version of the job that was looked at:
if the job was restarted, or got another time to live in between, the API server refuses and the job is looked at again.
"""

from datetime import datetime
from typing import Final

from volcano_py.api.batch import Job
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.writes import Delete
from volcano_py.kube.resource import VCJOBS

FINISHED: Final = frozenset({"Completed", "Failed", "Terminated"})
"""The phases that a job leaves no more."""
_FOREGROUND: Final = "Foreground"  # the job is seen until its pods are gone


class NotFinishedError(ValueError):
    """The job has no time left, because it is not finished, nobody said when, or it has no time to live."""


def is_finished(job: Job) -> bool:
    """Say whether a job is finished for good."""
    return job.status.state.phase in FINISHED


def needs_cleanup(job: Job) -> bool:
    """Say whether a job is finished and has a time to live."""
    return is_finished(job) and job.spec.ttl_seconds_after_finished is not None


def time_left(job: Job, now: datetime) -> float:
    """Return the seconds that a finished job still lives, negative if its time is over; raises NotFinishedError."""
    name = f"{job.metadata.namespace}/{job.metadata.name}"
    ttl_s = job.spec.ttl_seconds_after_finished
    if ttl_s is None or not is_finished(job):
        raise NotFinishedError(f"job {name} should not be cleaned up")
    since = job.status.state.last_transition_time
    if since is None:
        raise NotFinishedError(f"job {name} is finished, but status.state.lastTransitionTime does not say since when")
    return ttl_s - (now - since).total_seconds()


def plan(job: Job | None, now: datetime) -> Plan:
    """Return the deletion of a job whose time is over, or the time of the next look; nothing for all other jobs."""
    if job is None or job.metadata.deletion_timestamp is not None:
        return NOTHING
    try:
        left_s = time_left(job, now)
    except NotFinishedError:
        return NOTHING
    if left_s > 0:
        return Plan(look_again_s=left_s)
    meta = job.metadata
    return Plan((Delete(VCJOBS, meta.namespace, meta.name, meta.uid, _FOREGROUND, meta.resource_version),))
