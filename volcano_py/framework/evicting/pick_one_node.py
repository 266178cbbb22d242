"""Pick one node: of the nodes where evictions make room for a task, the one whose victims matter least.

Topology-aware preemption compares the victims that free enough resources, in this order: the highest priority of a
victim, the sum of their priorities (each above -2^31, so that fewer is less), their number; then the score of the node.

(Volcano: pickOneNodeForPreemption, after kube-scheduler. There the victims that predicates need count too. Before the
score, the node wins whose most important victim has started last.)
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.state.info import QueueInfo, TaskInfo
from volcano_py.model.arrays import Rows
from volcano_py.model.resources import EPSILON

_LOWEST_PRIORITY: Final = 2**31

Chance = tuple[int, Rows]
"""A node and the rows of the tasks that may be evicted there."""


class CandidateNodeCount(NamedTuple):
    """How many nodes are compared, from the arguments of the action."""

    percentage: int = 10
    at_least: int = 1
    at_most: int = 100

    def of(self, n_nodes: int) -> int:
        """Return how many of ``n_nodes`` nodes are compared, at least 1."""
        return max(1, min(max(n_nodes * self.percentage // 100, self.at_least), self.at_most, n_nodes))


def order_by_victims(eviction: Eviction, queue: QueueInfo, info: TaskInfo, chances: Sequence[Chance]) -> list[Chance]:
    """Return nodes with their victims, least important victims first; on each, all victims together are enough."""
    if len(chances) < 2:
        return list(chances)
    rows = eviction.in_order(queue, np.concatenate([victims for _, victims in chances]))
    of_node: dict[int, list[int]] = {node: [] for node, _ in chances}
    for row, node in zip(rows.tolist(), eviction.state.tasks.node[rows].tolist(), strict=True):
        of_node[node].append(row)
    floor = (info.request - EPSILON).tolist()
    wanted = [(resource, floor[resource]) for resource in info.fit.rows.tolist()]
    group = eviction.placement.node_sets.index_of  # our shard's nodes come first, whichever victims they have
    return sorted(
        chances, key=lambda chance: (group(chance[0]), _importance(eviction, chance[0], of_node[chance[0]], wanted))
    )


def _importance(
    eviction: Eviction, node: int, rows: list[int], wanted: list[tuple[int, float]]
) -> tuple[int, int, int]:
    requests = eviction.state.classes.requests[:, eviction.state.tasks.shape[rows]].T.tolist()
    room = eviction.state.nodes.future_idle[:, node].tolist()
    evicted: list[int] = []
    # Python loops over the few victims of one node: evict until the task fits, then put back those not needed.
    for place, request in enumerate(requests):
        room = [have + more for have, more in zip(room, request, strict=True)]
        evicted.append(place)
        if _enough(room, wanted):
            break
    needed = []
    for place in reversed(evicted):
        without = [have - more for have, more in zip(room, requests[place], strict=True)]
        if _enough(without, wanted):
            room = without
        else:
            needed.append(place)
    priorities = eviction.state.tasks.priority[[rows[place] for place in needed or evicted]].tolist()
    return max(priorities), sum(priority + _LOWEST_PRIORITY for priority in priorities), len(priorities)


def _enough(room: list[float], wanted: list[tuple[int, float]]) -> bool:
    return all(floor < room[resource] for resource, floor in wanted)
