"""Orders that end in a unique key: tasks of a job, jobs of a queue, queues."""

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import TYPE_CHECKING

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.state.info import QueueInfo
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.objects import JobKey, TaskTrait
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import TaskColumns

if TYPE_CHECKING:
    from volcano_py.framework.session import Session

JobSortKey = tuple[float | JobKey, ...]
_MANY_QUEUES = 6  # from here on one question about all of them costs less than comparing each with the best
_Entry = tuple[list[float], int, float, int]  # keys, number in the name, creation, row of the task


def pending_tasks(ssn: "Session") -> "OrderedTasks":
    """Return the tasks of jobs that wait now, except those that are held back for a while."""
    tasks = ssn.tasks
    waits = (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0) & (tasks.traits & TaskTrait.BACKING_OFF.value == 0)
    return OrderedTasks(ssn, np.flatnonzero(waits))


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
        self._shapes = ssn.shapes
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
            entries = _entries(ssn.tasks, self._rows[start:end], plugin_keys[start:end].tolist())
            entries.sort(key=lambda entry: ssn.tasks.record(entry[3]).uid)
            entries.sort(key=cmp_to_key(_compare))
            self._rows[start:end] = [entry[3] for entry in entries]

    @property
    def rows(self) -> Rows:
        """All of them, job after job."""
        return self._rows

    def of(self, job_row: int) -> Rows:
        """Return the rows of a job's tasks, first to last."""
        rows: Rows = self._rows[self._bounds[job_row] : self._bounds[job_row + 1]]
        return rows

    def shapes(self, wanted: Callable[[Shape], bool]) -> Bools:
        """Return which shapes that any of these tasks has are such, mask (n_shapes,)."""
        found = np.zeros(len(self._shapes), dtype=bool)
        # A Python loop over the shapes of tasks that wait: those of all that run may be a hundred times as many.
        for shape_id in np.unique(self._shape).tolist():
            shape = self._shapes[shape_id]
            found[shape_id] = shape is not None and wanted(shape)
        return found

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


def _entries(tasks: TaskColumns, rows: Rows, keys: list[list[float]]) -> list[_Entry]:
    return list(zip(keys, tasks.suffix[rows].tolist(), tasks.creation[rows].tolist(), rows.tolist(), strict=True))


def _compare(left: _Entry, right: _Entry) -> int:
    """Volcano's order of two tasks: plugins, then numbers if both names have one and they differ, then creation."""
    if left[0] != right[0]:
        return -1 if left[0] < right[0] else 1
    if left[1] >= 0 and right[1] >= 0 and left[1] != right[1]:
        return -1 if left[1] < right[1] else 1
    return 0 if left[2] == right[2] else (-1 if left[2] < right[2] else 1)


def last_tasks_first(ssn: "Session", rows: Rows, before: Sequence[Floats | Rows]) -> Rows:
    """Return tasks of any jobs (n,) by some keys, each (n,), the lowest first; of equal ones the last in task order."""
    tasks, view = ssn.tasks, _view(ssn.tasks, rows)
    keys = [*(-key for key in before), *combine.sort_keys(ssn.task_orders, len(rows), view, ssn.ignore)]
    numbered = view.suffix >= 0
    if numbered.any() and not numbered.all():  # numbers count between names that have one: no matter of keys
        entries = _entries(tasks, rows, np.stack(keys, axis=1).tolist())
        entries.sort(key=lambda entry: tasks.record(entry[3]).uid)
        entries.sort(key=cmp_to_key(_compare))
        return np.array([entry[3] for entry in reversed(entries)], dtype=np.intp)
    keys += [view.suffix, view.creation]
    order = np.lexsort(keys[::-1])
    tied = np.ones(max(len(rows) - 1, 0), dtype=bool)
    for key in keys:
        tied &= key[order][1:] == key[order][:-1]
    if tied.any():
        uids = np.array([tasks.record(row).uid for row in rows.tolist()])
        order = np.lexsort((uids, *keys[::-1]))
    found: Rows = rows[order[::-1]]
    return found


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
        arrived=tasks.arrived[rows],
    )


def job_sort_keys(ssn: "Session", rows: Rows) -> list[JobSortKey]:
    """Return one tuple per job of ``rows``; sorted, they are the order of jobs. No two jobs have the same tuple."""
    columns = [key.tolist() for key in plugin_job_keys(ssn, rows)]
    names = [ssn.jobs.record(row).key for row in rows.tolist()]
    return list(zip(*columns, ssn.jobs.creation[rows].tolist(), names, strict=True))


def plugin_job_keys(ssn: "Session", rows: Rows) -> list[Floats]:
    """Return what plugins order jobs by, most important first, each of shape (n_jobs,); the lowest goes first."""
    return combine.sort_keys(ssn.job_orders, len(rows), ssn.jobs.rows_view(rows), ssn.ignore)


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
