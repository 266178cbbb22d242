"""Scores that depend on who else is a candidate: raw numbers per node, scaled by the highest among the candidates.

    HIGHEST_IS_BEST   100 * raw / highest, cut to a whole number; 0 for all if the highest is 0
    LOWEST_IS_BEST    100 minus that; 100 for all if the highest is 0
    AS_IS             raw

(kube-scheduler: DefaultNormalizeScore, plain and reversed.) Raw numbers are whole and not negative.

A placement can change such a score only by taking the last node of the highest raw number out of the candidates. Until
then what is added to each node is fixed, and many tasks can be placed with a heap; if it is the same for all nodes that
a shape may ever go to (nothing tainted, nothing preferred), it never changes at all.
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
    """Returns what of a shape the raw numbers depend on; None: the scorer has nothing to say of it."""
    raw: Callable[[Shape, NodeColumns], Floats]
    """Returns the raw number of every node of the view, shape (n_nodes,)."""
    kept: bool = True
    """Whether a raw number depends on the node's record alone, and so is kept over cycles until the record changes."""


class _Term(NamedTuple):
    normalizer: Normalizer
    weight: float
    raw: Floats  # (n_nodes,)


Highest = tuple[float, ...]
"""The highest raw number of each term among the candidates."""


class GroupScores:
    """What the normalised scores add to the nodes of a session for one shape."""

    __slots__ = ("_terms", "base", "fixed")

    def __init__(self, scores: Iterable[tuple[NormalizedScore, Floats]], allowed: Bools) -> None:
        """Take raw numbers of all nodes, and which nodes may ever be candidates (n_nodes,)."""
        self.base: Floats | float = 0.0  # what is added whoever the candidates are
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
        self.fixed = not self._terms  # whether nothing depends on who the candidates are

    def highest(self, group: Bools) -> Highest:
        """Return the highest raw numbers in a group of candidates (n_nodes,)."""
        return tuple(float(term.raw.max(where=group, initial=0.0)) for term in self._terms)

    def added(self, highest: Highest) -> Floats | float:
        """Return what is added to every node, shape (n_nodes,), if these are the highest raw numbers."""
        added = self.base
        for term, best in zip(self._terms, highest, strict=True):
            added = added + term.weight * normalized(term.raw, term.normalizer, best)
        return added

    def watch(self, group: Bools, highest: Highest, nodes: Rows) -> "HighestWatch | None":
        """Return a watch over these nodes, all of the group; None if the group may shrink without changing a score."""
        if self.fixed:
            return None
        holders = [term.raw == best for term, best in zip(self._terms, highest, strict=True) if best > 0]
        return HighestWatch([int(np.count_nonzero(holder & group)) for holder in holders], [h[nodes] for h in holders])


class HighestWatch:
    """Tells when the last node of a highest raw number leaves the candidates."""

    __slots__ = ("_counts", "_holds")

    def __init__(self, counts: list[int], holds: list[Bools]) -> None:
        self._counts = counts
        self._holds = [hold.tolist() for hold in holds]  # by term and place

    def leaves(self, place: int) -> bool:
        """Note that the node in this place is a candidate no more; say whether that changes the scores of others."""
        changed = False
        for term, hold in enumerate(self._holds):
            if hold[place]:
                self._counts[term] -= 1
                changed |= self._counts[term] == 0
        return changed


def normalized(raw: Floats, normalizer: Normalizer, highest: float) -> Floats:
    """Return scores of raw numbers, shape (n_nodes,)."""
    if normalizer is Normalizer.AS_IS:
        return raw
    scores = np.floor(raw * _BEST / highest) if highest > 0 else np.zeros(len(raw))
    return _BEST - scores if normalizer is Normalizer.LOWEST_IS_BEST else scores
