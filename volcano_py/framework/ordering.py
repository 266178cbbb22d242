"""Orders that end in a unique key: tasks of a job, jobs of a queue, queues."""

from functools import cmp_to_key, partial
from typing import TYPE_CHECKING

import numpy as np

from volcano_py.framework import combine
from volcano_py.framework.info import QueueInfo
from volcano_py.framework.plugin import PluginFailed
from volcano_py.model.resources import Bools, Floats
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import Rows, TaskColumns

if TYPE_CHECKING:
    from volcano_py.framework.session import Session

JobSortKey = tuple[float | str, ...]
_MANY_QUEUES = 6  # from here on one question about all of them costs less than comparing each with the best
_Entry = tuple[list[float], int]  # keys of the plugins, row of the task


def pending_tasks(ssn: "Session") -> "OrderedTasks":
    """Return the tasks of jobs that wait now."""
    return OrderedTasks(ssn, np.flatnonzero((ssn.tasks.status == TaskStatus.PENDING) & (ssn.tasks.job >= 0)))


class OrderedTasks:
    """Some tasks of every job, in task order."""

    def __init__(self, ssn: "Session", rows: Rows) -> None:
        """Take the rows of tasks that belong to a job, in any order."""
        tasks = ssn.tasks
        view = _view(tasks, rows)
        keys = combine.sort_keys(ssn.task_orders, len(rows), view, ssn.ignore)
        # A job whose names all end in numbers is ordered by them; otherwise creation time decides (see _fix).
        suffix, job = view.suffix, view.job
        numbered = np.ones(len(ssn.jobs), dtype=bool)
        numbered[job[suffix < 0]] = False
        number = np.where(numbered[job], suffix, -1)
        order = np.lexsort((view.creation, number, *reversed(keys), job))
        self._rows = rows[order]
        self._bounds = np.searchsorted(job[order], np.arange(len(ssn.jobs) + 1))
        self._fix(ssn, order, keys, view, numbered)
        self._shape = tasks.shape[self._rows]
        self._status = tasks.status  # the live column: what has been placed meanwhile does not wait any more

    def _fix(
        self,
        ssn: "Session",
        order: Rows,
        keys: list[Floats],
        view: TaskColumns,
        numbered: Bools,
    ) -> None:
        """Settle what arrays cannot: uids where every key is equal, and jobs in which only some names have numbers."""
        job = view.job[order]
        same = job[1:] == job[:-1]
        for key in (*keys, view.suffix, view.creation):
            same &= key[order][1:] == key[order][:-1]
        mixed = (view.suffix[order] >= 0) & ~numbered[job]
        plugin_keys = np.stack([key[order] for key in keys], axis=1) if keys else np.zeros((len(order), 0))
        # A Python loop over the few jobs that need it.
        for row in np.union1d(job[1:][same], job[mixed]).tolist():
            start, end = int(self._bounds[row]), int(self._bounds[row + 1])
            entries: list[_Entry] = list(
                zip(plugin_keys[start:end].tolist(), self._rows[start:end].tolist(), strict=True)
            )
            entries.sort(key=lambda entry: ssn.tasks.record(entry[1]).uid)
            entries.sort(key=cmp_to_key(partial(_compare, ssn.tasks)))
            self._rows[start:end] = [task for _, task in entries]

    @property
    def rows(self) -> Rows:
        """All of them, job after job."""
        return self._rows

    def of(self, job_row: int) -> Rows:
        """Return the rows of a job's tasks, first to last."""
        rows: Rows = self._rows[self._bounds[job_row] : self._bounds[job_row + 1]]
        return rows

    def only(self, shapes: Bools, job_rows: Rows) -> dict[int, Rows]:
        """Return the tasks of some shapes, mask (n_shapes,), that still wait, by row of those jobs that have any."""
        kept = shapes[self._shape] & (self._status[self._rows] == TaskStatus.PENDING)
        rows = self._rows[kept]
        bounds = np.concatenate(([0], np.cumsum(kept)))[self._bounds]
        starts, ends = bounds[job_rows].tolist(), bounds[job_rows + 1].tolist()
        return {
            job: rows[start:end] for job, start, end in zip(job_rows.tolist(), starts, ends, strict=True) if end > start
        }

    def counts(self) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
        """Return the number of tasks by job row."""
        return np.diff(self._bounds)


