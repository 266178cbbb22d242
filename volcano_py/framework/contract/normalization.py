"""Normalised scores: raw numbers per node, scaled by the highest raw number among the feasible nodes.

    HIGHEST_IS_BEST   100 * raw / highest, cut to a whole number; 0 for all if the highest is 0
    LOWEST_IS_BEST    100 minus that; 100 for all if the highest is 0
    AS_IS             raw

(kube-scheduler: DefaultNormalizeScore, plain and reversed.) Raw numbers are whole and not negative.

A placement changes such a score only if it makes the last node with the highest raw number infeasible. Until then the
normalised score of each node is fixed, and many tasks can be placed with a heap. If all nodes that a shape may ever go
to have the same raw number (nothing tainted, nothing preferred), the score never changes.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple

import numpy as np

from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.shape import Shape
from volcano_py.snapshot.columns import NodeColumns

_BEST: Final = 100.0


class Normalizer(Enum):
    """How raw numbers become scores."""

    HIGHEST_IS_BEST = auto()
    LOWEST_IS_BEST = auto()
    AS_IS = auto()


@dataclass(frozen=True, slots=True)
class NormalizedScore:
    """One scorer of a plugin."""

    name: str
    normalizer: Normalizer
    weight: float
    part: Callable[[Shape], Hashable]
    """Returns the part of a shape that the raw numbers depend on; None: the scorer does not score the shape."""
    raw: Callable[[Shape, NodeColumns], Floats]
    """Returns the raw number of every node of the view, shape (n_nodes,)."""
    kept: bool = True
    """Whether a raw number depends on the node object alone. Then it is kept over cycles until the object changes."""


class _Term(NamedTuple):
    normalizer: Normalizer
    weight: float
    raw: Floats  # (n_nodes,)


Highest = tuple[float, ...]
"""The highest raw number of each term among the feasible nodes."""


class GroupScores:
    """What the normalised scores add to the nodes of a session for one shape."""

    __slots__ = ("_terms", "base", "fixed")

    def __init__(self, scores: Iterable[tuple[NormalizedScore, Floats]], allowed: Bools) -> None:
        """Take raw numbers of all nodes, and which nodes may ever be feasible (n_nodes,)."""
        self.base: Floats | float = 0.0  # what is added whichever nodes are feasible
        self._terms: list[_Term] = []
        for score, raw in scores:
            seen = raw[allowed]
            if not len(seen):
                continue
            if seen.min() == seen.max():
                self.base = self.base + score.weight * float(normalized(seen[:1], score.normalizer, seen[0])[0])
            elif score.normalizer is Normalizer.AS_IS:
                self.base = self.base + score.weight * raw
            else:
                self._terms.append(_Term(score.normalizer, score.weight, raw))
        self.fixed = not self._terms  # whether nothing depends on which nodes are feasible

    def highest(self, group: Bools) -> Highest:
        """Return the highest raw numbers in a group of feasible nodes (n_nodes,)."""
        return tuple(float(term.raw.max(where=group, initial=0.0)) for term in self._terms)

    def added(self, highest: Highest) -> Floats | float:
        """Return what is added to the score of every node, shape (n_nodes,), given the highest raw numbers."""
        added = self.base
        for term, best in zip(self._terms, highest, strict=True):
            added = added + term.weight * normalized(term.raw, term.normalizer, best)
        return added

    def watch(self, group: Bools, highest: Highest, nodes: Rows) -> "HighestWatch | None":
        """Return a watch over these nodes of the group; None if no node that leaves the group changes a score."""
        if self.fixed:
            return None
        masks = [term.raw == best for term, best in zip(self._terms, highest, strict=True) if best > 0]
        return HighestWatch([int(np.count_nonzero(mask & group)) for mask in masks], [mask[nodes] for mask in masks])


class HighestWatch:
    """Notices when the last node with a highest raw number becomes infeasible."""

    __slots__ = ("_counts", "_highest")

    def __init__(self, counts: list[int], highest: list[Bools]) -> None:
        self._counts = counts
        self._highest = [mask.tolist() for mask in highest]  # by term and place

    def leaves(self, place: int) -> bool:
        """Note that the node in this place is not feasible any more; say whether that changes the scores of others."""
        changed = False
        for term, mask in enumerate(self._highest):
            if mask[place]:
                self._counts[term] -= 1
                changed |= self._counts[term] == 0
        return changed


def normalized(raw: Floats, normalizer: Normalizer, highest: float) -> Floats:
    """Return scores of raw numbers, shape (n_nodes,)."""
    if normalizer is Normalizer.AS_IS:
        return raw
    scores = np.floor(raw * _BEST / highest) if highest > 0 else np.zeros(len(raw))
    return _BEST - scores if normalizer is Normalizer.LOWEST_IS_BEST else scores
