"""Binpack: the fuller a node would be, the better.

    score = 100 * weight * sum_r w_r * (used_r + request_r) / allocatable_r / sum_r w_r

over the resources that the task asks for and that have a weight. A node on which one of them would not fit scores 0; a
resource that the node does not have adds 0 but its weight counts. ``used`` includes terminating tasks. (Volcano's
binpack: same formula, same defaults.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from volcano_py.api import keys
from volcano_py.conf.arguments import Warn, get_int, get_string
from volcano_py.framework.extension import NodeOrder
from volcano_py.framework.info import TaskInfo
from volcano_py.framework.plugin import DependsOn, Plugin
from volcano_py.framework.session import Session
from volcano_py.model.resources import Floats
from volcano_py.model.shape import Field
from volcano_py.snapshot.columns import NodeColumns, Rows

MAX_NODE_SCORE = 100.0


@dataclass(frozen=True, slots=True)
class BinpackArgs:
    """The weight of the plugin and of each resource; negative weights count as 1."""

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
        """Read ``binpack.weight``, ``.cpu``, ``.memory``, the list ``.resources`` and ``.resources.<name>``, all 1."""
        weights = {keys.CPU: "binpack.cpu", keys.MEMORY: "binpack.memory"}
        for name in get_string(arguments, "binpack.resources", "", warn).split(","):
            if name.strip():
                weights[name.strip()] = f"binpack.resources.{name.strip()}"
        return BinpackArgs(
            weight=_positive(get_int(arguments, "binpack.weight", 1, warn)),
            resource_weights={
                name: float(_positive(get_int(arguments, key, 1, warn))) for name, key in weights.items()
            },
        )

    def on_session_open(self, ssn: Session) -> None:
        """Lay the configured weights out in this snapshot's resource order."""
        self._weights = ssn.resources.vector(self._args.resource_weights)  # (n_resources,)
        # shape id -> rows that it asks for and that have a weight, and what each full one of them adds (n_asked, 1)
        self._asked: dict[int, tuple[Rows, Floats]] = {}

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return one score per node of the view, shape (n_nodes,)."""
        asked, parts = self._asked.get(task.shape_id) or self._share(task)
        if not asked.size:
            return np.zeros(len(nodes))
        # A resource the node does not have at all adds 0; it does not disqualify the node.
        capacity = nodes.allocatable[asked]  # (n_asked, n_nodes)
        capacity = np.where(capacity > 0, capacity, np.inf)
        after = nodes.used[asked] + task.request[asked, None]
        # Added one by one, since the last bit of a matrix product depends on the number of nodes in the view.
        score, *others = after / capacity * parts
        for other in others:
            score = score + other
        return np.where((after <= capacity).all(axis=0), score, 0.0)

    def _share(self, task: TaskInfo) -> tuple[Rows, Floats]:
        asked = np.flatnonzero((task.request > 0) & (self._weights > 0))
        weights = self._weights[asked]
        parts = weights * (MAX_NODE_SCORE * self._args.weight / max(weights.sum(), 1.0))
        self._asked[task.shape_id] = asked, parts[:, None]
        return self._asked[task.shape_id]


def _positive(weight: int) -> int:
    return weight if weight >= 0 else 1
