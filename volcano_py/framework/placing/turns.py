"""Turns: which jobs allocate must try, and why the others get nothing.

Most jobs of a deep queue get nothing. A turn that places no task changes nothing, so it may be left out. Columns decide
for all jobs at once what is *necessary* for a turn to place a task:

    the queue may hold one more task of some shape, and tasks of this shape find a node

A turn that places fewer tasks than a gang needs is undone, so it may be left out, too (`placing.partial_fits`).

Within allocate a no stays a no: every commit and every promise takes room and fills queues, and all else is undone.
That holds for the plugins of this project, and for tasks without terms about other pods and without volume claims. Jobs
with other tasks always have their turn, and with plugins of others all jobs do.

The reason of a job that gets nothing is that of the end of the action, so it does not depend on whether the job had its
turn. Volcano reports the reason of the moment of the turn: later commits make its numbers wrong.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Final, Literal

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.placing.partial_fits import PartialFits
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.placing.task_loop import TaskLoop
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.outcome import Partial
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Codes, Rows
from volcano_py.model.rejections import Rejection
from volcano_py.model.statuses import TaskStatus

_MOST_RANKED: Final = 256
"""For more shapes only resources are compared, and gangs that may fit in part have their turns: a first ranking of all
nodes costs as much as ten turns."""
_PENDING: Final = TaskStatus.PENDING.value


class Turns:
    """The jobs of one session that allocate may try, as pairs of job and shape."""

    def __init__(
        self,
        state: State,
        hooks: Hooks,
        placement: Placement,
        task_loop: TaskLoop,
        shapes: Bools,
        jobs: Rows,
        apart: Collection[int],
    ) -> None:
        """Take the shapes to place (n_shapes,), and the rows of the jobs that may be scheduled.

        Jobs ``apart`` (rows) are not placed by the task loop alone.
        """
        self._state = state
        self._hooks = hooks
        self._placement = placement
        self._task_loop = task_loop
        self._shapes = shapes
        self._in_vain = np.zeros(len(state.jobs), dtype=bool)
        usable = np.zeros(len(state.jobs), dtype=bool)
        usable[jobs] = True
        pending = hooks.pending
        shape = state.tasks.shape[pending.rows]
        counted = usable[pending.jobs] & shapes[shape] & (state.tasks.status[pending.rows] == _PENDING)
        job, shape = to_place = pending.jobs[counted], shape[counted]
        # Tasks side by side often have job and shape in common; the few pairs that occur twice do no harm.
        new = np.ones(len(job), dtype=bool)
        new[1:] = (job[1:] != job[:-1]) | (shape[1:] != shape[:-1])
        self._job: Rows = job[new].astype(np.intp)  # (n_pairs,)
        self._shape: Rows = shape[new].astype(np.intp)  # (n_pairs,)
        self._queue = state.queue_of_job[self._job]
        distinct = np.flatnonzero(np.bincount(self._shape))
        self._certain = [one for one in distinct.tolist() if self._no_stays(one)]
        """The distinct shapes for which a no stays a no."""
        self._open = self._certain
        """Those of them that may still find a node."""
        self._nowhere = np.zeros(len(shapes), dtype=bool)
        requests, kind = np.unique(state.classes.requests[:, distinct], axis=1, return_inverse=True)
        self._kind = np.zeros(len(shapes), dtype=np.intp)  # by shape: the number of its request
        self._kind[distinct] = kind.reshape(-1)
        self._example = dict(zip(self._kind[distinct].tolist(), distinct.tolist(), strict=True))  # of each request
        self._full = np.zeros((requests.shape[1], len(state.queues)), dtype=bool)
        """By number of the request: the queues that may not hold one more such task."""
        self._ranks = len(distinct) <= _MOST_RANKED and hooks.nodes.refusals_stay
        fifo = np.array([queue.record.fifo for queue in state.queues.values()], dtype=bool)
        self._in_turn = fifo[self._queue]  # pairs whose queue stops at the first job that gets nothing: all are tried
        self._futile = np.zeros(len(state.jobs), dtype=bool)
        self._rejections: dict[int, Rejection] = {}
        self._partial_fits = PartialFits(state, hooks, placement, to_place, (self._job, self._shape))
        self._apart = apart
        self._waited: Bools = np.zeros(0, dtype=bool)  # tasks that waited at the end of the action, (n_tasks,)
        self._settled_at = 0  # what the journal counted then

    def jobs(self) -> Bools:
        """Return the jobs with tasks to place, (n_jobs,)."""
        found = np.zeros(len(self._state.jobs), dtype=bool)
        found[self._job] = True
        return found

    def begin_again(self) -> None:
        """Forget which shapes had no node: somebody has left room to others (`NominatedRoom.given_up`)."""
        self._nowhere[:] = False
        self._open = self._certain

    def possible(self) -> Bools:
        """Return the jobs to which a turn may give something now, (n_jobs,); all others will get nothing."""
        nowhere, self._full = self._look_at(self._open)
        self._nowhere |= nowhere
        self._open = [shape_id for shape_id in self._open if not nowhere[shape_id]]
        return self._possible(self._open, self._nowhere, self._full)

    def _possible(self, shapes: list[int], nowhere: Bools, full: Bools) -> Bools:
        found = self._with_hope(nowhere, full)
        if self._ranks and found.any():
            found &= ~self._partial_fits.too_large(shapes, self._may_be_too_large & found)
        return found

    @cached_property
    def _may_be_too_large(self) -> Bools:
        """The jobs of which the number of tasks that find a node says whether they get anything, (n_jobs,)."""
        found, uncertain = self.jobs(), np.ones(len(self._shapes), dtype=bool)
        uncertain[self._certain] = False
        found[self._job[uncertain[self._shape]]] = False
        found[list(self._apart)] = False
        found[self._job[self._in_turn]] = False
        return found

    def _with_hope(self, nowhere: Bools, full: Bools) -> Bools:
        hope = ~nowhere[self._shape] & ~full[self._kind[self._shape], self._queue]
        found = np.zeros(len(self._state.jobs), dtype=bool)
        found[self._job[hope | self._in_turn]] = True
        return found

    def _look_at(self, shapes: list[int]) -> tuple[Bools, Bools]:
        """Return which of these shapes have no node now, (n_shapes,), and which queues are full, see `_full`."""
        state = self._state
        idle, future = state.nodes.idle, state.nodes.future_idle if state.looks_ahead else None
        lacking, full = np.zeros(len(self._full), dtype=bool), np.zeros_like(self._full)
        # A Python loop over the distinct requests.
        for kind, shape_id in self._example.items():
            task = state.task_of(shape_id)
            lacking[kind] = task.fit.lacks(idle).all() and (future is None or task.fit.lacks(future).all())
            full[kind] = self._full_for(task)
        nowhere = np.zeros(len(self._nowhere), dtype=bool)
        # A Python loop over the distinct shapes that may find a node.
        for shape_id in shapes:
            nowhere[shape_id] = lacking[self._kind[shape_id]] or (self._ranks and not self._may_fit(shape_id))
        return nowhere, full

    def _no_stays(self, shape_id: int) -> bool:
        try:
            return self._placement.inter_pod_filters(shape_id) is None
        except PluginFailed as failure:  # then each job is tried
            self._hooks.ignore(failure)
            return False

    def _full_for(self, task: TaskInfo) -> Bools | Literal[False]:
        try:
            return self._hooks.full_queues(task)
        except PluginFailed:  # then each job is tried, and the failure is reported there
            return False

    def _may_fit(self, shape_id: int) -> bool:
        try:
            return self._placement.fits_somewhere(shape_id)
        except PluginFailed:  # then each job is tried, and the failure is reported there
            return True

    def in_vain(self, jobs: Bools) -> None:
        """Note jobs (n_jobs,) that get nothing: their reason is that of the end of the action."""
        self._in_vain |= jobs

    def settle(self) -> None:
        """End the action: find the reasons of the jobs that got nothing."""
        state = self._state
        if not self._in_vain.any():
            return
        self._futile = self._in_vain & ~self.possible()
        state.outcome.forget_attempt(self._hooks.pending.rows[self._futile[self._hooks.pending.jobs]])
        mine = self._futile[self._job]
        # Python loops over the shapes without a node and over the queues of these jobs.
        for shape_id in np.flatnonzero(np.bincount(self._shape[mine], minlength=1)).tolist():
            if self._nowhere[shape_id]:
                self._rejections[shape_id] = self._placement.rejection(shape_id)
        infos = list(state.queues.values())
        theirs = np.bincount(self._queue[mine], minlength=len(infos)) > 0
        for row in np.flatnonzero(theirs & self._hooks.overused_queues()).tolist():
            state.outcome.queue_limits[infos[row].name] = self._hooks.why_overused(infos[row])
        limited = np.array([info.name in state.outcome.queue_limits for info in infos], dtype=bool)
        fits = self._futile & self._with_hope(self._nowhere, self._full)
        self._waited = state.tasks.status == _PENDING
        self._settled_at = state.journal.n_touched
        fits &= ~np.append(limited, True)[state.queue_of_job]
        self._partial_fits.find(self._open, fits, self.tasks_of, self._task_loop)

    def explain(self, jobs: Bools) -> None:
        """Record for those of these jobs (n_jobs,) that got nothing what a turn at the end would have recorded.

        A job that might have got something then keeps the reasons of its turn.
        """
        rows = np.flatnonzero(self._futile & jobs)
        self._hooks.pending.prepare(rows)
        alike = _OfJobsAlike(self._task_loop)
        outcome, in_part = self._state.outcome, dict(self._partial_fits.of(jobs))
        # A Python loop over jobs about which something may be told.
        for row in rows.tolist():
            if row in in_part:
                self._explain_partial(row, in_part[row])
                continue
            try:
                outcome.rejections[row] = self._reasons(self._state.job(row), alike)
            except PluginFailed as failure:
                self._hooks.ignore(failure)

    def _explain_partial(self, row: int, partial: Partial) -> None:
        tasks, outcome = self._state.tasks, self._state.outcome
        outcome.rejections[row] = dict(partial.rejections)
        rows = self._hooks.pending.of(row)
        rows = rows[self._shapes[tasks.shape[rows]] & self._waited[rows]][partial.places]
        still = tasks.status[rows] == _PENDING  # preempt and reclaim have given nodes to others
        outcome.remember_attempts(rows[still], partial.statuses[still], partial.nodes[still])

    def settled(self) -> Bools:
        """Return the jobs that `explain` explains, (n_jobs,)."""
        return self._futile

    def futile_now(self) -> Bools:
        """Return these jobs as far as a turn would still give them nothing now, after evictions, (n_jobs,)."""
        nowhere, full = self._look_at(self._certain)
        return self._futile & ~self._possible([one for one in self._certain if not nowhere[one]], nowhere, full)

    def of_shapes(self) -> Mapping[int, Rejection]:
        """Return why no node takes tasks of a shape, for the shapes of these jobs."""
        return self._rejections

    def full(self, jobs: Codes, shapes: Codes) -> Bools | None:
        """Return for tasks of these jobs whether their queue may hold no more of them; jobs and shapes are (n,)."""
        if not len(self._full):
            return None
        return np.asarray(self._futile[jobs] & self._full[self._kind[shapes], self._state.queue_of_job[jobs]])

    def with_room_since(self) -> Bools:
        """Return those of these jobs whose queue was full and is not any more, after evictions, (n_jobs,)."""
        found = np.zeros(len(self._state.jobs), dtype=bool)
        if self._state.journal.n_touched == self._settled_at or not self._full.any():
            return found
        gone = self._full.copy()
        # A Python loop over the distinct requests.
        for kind, shape_id in self._example.items():
            gone[kind] &= ~np.asarray(self._full_for(self._state.task_of(shape_id)))
        found[self._job[gone[self._kind[self._shape], self._queue]]] = True
        return found & self._futile

    def partial(self) -> Iterable[tuple[Rows, Partial]]:
        """Return what would come of turns of these jobs that fit in part: the rows of jobs alike, and what."""
        return self._partial_fits.groups()

    def tasks_of(self, job_row: int) -> Rows:
        """Return the rows of the tasks that a turn of a job would try, in task order."""
        return self._hooks.pending.of_shapes(self._shapes, job_row)

    def _reasons(self, job: JobInfo, alike: "_OfJobsAlike") -> dict[int, Rejection]:
        state, found, failed_roles = self._state, dict[int, Rejection](), set[str]()
        queue = state.queues[job.record.queue]
        if queue.name in state.outcome.queue_limits:
            return found  # it is the reason of all jobs of the queue
        tasks = self._hooks.pending.of_shapes(self._shapes, job.row)
        lacking = tasks[: self._hooks.missing(job)]
        shapes = _firsts(state.tasks.shape[tasks])
        # A Python loop over the shapes of one job.
        for shape_id, first in shapes:
            if self._full[self._kind[shape_id], queue.row]:
                asking = lacking if len(lacking) else tasks[first : first + 1]
                over_limit = alike.over_limit if len(shapes) == 1 else self._task_loop.over_limit
                found[shape_id] = over_limit(queue, shape_id, asking)
            elif self._nowhere[shape_id]:
                found[shape_id] = self._rejections[shape_id]
                failed_roles.add(state.tasks.record(int(tasks[first])).role)
                if len(lacking) and not job.worth_continuing(frozenset(failed_roles)):
                    break
        return found


class _OfJobsAlike:
    """Reasons of jobs whose tasks are all of one shape: those of one queue that lack as many tasks share a reason."""

    def __init__(self, task_loop: TaskLoop) -> None:
        self._task_loop = task_loop
        self._found: dict[tuple[int, int, int], Rejection] = {}

    def over_limit(self, queue: QueueInfo, shape_id: int, lacking: Rows) -> Rejection:
        """Return why a queue may not hold one more of these tasks."""
        key = (queue.row, shape_id, len(lacking))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._task_loop.over_limit(queue, shape_id, lacking)
        return found


def _firsts(shapes: Codes) -> list[tuple[int, int]]:
    """Return the distinct shapes (n,) in order of their first place, with that place."""
    if len(shapes) == 1 or (len(shapes) and (shapes == shapes[0]).all()):  # as of most jobs; much faster
        return [(int(shapes[0]), 0)]
    distinct, first = np.unique(shapes, return_index=True)
    order = np.argsort(first)
    return list(zip(distinct[order].tolist(), first[order].tolist(), strict=True))
