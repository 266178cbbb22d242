"""Equivalence classes of tasks: shapes, split further where a plugin tells tasks of one shape apart.

The framework asks plugins once per class, not once per task. Some policies know more about a task than the spec of its
pod: the queue of its job, or the bucket that it belongs to. They give tasks keys when the session opens
(`Plugin.equivalence_keys`). Tasks of one shape with different keys get different ids. From then on the session treats
each class as a shape.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.model.arrays import Bools, Codes, Floats, Ints, Rows, fixed
from volcano_py.model.resources import PODS_ROW
from volcano_py.model.shape import LEAST_REQUEST, Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import Snapshot, TaskColumns

_SMALL = 2**22


class EquivalenceClasses:
    """The classes of a session by id, with the requests of their tasks and the changes that placing one causes."""

    __slots__ = (
        *("_best_effort", "_deltas", "_eviction_deltas", "_infos", "_job_changes", "_keys", "_nonzero"),
        *("queue_gates", "requests", "shapes"),
    )

    def __init__(self, snapshot: Snapshot) -> None:
        """Take the shapes of a snapshot; each of them is one class until `split`."""
        self.shapes: list[Shape | None] = snapshot.shapes
        """Shapes by id; None where an id is free."""
        self.requests: Floats = snapshot.requests
        """The requests of the tasks of each class, shape (n_resources, n_classes)."""
        self.queue_gates = snapshot.queue_gates
        """Whether tasks wait at gates of their queues, which this scheduler removes."""
        self._nonzero = snapshot.nonzero
        self._best_effort: Bools | None = None
        self._keys: dict[int, dict[str, int]] = {}
        self._infos: dict[int, TaskInfo] = {}
        self._deltas: dict[tuple[int, TaskStatus], tuple[Floats, Floats]] = {}
        self._job_changes: dict[tuple[int, TaskStatus, TaskStatus], Floats] = {}
        self._eviction_deltas: dict[int, Floats] = {}

    def split(self, tasks: TaskColumns, keys: Mapping[str, Ints]) -> None:
        """Give tasks with keys ids of their own; tasks without keys keep the id of their shape.

        ``keys`` are, by plugin, one number per task row, 0 for no key, each of shape (n_tasks,).
        """
        n_shapes = len(self.shapes)
        names = sorted(keys)
        table = np.array([keys[name] for name in names], dtype=np.int64).reshape(len(names), len(tasks.shape))
        rows = np.flatnonzero(table.any(axis=0) & (tasks.shape >= 0))
        if not rows.size:
            return
        which, first = _classes(rows, (tasks.shape[rows], *table[:, rows]))
        base, keyed = tasks.shape[first], table[:, first]
        tasks.shape[rows] = n_shapes + which
        self.shapes = [*self.shapes, *(self.shapes[shape] for shape in base.tolist())]
        self.requests = np.concatenate((self.requests, self.requests[:, base]), axis=1)
        self._nonzero = np.concatenate((self._nonzero, self._nonzero[:, base]), axis=1)
        self._best_effort = None
        self._keys = {
            n_shapes + number: {name: key for name, key in zip(names, column, strict=True) if key}
            for number, column in enumerate(keyed.T.tolist())
        }

    @property
    def best_effort(self) -> Bools:
        """Whether tasks of each class request nothing but a place (`Shape.best_effort`), shape (n_classes,)."""
        if self._best_effort is None:
            asked = self.requests >= LEAST_REQUEST
            asked[PODS_ROW] = False
            self._best_effort = np.asarray(~asked.any(axis=0))
        return self._best_effort

    def task_of(self, shape_id: int) -> TaskInfo:
        """Return what predicates, scores and queues see of a task of this class."""
        found = self._infos.get(shape_id)
        if found is None:
            found = self._infos[shape_id] = TaskInfo(
                shape=self.shape_of(shape_id),
                shape_id=shape_id,
                request=fixed(self.requests[:, shape_id].copy()),
                nonzero=fixed(self._nonzero[:, shape_id].copy()),
                equivalence_keys=self._keys.get(shape_id, {}),
            )
        return found

    def shape_of(self, shape_id: int) -> Shape:
        """Return the shape of an id; raise LookupError if the id is free."""
        shape = self.shapes[shape_id]
        if shape is None:
            raise LookupError(f"shape {shape_id} is free")
        return shape

    def deltas(self, shape_id: int, status: TaskStatus) -> tuple[Floats, Floats]:
        """Return what a task of this class and status adds to its node's and to its job's block."""
        found = self._deltas.get((shape_id, status))
        if found is None:
            request, nonzero = self.requests[:, shape_id], self._nonzero[:, shape_id]
            best_effort = self.shape_of(shape_id).best_effort
            found = (layout.node_delta(status, request, nonzero), layout.job_delta(status, request, best_effort))
            self._deltas[shape_id, status] = found
        return found

    def job_change(self, shape_id: int, before: TaskStatus, after: TaskStatus) -> Floats:
        """Return what a job's block gains when one of its tasks of this class changes its status, shape (job_rows,)."""
        found = self._job_changes.get((shape_id, before, after))
        if found is None:
            found = self.deltas(shape_id, after)[1] - self.deltas(shape_id, before)[1]
            self._job_changes[shape_id, before, after] = found
        return found

    def eviction_delta(self, shape_id: int) -> Floats:
        """Return what the eviction of a running or bound task adds to its node's block, shape (node_rows,)."""
        found = self._eviction_deltas.get(shape_id)
        if found is None:
            request, nonzero = self.requests[:, shape_id], self._nonzero[:, shape_id]
            found = self._eviction_deltas[shape_id] = layout.eviction_delta(request, nonzero)
        return found


def _classes(rows: Rows, columns: Iterable[Ints | Codes]) -> tuple[Ints, Rows]:
    """Return the number of the class of each row (n,), and one row of each class, which represents the others."""
    which = np.zeros(len(rows), dtype=np.int64)
    n_classes = 1
    for column in columns:
        codes, n_codes = _codes(column.astype(np.int64))
        which, n_classes = _codes(which * n_codes + codes)
    first = np.empty(n_classes, dtype=np.intp)
    first[which] = rows
    return which, first


def _codes(values: Ints) -> tuple[Ints, int]:
    """Return the rank of each value among the distinct values, shape (n,), and the number of distinct values."""
    if values.min() < 0 or values.max() >= _SMALL:
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1), len(distinct)
    present = np.zeros(int(values.max()) + 1, dtype=bool)  # many times faster than sorting a hundred thousand tasks
    present[values] = True
    numbers = np.cumsum(present) - 1
    return numbers[values], int(numbers[-1]) + 1
