"""Binpack: the fuller a node would be, the better.

    score = 100 * weight * sum_r w_r * (used_r + request_r) / allocatable_r / sum_r w_r

over the requested resources that have a weight. A node on which one of them would not fit scores 0. A resource that the
node does not have adds 0, but its weight counts. ``used`` includes terminating tasks. (Volcano's binpack has the same
formula and defaults.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from volcano_py.api import keys
from volcano_py.conf.arguments import Warn, get_int, get_resource_weights
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.resources import Amounts
from volcano_py.model.shape import Field
from volcano_py.snapshot.columns import NodeColumns

MAX_NODE_SCORE = 100.0


@dataclass(frozen=True, slots=True)
class BinpackArgs:
    """The weights of the plugin and of each resource; a negative plugin weight prefers emptier nodes."""

    weight: int = 1
    resource_weights: Mapping[str, float] = field(default_factory=lambda: {keys.CPU: 1.0, keys.MEMORY: 1.0})


class Binpack(Plugin, NodeOrder):
    """Best-fit node scoring."""

    name = "binpack"
    depends_on = DependsOn.NODE_ALONE
    reads = frozenset({Field.REQUEST})
    arguments = frozenset(
        {"binpack.weight", "binpack.cpu", "binpack.memory", "binpack.resources", "binpack.resources.*"}
    )

    def __init__(self, arguments: BinpackArgs | None = None) -> None:
        self._args = arguments or BinpackArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> BinpackArgs:
        """Read ``binpack.weight``, ``.cpu``, ``.memory``, the list ``.resources`` and ``.resources.<name>``.

        Every weight is 1 by default; a negative resource weight counts as 1. cpu and memory in the list are ignored.
        """
        return BinpackArgs(
            weight=get_int(arguments, "binpack.weight", 1, warn),
            resource_weights=get_resource_weights(arguments, "binpack.", warn),
        )

    def on_session_open(self, ssn: State) -> None:
        """Arrange the configured weights in this snapshot's resource order."""
        self._weights = ssn.resources.vector(self._args.resource_weights)  # (n_resources,)
        self._everywhere: Bools = np.asarray(
            (ssn.nodes.allocatable > 0).all(axis=1)
        )  # (n_resources,), whether every node has it
        self._asked: dict[int, _Asked] = {}  # by shape id

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return one score per node of the view, shape (n_nodes,)."""
        asked = self._asked.get(task.shape_id) or self._share(task)
        if not asked.n:
            return np.zeros(len(nodes))
        n = len(nodes)
        capacity = nodes.allocatable[asked.rows]  # (n_asked, n_nodes)
        if not asked.everywhere:  # a resource the node does not have at all adds 0; it does not disqualify the node
            capacity = np.where(capacity > 0, capacity, np.inf)
        after = nodes.used[asked.rows] + asked.request.beside(n)
        fits = after <= capacity
        np.divide(after, capacity, after)
        np.multiply(after, asked.parts.beside(n), after)
        # The rows are added one by one: the last bit of a matrix product depends on the number of nodes in the view.
        score: Floats = after[0]
        ok: Bools = fits[0]
        for row in range(1, asked.n):
            score += after[row]
            ok &= fits[row]
        score *= ok
        return score

    def _share(self, task: TaskInfo) -> "_Asked":
        rows = np.flatnonzero((task.request > 0) & (self._weights > 0))
        weights = self._weights[rows]
        parts = weights * (MAX_NODE_SCORE * self._args.weight / max(weights.sum(), 1.0))
        n = len(rows)
        first = n > 0 and rows[-1] == n - 1  # the rows are the first n, so a slice will do, which copies nothing
        everywhere = bool(self._everywhere[rows].all())
        found = _Asked(n, slice(0, n) if first else rows, Amounts(task.request[rows]), Amounts(parts), everywhere)
        self._asked[task.shape_id] = found
        return found


class _Asked(NamedTuple):
    """The requests of a shape for resources that have a weight."""

    n: int
    rows: Rows | slice
    request: Amounts  # (n, ...)
    parts: Amounts  # (n, ...), what each resource adds to the score when it is full
    everywhere: bool  # whether every node has all of these resources
