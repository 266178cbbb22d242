"""The status of a job: counters, conditions and durations, and the patch that writes what changed."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano_py.api.batch import Job, JobCondition, JobState, JobStatus, TaskState
from volcano_py.controllers.job.members import FAILED, SUCCEEDED
from volcano_py.controllers.job.phases import Change, Counts
from volcano_py.controllers.writes import Patch
from volcano_py.kube.resource import VCJOBS

_LONGEST: Final = 1000  # characters of a message


def counted(status: JobStatus, counts: Counts, by_task: Iterable[tuple[str, Mapping[str, int]]]) -> JobStatus:
    """Return the status with these counters; ``by_task`` has the pods of each task by phase."""
    tasks = {
        name: TaskState({phase: count for phase, count in sorted(phases.items()) if count})
        for name, phases in sorted(by_task)
    }
    return msgspec.structs.replace(
        status,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        terminating=counts.terminating,
        unknown=counts.unknown,
        task_status_count={name: state for name, state in tasks.items() if state.phase},
    )


def pods_of(status: JobStatus, tasks: Iterable[str]) -> int:
    """Return how many pods of some tasks a status counts."""
    counts = status.task_status_count
    return sum(sum(counts[name].phase.values()) for name in tasks if name in counts)


def kept(before: JobStatus, after: JobStatus) -> JobStatus:
    """Return a later status of a job that has finished: pods that have ended still count when they are gone."""
    tasks = dict(after.task_status_count)
    for name, state in before.task_status_count.items():
        now = tasks[name].phase if name in tasks else {}
        ended = {phase: max(state.phase.get(phase, 0), now.get(phase, 0)) for phase in (FAILED, SUCCEEDED)}
        phases = {**now, **{phase: count for phase, count in ended.items() if count}}
        if phases:
            tasks[name] = TaskState(dict(sorted(phases.items())))
    return msgspec.structs.replace(
        after,
        succeeded=max(before.succeeded, after.succeeded),
        failed=max(before.failed, after.failed),
        task_status_count=dict(sorted(tasks.items())),
    )


def entered(job: Job, status: JobStatus, change: Change, now: datetime) -> JobStatus:
    """Return the status of a job that enters a phase now."""
    moment = now.replace(microsecond=0)
    condition = JobCondition(status=change.phase, last_transition_time=moment)
    created = job.metadata.creation_timestamp
    return msgspec.structs.replace(
        status,
        state=JobState(
            phase=change.phase,
            reason=change.reason,
            message=change.message[:_LONGEST],
            last_transition_time=moment,
        ),
        conditions=appended(status.conditions, condition),
        running_duration=go_duration(max(0.0, (moment - created).total_seconds())) if created else "",
    )


def appended(conditions: Iterable[JobCondition], condition: JobCondition) -> list[JobCondition]:
    """Return the conditions with one for each phase, the newest last."""
    return [*(one for one in conditions if one.status != condition.status), condition]


def go_duration(seconds: float) -> str:
    """Return whole seconds as Go writes a duration, such as ``1h2m3s``."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, rest = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def patch(job: Job, status: JobStatus) -> Patch:
    """Return the write of what differs from the status of a job; it fails if the job has changed meanwhile."""
    meta = job.metadata
    body = {
        "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
        "status": difference(msgspec.to_builtins(job.status), msgspec.to_builtins(status)),
    }
    return Patch(VCJOBS, meta.namespace, meta.name, body, subresource="status")


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch (RFC 7386) that turns one object into another."""
    changed: dict[str, Any] = dict.fromkeys(before.keys() - after.keys())
    for name, value in after.items():
        if name not in before:
            changed[name] = value
        elif before[name] != value:
            nested = isinstance(value, dict) and isinstance(before[name], dict)
            changed[name] = difference(before[name], value) if nested else value
    return changed
