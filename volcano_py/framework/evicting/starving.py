"""Starving jobs: the jobs for which others may be evicted, and their waiting tasks."""

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.hooks.fit_errors import placeable
from volcano_py.model.arrays import Rows
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import PodGroupPhase, TaskStatus


def starving_jobs(eviction: Eviction) -> dict[int, Rows]:
    """Return the waiting tasks, in task order, by row of the jobs that are enqueued, valid and starving.

    A job with pending evictions is left out, so that nobody is evicted twice for one plan. So is a job whose binds the
    API server has just refused: the evictions would be in vain, and the victims would come back. Tasks that cannot get
    a node here, or have preemptionPolicy Never, are left out. Best-effort tasks are not.
    """
    present = eviction.state.jobs.present()
    waiting = eviction.hooks.pending.only(
        placeable(eviction.state, eviction.hooks), present[eviction.state.jobs.phase[present] != PodGroupPhase.PENDING]
    )
    found: dict[int, Rows] = {}
    refused = set(backing_off(eviction).tolist())
    # A Python loop over the waiting jobs: plugins are asked about each job.
    for row, tasks in waiting.items():
        preempting = tasks[eviction.state.tasks.traits[tasks] & TaskTrait.NEVER_PREEMPTS.value == 0]
        if len(preempting) and row not in refused and _starves(eviction, row):
            found[row] = preempting
    return _heads_only(eviction, waiting, found)


def backing_off(eviction: Eviction) -> Rows:
    """Return the rows of jobs with pending tasks that are backing off, because their binds have just failed."""
    tasks = eviction.state.tasks
    found = (tasks.traits & TaskTrait.BACKING_OFF.value > 0) & (tasks.job >= 0) & (tasks.status == TaskStatus.PENDING)
    return np.unique(tasks.job[found]).astype(np.intp)


def _heads_only(eviction: Eviction, waiting: dict[int, Rows], found: dict[int, Rows]) -> dict[int, Rows]:
    """Leave out the jobs of queues with dequeueStrategy fifo, except the first that waits.

    Allocate would not give the other jobs the room that evictions make for them.
    """
    strict = {name for name, queue in eviction.state.queues.items() if queue.record.fifo}
    if not strict:
        return found
    rows = [
        row
        for row in waiting
        if row not in eviction.state.outcome.blocked and eviction.state.jobs.record(row).queue in strict
    ]
    heads: dict[str, int] = {}
    for _, row in sorted(zip(eviction.hooks.orders.job_sort_keys(np.array(rows, dtype=np.intp)), rows, strict=True)):
        heads.setdefault(eviction.state.jobs.record(row).queue, row)
    return {row: tasks for row, tasks in found.items() if heads.get(eviction.state.jobs.record(row).queue, row) == row}


def _starves(eviction: Eviction, row: int) -> bool:
    job = eviction.state.job(row)
    try:
        return (
            not eviction.pending_evictions.waits(job)
            and row not in eviction.state.outcome.blocked
            and eviction.starving(job)
            and eviction.hooks.job_valid(job) is None
        )
    except PluginFailed as failure:
        eviction.state.report.failures.append(f"{failure}; nobody is evicted for PodGroup {job.key}")
        return False
