"""Starving jobs: the jobs for which others may be evicted, and their waiting tasks."""

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.hooks.fit_errors import placeable
from volcano_py.model.arrays import Bools, Ints, Rows
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import PodGroupPhase, TaskStatus


class StarvingJobs:
    """The jobs for which an action may evict others."""

    def __init__(self, eviction: Eviction) -> None:
        """Find the jobs that are enqueued, valid and starving.

        A job with pending evictions is left out, so that nobody is evicted twice for one plan. So is a job whose binds
        the API server has just refused: the evictions would be in vain, and the victims would come back. Tasks that
        cannot get a node here, or have preemptionPolicy Never, are left out. Best-effort tasks are not.
        """
        self._eviction = eviction
        self._state = state = eviction.state
        self._pending = eviction.hooks.pending
        self._shapes = placeable(state, eviction.hooks)
        tasks, rows = state.tasks, self._pending.rows
        waits = self._shapes[tasks.shape[rows]] & (tasks.status[rows] == TaskStatus.PENDING)
        waits &= (state.jobs.phase != PodGroupPhase.PENDING)[self._pending.jobs]
        waits &= state.jobs.rules.present[self._pending.jobs]
        waiting = _marked(self._pending.jobs[waits], len(state.jobs))
        waits &= tasks.traits[rows] & TaskTrait.NEVER_PREEMPTS.value == 0
        self.jobs: Rows = self._pending.jobs[waits].astype(np.intp)
        """The rows of the jobs of waiting tasks, (n,), in no particular order. Some of these jobs do not starve."""
        self.shapes: Rows = tasks.shape[rows[waits]].astype(np.intp)
        """The shapes of these tasks, (n,)."""
        self.priorities: Ints = tasks.priority[rows[waits]]
        """The priorities of these tasks, (n,)."""
        found = self.mask()
        found[backing_off(eviction)] = False
        found[list(state.outcome.blocked)] = False
        found &= ~eviction.pending_evictions.waiting()
        found = _heads_only(eviction, waiting, self._that_starve(found))
        self.rows: Rows = np.flatnonzero(found)
        """The rows of the starving jobs."""

    def mask(self) -> Bools:
        """Return the jobs with waiting tasks for which others may be evicted, (n_jobs,)."""
        return _marked(self.jobs, len(self._state.jobs))

    def only_with(self, of_tasks: Bools) -> Bools:
        """Return the jobs without any waiting task of which a mask (n,) is false, (n_jobs,)."""
        return ~_marked(self.jobs[~of_tasks], len(self._state.jobs))

    def _that_starve(self, found: Bools) -> Bools:
        eviction = self._eviction
        starving = eviction.starving_jobs()
        if starving is not None:
            found = found & starving
        doubtful = found.copy() if starving is None else found & ~eviction.hooks.surely_valid()
        # A Python loop over the jobs about which plugins must be asked one by one.
        for row in np.flatnonzero(doubtful).tolist():
            found[row] = self._starves(row)
        return found

    def _starves(self, row: int) -> bool:
        job = self._state.job(row)
        try:
            return self._eviction.starving(job) and self._eviction.hooks.job_valid(job) is None
        except PluginFailed as failure:
            self._state.report.failed(failure, f"nobody is evicted for PodGroup {job.key}")
            return False

    def tasks(self, job_row: int) -> Rows:
        """Return the waiting tasks of a job for which others may be evicted, in task order."""
        tasks = self._pending.of_shapes(self._shapes, job_row)
        found: Rows = tasks[self._state.tasks.traits[tasks] & TaskTrait.NEVER_PREEMPTS.value == 0]
        return found


def backing_off(eviction: Eviction) -> Rows:
    """Return the rows of jobs with pending tasks that are backing off, because their binds have just failed."""
    tasks = eviction.state.tasks
    found = (tasks.traits & TaskTrait.BACKING_OFF.value > 0) & (tasks.job >= 0) & (tasks.status == TaskStatus.PENDING)
    return np.unique(tasks.job[found]).astype(np.intp)


def _marked(rows: Rows, n: int) -> Bools:
    found = np.zeros(n, dtype=bool)
    found[rows] = True
    return found


def _heads_only(eviction: Eviction, waiting: Bools, found: Bools) -> Bools:
    """Leave out the jobs of queues with dequeueStrategy fifo, except the first that waits.

    Allocate would not give the other jobs the room that evictions make for them.
    """
    state = eviction.state
    strict = np.array([queue.record.fifo for queue in state.queues.values()] + [False], dtype=bool)[state.queue_of_job]
    if not strict.any():
        return found
    behind = waiting & strict
    behind[list(state.outcome.blocked)] = False
    rows = np.flatnonzero(behind)
    rows = rows[np.lexsort(eviction.hooks.orders.job_keys(rows)[::-1])]
    _, first = np.unique(state.queue_of_job[rows], return_index=True)
    behind[rows[first]] = False
    found &= ~behind
    return found
