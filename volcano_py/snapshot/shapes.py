"""Interned shapes: equal shapes share one id, and an id becomes free when no task uses it."""

from collections import Counter
from dataclasses import replace

import numpy as np

from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.resources import NOT_OFFERED, ResourceRegistry
from volcano_py.model.shape import Admission, Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot import layout
from volcano_py.snapshot.rows import grown


def undivided(shape: Shape) -> Shape:
    """Return a shape with all that it asks for in its request, nothing left out."""
    if not shape.left_out:
        return shape
    request = [*(one for one in shape.request if one[0] != NOT_OFFERED), *shape.left_out]
    return replace(shape, request=tuple(sorted(request)), left_out=())


class ShapeTable:
    """Shapes by id, with their request vectors and what a task of the shape adds to its node and job."""

    def __init__(self, resources: ResourceRegistry) -> None:
        self._resources = resources
        self._ids: dict[Shape, int] = {}
        self._shapes: list[Shape | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []
        self.at_queue_gates = 0
        """Number of shapes of tasks that have or had the scheduling gate of their queue."""
        self.left_out: Counter[str] = Counter()
        """Resources without a row, by the number of shapes that ask for them."""
        self._deltas: dict[tuple[int, TaskStatus], tuple[Floats, Floats]] = {}
        self._requests = np.zeros((len(resources), 0))  # (n_resources, capacity)
        self._nonzero = np.zeros((layout.N_NONZERO, 0))

    def __len__(self) -> int:
        return len(self._ids)

    def acquire(self, shape: Shape) -> int:
        """Return the id of a shape and count one more user; its new resources are registered, unless they are many."""
        found = self._ids.get(shape)
        if found is None or shape.left_out:
            shape = self._with_rows(shape)
            found = self._ids.get(shape)
        if found is not None:
            self._uses[found] += 1
            return found
        if self._free:
            new = self._free.pop()
            self._shapes[new] = shape
            self._uses[new] = 1
        else:
            new = len(self._shapes)
            self._shapes.append(shape)
            self._uses.append(1)
            self._requests = grown(self._requests, len(self._shapes))
            self._nonzero = grown(self._nonzero, len(self._shapes))
        self._ids[shape] = new
        self.left_out.update(name for name, _ in shape.left_out)
        self.at_queue_gates += shape.admission is not Admission.NONE
        self.grow()
        self._requests[:, new] = self._resources.vector(dict(shape.request))
        self._nonzero[:, new] = shape.nonzero
        return new

    def _with_rows(self, shape: Shape) -> Shape:
        """Return a shape with what it asks for divided: what has a row, and what has none (`MOST_RESOURCES`)."""
        shape = undivided(shape)
        without = set(self._resources.ask(name for name, _ in shape.request))
        if not without:
            return shape
        left_out = tuple(one for one in shape.request if one[0] in without)
        request = [one for one in shape.request if one[0] not in without]
        request.append((NOT_OFFERED, sum(amount for _, amount in left_out)))
        return replace(shape, request=tuple(sorted(request)), left_out=left_out)

    def leaving_out(self) -> Bools:
        """Return which shapes leave something out, by id."""
        return np.array([shape is not None and bool(shape.left_out) for shape in self._shapes], dtype=bool)

    def release(self, shape_id: int) -> None:
        """Count one user less; an unused shape is removed."""
        self._uses[shape_id] -= 1
        if self._uses[shape_id] == 0:
            shape = self._shapes[shape_id]
            if shape is not None:
                del self._ids[shape]
                self.at_queue_gates -= shape.admission is not Admission.NONE
                if shape.left_out:
                    self.left_out -= Counter(name for name, _ in shape.left_out)  # without those that become 0
            self._shapes[shape_id] = None
            self._free.append(shape_id)
            for status in TaskStatus:
                self._deltas.pop((shape_id, status), None)

    def grow(self) -> None:
        """Add rows to the request vectors for resources that were registered since the last call."""
        missing = len(self._resources) - len(self._requests)
        if missing:
            self._requests = np.pad(self._requests, ((0, missing), (0, 0)))
            self._deltas.clear()

    def deltas(self, shape_id: int, status: TaskStatus) -> tuple[Floats, Floats]:
        """Return what a task of this shape and status adds to its node's and to its job's block."""
        key = (shape_id, status)
        found = self._deltas.get(key)
        if found is None:
            shape = self._shapes[shape_id]
            if shape is None:
                raise LookupError(f"shape {shape_id} is free")
            request, nonzero = self._requests[:, shape_id], self._nonzero[:, shape_id]
            found = (
                layout.node_delta(status, request, nonzero),
                layout.job_delta(status, request, shape.best_effort),
            )
            self._deltas[key] = found
        return found

    def shape(self, shape_id: int) -> Shape:
        """Return the shape of an id in use."""
        shape = self._shapes[shape_id]
        if shape is None:
            raise LookupError(f"shape {shape_id} is free")
        return shape

    def freeze(self) -> tuple[list[Shape | None], Floats, Floats]:
        """Return copies of shapes by id, requests (n_resources, n_shapes) and non-zero requests (2, n_shapes)."""
        n = len(self._shapes)
        return list(self._shapes), self._requests[:, :n].copy(), self._nonzero[:, :n].copy()
