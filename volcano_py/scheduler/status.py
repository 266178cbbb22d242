"""What a session writes when it closes: phases and conditions of PodGroups, reasons on pods; only what changed.

The phase follows Volcano's table (R running, S past scheduling, C finished; first line that applies):

    R > 0 and a gang that is incomplete      Unknown
    S >= minMember and S == C                Completed
    S >= minMember                           Running
    not let in yet                           Pending
    otherwise                                Inqueue
"""

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.fit_error import job_fit_error, rejection_of
from volcano_py.framework.info import JobInfo
from volcano_py.framework.memory import JobReport
from volcano_py.framework.session import Session
from volcano_py.model.decisions import Decision, RecordEvent, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobRecord
from volcano_py.model.statuses import PodGroupPhase, TaskStatus
from volcano_py.snapshot.columns import Rows

_WAITING = (PodGroupPhase.UNKNOWN, PodGroupPhase.PENDING, PodGroupPhase.INQUEUE)
_FINISHED = [TaskStatus.SUCCEEDED, TaskStatus.FAILED]


def write_statuses(ssn: Session) -> None:
    """Emit the status of every job that differs from what is written, one batch per job, by namespace and name."""
    jobs = [(ssn.jobs.record(row).key, row) for row in ssn.jobs.present().tolist()]
    # A Python loop over jobs: each compares a few numbers with its record.
    for _, row in sorted(jobs):
        decisions = _group_decisions(ssn, ssn.job(row))
        if decisions:
            ssn.emit(decisions)
    pod_decisions = tuple(_pod_conditions(ssn))
    if pod_decisions:
        ssn.emit(pod_decisions)


def report_jobs(ssn: Session) -> None:
    """Put every job that still has pending tasks, and why, into the report."""
    for row in np.flatnonzero(ssn.pending.counts()).tolist():
        if ssn.jobs.records[row] is None:
            continue
        job = ssn.job(row)
        waiting = job.count(TaskStatus.PENDING) + job.count(TaskStatus.PIPELINED)
        ssn.report.pending_tasks += waiting
        ssn.report.jobs[job.key] = JobReport(
            tasks=job.n_tasks,
            ready=job.ready_count,
            min_available=job.min_available,
            placed=len(ssn.pending.of(row)) - waiting,
            rejections=tuple(ssn.rejections.get(row, {}).values()),
            message=job_fit_error(ssn, job) if waiting else "",
        )


def phase_of(ssn: Session, job: JobInfo) -> PodGroupPhase:
    """Return the phase a PodGroup has at the end of a session."""
    counts = job.counts
    finished = int(counts[_FINISHED].sum())
    releasing = int((ssn.tasks.node[_in_status(ssn, job, TaskStatus.RELEASING)] >= 0).sum())
    past = job.scheduled_count + releasing
    if job.count(TaskStatus.RUNNING) and _incomplete(ssn, job):
        return PodGroupPhase.UNKNOWN
    if past >= job.min_available and (past or job.n_tasks == 0):
        return PodGroupPhase.COMPLETED if past == finished else PodGroupPhase.RUNNING
    return PodGroupPhase.INQUEUE if job.phase is PodGroupPhase.INQUEUE else PodGroupPhase.PENDING


def _in_status(ssn: Session, job: JobInfo, status: TaskStatus) -> Rows:
    if not job.count(status):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero((ssn.tasks.job == job.row) & (ssn.tasks.status == status))


def _incomplete(ssn: Session, job: JobInfo) -> bool:
    return any(
        condition.type == keys.CONDITION_UNSCHEDULABLE and condition.status
        for condition in ssn.conditions.get(job.row, ())
    )


