"""Place pending tasks, job by job, and commit complete gangs.

while a queue has a job: take the first job in scheduling order; place its tasks in order until it is ready;
    ready -> commit, and give the job back to place its other tasks, one at a time
    not ready, but would be once promised resources are free -> keep, uncommitted, for this session
    otherwise -> undo everything

Tasks that wait at the gate of their queue (`framework.placing.queue_admission`) go through it when their job is first
tried, as far as the queue may hold them. They are placed once the gate is removed.

If the configuration has no ``enqueue`` action, every pending job is enqueued first, even one without tasks: some
controllers create pods only for PodGroups in phase Inqueue.

Recent victims of a job in their queue come last in the queue while that job still waits for its nominated room.

A job that gets nothing does not stop the jobs behind it, unless its queue serves strictly in order (dequeueStrategy
fifo): then the others are not tried in this session. (In Volcano fifo has no effect.)
"""

from typing import Final

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.fit_errors import placeable
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.placing.task_loop import JobGoal
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Rows
from volcano_py.model.shape import Admission
from volcano_py.model.statuses import PodGroupPhase

_NOT_ENQUEUED: Final = PodGroupPhase.PENDING.value
_NOTHING: Final = np.zeros(0, dtype=np.intp)


def allocate(ssn: Session) -> None:
    """Run the action."""
    if "enqueue" not in ssn.hooks.actions:  # wherever it is in the conf, it alone enqueues jobs
        _enqueue_all(ssn)
    usable = _usable(ssn)
    pending, at_gate = _pending(ssn, usable), _at_gate(ssn, usable)
    # Nominated room does not reserve what the queue may hold, so victims must not come before their preemptor.
    victims = (
        ssn.pending_evictions.victims_of(ssn.nominated_room.jobs() & pending.keys())
        if ssn.nominated_room
        else frozenset()
    )
    rows = np.array(sorted(pending.keys() | at_gate.keys()), dtype=np.intp)
    order = SchedulingOrder(ssn.state, ssn.hooks, rows, skip_overused=True, behind=victims)
    try_job = _try_with_nominated_room if ssn.nominated_room else _try
    for queue, row in order:
        job = ssn.state.job(row)
        try:
            admitted = _admit(ssn, queue, job, at_gate.pop(row, None))
            left, moved = try_job(ssn, queue, job, pending[row]) if row in pending else (_NOTHING, admitted)
        except PluginFailed as failure:
            ssn.skip_job(job, failure)
            _stop_behind(ssn, order, queue, job)
            continue
        if not moved:
            _stop_behind(ssn, order, queue, job)
        if len(left):
            pending[row] = left
            order.give_back(queue, row)


def _stop_behind(ssn: Session, order: SchedulingOrder, queue: QueueInfo, job: JobInfo) -> None:
    stopped = order.stop_behind(queue, job, "allocate")
    if stopped is not None:
        ssn.state.outcome.queue_limits[queue.name] = stopped[1]


def _enqueue_all(ssn: Session) -> None:
    rows = ssn.state.jobs.present()
    # A Python loop over the jobs that are pending: each is enqueued by name.
    for row in rows[ssn.state.jobs.phase[rows] == PodGroupPhase.PENDING].tolist():
        if row not in ssn.state.outcome.blocked:
            ssn.enqueue(row)


def _usable(ssn: Session) -> Rows:
    """Return the rows of the jobs that have pending tasks and may be scheduled now."""
    usable: list[int] = []
    phases = ssn.state.jobs.phase.tolist()
    # A Python loop over the jobs that have pending tasks: each has its own rule.
    for row in np.flatnonzero(ssn.hooks.pending.counts()).tolist():
        if ssn.state.jobs.records[row] is None or row in ssn.state.outcome.blocked or phases[row] == _NOT_ENQUEUED:
            continue
        refusal = ssn.hooks.job_valid(ssn.state.job(row))
        if refusal is None:
            usable.append(row)
        else:
            ssn.state.outcome.blocked[row] = refusal
    return np.array(usable, dtype=np.intp)


def _pending(ssn: Session, usable: Rows) -> dict[int, Rows]:
    """Return the tasks to place, in task order, by row of the job."""
    return ssn.hooks.pending.only(placeable(ssn.state, ssn.hooks, lambda shape: not shape.best_effort), usable)


