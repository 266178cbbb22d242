"""Futile jobs: starving jobs whose plan would certainly fail now. Only the others are tried.

In a deep queue most starving jobs get nothing, and many are alike. A starving job is futile if one of these holds:

    preempt  there is no room for it now (`placing.turns`), and no task of another job of its queue may be evicted for a
             job of its priority (`Preemptable.safe_from`)
    reclaim  its queue may not take room from others for any task of it (`Preemptive`), or there is no room for it now,
             and other queues have lent nothing
    both     an equal plan has failed, and nothing has changed since (`Plan`)

Every plan changes the answers, so they hold for one moment only: that of the job's turn. All jobs are tried if a plugin
is not ours, because it may answer from more than the session. A job to which nominated room may be opened is always
tried, because it sees more room than others.
"""

from collections.abc import Hashable
from typing import Final

import numpy as np

from volcano_py.framework.contract.eviction_points import Purpose
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.evicting.starving import StarvingJobs
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.statuses import TaskStatus

_NO_CLASS: Final = -1
_ONE_BY_ONE: Final = 8  # jobs looked at one by one at a moment; to look at all at once costs about as much


class FutileJobs:
    """The futile ones of the starving jobs of an action."""

    def __init__(self, eviction: Eviction, purpose: Purpose, starving: StarvingJobs) -> None:
        """Take the starving jobs, and from whom they take room."""
        self._eviction = eviction
        self._state = eviction.state
        self._purpose = purpose
        self._starving = starving
        self._tried = eviction.room.may_be_opened if eviction.hooks.built_in else None  # (n_jobs,); None: all are
        self._classes: tuple[Ints, dict[Hashable, int]] | None = None
        self._with_victims: Bools | None = None
        self._moment = (-1, -1)
        self._looked_at = 0  # how many jobs were looked at one by one at this moment
        self._complete = False
        self._known = np.zeros(len(self._state.jobs), dtype=bool)

    def known(self) -> Bools:
        """Return the jobs of which it is known by now that they are futile, (n_jobs,)."""
        moment = (self._state.journal.n_touched, self._eviction.plan_results.concluded)
        if moment != self._moment:
            self._moment, self._looked_at, self._complete = moment, 0, False
            self._known = np.zeros(len(self._state.jobs), dtype=bool)
        return self._known

    def all_now(self) -> Bools:
        """Return all jobs that are futile, (n_jobs,); others are not starving."""
        known = self.known()
        if self._complete or self._tried is None:
            return known
        self._complete = True
        self._known = (self._of_failed_classes() | self._without_chance()) & ~self._tried
        return self._known

    def includes(self, row: int) -> bool:
        """Say whether a starving job is futile."""
        known = self.known()
        if self._tried is None or self._tried[row] or known[row] or self._complete:
            return bool(known[row])
        if self._looked_at == _ONE_BY_ONE:
            return bool(self.all_now()[row])
        self._looked_at += 1
        if self._failed_before(row):
            known[row] = True
        elif self._purpose is Purpose.RECLAIM:
            known[row] = self._may_not_reclaim(row)
        elif not self._have_victims()[row]:
            return bool(self.all_now()[row])
        return bool(known[row])

    def first_with_hope(self, rows: Rows) -> Rows:
        """Return these jobs without the first ones, as long as they are futile."""
        while len(rows):
            hope = np.flatnonzero(~self.known()[rows])
            rows = rows[int(hope[0]) :] if len(hope) else rows[:0]
            if len(rows) and not self.includes(int(rows[0])):
                break
        return rows

    # Without a chance

    def _without_chance(self) -> Bools:
        try:
            found = self._without_room() & ~self._have_victims()
            return found | self._sated() if self._purpose is Purpose.RECLAIM else found
        except PluginFailed:  # then each job is tried, and the failure is reported there
            return np.zeros(len(self._state.jobs), dtype=bool)

    def _sated(self) -> Bools:
        """Return the jobs whose queues may not take room from others for one task of any of their shapes."""
        starving = self._starving
        shapes, which = np.unique(starving.shapes, return_inverse=True)
        if not len(shapes):
            return np.zeros(len(self._state.jobs), dtype=bool)
        # A Python loop over the distinct shapes; the last column is for jobs without a queue, which have no turn.
        sated = np.array([np.append(self._eviction.sated_queues(shape), True) for shape in shapes.tolist()])
        return starving.only_with(sated[which, self._state.queue_of_job[starving.jobs]])

    def _may_not_reclaim(self, row: int) -> bool:
        state = self._state
        queue = state.queues[state.jobs.record(row).queue]
        shapes = np.unique(state.tasks.shape[self._starving.tasks(row)]).tolist()
        try:
            return not any(self._eviction.preemptive(queue, [(state.task_of(shape), 1)]) for shape in shapes)
        except PluginFailed:
            return False

    def _without_room(self) -> Bools:
        """Return the jobs for which there is no room now; a best-effort task might always find a node."""
        best_effort = self._state.classes.best_effort[self._starving.shapes]
        return self._state.outcome.reasons.futile_now() & self._starving.only_with(~best_effort)

    def _have_victims(self) -> Bools:
        """Return the jobs for which somebody might be evicted: in their queue, or of other queues, (n_jobs,)."""
        if self._with_victims is None:
            reclaims = self._purpose is Purpose.RECLAIM
            self._with_victims = self._find_victims_elsewhere() if reclaims else self._find_victims()
        return self._with_victims

    def _find_victims(self) -> Bools:
        state, candidates = self._state, self._eviction.unordered
        try:
            safe_from = self._eviction.safe_from(candidates)
        except PluginFailed:
            return np.ones(len(state.jobs), dtype=bool)
        lowest = np.full(len(state.queues) + 1, np.inf)  # the last is for jobs without a queue
        np.minimum.at(lowest, candidates.queues, safe_from)
        return np.asarray(state.jobs.priority > lowest[state.queue_of_job])

    def _find_victims_elsewhere(self) -> Bools:
        state, candidates = self._state, self._eviction.unordered
        running = candidates.queues[state.tasks.status[candidates.rows] == TaskStatus.RUNNING]
        lent = np.bincount(running[running >= 0], minlength=len(state.queues) + 1)  # the last is for jobs of no queue
        lent *= np.array([queue.record.reclaimable for queue in state.queues.values()] + [False], dtype=bool)
        return np.asarray(lent[state.queue_of_job] < lent.sum())

    # Equal plans

    def _of_failed_classes(self) -> Bools:
        """Return the jobs of which an equal plan has failed for no more tasks than they need, (n_jobs,)."""
        failed = self._eviction.plan_results.failed
        if not failed:
            return np.zeros(len(self._state.jobs), dtype=bool)
        classes, numbers = self._numbered()
        fewest = np.full(len(numbers) + 1, np.inf)  # the last is for jobs of no class
        # A Python loop over the classes that have failed.
        for one, needed in failed.items():
            if one in numbers:
                fewest[numbers[one]] = needed
        return np.asarray(self._needed() >= fewest[classes])

    def _failed_before(self, row: int) -> bool:
        return bool(self._eviction.plan_results.failed and self._of_failed_classes()[row])

    def _needed(self) -> Floats:
        jobs = self._state.jobs
        return np.asarray(np.maximum(jobs.min_available - jobs.held, 1.0))

    def _numbered(self) -> tuple[Ints, dict[Hashable, int]]:
        """Return the number of the class of plans of each job, (n_jobs,), -1 for none, and the numbers by class."""
        if self._classes is None:
            self._classes = self._find_classes()
        return self._classes

    def _find_classes(self) -> tuple[Ints, dict[Hashable, int]]:
        state, eviction, starving, n = self._state, self._eviction, self._starving, len(self._state.jobs)
        classes = np.full(n, _NO_CLASS, dtype=np.int64)
        numbers: dict[Hashable, int] = {}
        if not eviction.all_count(self._purpose) or not eviction.gang_alone:
            return classes, numbers
        of_job = [np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)]
        alike = starving.mask()
        for column, of_tasks in zip(of_job, (starving.shapes, starving.priorities), strict=True):
            column[starving.jobs] = of_tasks
            alike[starving.jobs[column[starving.jobs] != of_tasks]] = False
        alike &= ~state.jobs.taken.any(axis=0) & (np.bincount(starving.jobs, minlength=n) >= self._needed())
        rules = state.jobs.rules
        for others in (rules.role_minimums.jobs, rules.with_sub_groups, rules.with_topology):
            alike[others] = False
        alike &= ~eviction.pending_evictions.with_preemptors() & ~eviction.room.may_be_opened
        rows = np.flatnonzero(alike)
        columns = (state.queue_of_job[rows], *(column[rows] for column in of_job), state.jobs.priority[rows])
        distinct, which = np.unique(np.stack(columns), axis=1, return_inverse=True)
        classes[rows] = which.reshape(-1)
        numbers.update((plan_class(self._purpose, *one), number) for number, one in enumerate(distinct.T.tolist()))
        return classes, numbers


def plan_class(purpose: Purpose, queue: int, shape_id: int, priority: int, of_job: int) -> Hashable:
    """Return the class of plans for jobs of a queue (row) with tasks of one shape and priority."""
    return purpose, queue, shape_id, priority, of_job
