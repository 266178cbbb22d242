"""InterPodAffinity's score: preferred terms, in both directions (kube-scheduler v1.36, interpodaffinity/scoring).

    raw   = sum over the topology keys that the node has, over the pods in its domain:
              weights of the pod's preferred terms that match them + weights of their preferred terms that match the pod
    score = int(100 * ((raw - lowest) / (highest - lowest))) among the candidate nodes, 0 for all if they are equal

Weights of anti-affinity are negative. Required terms of other pods add nothing, because Volcano passes no
``hardPodAffinityWeight``, so it is 0 (1 in kube-scheduler). The division comes first, so raw 29 of 0..100 scores 28.
"""

import numpy as np

from volcano_py.framework.state.topology_counts import TopologyCounts
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.shape import Shape

_BEST = 100.0


class PreferredInterPodTerms:
    """The score of one shape."""

    def __init__(self, shape: Shape, topology_counts: TopologyCounts) -> None:
        weights = topology_counts.wished_by(shape)
        for weight, term in shape.pod_terms.preferred:
            by_shape = weights.setdefault(term.key, {})
            for shape_id in topology_counts.selected_by([term.selector]):
                by_shape[shape_id] = by_shape.get(shape_id, 0.0) + weight
        counted = {
            key: {shape_id: weight for shape_id, weight in found.items() if weight} for key, found in weights.items()
        }
        self._tallies = [topology_counts.count(key, found) for key, found in counted.items() if found]

    def __bool__(self) -> bool:
        return bool(self._tallies)

    def scores(self, group: Bools) -> Floats:
        """Return scores 0..100 among the candidate nodes ``group``, shape (n_nodes,); undefined for other nodes."""
        if not group.any():
            return np.zeros(len(group))
        raw = self._tallies[0].at_nodes()
        for tally in self._tallies[1:]:
            raw += tally.at_nodes()
        candidates = raw[group]
        lowest = float(candidates.min())
        width = float(candidates.max()) - lowest
        if not width:
            return np.zeros(len(group))
        raw -= lowest
        raw /= width
        raw *= _BEST
        return np.asarray(np.trunc(raw, out=raw))
