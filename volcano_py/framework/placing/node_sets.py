"""The sets of nodes that placement tries one after another.

A *set of nodes* is tried as a whole before the next one: scores are compared within a set only, and a task goes to a
node of the next set only if no node of this one takes it. The sets come from a shard. A topology domain (a HyperNode)
is a set of nodes, too: whoever places within one has all other nodes shut.

A shard names the nodes of this scheduler. If it is strict (Volcano's mode hard), no task may go to other nodes. If not
(mode soft), the other nodes are a second set (Volcano: util.GetPredicatedNodeByShard). What queues deserve is computed
from all nodes in both modes.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.facts import Shard
from volcano_py.model.rejections import Reason
from volcano_py.snapshot.columns import NodeColumns

NOT_OURS: Final = Reason("cache", "other-shard", "node isn't in scheduler node shard")

ALL: Final = "all"
OURS: Final = "ours"
OTHERS: Final = "others"

StaticRow = Callable[[Hashable, Callable[[NodeColumns], NDArray[Any]]], NDArray[Any]]
"""Returns answers that depend on node records only, one per node, kept over cycles under a key."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeSet:
    """One set of nodes."""

    name: str
    """`ALL`, `OURS` or `OTHERS`."""
    mask: Bools | None = None
    """The nodes in it, shape (n_nodes,); None: all nodes."""


class NodeSets:
    """The sets of nodes of a session, in the order in which placement tries them, and the nodes that are shut."""

    __slots__ = ("_first", "sets", "shut")

    def __init__(self, sets: tuple[NodeSet, ...], shut: Bools) -> None:
        """Take one set or more, the first choice first, and the nodes that no task may go to, shape (n_nodes,)."""
        self.sets = sets
        self.shut = shut
        self._first: Rows | None = None  # the first set that has a node, (n_nodes,); None: there is only one set
        if len(sets) > 1:
            self._first = np.full(len(shut), len(sets), dtype=np.intp)
            # A Python loop over sets: those tried first are written last.
            for index in reversed(range(len(sets))):
                mask = sets[index].mask
                self._first[slice(None) if mask is None else mask] = index

    @classmethod
    def of_shard(cls, shard: Shard | None, nodes: NodeColumns, static_row: StaticRow) -> Self:
        """Return the sets that a shard makes of these nodes; without a shard they are one set."""
        closed = nodes.closed
        if shard is None:
            return cls((NodeSet(ALL),), closed)
        ours = shard.nodes

        def not_ours(view: NodeColumns) -> Bools:
            # A Python loop over the nodes that have changed since the last cycle, or all after a change of the shard.
            return np.fromiter((name not in ours for name in view.names), dtype=bool, count=len(view))

        elsewhere: Bools = static_row(("shard", ours), not_ours)
        if shard.strict:
            return cls((NodeSet(OURS),), closed | elsewhere)
        if not elsewhere.any():
            return cls((NodeSet(OURS),), closed)
        if elsewhere.all():
            return cls((NodeSet(OTHERS),), closed)
        return cls((NodeSet(OURS, ~elsewhere), NodeSet(OTHERS, elsewhere)), closed)

    def within(self, mask: Bools) -> "NodeSets":
        """Return these sets with all nodes shut that are not in a mask, shape (n_nodes,)."""
        return NodeSets(self.sets, self.shut | ~mask)

    def index_of(self, node: int) -> int:
        """Return the index of the first set that has a node; the number of sets if none has it."""
        return 0 if self._first is None else self._first.item(node)

    def places(self, nodes: Rows) -> Rows:
        """Return the index of the first set that has each node (n,), 0 if there is only one set."""
        return np.zeros(len(nodes), dtype=np.intp) if self._first is None else self._first[nodes]
