"""How many tasks domains have room for, taken by themselves: a limit, because filters may refuse some nodes."""

from collections.abc import Iterable

import numpy as np

from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.resources import EPSILON, PODS_ROW


class DomainRoom:
    """Counts, for waiting tasks of a session, how many of them each domain could take."""

    def __init__(self, state: State, placement: Placement) -> None:
        self._state = state
        self._placement = placement
        self._position = -1
        self._found: dict[int, Ints] = {}  # by shape, as long as nothing changes

    def of(self, tasks: Rows) -> Ints:
        """Return how many of these tasks could be placed in each domain at most, shape (n_domains,)."""
        shapes, counts = np.unique(self._state.tasks.shape[tasks], return_counts=True)
        total = np.zeros(len(self._state.domains), dtype=np.int64)
        for shape_id, count in zip(shapes.tolist(), counts.tolist(), strict=True):
            total += np.minimum(self._by_domain(shape_id), count)
        return np.minimum(total, self._places()) if len(shapes) > 1 else total

    def _places(self) -> Ints:
        """Return how many more pods of any kind each domain takes, shape (n_domains,)."""
        nodes = self._state.nodes
        available = (nodes.future_idle if self._state.looks_ahead else nodes.idle)[PODS_ROW]
        return self._state.domains.sums(np.maximum(available, 0.0)).astype(np.int64)

    def most(self, tasks: Rows) -> Ints:
        """Return how many tasks like these fit in each domain, however many there are, shape (n_domains,)."""
        total = np.zeros(len(self._state.domains), dtype=np.int64)
        for shape_id in np.unique(self._state.tasks.shape[tasks]).tolist():
            total += self._by_domain(shape_id)
        return total

    def if_empty(self, tasks: Rows) -> Ints:
        """Return how many of these tasks each domain could take if nothing else were there, shape (n_domains,)."""
        shapes, counts = np.unique(self._state.tasks.shape[tasks], return_counts=True)
        total = np.zeros(len(self._state.domains), dtype=np.int64)
        for shape_id, count in zip(shapes.tolist(), counts.tolist(), strict=True):
            fits = self._by_node(shape_id, self._state.nodes.allocatable)
            total += np.minimum(self._state.domains.sums(fits).astype(np.int64), count)
        return total

    def _by_domain(self, shape_id: int) -> Ints:
        if self._position != self._state.journal.n_touched:
            self._position = self._state.journal.n_touched
            self._found.clear()
        found = self._found.get(shape_id)
        if found is None:
            nodes = self._state.nodes
            fits = self._by_node(shape_id, nodes.future_idle if self._state.looks_ahead else nodes.idle)
            found = self._found[shape_id] = self._state.domains.sums(fits).astype(np.int64)
        return found

    def _by_node(self, shape_id: int, available: Floats) -> Floats:
        """Return how many tasks of a shape fit in what is available on each node, shape (n_nodes,)."""
        task = self._state.task_of(shape_id)
        asked = np.flatnonzero(task.request > 0)
        fits = np.floor((available[asked] + EPSILON) / task.request[asked, None]).min(axis=0)
        fits[task.fit.lacks(available) | self._placement.statically_infeasible(task).nodes] = 0.0
        return np.asarray(np.maximum(fits, 0.0))


def has_room(need: Floats, available: Iterable[Floats]) -> Bools:
    """Return which domains have room for a need (n_resources,) in one of the sums (n_resources, n_domains).

    For a gang that is placed, these are what is idle and what will be. For a gang that evicts others, it is all that
    domains offer. (Volcano: hyperNodeGradient of the plugin network-topology-aware.)
    """
    asked = need > 0
    enough = [(amounts[asked] > need[asked, None] - EPSILON).all(axis=0) for amounts in available]
    return np.asarray(np.logical_or.reduce(enough))
