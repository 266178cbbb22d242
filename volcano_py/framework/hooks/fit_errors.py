"""The texts that say why a job or a task waits, word for word Volcano's where Volcano has one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.model.shape import Admission, Shape
from volcano_py.model.statuses import TaskStatus

_LABELS: Final = tuple((status.value, status.label) for status in TaskStatus)
_PENDING: Final = TaskStatus.PENDING.value
NO_BACKFILL: Final = Reason(
    "scheduler",
    "no-backfill",
    "asks for no resources and waits for the action backfill: add it to actions in the scheduler's configuration",
)


class FitErrors:
    """Texts that say why jobs wait, made once per job: the condition, the event and the report share a text."""

    __slots__ = ("_found", "_hooks", "_state")

    def __init__(self, state: State, hooks: Hooks) -> None:
        self._state = state
        self._hooks = hooks
        self._found: dict[int, str] = {}

    def of(self, job: JobInfo) -> str:
        """Return why a job waits (`job_fit_error`)."""
        text = self._found.get(job.row)
        if text is None:
            text = self._found[job.row] = job_fit_error(self._state, self._hooks, job)
        return text


def job_fit_error(state: State, hooks: Hooks, job: JobInfo) -> str:
    """Return why a job waits, with its counts.

    ``pod group is not ready, 6 Pending, 6 minAvailable; Pending: 1 Unschedulable, 5 Schedulable. Origin reason is
    train-5: 0/5 nodes are unavailable: 5 Insufficient cpu.`` If the job was not tried, the text ends with the reason.
    A gang that lacks only best-effort tasks counts as ready for `Hooks.is_ready`, but not for users.
    """
    by_status = job.counts.tolist()
    counts = [f"{by_status[status]:.0f} {label}" for status, label in _LABELS if by_status[status]]
    counts.append(f"{job.min_available} minAvailable")
    ready = hooks.is_ready(job) and not (job.is_ready() and job.ready_count < job.min_available)
    text = f"pod group is {'ready' if ready else 'not ready'}, {', '.join(sorted(counts))}"
    blocked = state.outcome.blocked.get(job.row) or state.outcome.skipped.get(job.row)
    if blocked is not None:
        return f"{text}. {blocked.text}"
    pending = int(by_status[_PENDING])
    if pending:
        schedulable = state.outcome.attempts(hooks.pending.of(job.row))
        reasons = ((schedulable, keys.REASON_SCHEDULABLE), (pending - schedulable, keys.REASON_UNSCHEDULABLE))
        text += "; Pending: " + ", ".join(sorted(f"{count} {reason}" for count, reason in reasons if count))
    origin = _origin(state, hooks, job)
    return f"{text}. Origin reason is {origin}" if origin else text


def _origin(state: State, hooks: Hooks, job: JobInfo) -> str:
    """Return name and rejection of the first task, in task order, that found no node and has a recorded rejection."""
    pending = hooks.pending.of(job.row)
    pending = pending[(state.tasks.status[pending] == _PENDING) & ~state.outcome.attempted(pending)]
    seen: set[int] = set()
    # A Python loop over the shapes of one job's pending tasks; most jobs have one or two.
    for row, shape_id in zip(pending.tolist(), state.tasks.shape[pending].tolist(), strict=True):
        if shape_id in seen:
            continue
        seen.add(shape_id)
        rejection = rejection_of(state, hooks, job.row, shape_id)
        if rejection is not None:
            return f"{state.tasks.record(row).name}: {rejection.message}"
    return ""


def rejection_of(state: State, hooks: Hooks, job_row: int, shape_id: int) -> Rejection | None:
    """Return why tasks of this job and shape have no node, None if nothing has been recorded."""
    found = state.outcome.rejections.get(job_row, {}).get(shape_id)
    if found is not None:
        return found
    shape = state.classes.shape_of(shape_id)
    reason = not_placeable(shape) or _refused_claims(state, shape_id)
    reason = reason or state.outcome.queue_limits.get(state.jobs.record(job_row).queue)
    if reason is None and shape.best_effort and "backfill" not in hooks.actions:
        reason = NO_BACKFILL
    return None if reason is None else Rejection(len(state.nodes), blocked=reason)


def _refused_claims(state: State, shape_id: int) -> Reason | None:
    """Return why no node will do for the volume claims of a class, in a sentence with the number of nodes."""
    found = None if state.volumes is None else state.volumes.refusal(state.task_of(shape_id))
    if found is None:
        return None
    return replace(found, text=f"0/{len(state.nodes)} nodes are unavailable: {found.text}.")


def placeable(state: State, hooks: Hooks, wanted: Callable[[Shape], bool] = lambda shape: True) -> Bools:
    """Return which classes of pending tasks may get a node here and have a shape that is ``wanted``, (n_classes,)."""
    found = hooks.pending.shapes(lambda shape: wanted(shape) and not_placeable(shape) is None)
    if state.volumes is not None:
        # A Python loop over the classes of pending tasks, only if some tasks use claims.
        for shape_id in np.flatnonzero(found).tolist():
            found[shape_id] = state.volumes.refusal(state.task_of(shape_id)) is None
    return found


def not_placeable(shape: Shape) -> Reason | None:
    """Return why tasks of a shape cannot get a node here, None if they can."""
    if shape.left_out:
        name, more = shape.left_out[0][0], len(shape.left_out) - 1
        named = f"{name} and {more} more {'resource' if more == 1 else 'resources'}" if more else name
        text = f"no node offers {named}: correct the request, or add a node that offers it"
        return Reason("resources", "resource-not-offered", text)
    if shape.unsupported:
        fields = ", ".join(shape.unsupported)
        text = f"{fields}: not supported by this scheduler yet, so the pod waits; remove it to have the pod placed"
        return Reason("scheduler", "unsupported-field", text)
    if shape.gates:
        text = f"waits for scheduling gates: {', '.join(shape.gates)}"
        if keys.QUEUE_GATE in shape.gates:
            text += f" (this scheduler removes the gate of the queue with --feature-gates={keys.QUEUE_ADMISSION}=true)"
        return Reason("scheduler", "scheduling-gates", text)
    if shape.admission is Admission.AT_GATE:
        return Reason("scheduler", "queue-gate", f"waits at the gate of its queue: {keys.QUEUE_GATE}")
    return None