def _compare(tasks: TaskColumns, left: _Entry, right: _Entry) -> int:
    """Volcano's order of two tasks: plugins, then numbers if both names have one and they differ, then creation."""
    if left[0] != right[0]:
        return -1 if left[0] < right[0] else 1
    one, other = tasks.suffix[left[1]], tasks.suffix[right[1]]
    if one >= 0 and other >= 0 and one != other:
        return -1 if one < other else 1
    one, other = tasks.creation[left[1]], tasks.creation[right[1]]
    return 0 if one == other else (-1 if one < other else 1)


def _view(tasks: TaskColumns, rows: Rows) -> TaskColumns:
    return TaskColumns(
        records=[],  # keys are made from columns; a plugin that needs records reads them from the session
        status=tasks.status[rows],
        node=tasks.node[rows],
        job=tasks.job[rows],
        shape=tasks.shape[rows],
        priority=tasks.priority[rows],
        creation=tasks.creation[rows],
        suffix=tasks.suffix[rows],
        traits=tasks.traits[rows],
    )


def job_sort_keys(ssn: "Session", rows: Rows) -> list[JobSortKey]:
    """Return one tuple per job of ``rows``; sorted, they are the order of jobs. No two jobs have the same tuple."""
    columns = [key.tolist() for key in plugin_job_keys(ssn, rows)]
    names = [(record.key.namespace, record.key.name) for record in (ssn.jobs.record(row) for row in rows.tolist())]
    return [
        (*plugin_keys, creation, *name)
        for *plugin_keys, creation, name in zip(*columns, ssn.jobs.creation[rows].tolist(), names, strict=True)
    ]


def plugin_job_keys(ssn: "Session", rows: Rows) -> list[Floats]:
    """Return what plugins order jobs by, most important first, each of shape (n_jobs,); the lowest goes first."""
    return combine.sort_keys(ssn.job_orders, len(rows), ssn.jobs.rows_view(rows), ssn.ignore)


def plugin_task_keys(ssn: "Session", rows: Rows) -> list[Floats]:
    """Return what plugins order tasks by, most important first, each of shape (n_tasks,); the lowest goes first."""
    return combine.sort_keys(ssn.task_orders, len(rows), _view(ssn.tasks, rows), ssn.ignore)


class QueueLine:
    """Some queues, of which the first is asked for again and again: shares move with every placement."""

    __slots__ = ("_queues", "_rows", "_ssn")

    def __init__(self, ssn: "Session", queues: list[QueueInfo]) -> None:
        self._ssn = ssn
        self._queues = queues
        self._rows: Rows = np.array([queue.row for queue in queues], dtype=np.intp)

    def __bool__(self) -> bool:
        return bool(self._queues)

    def remove(self, queue: QueueInfo) -> None:
        """Leave a queue out from now on."""
        place = self._queues.index(queue)
        del self._queues[place]
        self._rows = np.delete(self._rows, place)

    def first(self) -> QueueInfo:
        """Return the queue that goes first now."""
        best, *others = self._queues
        if len(others) >= _MANY_QUEUES and (keys := _queue_keys(self._ssn)) is not None:
            return self._lowest(keys)
        for queue in others:
            if queue_before(self._ssn, queue, best):
                best = queue
        return best

    def _lowest(self, keys: list[Floats | Bools]) -> QueueInfo:
        best: Rows | None = None  # places of those that nobody goes before, None for all
        for key in keys:
            mine = key[self._rows] if best is None else key[self._rows[best]]
            lowest = np.flatnonzero(mine == mine.min())
            best = lowest if best is None else best[lowest]
            if len(best) == 1:
                return self._queues[int(best[0])]
        left = self._queues if best is None else [self._queues[place] for place in best.tolist()]
        return min(left, key=lambda queue: (queue.record.creation, queue.name))


def _queue_keys(ssn: "Session") -> list[Floats | Bools] | None:
    """Return the keys that all plugins order queues by, None if one of them has none."""
    found: list[Floats | Bools] = []
    for point in ssn.queue_orders:
        try:
            keys = combine.Point(point.plugin, "queue_keys")()
        except PluginFailed as failure:
            ssn.ignore(failure)
            return None
        if keys is None:
            return None
        found.extend(keys)
    return found


def queue_before(ssn: "Session", left: QueueInfo, right: QueueInfo) -> bool:
    """Say whether a queue goes before another one now."""
    opinion = combine.first_difference(ssn.queue_orders, left, right, ignore=ssn.ignore)
    if opinion:
        return opinion < 0
    return (left.record.creation, left.name) < (right.record.creation, right.name)
