"""Answers that depend on a shape and on node records only, kept over cycles and refreshed for changed nodes."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano_py.framework import combine
from volcano_py.framework.extension import Verdicts
from volcano_py.model.shape import Shape
from volcano_py.snapshot.columns import Ints, NodeColumns

_MAX_SHAPES: Final = 4096  # at 5,000 nodes some 200 MB; past it the least recently used go


@dataclass(slots=True)
class _Kept:
    layout: tuple[object, int]
    versions: Ints
    verdicts: Verdicts


class StaticVerdicts:
    """Verdicts of the static predicates by shape. What is kept never changes an answer, only what it costs."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Shape, _Kept] = OrderedDict()

    def of(self, shape: Shape, nodes: NodeColumns, points: combine.Points, offsets: tuple[int, ...]) -> Verdicts:
        """Return one verdict per node, shape (n_nodes,): 0 or the number of the first reason that refuses."""
        statics = nodes.statics
        kept = self._kept.get(shape)
        if kept is None or kept.layout != statics.layout:
            verdicts = combine.first_refusals(points, offsets, len(nodes), shape, nodes)
            self._kept[shape] = _Kept(statics.layout, statics.versions, verdicts)
            self._kept.move_to_end(shape)
            while len(self._kept) > _MAX_SHAPES:
                self._kept.popitem(last=False)
            return verdicts
        self._kept.move_to_end(shape)
        if kept.versions is not statics.versions:
            changed = np.flatnonzero(kept.versions != statics.versions)
            if changed.size:
                verdicts = kept.verdicts.copy()
                view = nodes.rows_view(changed)
                verdicts[changed] = combine.first_refusals(points, offsets, len(changed), shape, view)
                kept.verdicts = verdicts
            kept.versions = statics.versions
        return kept.verdicts
