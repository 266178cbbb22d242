"""Nodes divided among schedulers: which nodes of a session are ours, and what that means for placement.

Of a strict shard (Volcano's mode hard) other nodes are refused before anybody is asked. Of any other (soft) they are
the second choice: candidates come in groups, and scores are compared within a group only (Volcano:
util.GetPredicatedNodeByShard). What queues deserve is computed from all nodes in both modes.
"""

from typing import Final

import numpy as np

from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.rejections import Reason
from volcano_py.snapshot.columns import NodeColumns

NOT_OURS: Final = Reason("cache", "other-shard", "node isn't in scheduler node shard")


class NodeSets:
    """The nodes of a session by shard; without a shard all of them are ours."""

    __slots__ = ("elsewhere", "left_out", "shut")

    def __init__(self, state: State) -> None:
        shard = state.facts.shard
        self.elsewhere: Bools | None = None
        """The nodes that are not ours, shape (n_nodes,); None: there are none."""
        self.shut: Bools = state.nodes.closed
        """The nodes that no task may go to, shape (n_nodes,)."""
        self.left_out: tuple[Bools | None, ...] = (None,)
        """The nodes that are not in a group of candidates, by group; groups are asked in this order."""
        if shard is None:
            return
        ours = shard.nodes

        def not_ours(view: NodeColumns) -> Bools:
            # A Python loop over the nodes that have changed since the last cycle, or all after a change of the shard.
            return np.fromiter((name not in ours for name in view.names), dtype=bool, count=len(view))

        elsewhere = state.static_row(("shard", ours), not_ours)
        if not elsewhere.any():
            return
        self.elsewhere = elsewhere
        if shard.strict:
            self.shut = self.shut | elsewhere
        elif not elsewhere.all():
            self.left_out = (elsewhere, ~elsewhere)

    def group_of(self, node: int) -> int:
        """Return the group of candidates that a node is in."""
        return 1 if len(self.left_out) > 1 and self.left_out[0] is not None and self.left_out[0][node] else 0

    def ours_first(self, nodes: Rows) -> Rows:
        """Return these nodes with ours before the others, each part in the order given."""
        if self.elsewhere is None:
            return nodes
        elsewhere = self.elsewhere[nodes]
        return np.concatenate((nodes[~elsewhere], nodes[elsewhere]))
