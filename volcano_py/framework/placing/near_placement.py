"""Placing the tasks of a part in one domain, each near those that have a node already."""

from collections.abc import Sequence

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.combine import Point
from volcano_py.framework.contract.topology import Part
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.state.state import State
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Bools, Floats, Ints, Rows


class NearPlacement:
    """The placer of one part in one domain."""

    def __init__(
        self, state: State, placement: Placement, orders: Sequence[Point], part: Part, begun: int | None, counts: Ints
    ) -> None:
        """Take the placement in the domain, and the plugins that say which nodes are near.

        ``begun`` is the domain of the tasks that have a node, None if none has. ``counts`` are their numbers by leaf,
        shape (n_domains,).
        """
        self._state = state
        self._placement = placement
        self._orders = orders
        self._part = part
        self._begun = begun
        self._counts = counts.copy()
        self.rejection = placement.rejection

    def place(self, statement: Statement, job_row: int, shape_id: int, tasks: Rows) -> int:
        """Place as many of these pending tasks as fit, in order; return how many found a node."""
        if not self._orders:
            return self._placement.place(statement, job_row, shape_id, tasks)
        one_by_one = not self._placement.one_changes_one(shape_id)
        done = 0
        while done < len(tasks):
            wanted = 1 if one_by_one or self._begun is None else len(tasks) - done
            nodes = self._placement.nodes_with(self._near, shape_id, wanted)
            if len(nodes):
                nodes = self._in_one_leaf(nodes)
                statement.allocate(job_row, shape_id, tasks[done : done + len(nodes)], nodes)
            else:
                node = self._placement.future_node_with(self._near, shape_id)
                if node is None:
                    break
                nodes = np.array([node])
                statement.pipeline(job_row, shape_id, tasks[done : done + 1], nodes)
            self._used(nodes)
            done += len(nodes)
        return done

    def _near(self, group: Bools) -> Floats | None:
        """Return what nearness adds to the scores of a group of nodes, shape (n_nodes,); None for nothing."""
        if self._begun is None:
            return None
        domains, n = self._state.domains, len(self._state.nodes)
        return combine.total(self._orders, n, self._part, domains, self._begun, self._counts, group)

    def _in_one_leaf(self, nodes: Rows) -> Rows:
        """Return the nodes before the first one in another leaf: from there on, the next choice may be another one.

        More tasks in a leaf only make its other nodes better, so the choices within a leaf stay the best ones.
        """
        leaves = self._state.domains.innermost[nodes]
        other = np.flatnonzero(leaves != leaves[0])
        return nodes[: int(other[0])] if len(other) else nodes

    def _used(self, nodes: Rows) -> None:
        domains = self._state.domains
        leaf = int(domains.innermost[nodes[0]])
        self._begun = domains.common((leaf,) if self._begun is None else (self._begun, leaf))
        self._counts[leaf] += len(nodes)
