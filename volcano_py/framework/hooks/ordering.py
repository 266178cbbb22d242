"""Orders of the tasks of a job, the jobs of a queue, and queues. Each order ends in a unique key."""

from collections.abc import Callable, Sequence
from functools import cmp_to_key

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.extension_points import JobOrder, NamespaceOrder, QueueOrder, TaskOrder
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.hooks.plugin_calls import PluginCalls
from volcano_py.framework.state.info import QueueInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.objects import JobKey, TaskTrait
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import TaskColumns

JobSortKey = tuple[float | JobKey, ...]
_MANY_QUEUES = 6  # from here on one question about all of them costs less than comparing each with the best
_Entry = tuple[list[float], int, float, int]  # keys, number in the name, creation, row of the task


class Orders:
    """The orders of plugins, each completed by a unique key."""

    def __init__(self, state: State, calls: PluginCalls) -> None:
        self.state = state
        self._ignore = calls.ignore
        self._jobs = calls.points(JobOrder, "job_order")
        self._tasks = calls.points(TaskOrder, "task_order")
        self._queues = calls.points(QueueOrder, "queue_order")
        self._namespaces = calls.points(NamespaceOrder, "namespace_order")

    # Jobs

    def job_sort_keys(self, rows: Rows) -> list[JobSortKey]:
        """Return one unique tuple per job of ``rows``; the order of the tuples is the order of jobs."""
        jobs = self.state.jobs
        columns = [key.tolist() for key in self.plugin_job_keys(rows)]
        names = [jobs.record(row).key for row in rows.tolist()]
        return list(zip(*columns, jobs.creation[rows].tolist(), names, strict=True))

    def plugin_job_keys(self, rows: Rows) -> list[Floats]:
        """Return the plugins' keys for jobs, most important first, each of shape (n_jobs,); the lowest goes first."""
        return combine.sort_keys(self._jobs, len(rows), self.state.jobs.rows_view(rows), self._ignore)

    # Tasks

    def task_keys(self, view: TaskColumns) -> list[Floats]:
        """Return the plugins' keys for the tasks of a view, most important first, each of shape (n_tasks,)."""
        return combine.sort_keys(self._tasks, len(view.status), view, self._ignore)

    def last_tasks_first(self, rows: Rows, before: Sequence[Floats | Rows]) -> Rows:
        """Return tasks of any jobs (n,), sorted by some keys, each (n,), the lowest first.

        Tasks with equal keys are in reverse task order.
        """
        tasks, view = self.state.tasks, task_view(self.state.tasks, rows)
        keys = [*(-key for key in before), *self.task_keys(view)]
        numbered = view.suffix >= 0
        if numbered.any() and not numbered.all():  # two names compare by number only if both have one: no key does this
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

    # Queues

    @property
    def by_namespace(self) -> bool:
        """Whether a plugin orders the namespaces of a queue."""
        return bool(self._namespaces)

    def namespace_keys(self, queue: QueueInfo, namespaces: Sequence[str]) -> list[Floats]:
        """Return the plugins' keys for the namespaces of a queue, each of shape (n_namespaces,)."""
        return combine.namespace_keys(self._namespaces, queue, namespaces, self._ignore)

    def queue_keys(self) -> list[Floats | Bools] | None:
        """Return the plugins' keys for queues, None if a plugin has none."""
        found: list[Floats | Bools] = []
        for point in self._queues:
            try:
                keys = combine.Point(point.plugin, "queue_keys")()
            except PluginFailed as failure:
                self._ignore(failure)
                return None
            if keys is None:
                return None
            found.extend(keys)
        return found

    def queue_before(self, left: QueueInfo, right: QueueInfo) -> bool:
        """Say whether a queue goes before another one now."""
        opinion = combine.first_difference(self._queues, left, right, ignore=self._ignore)
        if opinion:
            return opinion < 0
        return (left.record.creation, left.name) < (right.record.creation, right.name)