def _group_decisions(ssn: Session, job: JobInfo) -> tuple[Decision, ...]:
    record = job.record
    phase = phase_of(ssn, job)
    running, succeeded, failed = (
        job.count(status) for status in (TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
    )
    conditions = tuple(new for new in ssn.conditions.get(job.row, ()) if not _written(record, new))
    stands = (record.phase, record.running, record.succeeded, record.failed)
    if stands == (phase.label, running, succeeded, failed) and not conditions:
        return ()
    status = SetPodGroupStatus(record.key, record.uid, phase.label, running, succeeded, failed, conditions)
    complaint = next((new for new in conditions if new.type == keys.CONDITION_UNSCHEDULABLE and new.status), None)
    if complaint is not None and phase in _WAITING:
        pending = job.count(TaskStatus.PENDING)
        text = f"{pending}/{job.n_tasks} tasks in gang unschedulable: {job_fit_error(ssn, job)}"
        return (status, _event(record, keys.EVENT_WARNING, keys.EVENT_UNSCHEDULABLE, text))
    if any(new.type == keys.CONDITION_SCHEDULED and new.status for new in conditions):
        return (status, _event(record, keys.EVENT_NORMAL, keys.EVENT_SCHEDULED, "pod group is ready"))
    return (status,)


def _written(record: JobRecord, new: GroupCondition) -> bool:
    return any(
        (old.type, old.status, old.reason, old.message) == (new.type, new.status, new.reason, new.message)
        for old in record.conditions
    )


def _event(record: JobRecord, type_: str, reason: str, message: str) -> RecordEvent:
    return RecordEvent("PodGroup", record.key.namespace, record.key.name, record.uid, type_, reason, message)


def _pod_conditions(ssn: Session) -> list[SetPodCondition]:
    """Return PodScheduled=False for every task that waits and does not say so yet, by job and in task order."""
    changed: list[tuple[tuple[str, ...], SetPodCondition]] = []
    waiting = np.flatnonzero((ssn.tasks.status == TaskStatus.PENDING) | (ssn.tasks.status == TaskStatus.PIPELINED))
    texts: dict[tuple[int, int], tuple[str, str]] = {}
    # A Python loop over waiting tasks: each compares one text; most have nothing to write.
    for row in waiting.tolist():
        record = ssn.tasks.record(row)
        shape_id, job_row = int(ssn.tasks.shape[row]), int(ssn.tasks.job[row])
        if record.foreign or ssn.shape_of(shape_id).gates:
            continue
        attempt = _attempt_text(ssn, row)
        if attempt is None:
            if (job_row, shape_id) not in texts:
                texts[job_row, shape_id] = _shape_text(ssn, job_row, shape_id, record.job)
            attempt = texts[job_row, shape_id]
        reason, message = attempt
        if message and message != record.condition:
            order = (record.namespace, record.job or "", record.name, record.uid)
            changed.append((order, SetPodCondition(record.ref, reason, message)))
    changed.sort(key=lambda entry: entry[0])
    return [condition for _, condition in changed]


def _attempt_text(ssn: Session, row: int) -> tuple[str, str] | None:
    """Return the text of a task that had a node in a statement that was not committed."""
    record = ssn.tasks.record(row)
    if ssn.tasks.status[row] == TaskStatus.PIPELINED:
        status, node = TaskStatus.PIPELINED, ssn.nodes.names[int(ssn.tasks.node[row])]
    else:
        attempt = ssn.attempt(row)
        if attempt is None:
            return None
        status, node = attempt
    once = "resource is released and minAvailable" if status is TaskStatus.PIPELINED else "minAvailable"
    reason = keys.REASON_UNSCHEDULABLE if status is TaskStatus.PIPELINED else keys.REASON_SCHEDULABLE
    return reason, f"Pod {record.ref} can possibly be assigned to {node}, once {once} is satisfied"


def _shape_text(ssn: Session, job_row: int, shape_id: int, group: str | None) -> tuple[str, str]:
    """Return the text of tasks of one job and shape that had no node."""
    if group is None:
        text = f"the pod names no PodGroup: set the annotation {keys.GROUP_NAME}"
    elif ssn.jobs.records[job_row] is None:
        text = f'PodGroup "{group}" does not exist in the namespace of the pod: create it'
    else:
        rejection = rejection_of(ssn, job_row, shape_id)
        text = rejection.message if rejection is not None else job_fit_error(ssn, ssn.job(job_row))
    return keys.REASON_UNSCHEDULABLE, text
