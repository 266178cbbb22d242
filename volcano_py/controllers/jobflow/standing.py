"""The status of a flow, from its jobs and from what the status remembers of jobs that are gone.

    "" or Pending ──▶ Running ──▶ Succeed     all steps are completed
          └──────────────┴──────▶ Failed      a job has failed or was terminated

A job that has ended and was removed, by its ttl or by hand, stays in ``jobStatusList``, in ``conditions`` and in the
list of its phase. So its step counts as done, and is not run again. Volcano forgets such a job and runs it again.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from volcano_py.api.batch import Job
from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.api.flow import (
    FlowCondition,
    FlowJobStatus,
    FlowState,
    JobFlow,
    JobFlowStatus,
    RunningHistory,
)
from volcano_py.controllers.job import phases
from volcano_py.controllers.jobflow.children import child_name

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEED: Final = "Succeed"
FAILED: Final = "Failed"
TERMINATING: Final = "Terminating"

ENDED: Final = frozenset({SUCCEED, FAILED, TERMINATING})
"""Phases in which no step starts any more."""
_BAD: Final = frozenset({phases.FAILED, phases.TERMINATED})


def standing(flow: JobFlow, jobs: Mapping[str, Job], now: datetime) -> JobFlowStatus:
    """Return the status of a flow; ``jobs`` are those that it owns, by name."""
    former = {entry.name: entry for entry in flow.status.job_status_list}
    entries: dict[str, FlowJobStatus] = {}
    for name in _in_order(flow, {*jobs, *former}):
        job, before = jobs.get(name), former.get(name)
        if job is not None:
            entries[name] = _entry(job, before, now)
        elif before is not None and before.state in phases.FINISHED:
            entries[name] = before
    conditions = {
        name: condition
        for name in entries
        if (condition := _condition(jobs[name]) if name in jobs else flow.status.conditions.get(name)) is not None
    }
    return JobFlowStatus(
        pending_jobs=_named(entries, phases.PENDING),
        running_jobs=_named(entries, phases.RUNNING),
        failed_jobs=_named(entries, phases.FAILED),
        completed_jobs=_named(entries, phases.COMPLETED),
        terminated_jobs=_named(entries, phases.TERMINATED),
        unknown_jobs=_named(entries, "", phases.RESTARTING, phases.ABORTING, phases.ABORTED),
        job_status_list=list(entries.values()),
        conditions=conditions,
        state=FlowState(phase=_phase_of(flow, entries)),
    )


def next_phase(phase: str, *, steps: int, completed: int, running: bool, ended_badly: bool) -> str:
    """Return the phase that follows: from the number of steps, those completed, and whether a job runs or failed."""
    if phase in ENDED:
        return phase
    if ended_badly:
        return FAILED
    if phase == RUNNING:
        return SUCCEED if completed == steps else RUNNING
    return RUNNING if running or completed else PENDING


def _phase_of(flow: JobFlow, entries: Mapping[str, FlowJobStatus]) -> str:
    steps = {child_name(flow.metadata.name, step.name) for step in flow.spec.flows}
    states = [entry.state for entry in entries.values()]
    return next_phase(
        flow.status.state.phase,
        steps=len(steps),
        completed=sum(entries[name].state == phases.COMPLETED for name in steps if name in entries),
        running=phases.RUNNING in states,
        ended_badly=any(state in _BAD for state in states),
    )


def _in_order(flow: JobFlow, names: Iterable[str]) -> list[str]:
    """Return names of jobs in the order of their steps; jobs of no step follow."""
    place = {child_name(flow.metadata.name, step.name): index for index, step in enumerate(flow.spec.flows)}
    return sorted(names, key=lambda name: (place.get(name, len(place)), name))


def _named(entries: Mapping[str, FlowJobStatus], *states: str) -> list[str]:
    return [name for name, entry in entries.items() if entry.state in states]


def _entry(job: Job, before: FlowJobStatus | None, now: datetime) -> FlowJobStatus:
    state = job.status.state.phase
    histories = [] if before is None else list(before.running_histories)
    if state and (not histories or histories[-1].state != state):
        since = job.status.state.last_transition_time or now
        if histories:
            last = histories[-1]
            histories[-1] = RunningHistory(start_timestamp=last.start_timestamp, end_timestamp=since, state=last.state)
        histories.append(RunningHistory(start_timestamp=since, state=state))
    return FlowJobStatus(
        name=job.metadata.name,
        state=state,
        start_timestamp=job.metadata.creation_timestamp,
        end_timestamp=_end(job) if state in phases.AT_REST else None,
        restart_count=job.status.retry_count,
        running_histories=histories,
    )


def _end(job: Job) -> datetime | None:
    """Return when a job ended: after ``runningDuration``, else at the last change of its phase."""
    created = job.metadata.creation_timestamp
    try:
        lasted = parse_go_duration(job.status.running_duration)
    except DurationError:
        return job.status.state.last_transition_time
    return None if created is None else created + timedelta(seconds=round(lasted))


def _condition(job: Job) -> FlowCondition:
    return FlowCondition(
        phase=job.status.state.phase,
        create_time=job.metadata.creation_timestamp,
        running_duration=job.status.running_duration,
        task_status_count=job.status.task_status_count,
    )
