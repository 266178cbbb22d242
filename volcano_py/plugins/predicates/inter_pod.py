"""The combined filters of one shape that depend on other pods."""

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools
from volcano_py.plugins.predicates.pod_affinity import AFFINITY, PodAffinity
from volcano_py.plugins.predicates.spread import NO_LABEL, HardSpread


class Filter:
    """InterPodAffinity and the hard spread constraints of a shape; one of the two may be missing."""

    def __init__(self, shape_id: int, n_nodes: int, affinity: PodAffinity | None, spread: HardSpread | None) -> None:
        self._n_nodes = n_nodes
        self._affinity = affinity
        self._spread = spread
        parts = [part for part in (affinity, spread) if part is not None]
        self._tallies = [tally for part in parts for tally in part.tallies]
        self.own_pods_matter = any(shape_id in tally.weights for tally in self._tallies)
        self._versions: list[int] = []
        self._allowed: Bools | None = None

    def allowed(self) -> Bools:
        """Return where the shape may be placed now, shape (n_nodes,); the same array until a count changes."""
        versions = [tally.version for tally in self._tallies]
        if self._allowed is None or versions != self._versions:
            self._versions = versions
            answers = [part.allowed() for part in (self._affinity, self._spread) if part is not None]
            self._allowed = answers[0] if len(answers) == 1 else answers[0] & answers[1]
        return self._allowed

    def unresolvable(self) -> Bools:
        """Return which nodes fail required affinity or lack the label of a spread constraint, shape (n_nodes,)."""
        refused = self.refused()
        return np.asarray(refused[AFFINITY] | refused[3 + NO_LABEL])

    def refused(self) -> Bools:
        """Return which nodes are refused, by the three reasons of `pod_affinity` and two of `spread`, (5, n_nodes)."""
        refused = np.zeros((5, self._n_nodes), dtype=bool)
        if self._affinity is not None:
            refused[:3] = self._affinity.refused()
        if self._spread is not None:
            refused[3:] = self._spread.refused() & ~refused[AFFINITY]
        return refused


def inter_pod_filter(ssn: State, task: TaskInfo, pod_affinity: bool, spread: bool) -> Filter | None:
    """Return the filter of a shape, made of the enabled parts; None if other pods cannot affect it."""
    topology_counts, shape = ssn.topology_counts, task.shape
    if topology_counts is None or not shape.has_inter_pod_terms:
        return None
    affinity = PodAffinity(shape, topology_counts) if pod_affinity else None
    if affinity is not None and not affinity.tallies:
        affinity = None
    hard = HardSpread(ssn, shape, topology_counts) if spread and any(one.hard for one in shape.spread) else None
    if affinity is None and hard is None:
        return None
    return Filter(task.shape_id, len(ssn.nodes), affinity, hard)
