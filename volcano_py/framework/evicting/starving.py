"""Starving jobs: the jobs for which others may be evicted, and their waiting tasks.

In a deep queue most of them get nothing, and many are alike. `StarvingJobs.hopeless` says for all of them at once whose
plan would fail, so that only the others are tried.
"""

from collections.abc import Hashable
from typing import Final

import numpy as np

from volcano_py.framework.contract.eviction_points import Purpose
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.hooks.fit_errors import placeable
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import PodGroupPhase, TaskStatus
from volcano_py.snapshot.columns import JobColumns

_NO_CLASS: Final = -1


class StarvingJobs:
    """The jobs for which an action may evict others."""

    def __init__(self, eviction: Eviction, purpose: Purpose | None = None) -> None:
        """Find the jobs that are enqueued, valid and starving.

        A job with pending evictions is left out, so that nobody is evicted twice for one plan. So is a job whose binds
        the API server has just refused: the evictions would be in vain, and the victims would come back. Tasks that
        cannot get a node here, or have preemptionPolicy Never, are left out. Best-effort tasks are not. Without a
        ``purpose`` (actions for gangs), no job counts as hopeless.
        """
        self._eviction = eviction
        self._state = state = eviction.state
        self._pending = eviction.hooks.pending
        self._purpose = purpose
        self._shapes = placeable(state, eviction.hooks)
        tasks, rows = state.tasks, self._pending.rows
        waits = self._shapes[tasks.shape[rows]] & (tasks.status[rows] == TaskStatus.PENDING)
        waits &= (state.jobs.phase != PodGroupPhase.PENDING)[self._pending.jobs]
        waits &= state.jobs.rules.present[self._pending.jobs]
        waiting = _marked(self._pending.jobs[waits], len(state.jobs))
        waits &= tasks.traits[rows] & TaskTrait.NEVER_PREEMPTS.value == 0
        self._tasks: Rows = rows[waits]  # (n,), in no particular order
        self._jobs: Rows = self._pending.jobs[waits].astype(np.intp)  # (n,)
        found = _marked(self._jobs, len(state.jobs))
        found[backing_off(eviction)] = False
        found[list(state.outcome.blocked)] = False
        found &= ~eviction.pending_evictions.waiting()
        found = _heads_only(eviction, waiting, self._that_starve(found))
        self.rows: Rows = np.flatnonzero(found)
        """The rows of the jobs."""
        self._classes: tuple[Ints, dict[Hashable, int]] | None = None
        self._looked_at = (-1, -1)
        self._impossible: Bools = np.zeros(len(state.jobs), dtype=bool)
        self._hopeless = self._impossible

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
            self._state.report.failures.append(f"{failure}; nobody is evicted for PodGroup {job.key}")
            return False

    def tasks(self, job_row: int) -> Rows:
        """Return the waiting tasks of a job for which others may be evicted, in task order."""
        tasks = self._pending.of_shapes(self._shapes, job_row)
        found: Rows = tasks[self._state.tasks.traits[tasks] & TaskTrait.NEVER_PREEMPTS.value == 0]
        return found

    # Plans that would fail

    def hopeless(self) -> Bools:
        """Return jobs for which a plan would certainly fail now, (n_jobs,)."""
        now = (self._state.journal.n_touched, self._eviction.plans_concluded)
        if self._purpose is not None and self._looked_at != now:
            if self._looked_at[0] != now[0]:
                self._impossible = self._without_victims()
            self._looked_at = now
            self._hopeless = self._impossible | self._of_failed_classes()
        return self._hopeless

    def _without_victims(self) -> Bools:
        """Return the jobs for which nobody may be evicted, and which find no room without it."""
        state, eviction = self._state, self._eviction
        if self._purpose is Purpose.RECLAIM:
            return self._all(eviction.sated(self._shape(), state.queue_of_job[self._jobs]))
        safe_from = eviction.safe_from()
        if safe_from is None:
            return np.zeros(len(state.jobs), dtype=bool)
        candidates = eviction.all
        lowest = np.full(len(state.queues) + 1, np.inf)
        np.minimum.at(lowest, candidates.queues, safe_from)
        victims = state.jobs.priority > lowest[state.queue_of_job]
        return state.outcome.reasons.hopeless_now() & ~victims & self._all(~self._best_effort())

    def _all(self, of_tasks: Bools) -> Bools:
        """Return the jobs of which this holds for all waiting tasks, (n_jobs,)."""
        return ~_marked(self._jobs[~of_tasks], len(self._state.jobs))

    def _shape(self) -> Rows:
        return self._state.tasks.shape[self._tasks].astype(np.intp)

    def _best_effort(self) -> Bools:
        return np.asarray(self._state.classes.best_effort[self._shape()])

    def _of_failed_classes(self) -> Bools:
        """Return the jobs whose class of plans has failed for as many tasks as they need; see `Plan`."""
        failed = self._eviction.failed_plan_classes
        if not failed:
            return np.zeros(len(self._state.jobs), dtype=bool)
        if self._classes is None:
            self._classes = self._find_classes()
        classes, numbers = self._classes
        fewest = np.full(len(numbers) + 1, np.inf)  # the last is for jobs of no class
        # A Python loop over the classes that have failed.
        for one, needed in failed.items():
            if one in numbers:
                fewest[numbers[one]] = needed
        return np.asarray(self._needed() >= fewest[classes])

    def _needed(self) -> Floats:
        jobs = self._state.jobs
        return np.asarray(np.maximum(jobs.min_available - jobs.held, 1.0))

    def _find_classes(self) -> tuple[Ints, dict[Hashable, int]]:
        """Return the number of the class of each job, (n_jobs,), -1 for none, and the numbers by class."""
        state, eviction, n = self._state, self._eviction, len(self._state.jobs)
        classes = np.full(n, _NO_CLASS, dtype=np.int64)
        numbers: dict[Hashable, int] = {}
        if self._purpose is None or eviction.room or not eviction.all_count(self._purpose) or not eviction.gang_alone:
            return classes, numbers
        shape, priority = self._shape(), state.tasks.priority[self._tasks]
        of_job = [np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)]
        alike = _marked(self._jobs, n)
        for column, of_tasks in zip(of_job, (shape, priority), strict=True):
            column[self._jobs] = of_tasks
            alike[self._jobs[column[self._jobs] != of_tasks]] = False
        alike &= ~state.jobs.taken.any(axis=0) & (np.bincount(self._jobs, minlength=n) >= self._needed())
        rules = state.jobs.rules
        for others in (rules.role_minimums.jobs, rules.with_sub_groups, rules.with_topology):
            alike[others] = False
        alike &= ~eviction.pending_evictions.with_preemptors()
        # A Python loop over the jobs that are left, once in an action in which some plan has failed.
        rows = np.array(
            [row for row in np.flatnonzero(alike).tolist() if not _has_roles(state.jobs, row)], dtype=np.intp
        )
        columns = (state.queue_of_job[rows], *(column[rows] for column in of_job), state.jobs.priority[rows])
        distinct, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
        classes[rows] = which.reshape(-1)
        numbers.update((plan_class(self._purpose, *one), number) for number, one in enumerate(distinct.T.tolist()))
        return classes, numbers


def _has_roles(jobs: JobColumns, row: int) -> bool:
    return bool(jobs.record(row).task_min_available)


def plan_class(purpose: Purpose, queue: int, shape_id: int, priority: int, of_job: int) -> Hashable:
    """Return the class of plans for jobs of a queue (row) with tasks of one shape and priority."""
    return purpose, queue, shape_id, priority, of_job


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
