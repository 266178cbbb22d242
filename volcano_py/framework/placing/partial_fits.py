"""Gangs that fit only in part: some of their tasks find a node, but fewer than the gang needs.

Where a cluster is nearly full, there is room for ten pods, and all gangs of twenty wait. A turn of such a gang places
ten tasks and undoes that. So it changes nothing and may be left out, like that of a job of which no task finds a node.
Columns decide for all gangs at once:

    a gang lacks more tasks than the nodes have room for, or than its queue may still hold

The room is counted for each shape as if nothing but resources limited it, so it is an upper bound. Room and limits only
shrink while allocate runs: a gang that is too large stays too large.

Users are told which tasks would have a node, and why the others would not. Both are the same for all gangs that are
alike, so one of them is tried for all.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Final

import numpy as np

from volcano_py.framework.contract.extension_points import JobPipelined, JobReady
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.placing.task_loop import TaskLoop
from volcano_py.framework.state.outcome import Partial
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Codes, Floats, Ints, Rows

_MOST_LIMITS: Final = 1024
"""For more pairs of queue and shape, limits of queues are not looked at: each costs a question to plugins."""
_REJECT_BELOW_MINIMUM: Final = frozenset({"gang", "tdm"})
"""Plugins that let no job keep promises for fewer tasks than its minimum."""
_MIXED: Final = -1

TasksOf = Callable[[int], Rows]
"""Returns the tasks that a turn of a job (row) would try, in task order."""


class PartialFits:
    """The gangs of one session that may fit only in part."""

    def __init__(
        self, state: State, hooks: Hooks, placement: Placement, tasks: tuple[Codes, Codes], pairs: tuple[Rows, Rows]
    ) -> None:
        """Take job and shape of each task to place, both (n_tasks,), and the same without most repetitions."""
        self._state = state
        self._hooks = hooks
        self._placement = placement
        self._tasks = tasks
        self._pairs = pairs
        self._n_shapes = len(state.classes.shapes)
        ready, keeps = hooks.points(JobReady, "missing"), hooks.points(JobPipelined, "job_pipelined")
        self._gang_alone = [point.plugin.name for point in ready] == ["gang"]
        self._gang_alone &= all(point.trusted for point in (*ready, *keeps))
        names = {point.plugin.name for point in keeps}
        # Whether plugins must be asked whether a job may keep promises for fewer tasks than it needs.
        self._asks = not names or not names <= _REJECT_BELOW_MINIMUM
        self._ready = False
        self._groups: list[tuple[Rows, Partial]] = []

    def _count(self) -> None:
        """Count the tasks to place of each job and shape, once: in most cycles nobody needs it."""
        if self._ready:
            return
        self._ready = True
        n_shapes, n_jobs, (of_task, shape_of_task) = self._n_shapes, len(self._state.jobs), self._tasks
        distinct = np.unique(self._pairs[0] * n_shapes + self._pairs[1])
        self._job, self._shape = (found.astype(np.intp) for found in np.divmod(distinct, n_shapes))  # (n_pairs,)
        self._only = np.full(n_jobs, _MIXED, dtype=np.intp)  # the shape of all tasks of a job, (n_jobs,)
        self._only[self._job] = self._shape
        self._only[self._job[1:][self._job[1:] == self._job[:-1]]] = _MIXED
        self._of_job = np.bincount(of_task, minlength=n_jobs)  # tasks to place, (n_jobs,)
        self._of_pair = self._of_job[self._job]  # (n_pairs,)
        if (self._only[self._job] == _MIXED).any():
            keys = of_task.astype(np.int64) * n_shapes + shape_of_task
            self._of_pair = np.bincount(np.searchsorted(distinct, keys))

    def too_large(self, shapes: Collection[int], jobs: Bools) -> Bools:
        """Return those of these jobs (n_jobs,) that cannot reach their minimum now; other shapes find no node."""
        found = np.zeros(len(jobs), dtype=bool)
        lacking = self._lacking()
        looked_at = jobs & (lacking > 1)
        if not self._gang_alone or not looked_at.any():
            return found
        self._count()
        rows = np.flatnonzero(looked_at)
        found[rows] = lacking[rows] > self._fitting(self._room(shapes, looked_at))[rows]
        rest = rows[~found[rows] & (self._only[rows] != _MIXED)]
        found[rest] = lacking[rest] > self._limits(rest, lacking[rest])
        if self._asks:
            # A Python loop over these jobs, with plugins that let a job wait for promises although it lacks more.
            for row in np.flatnonzero(found).tolist():
                found[row] = self._keeps_nothing(row)
        return found

    def _lacking(self) -> Ints:
        """Return how many tasks each job lacks to reach its minimum, (n_jobs,)."""
        jobs = self._state.jobs
        return np.maximum(jobs.min_available - jobs.held, 0).astype(np.int64)

    def _room(self, shapes: Collection[int], jobs: Bools) -> Floats:
        """Return how many tasks of each shape the nodes have room for, (n_shapes,); 0 but for these shapes and jobs."""
        theirs = np.bincount(self._shape[jobs[self._job]], minlength=self._n_shapes) > 0
        found = np.zeros(self._n_shapes)
        # A Python loop over the distinct shapes of these jobs that may find a node.
        for shape_id in shapes:
            if theirs[shape_id]:
                found[shape_id] = self._room_for(shape_id)
        return found

    def _room_for(self, shape_id: int) -> float:
        try:
            return self._placement.room(shape_id)
        except PluginFailed:  # then each job is tried, and the failure is reported there
            return np.inf

    def _fitting(self, room: Floats) -> Floats:
        """Return how many tasks of each job find a node at most, shape by shape, (n_jobs,)."""
        fitting = np.minimum(self._of_pair, room[self._shape])
        return np.bincount(self._job, fitting, minlength=len(self._state.jobs)).astype(np.float64)

    def _limits(self, rows: Rows, wanted: Ints) -> Ints:
        """Return how many of the tasks that are wanted for these jobs of one shape their queues may hold, (n,)."""
        pairs = self._state.queue_of_job[rows].astype(np.int64) * self._n_shapes + self._only[rows]
        pairs, which = np.unique(pairs, return_inverse=True)
        if len(pairs) > _MOST_LIMITS:
            return wanted
        most, first = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.intp)
        np.maximum.at(most, which, wanted)
        first[which] = rows
        # A Python loop over pairs of queue and shape.
        allowed = [self._allowed(row, count) for row, count in zip(first.tolist(), most.tolist(), strict=True)]
        return np.minimum(np.array(allowed, dtype=np.int64)[which], wanted)

    def _allowed(self, row: int, wanted: int) -> int:
        state = self._state
        queue = state.queues[state.jobs.record(row).queue]
        try:
            return self._hooks.allocatable(queue, state.task_of(int(self._only[row])), wanted)
        except PluginFailed:  # then each job is tried, and the failure is reported there
            return wanted

    def _keeps_nothing(self, row: int) -> bool:
        try:
            return not self._hooks.job_pipelined(self._state.job(row))
        except PluginFailed:  # then the job is tried, and the failure is reported there
            return False

    # What comes of their turns

    def find(self, shapes: Collection[int], jobs: Bools, tasks_of: TasksOf, task_loop: TaskLoop) -> None:
        """Find out what would come of a turn of each of these jobs (n_jobs,); other shapes find no node."""
        self._groups = []
        rows = np.flatnonzero(jobs)
        if not len(rows):
            return
        mixed = self._only[rows] == _MIXED
        alike = [*self._alike(rows[~mixed], self._room(shapes, jobs)), *self._alike_mixed(rows[mixed], tasks_of)]
        # A Python loop over groups of jobs for which the same comes of it.
        for group in alike:
            try:
                row = int(group[0])
                partial, _ = task_loop.try_out(self._state.job(row), tasks_of(row), self._placement)
            except PluginFailed as failure:
                self._hooks.ignore(failure)
            else:
                self._groups.append((group, partial))

    def _alike(self, rows: Rows, room: Floats) -> Iterable[Rows]:
        """Return jobs of one shape in groups: of equal shapes, and of one queue and size if the queue limits them.

        As many tasks as there is room for find nodes, however many more a gang has. If it has fewer, all of them do.
        """
        if not len(rows):
            return []
        lacking, count = self._lacking()[rows], self._of_job[rows]
        wanted = np.minimum(room[self._only[rows]] + 1, count).astype(np.int64)
        limited = self._limits(rows, wanted) < wanted
        queue = np.where(limited, self._state.queue_of_job[rows], -1)
        size = np.where(limited, lacking, 0)
        _, which = np.unique(
            np.stack((self._only[rows], queue, size, np.where(limited, count, wanted))), axis=1, return_inverse=True
        )
        which = which.reshape(-1)
        order = np.argsort(which, kind="stable")
        return np.split(rows[order], np.flatnonzero(np.diff(which[order])) + 1)

    def _alike_mixed(self, rows: Rows, tasks_of: TasksOf) -> Iterable[Rows]:
        """Return jobs of several shapes in groups: of one queue, with equal shapes in task order that all are needed.

        If not all are needed, it depends on roles which tasks are tried after one that finds no node.
        """
        self._hooks.pending.prepare(rows)
        found: dict[Hashable, list[int]] = {}
        # A Python loop over jobs of several shapes.
        for row in rows.tolist():
            job = self._state.job(row)
            shapes = self._state.tasks.shape[tasks_of(row)].tobytes()
            key = (shapes, job.record.queue, job.missing()) if job.min_available >= job.n_tasks else row
            found.setdefault(key, []).append(row)
        return (np.array(group, dtype=np.intp) for group in found.values())

    def groups(self) -> Iterable[tuple[Rows, Partial]]:
        """Return the rows of jobs for which the same comes of a turn, and what."""
        return self._groups

    def of(self, jobs: Bools) -> Iterable[tuple[int, Partial]]:
        """Return what comes of a turn for those of these jobs (n_jobs,) that fit in part."""
        return ((row, partial) for rows, partial in self._groups for row in rows[jobs[rows]].tolist())
