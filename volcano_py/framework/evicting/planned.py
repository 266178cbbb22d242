"""What a plan has placed, and the loads that this puts on nodes."""

from typing import NamedTuple

import numpy as np

from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.resources import CPU_ROW, EPSILON, MEMORY_ROW


class Placed(NamedTuple):
    """A task on a node."""

    task: int
    shape_id: int
    node: int


class Load(NamedTuple):
    """What is planned for one node."""

    node: int
    amounts: Floats  # (n_resources,)
    counted: Bools  # (n_resources,), the resources that are compared

    def leaves(self, eviction: Eviction, amount: Floats) -> bool:
        """Say whether the node has room for all that is planned without this amount (n_resources,)."""
        left = eviction.state.nodes.future_idle[:, self.node] - amount - self.amounts
        return bool((left > -EPSILON)[self.counted].all())


def loads_of(eviction: Eviction, planned: list[Placed]) -> dict[int, Load]:
    """Return what is planned for each node."""
    loads: dict[int, Load] = {}
    # A Python loop over the tasks of one plan.
    for _, shape_id, node in planned:
        if node not in loads:
            counted = np.zeros(len(eviction.state.resources), dtype=bool)
            counted[[CPU_ROW, MEMORY_ROW]] = True
            loads[node] = Load(node, np.zeros(len(eviction.state.resources)), counted)
        request = eviction.state.classes.requests[:, shape_id]
        loads[node].amounts[:] += request
        loads[node].counted[:] |= request > 0
    return loads
