"""Local volumes: each is reached by one node, so that promising one changes the answer about that node only."""

import numpy as np

from volcano_py.model.arrays import Bools, Ints, Rows


class LocalVolumes:
    """The volumes that a claim could be bound to, by node."""

    __slots__ = ("_bounds", "_node_of", "_rows", "free")

    def __init__(self, volumes: Rows, nodes: Rows, taken: Bools, n_nodes: int) -> None:
        """Take the volumes, the best first, the node of each (-1: none), and which are promised, (n_all_volumes,)."""
        reached = nodes >= 0
        volumes, nodes = volumes[reached], nodes[reached]
        order = np.argsort(nodes, kind="stable")
        self._rows = volumes[order]
        self._bounds = np.searchsorted(nodes[order], np.arange(n_nodes + 1))
        self._node_of = np.full(len(taken), -1, dtype=np.intp)
        self._node_of[volumes] = nodes
        self.free: Ints = np.bincount(nodes[~taken[volumes]], minlength=n_nodes).astype(np.int64)
        """How many of them are free on each node, shape (n_nodes,)."""

    def moved(self, volume: int, count: int) -> None:
        """Count a volume as promised (1) or free again (-1)."""
        node = self._node_of.item(volume)
        if node >= 0:
            self.free[node] -= count

    def best(self, node: int, taken: Bools) -> int:
        """Return the best free volume of a node, -1 if there is none."""
        for row in self._rows[self._bounds[node] : self._bounds[node + 1]].tolist():
            if not taken[row]:
                return int(row)
        return -1
