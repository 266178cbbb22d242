"""What a session writes when it closes, if it changed: phases and conditions of PodGroups, and reasons on pods.

The phase follows Volcano's table (R running, S scheduled, C finished; the first line that applies):

    R > 0 and the gang is incomplete         Unknown
    S >= minMember and S == C                Completed
    S >= minMember                           Running
    Completed, of a workload without pods    Completed
    enqueued, or it was, and has room        Inqueue
    otherwise                                Pending

S counts tasks that are RUNNING, BOUND, SUCCEEDED or FAILED. Tasks that terminate on a node keep a gang Running, as in
Volcano, so they count in S, too. But they do not make a gang Running that is Pending or Inqueue: there they are what is
left of its last run, and its new pods wait. (In Volcano they do. Such a gang is Pending again once they are gone, and
must be enqueued a second time.)

*Has room* means that some of its tasks are pipelined. Otherwise a gang whose pods are all gone must be enqueued again
like a new one. (In Volcano it must be in any case, and those who were evicted for it were evicted for nothing.)
The PodGroup of a workload is Pending while it has no pods, see `framework.state.workload_groups`.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.api import keys
from volcano_py.framework.hooks.fit_errors import rejection_of
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.report import JobReport
from volcano_py.framework.state.state import State
from volcano_py.framework.state.workload_groups import without_pods
from volcano_py.model.decisions import Decision, RecordEvent, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobKey, JobRecord, TaskTrait
from volcano_py.model.statuses import SCHEDULED_STATUSES, PodGroupPhase, TaskStatus, members
from volcano_py.scheduler.telling import Telling, leaving

_WAITING: Final = (keys.PHASE_UNKNOWN, keys.PHASE_PENDING, keys.PHASE_INQUEUE)
_FINISHED: Final = [TaskStatus.SUCCEEDED, TaskStatus.FAILED]
_PAST: Final = list(SCHEDULED_STATUSES)
_COUNTED: Final = (TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
_PENDING: Final = TaskStatus.PENDING
_PIPELINED: Final = TaskStatus.PIPELINED
_LONGEST: Final = 4096
"""Characters of the reason that is written on a pod. Texts may name what users write, and all pods of a gang have it:
a queue with a name of a megabyte, in a PodGroup of ten thousand pods, would fill the API server.
"""
_STILL_WAITING: Final = [TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED]
"""Statuses that still wait when a session ends. A task that is allocated then belongs to a gang that is not committed
because it waits for resources that are being released."""
_WAITS: Final = members(tuple(_STILL_WAITING))  # (N_STATUSES,)


def write_statuses(ssn: Session, telling: Telling) -> None:
    """Emit every status that differs from the written one, one batch per job, ordered by namespace and name."""
    jobs, conditions = ssn.state.jobs, ssn.state.outcome.conditions
    ssn.state.outcome.announced = {}
    rows = np.flatnonzero(jobs.rules.present & telling.changed)
    columns = (
        phases(ssn)[rows].tolist(),
        *(jobs.counts[status, rows].astype(int).tolist() for status in _COUNTED),
    )
    changed: list[tuple[JobRecord, int, tuple[str, int, int, int]]] = []
    # A Python loop over the jobs that differ from the last cycle: each compares four values with its record.
    for row, phase, running, succeeded, failed in zip(rows.tolist(), *columns, strict=True):
        record = jobs.record(row)
        status = (PodGroupPhase(phase).label, running, succeeded, failed)
        shown = (record.phase, record.running, record.succeeded, record.failed)
        if row in conditions or status != shown or telling.awaits_group(row):
            changed.append((record, row, status))
    changed.sort(key=lambda entry: entry[0].key)
    for _, row, status in changed:
        decisions = _group_decisions(ssn, telling, ssn.state.job(row), status)
        if decisions:
            ssn.state.emit(decisions)
    before = telling.announced(dict(ssn.state.memory.announced))
    ssn.state.outcome.announced = before | ssn.state.outcome.announced
    pod_decisions = tuple(_pod_conditions(ssn, telling))
    if pod_decisions:
        ssn.state.emit(pod_decisions)


def report_jobs(ssn: Session, telling: Telling) -> None:
    """Put every waiting job, with the reason, into the report; a job that is not enqueued may have no tasks yet."""
    state = ssn.state
    waiting = state.jobs.counts[_STILL_WAITING].sum(axis=0).astype(int)
    found = telling.reports()
    named = np.zeros(len(waiting), dtype=bool)
    named[[*state.outcome.blocked, *state.outcome.skipped]] = True
    shown = (waiting > 0) | named
    # A Python loop over the waiting jobs that differ from the last cycle.
    for row in np.flatnonzero(shown & telling.changed & state.jobs.rules.present).tolist():
        job = state.job(row)
        if not waiting[row] and job.ready_count >= job.min_available:
            continue
        found[job.key] = job_report(state, job)
    state.report.jobs = found
    state.report.pending_tasks = int(waiting[state.jobs.rules.present].sum())


def job_report(state: State, job: JobInfo) -> JobReport:
    """Return what is reported of a waiting job."""
    return JobReport(
        tasks=job.n_tasks,
        ready=job.ready_count,
        min_available=job.min_available,
        rejections=tuple(state.outcome.rejections.get(job.row, {}).values()),
        message=state.outcome.fit_error(job),
    )


def phases(ssn: Session) -> NDArray[np.int8]:
    """Return the phase of every PodGroup at the end of a session, shape (n_jobs,).

    A minimum of 0 is met without any task. Still, a job with tasks is not Running or Completed before one of them is
    scheduled. (Volcano calls such a job Completed while its pods wait.)
    """
    jobs, counts = ssn.state.jobs, ssn.state.jobs.counts
    incomplete = np.zeros(len(jobs), dtype=bool)
    incomplete[[row for row, conditions in ssn.state.outcome.conditions.items() if _is_incomplete(conditions)]] = True
    waits = (jobs.phase == PodGroupPhase.PENDING) | (jobs.phase == PodGroupPhase.INQUEUE)
    past = counts[_PAST].sum(axis=0) + np.where(waits, 0, leaving(ssn.state))
    ended = np.zeros(len(jobs), dtype=bool)
    ended[without_pods(jobs, PodGroupPhase.COMPLETED)] = True
    met = (past >= jobs.min_available) & ((past > 0) | (counts.sum(axis=0) == 0))
    return np.select(
        [
            (counts[TaskStatus.RUNNING] > 0) & incomplete,
            (met & (past == counts[_FINISHED].sum(axis=0))) | ended,
            met,
            (jobs.phase == PodGroupPhase.INQUEUE) | ((jobs.phase != PodGroupPhase.PENDING) & (counts[_PIPELINED] > 0)),
        ],
        [PodGroupPhase.UNKNOWN, PodGroupPhase.COMPLETED, PodGroupPhase.RUNNING, PodGroupPhase.INQUEUE],
        PodGroupPhase.PENDING,
    ).astype(np.int8)


def _complains(conditions: Iterable[GroupCondition]) -> bool:
    return any(condition.type == keys.CONDITION_UNSCHEDULABLE and condition.status for condition in conditions)


def _is_incomplete(conditions: Iterable[GroupCondition]) -> bool:
    """Say whether a gang lacks more than best-effort pods: without them, its phase is that of a gang that waits.

    Policies of jobs act on the phase Unknown, and in Volcano they do not act on such a gang.
    """
    return _complains(one for one in conditions if one.reason != keys.REASON_BEST_EFFORT_WAITS)


def _group_decisions(
    ssn: Session, telling: Telling, job: JobInfo, new_status: tuple[str, int, int, int]
) -> tuple[Decision, ...]:
    record = job.record
    conditions = tuple(
        [new for new in ssn.state.outcome.conditions.get(job.row, ()) if not _written(telling, job, new)]
    )
    if ssn.arrivals.holds(*record.key) and _complains(ssn.state.outcome.conditions.get(job.row, ())):
        conditions = ()
        if record.key in ssn.state.memory.announced:
            ssn.state.outcome.announced[record.key] = ssn.state.memory.announced[record.key]
    phase, running, succeeded, failed = new_status
    status = SetPodGroupStatus(record.key, record.uid, phase, running, succeeded, failed, conditions)
    differs = bool(conditions) or new_status != (record.phase, record.running, record.succeeded, record.failed)
    if not telling.write_status(job.row, record, status, new=differs):
        return ()
    event = _event(ssn, job, phase, conditions)
    return (status,) if event is None or _announced(ssn, record.key, event) else (status, event)


def _written(telling: Telling, job: JobInfo, new: GroupCondition) -> bool:
    return any(
        (old.type, old.status, old.reason) == (new.type, new.status, new.reason)
        and telling.alike(job.row, old.message, new.message)
        for old in job.record.conditions
    )


def _event(ssn: Session, job: JobInfo, phase: str, conditions: tuple[GroupCondition, ...]) -> RecordEvent | None:
    """Return the event that goes with new conditions."""
    about = ("PodGroup", job.key.namespace, job.key.name, job.record.uid)
    if _complains(conditions) and phase in _WAITING:
        text = f"{job.count(_PENDING)}/{job.n_tasks} tasks in gang unschedulable: {ssn.state.outcome.fit_error(job)}"
        return RecordEvent(*about, keys.EVENT_WARNING, keys.EVENT_UNSCHEDULABLE, text)
    if any(new.type == keys.CONDITION_SCHEDULED and new.status for new in conditions):
        return RecordEvent(*about, keys.EVENT_NORMAL, keys.EVENT_SCHEDULED, "pod group is ready")
    return None


def _announced(ssn: Session, key: JobKey, event: RecordEvent) -> bool:
    """Say whether this was already the last event about a status that is not written yet, and remember it."""
    text = f"{event.uid} {event.reason}: {event.message}"
    ssn.state.outcome.announced[key] = text
    return ssn.state.memory.announced.get(key) == text


def _pod_conditions(ssn: Session, telling: Telling) -> Iterator[SetPodCondition]:
    """Yield PodScheduled=False for every waiting task whose condition says something else, by namespace and job."""
    changed: dict[str, list[SetPodCondition]] = {}
    jobs = ssn.state.tasks.job
    waiting = np.flatnonzero(_WAITS[ssn.state.tasks.status] & (np.append(telling.changed, telling.jobless)[jobs]))
    backing_off = ssn.state.tasks.traits[waiting] & TaskTrait.BACKING_OFF.value > 0
    placed = ssn.state.outcome.attempted(waiting) | (ssn.state.tasks.status[waiting] != _PENDING)
    columns = (
        column.tolist()
        for column in (ssn.state.tasks.shape[waiting], ssn.state.tasks.job[waiting], placed, backing_off)
    )
    texts: dict[tuple[int, int], tuple[str, str]] = {}
    record_of, shape_of, arriving = ssn.state.tasks.record, ssn.state.classes.shape_of, ssn.arrivals.holds
    gated = {shape for shape in np.unique(ssn.state.tasks.shape[waiting]).tolist() if shape_of(shape).gated}
    # A Python loop over the waiting tasks of jobs that differ from the last cycle, and of no job.
    for row, shape_id, job_row, had_node, tried_again_later in zip(waiting.tolist(), *columns, strict=True):
        record = record_of(row)
        if record.foreign or shape_id in gated:
            continue  # the API server itself says why a gated pod waits
        if tried_again_later:
            continue  # its condition says that its bind failed
        if arriving(record.namespace, record.job):
            continue
        attempt = _attempt_text(ssn, row) if had_node else None
        if attempt is None:
            if (job_row, shape_id) not in texts:
                texts[job_row, shape_id] = _shape_text(ssn, job_row, shape_id, record.namespace, record.job)
            attempt = texts[job_row, shape_id]
        reason, message = attempt
        if message and telling.write_condition(job_row, row, record.condition, message):
            key = f"{record.namespace}\0{record.job or ''}"  # in the order of the pairs, and compared faster
            changed.setdefault(key, []).append(SetPodCondition(record.ref, reason, message))
    # Sorted job by job: to sort a hundred thousand at once would keep the event loop from running meanwhile.
    for key in sorted(changed):
        yield from sorted(changed[key], key=_by_name)


def _by_name(condition: SetPodCondition) -> tuple[str, str]:
    return condition.task.name, condition.task.uid


def _attempt_text(ssn: Session, row: int) -> tuple[str, str] | None:
    """Return the text of a task that has or had a node in a statement that was not committed."""
    record = ssn.state.tasks.record(row)
    now = int(ssn.state.tasks.status[row])
    if now != _PENDING:
        status, node = TaskStatus(now), int(ssn.state.tasks.node[row])
    else:
        attempt = ssn.state.outcome.attempt(row)
        if attempt is None:
            return None
        status, node = attempt
    promised = status is _PIPELINED
    once = "resource is released and minAvailable" if promised else "minAvailable"
    reason = keys.REASON_UNSCHEDULABLE if promised else keys.REASON_SCHEDULABLE
    return (
        reason,
        f"Pod {record.ref} can possibly be assigned to {ssn.state.nodes.names[node]}, once {once} is satisfied",
    )


def _shape_text(ssn: Session, job_row: int, shape_id: int, namespace: str, group: str | None) -> tuple[str, str]:
    """Return the text of tasks of one job and shape that had no node."""
    if group is None:
        text = (
            "the pod has no PodGroup yet: the controllers make one, and an event of the pod says if they cannot; "
            f"without them, set the annotation {keys.GROUP_NAME}"
        )
    elif ssn.state.jobs.records[job_row] is None:
        missing = f'PodGroup "{group}" does not exist in the namespace of the pod: create it'
        text = ssn.state.outcome.withheld.get(JobKey(namespace, group), missing)
    else:
        rejection = rejection_of(ssn.state, ssn.hooks, job_row, shape_id)
        text = rejection.message if rejection is not None else ssn.state.outcome.fit_error(ssn.state.job(job_row))
    return keys.REASON_UNSCHEDULABLE, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
