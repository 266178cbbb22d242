"""Answers that depend only on a shape and on node records; kept over cycles and refreshed for changed nodes."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.state.tie_order import tie_order
from volcano_py.framework.state.volume_reach import ReachCache
from volcano_py.model.arrays import Ints, Rows
from volcano_py.snapshot.columns import NodeColumns, NodeStatics

_MAX_ROWS: Final = 4096  # at 5,000 nodes 40 to 160 MB; beyond that the least recently used are dropped


@dataclass(slots=True)
class _Kept:
    layout: tuple[object, int]
    versions: Ints
    answers: NDArray[Any]


class StaticFilterCache:
    """Answers per node, by key. The cache never changes an answer, only its cost."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self.volume_reach = ReachCache()
        """Which nodes reach which volumes."""
        self._ties: tuple[tuple[object, int], int, Rows | None] | None = None  # layout, seed, order

    def tie_order(self, statics: NodeStatics, seed: int) -> Rows | None:
        """Return the order in which ties between nodes are broken (`framework.state.tie_order`), (n_nodes,) or None.

        Hashing thousands of names takes milliseconds, and they change only when nodes come or go.
        """
        if self._ties is None or self._ties[:2] != (statics.layout, seed):
            self._ties = (statics.layout, seed, tie_order(statics.names, seed))
        return self._ties[2]

    def row(self, key: Hashable, nodes: NodeColumns, ask: Callable[[NodeColumns], NDArray[Any]]) -> NDArray[Any]:
        """Return one answer per node, shape (n_nodes,); ``ask`` answers for a view of nodes, which may be all of them.

        Equal keys must mean equal answers for equal node records.
        """
        statics = nodes.statics
        kept = self._kept.get(key)
        if kept is None or kept.layout != statics.layout:
            answers = ask(nodes)
            self._kept[key] = _Kept(statics.layout, statics.versions, answers)
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_ROWS:
                self._kept.popitem(last=False)
            return answers
        self._kept.move_to_end(key)
        if kept.versions is not statics.versions:
            changed = np.flatnonzero(kept.versions != statics.versions)
            if changed.size:
                answers = kept.answers.copy()
                answers[changed] = ask(nodes.rows_view(changed))
                kept.answers = answers
            kept.versions = statics.versions
        return kept.answers
