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
from volcano_py.model.arrays import Bools, Codes, Floats, Ints, Rows
from volcano_py.model.objects import TaskTrait
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import TaskColumns

JobSortKey = tuple[float, ...]
_PENDING = int(TaskStatus.PENDING)
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
        self.queues_trusted = all(point.trusted for point in self._queues)
        """Whether the order of queues changes only with what the journal shows."""

    # Jobs

    def job_sort_keys(self, rows: Rows) -> list[JobSortKey]:
        """Return one unique tuple per job of ``rows``; the order of the tuples is the order of jobs."""
        return list(zip(*(key.tolist() for key in self.job_keys(rows)), strict=True))

    def job_keys(self, rows: Rows) -> list[Floats | Ints]:
        """Return all keys of jobs, most important first, each (n_jobs,): of plugins, then creation, then the name."""
        jobs = self.state.jobs
        return [*self.plugin_job_keys(rows), jobs.creation[rows], jobs.rules.places[rows]]

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
        tasks, view = self.state.tasks, self.state.tasks.rows_view(rows)
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

    def last_tasks_merged(self, rows: Rows, before: Sequence[Floats | Rows]) -> Rows:
        """Return what `last_tasks_first` returns for tasks that are in reverse task order within each job.

        It is made for all tasks of a cluster: where the names of some jobs have numbers and those of others have none,
        tasks of different jobs are not compared one by one.
        """
        tasks, view = self.state.tasks, self.state.tasks.rows_view(rows)
        unnumbered = np.zeros(len(self.state.jobs), dtype=bool)
        unnumbered[view.job[view.suffix < 0]] = True
        number = np.where(unnumbered[view.job], -1, view.suffix)
        keys = [*before, *(-key for key in self.task_keys(view)), -number, -view.creation]
        order = np.lexsort(keys[::-1])
        tied = order[1:] != order[:-1]
        for key in keys:
            tied &= key[order][1:] == key[order][:-1]
        others = view.job[order][1:] != view.job[order][:-1]
        if (tied & others).any():
            places = np.flatnonzero(np.append(tied, False) | np.append(False, tied))
            # A Python loop over tasks that differ in nothing but their uid: the greatest goes first.
            uids = np.array([tasks.record(row).uid for row in rows[order[places]].tolist()])
            last = np.zeros(len(rows), dtype=np.intp)
            last[order[places]] = -np.unique(uids, return_inverse=True)[1]
            order = np.lexsort((last, *keys[::-1]))
        merged: Rows = rows[order]
        return merged

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
                keys = point.other("queue_keys")()
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
        view = tasks.rows_view(rows)
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


def _entries(tasks: TaskColumns, rows: Rows, keys: list[list[float]]) -> list[_Entry]:
    return list(zip(keys, tasks.suffix[rows].tolist(), tasks.creation[rows].tolist(), rows.tolist(), strict=True))


def _compare(left: _Entry, right: _Entry) -> int:
    """Volcano's order of two tasks: plugins, then numbers if both names have one and they differ, then creation."""
    if left[0] != right[0]:
        return -1 if left[0] < right[0] else 1
    if left[1] >= 0 and right[1] >= 0 and left[1] != right[1]:
        return -1 if left[1] < right[1] else 1
    return 0 if left[2] == right[2] else (-1 if left[2] < right[2] else 1)


class QueueLine:
    """Some queues, and which of them goes first now: shares change with every placement."""

    __slots__ = ("_in_line", "_orders", "_queues", "_rows", "_sorted", "_stamp")

    def __init__(self, orders: Orders, queues: list[QueueInfo]) -> None:
        self._orders = orders
        self._queues = sorted(queues, key=lambda queue: (queue.record.creation, queue.name))
        self._rows: Rows = np.array([queue.row for queue in self._queues], dtype=np.intp)
        self._in_line = {queue.row: queue for queue in self._queues}
        self._sorted: list[int] = []  # rows by keys, the first queue last; those that have left may be among them
        self._stamp = -1  # `Journal.n_touched` when they were sorted

    def __bool__(self) -> bool:
        return bool(self._in_line)

    def remove(self, queue: QueueInfo) -> None:
        """Leave a queue out from now on."""
        del self._in_line[queue.row]

    def keep(self, rows: Bools) -> None:
        """Leave out all queues but these, mask (n_queues,)."""
        self._in_line = {row: queue for row, queue in self._in_line.items() if rows[row]}

    def first(self) -> QueueInfo:
        """Return the queue that goes first now."""
        if len(self._in_line) > _MANY_QUEUES and (first := self._by_keys()) is not None:
            return first
        best, *others = self._in_line.values()
        for queue in others:
            if self._orders.queue_before(queue, best):
                best = queue
        return best

    def _by_keys(self) -> QueueInfo | None:
        touched = self._orders.state.journal.n_touched
        if self._stamp != touched or not self._orders.queues_trusted:
            keys = self._orders.queue_keys()
            if keys is None:
                return None
            order = np.lexsort([key[self._rows] for key in reversed(keys)]) if keys else np.arange(len(self._rows))
            self._sorted = self._rows[order][::-1].tolist()
            self._stamp = touched
        while self._sorted[-1] not in self._in_line:
            self._sorted.pop()
        return self._in_line[self._sorted[-1]]