class OrderedTasks:
    """Some tasks of every job, in task order."""

    def __init__(self, orders: Orders, rows: Rows) -> None:
        """Take the rows of tasks that belong to a job, in any order."""
        state = orders.state
        tasks = state.tasks
        view = task_view(tasks, rows)
        keys = orders.task_keys(view)
        # A job whose names all end in numbers is ordered by them; otherwise creation time decides (see _fix).
        suffix, job = view.suffix, view.job
        numbered = np.ones(len(state.jobs), dtype=bool)
        numbered[job[suffix < 0]] = False
        number = np.where(numbered[job], suffix, -1)
        order = np.lexsort((view.creation, number, *reversed(keys), job))
        self._rows = rows[order]
        self._bounds = np.searchsorted(job[order], np.arange(len(state.jobs) + 1))
        self._fix(tasks, order, keys, view, numbered)
        self._shape = tasks.shape[self._rows]
        self._shapes = state.classes.shapes
        self._status = tasks.status  # the live column: tasks that have been placed meanwhile are not pending any more

    def _fix(
        self,
        tasks: TaskColumns,
        order: Rows,
        keys: list[Floats],
        view: TaskColumns,
        numbered: Bools,
    ) -> None:
        """Sort again what arrays cannot sort: tasks with equal keys, and jobs in which only some names have numbers."""
        job = view.job[order]
        same = job[1:] == job[:-1]
        for key in (*keys, view.suffix, view.creation):
            same &= key[order][1:] == key[order][:-1]
        mixed = (view.suffix[order] >= 0) & ~numbered[job]
        plugin_keys = np.stack([key[order] for key in keys], axis=1) if keys else np.zeros((len(order), 0))
        # A Python loop over the few jobs that need it.
        for row in np.union1d(job[1:][same], job[mixed]).tolist():
            start, end = int(self._bounds[row]), int(self._bounds[row + 1])
            entries = _entries(tasks, self._rows[start:end], plugin_keys[start:end].tolist())
            entries.sort(key=lambda entry: tasks.record(entry[3]).uid)
            entries.sort(key=cmp_to_key(_compare))
            self._rows[start:end] = [entry[3] for entry in entries]

    @property
    def rows(self) -> Rows:
        """All tasks, job after job."""
        return self._rows

    def of(self, job_row: int) -> Rows:
        """Return the rows of a job's tasks, first to last."""
        rows: Rows = self._rows[self._bounds[job_row] : self._bounds[job_row + 1]]
        return rows

    def shapes(self, wanted: Callable[[Shape], bool]) -> Bools:
        """Return which shapes of these tasks are ``wanted``, mask (n_shapes,)."""
        found = np.zeros(len(self._shapes), dtype=bool)
        # A Python loop over the shapes of these tasks: all shapes together may be a hundred times as many.
        for shape_id in np.unique(self._shape).tolist():
            shape = self._shapes[shape_id]
            found[shape_id] = shape is not None and wanted(shape)
        return found

    def only(self, shapes: Bools, job_rows: Rows) -> dict[int, Rows]:
        """Return the pending tasks of some shapes, mask (n_shapes,), by job row; jobs without any are left out."""
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


def task_view(tasks: TaskColumns, rows: Rows) -> TaskColumns:
    """Return the columns of some tasks, for plugins to order."""
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
        role=tasks.role[rows],
        role_names=tasks.role_names,
    )


class QueueLine:
    """Some queues, and which of them goes first now: shares change with every placement."""

    __slots__ = ("_orders", "_queues", "_rows")

    def __init__(self, orders: Orders, queues: list[QueueInfo]) -> None:
        self._orders = orders
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
        if len(others) >= _MANY_QUEUES and (keys := self._orders.queue_keys()) is not None:
            return self._lowest(keys)
        for queue in others:
            if self._orders.queue_before(queue, best):
                best = queue
        return best

    def _lowest(self, keys: list[Floats | Bools]) -> QueueInfo:
        best: Rows | None = None  # places of the queues that are equal so far, None for all
        for key in keys:
            mine = key[self._rows] if best is None else key[self._rows[best]]
            lowest = np.flatnonzero(mine == mine.min())
            best = lowest if best is None else best[lowest]
            if len(best) == 1:
                return self._queues[int(best[0])]
        left = self._queues if best is None else [self._queues[place] for place in best.tolist()]
        return min(left, key=lambda queue: (queue.record.creation, queue.name))


def pending_tasks(orders: Orders) -> OrderedTasks:
    """Return the pending tasks of all jobs, except those that are backing off."""
    tasks = orders.state.tasks
    waits = (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0) & (tasks.traits & TaskTrait.BACKING_OFF.value == 0)
    return OrderedTasks(orders, np.flatnonzero(waits))
