"""Who may have others evicted: jobs that starve, and those of their tasks that wait."""

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.hooks.fit_errors import not_placeable
from volcano_py.model.arrays import Rows
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import PodGroupPhase, TaskStatus


def starving_jobs(eviction: Eviction) -> dict[int, Rows]:
    """Return the tasks that wait, in task order, by row of the jobs that have been let in, are valid and starve.

    A job for which evictions are under way is not among them, so that nobody is evicted twice for one plan. Tasks that
    ask for nothing are; those that can be given no node here, or say that nobody shall be evicted
    for them (preemptionPolicy Never), are not. Nor is a job whose binds the API server refused a moment ago: the room
    would be made in vain, and the victims would come back.
    """
    placeable = eviction.hooks.pending.shapes(lambda shape: not_placeable(shape) is None)
    present = eviction.state.jobs.present()
    waiting = eviction.hooks.pending.only(
        placeable, present[eviction.state.jobs.phase[present] != PodGroupPhase.PENDING]
    )
    found: dict[int, Rows] = {}
    refused = set(backing_off(eviction).tolist())
    # A Python loop over the jobs that wait: each is asked for by itself.
    for row, tasks in waiting.items():
        willing = tasks[eviction.state.tasks.traits[tasks] & TaskTrait.NEVER_PREEMPTS.value == 0]
        if len(willing) and row not in refused and _starves(eviction, row):
            found[row] = willing
    return _heads_only(eviction, waiting, found)


def backing_off(eviction: Eviction) -> Rows:
    """Return the rows of jobs of which binds failed a moment ago, so that some of their tasks are not tried now."""
    tasks = eviction.state.tasks
    held = (tasks.traits & TaskTrait.BACKING_OFF.value > 0) & (tasks.job >= 0) & (tasks.status == TaskStatus.PENDING)
    return np.unique(tasks.job[held]).astype(np.intp)


def _heads_only(eviction: Eviction, waiting: dict[int, Rows], found: dict[int, Rows]) -> dict[int, Rows]:
    """Leave out jobs of queues that serve strictly in order (dequeueStrategy fifo), except the first that waits.

    What others would get by evictions allocate would not let them have.
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
