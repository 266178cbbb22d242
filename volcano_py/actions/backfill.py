"""Place best-effort tasks, which request nothing but a place for a pod, after allocate.

For every enqueued job, in the scheduling order at the start of the action: place its best-effort tasks in task order,
each on the best feasible node. If the job is ready then, commit; otherwise undo the placements. Queue shares do not
matter. (Volcano: actions/backfill.)

Volcano checks no resources here, and a bind fails on a node that has no place left for a pod. Here such a node is not
chosen. If a job is not ready, Volcano leaves its tasks on their nodes until the session ends, in the way of others.
Here the placements are undone at once.

As in Volcano, pending best-effort tasks count towards the minimum of their job (`JobInfo.missing`). So a job of which
only some find a node is ready, and is bound in part.
"""

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.fit_errors import placeable
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Rows
from volcano_py.model.statuses import PodGroupPhase


def backfill(ssn: Session) -> None:
    """Run the action."""
    pending = _pending(ssn)
    order = SchedulingOrder(ssn.state, ssn.hooks, np.array(sorted(pending), dtype=np.intp), skip_overused=False)
    for _, row in list(order):  # the whole order is computed first: placements here do not change it
        job = ssn.state.job(row)
        try:
            with ssn.nominated_room.open_to(job):
                _place(ssn, job, pending[row])
        except PluginFailed as failure:
            ssn.skip_job(job, failure)


def _pending(ssn: Session) -> dict[int, Rows]:
    """Return the pending best-effort tasks, in task order, by row of the jobs that may be scheduled now."""
    best_effort = placeable(ssn.state, ssn.hooks, lambda shape: shape.best_effort)
    present = ssn.state.jobs.present()
    found = ssn.hooks.pending.only(best_effort, present[ssn.state.jobs.phase[present] != PodGroupPhase.PENDING])
    return {row: tasks for row, tasks in found.items() if row not in ssn.state.outcome.blocked and _valid(ssn, row)}


def _valid(ssn: Session, row: int) -> bool:
    refusal = ssn.hooks.job_valid(ssn.state.job(row))
    if refusal is not None:
        ssn.state.outcome.blocked[row] = refusal
    return refusal is None


def _place_run(ssn: Session, statement: Statement, job: JobInfo, shape_id: int, run: Rows) -> int:
    if ssn.topology.limited(job):
        return ssn.topology.place_idle(statement, job, shape_id, run)
    return ssn.placement.place_idle(statement, job.row, shape_id, run)


def _place(ssn: Session, job: JobInfo, tasks: Rows) -> None:
    statement = ssn.statement()
    shapes = ssn.state.tasks.shape[tasks]
    try:
        for run in np.split(tasks, np.flatnonzero(shapes[1:] != shapes[:-1]) + 1):
            shape_id = int(ssn.state.tasks.shape[run[0]])
            if _place_run(ssn, statement, job, shape_id, run) < len(run):
                rejection = ssn.placement.ranking(shape_id).rejection(promises=False)
                ssn.state.outcome.rejections.setdefault(job.row, {})[shape_id] = rejection
        ready = ssn.hooks.missing(job) == 0
    except PluginFailed:
        statement.discard()
        raise
    if ready:
        placed = statement.commit()
        ssn.state.report.tasks_placed += placed
        ssn.state.report.jobs_committed += bool(placed)
    else:
        ssn.state.report.jobs_discarded += len(statement) > 0
        statement.discard()