def _at_gate(ssn: Session, usable: Rows) -> dict[int, Rows]:
    """Return the tasks that wait at the gate of their queue and for nothing else, by row of the job."""
    if ssn.admission is None:
        return {}
    waits = ssn.hooks.pending.shapes(
        lambda shape: shape.admission is Admission.AT_GATE and not shape.gates and not shape.unsupported
    )
    found = {row: ssn.admission.waiting(tasks) for row, tasks in ssn.hooks.pending.only(waits, usable).items()}
    return {row: tasks for row, tasks in found.items() if len(tasks)}


def _admit(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows | None) -> bool:
    """Let tasks through the gate of their queue, and record why the others wait; say whether any went through."""
    if ssn.admission is None or tasks is None:
        return False
    refused = ssn.admission.admit(queue, job, tasks)
    whole = sum(refused.values()) == len(tasks)
    for shape_id in refused:
        lacking = tasks if whole else tasks[ssn.state.tasks.shape[tasks] == shape_id]
        rejection = ssn.task_loop.over_limit(queue, shape_id, lacking[: max(1, ssn.hooks.missing(job)) if whole else 1])
        ssn.state.outcome.rejections.setdefault(job.row, {})[shape_id] = rejection
    return not whole


def _try_with_nominated_room(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> tuple[Rows, bool]:
    """Try a job first without the nominated room of tasks of lower priority; if it gets nothing, try with it."""
    own = ssn.nominated_room.open_own(job)
    if own is not None:
        refused = dict(ssn.state.outcome.rejections.get(job.row, {}))
        with own:
            left, moved = _try(ssn, queue, job, tasks, final=False)
        if moved:
            return left, moved
        ssn.state.outcome.rejections[job.row] = refused
    with ssn.nominated_room.open_to(job):
        return _try(ssn, queue, job, tasks)


def _try(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, *, final: bool = True) -> tuple[Rows, bool]:
    """Place a job once; return the tasks that are still to be tried, and whether it got or was promised anything.

    If this is not the ``final`` try, a job that is not ready is promised nothing.
    """
    statement = ssn.statement()
    warning = ssn.topology.not_enforced(job) if job.row in ssn.topology.concerned else ""
    try:
        left = _place_nominated(ssn, statement, queue, job, tasks) if ssn.nominated_room else tasks
        ready = len(left) < len(tasks) and ssn.hooks.missing(job) == 0
        if not ready:
            left, ready = _place_until_ready(ssn, statement, queue, job, left)
        keep = ready or (final and ssn.hooks.job_pipelined(job))
    except PluginFailed:
        statement.discard()
        raise
    if not keep:
        if statement and final:
            ssn.state.report.jobs_discarded += 1
        statement.discard()
        return left[:0], False
    if not ready:
        return left[:0], bool(statement)
    moved = bool(statement)
    placed = statement.commit()
    if warning:
        ssn.warn(job.record, warning)
    ssn.state.report.tasks_placed += placed
    ssn.state.report.jobs_committed += bool(placed)
    return left, moved


def _place_nominated(ssn: Session, statement: Statement, queue: QueueInfo, job: JobInfo, tasks: Rows) -> Rows:
    """Place tasks on their nominated nodes, unless these are too far apart by now; return the other tasks."""
    before = statement.checkpoint()
    left = ssn.nominated_nodes.place_first(statement, queue, job, tasks)
    if ssn.topology.limited(job) and not ssn.topology.holds(job):
        statement.rollback(before)
        return tasks
    return left


def _place_until_ready(
    ssn: Session, statement: Statement, queue: QueueInfo, job: JobInfo, tasks: Rows
) -> tuple[Rows, bool]:
    """Place tasks in order until the job is ready or no task is worth trying.

    Return the tasks that are still to be tried, and whether the job is ready.
    """
    if job.row in ssn.topology.concerned and ssn.topology.applies(job):
        return ssn.topology.place(statement, queue, job, tasks)
    return ssn.task_loop.run(statement, queue, job, tasks, JobGoal(ssn.hooks, job), ssn.placement)