class PendingTasks:
    """The tasks of every job that were pending at the first use, except those that are backing off.

    The tasks of a job are put in order when they are first asked for: most jobs of a deep queue get no turn.
    """

    def __init__(self, orders: Orders) -> None:
        tasks = orders.state.tasks
        waits = (tasks.status == TaskStatus.PENDING) & (tasks.job >= 0)
        waits &= tasks.traits & TaskTrait.BACKING_OFF.value == 0
        self._orders = orders
        self._tasks = tasks
        self.rows = np.flatnonzero(waits)
        """All of them, in no particular order."""
        self.jobs: Codes = tasks.job[self.rows]
        """The row of the job of each, (n,)."""
        self._n_jobs = len(orders.state.jobs)
        self._in_order: dict[int, Rows] = {}

    def counts(self) -> "np.ndarray[tuple[int], np.dtype[np.intp]]":
        """Return the number of tasks by job row."""
        return np.bincount(self.jobs, minlength=self._n_jobs)

    def of(self, job_row: int) -> Rows:
        """Return the rows of a job's tasks, first to last."""
        found = self._in_order.get(job_row)
        if found is None:
            self.prepare(np.array([job_row], dtype=np.intp))
            found = self._in_order[job_row]
        return found

    def prepare(self, job_rows: Rows) -> None:
        """Put the tasks of these jobs in order, all at once."""
        known = self._in_order
        new = [row for row in job_rows.tolist() if row not in known]  # a Python loop over these jobs
        wanted = np.zeros(self._n_jobs, dtype=bool)
        wanted[new] = True
        ordered = OrderedTasks(self._orders, self.rows[wanted[self.jobs]])
        known.update((row, ordered.of(row)) for row in new)

    def prepared(self, job_row: int) -> bool:
        """Say whether the tasks of a job are in order already."""
        return job_row in self._in_order

    def shapes(self, wanted: Callable[[Shape], bool]) -> Bools:
        """Return which shapes of these tasks are ``wanted``, mask (n_shapes,)."""
        shapes = self._orders.state.classes.shapes
        found = np.zeros(len(shapes), dtype=bool)
        # A Python loop over the shapes of these tasks: all shapes together may be a hundred times as many.
        for shape_id in np.flatnonzero(np.bincount(self._tasks.shape[self.rows])).tolist():
            shape = shapes[shape_id]
            found[shape_id] = shape is not None and wanted(shape)
        return found

    def with_any(self, shapes: Bools) -> Bools:
        """Return which jobs have tasks of these shapes, mask (n_shapes,), that are still pending; (n_jobs,)."""
        rows = self.rows
        found = np.zeros(self._n_jobs, dtype=bool)
        found[self.jobs[shapes[self._tasks.shape[rows]] & (self._tasks.status[rows] == TaskStatus.PENDING)]] = True
        return found

    def of_shapes(self, shapes: Bools, job_row: int) -> Rows:
        """Return those tasks of a job that have one of these shapes, mask (n_shapes,), and are still pending."""
        rows, tasks = self.of(job_row), self._tasks
        if len(rows) == 1:  # as of most jobs; much faster
            row = rows[0]
            return rows if shapes[tasks.shape[row]] and tasks.status[row] == _PENDING else rows[:0]
        found: Rows = rows[shapes[tasks.shape[rows]] & (tasks.status[rows] == _PENDING)]
        return found

    def only(self, shapes: Bools, job_rows: Rows) -> dict[int, Rows]:
        """Return the pending tasks of some shapes, mask (n_shapes,), by job row; jobs without any are left out."""
        if not shapes.any():
            return {}
        having = job_rows[self.with_any(shapes)[job_rows]]
        self.prepare(having)
        # A Python loop over these jobs.
        return {row: self.of_shapes(shapes, row) for row in having.tolist()}
