"""The texts that say why a job or a task waits, word for word Volcano's where Volcano has one."""

from typing import TYPE_CHECKING, Final

from volcano_py.api import keys
from volcano_py.framework.state.info import JobInfo
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.model.shape import Admission, Shape
from volcano_py.model.statuses import TaskStatus

if TYPE_CHECKING:
    from volcano_py.framework.session import Session

_LABELS: Final = tuple((status.value, status.label) for status in TaskStatus)
_PENDING: Final = TaskStatus.PENDING.value
NO_BACKFILL: Final = Reason(
    "scheduler",
    "no-backfill",
    "asks for no resources and waits for the action backfill: add it to actions in the scheduler's configuration",
)


def job_fit_error(ssn: "Session", job: JobInfo) -> str:
    """Return why a job waits, with its counts.

    ``pod group is not ready, 6 Pending, 6 minAvailable; Pending: 1 Unschedulable, 5 Schedulable. Origin reason is
    train-5: 0/5 nodes are unavailable: 5 Insufficient cpu.`` A job that was not tried at all ends with that reason.

    While the session closes, a condition, an event and the report ask for it: it is made once then.
    """
    if ssn.fit_errors is None:
        return _job_fit_error(ssn, job)
    text = ssn.fit_errors.get(job.row)
    if text is None:
        text = ssn.fit_errors[job.row] = _job_fit_error(ssn, job)
    return text


def _job_fit_error(ssn: "Session", job: JobInfo) -> str:
    by_status = job.counts.tolist()
    counts = [f"{by_status[status]:.0f} {label}" for status, label in _LABELS if by_status[status]]
    counts.append(f"{job.min_available} minAvailable")
    text = f"pod group is {'ready' if ssn.is_ready(job) else 'not ready'}, {', '.join(sorted(counts))}"
    blocked = ssn.blocked.get(job.row) or ssn.lost_turns.get(job.row)
    if blocked is not None:
        return f"{text}. {blocked.text}"
    pending = int(by_status[_PENDING])
    if pending:
        schedulable = ssn.attempts(ssn.pending.of(job.row))
        reasons = ((schedulable, keys.REASON_SCHEDULABLE), (pending - schedulable, keys.REASON_UNSCHEDULABLE))
        text += "; Pending: " + ", ".join(sorted(f"{count} {reason}" for count, reason in reasons if count))
    origin = _origin(ssn, job)
    return f"{text}. Origin reason is {origin}" if origin else text


def _origin(ssn: "Session", job: JobInfo) -> str:
    """Return the first task in task order that found no node and has a recorded rejection, and the rejection."""
    pending = ssn.pending.of(job.row)
    pending = pending[~ssn.attempted(pending)]
    seen: set[int] = set()
    # A Python loop over the shapes of one job's pending tasks; most jobs have one or two.
    for row, shape_id in zip(pending.tolist(), ssn.tasks.shape[pending].tolist(), strict=True):
        if shape_id in seen:
            continue
        seen.add(shape_id)
        rejection = rejection_of(ssn, job.row, shape_id)
        if rejection is not None:
            return f"{ssn.tasks.record(row).name}: {rejection.message}"
    return ""


def rejection_of(ssn: "Session", job_row: int, shape_id: int) -> Rejection | None:
    """Return why tasks of this job and shape have no node, None if nothing has been recorded."""
    found = ssn.rejections.get(job_row, {}).get(shape_id)
    if found is not None:
        return found
    shape = ssn.shape_of(shape_id)
    reason = not_placeable(shape) or ssn.queue_limits.get(ssn.jobs.record(job_row).queue)
    if reason is None and shape.best_effort and "backfill" not in ssn.actions:
        reason = NO_BACKFILL
    return None if reason is None else Rejection(len(ssn.nodes), blocked=reason)


def not_placeable(shape: Shape) -> Reason | None:
    """Return why tasks of a shape are never given a node here, None if they can be."""
    if shape.unsupported:
        fields = ", ".join(shape.unsupported)
        text = f"{fields}: not supported by this scheduler yet, so the pod waits; remove it to have the pod placed"
        return Reason("scheduler", "unsupported-field", text)
    if shape.gates:
        text = f"waits for scheduling gates: {', '.join(shape.gates)}"
        if keys.QUEUE_GATE in shape.gates:
            text += f" (this scheduler takes that of the queue away with --feature-gates={keys.QUEUE_ADMISSION}=true)"
        return Reason("scheduler", "scheduling-gates", text)
    if shape.admission is Admission.AT_GATE:
        return Reason("scheduler", "queue-gate", f"waits at the gate of its queue: {keys.QUEUE_GATE}")
    return None
