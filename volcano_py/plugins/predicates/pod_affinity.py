"""InterPodAffinity: required inter-pod affinity and anti-affinity (kube-scheduler v1.36, interpodaffinity/filtering).

Pods are counted per topology key of a term, over the domains (values of that node label):

    near     pods that match all affinity terms of the pod. A node needs at least one in its domain, for the key of each
             term. For the first pod of a series: if no domain has such a pod and the pod itself matches all its terms,
             any node with the labels will do.
    away     pods that match one of its anti-affinity terms; a node must have none in its domain
    theirs   pods with an anti-affinity term that matches this pod; a node must have none in its domain

A node without the label of a term fails affinity and passes anti-affinity.
"""

import numpy as np

from volcano_py.framework.state.topology_counts import TopologyCount, TopologyCounts, Weights
from volcano_py.model.arrays import Bools
from volcano_py.model.shape import Shape

AFFINITY, ANTI_AFFINITY, THEIRS = range(3)


class PodAffinity:
    """The three checks for one shape."""

    def __init__(self, shape: Shape, topology_counts: TopologyCounts) -> None:
        near, away = shape.pod_terms.near, shape.pod_terms.away
        meeting = dict.fromkeys(topology_counts.selected_by(term.selector for term in near), 1.0) if near else {}
        keys = dict.fromkeys(term.key for term in near)
        self._near = [
            [topology_counts.count(key, meeting, expected=expected) for key in keys]
            for expected in (topology_counts.views if near else ())
        ]
        self._first_may_start = all(term.selector in shape.selected_by for term in near)
        unwanted: dict[str, dict[int, float]] = {}
        for term in away:
            weights = unwanted.setdefault(term.key, {})
            for shape_id in topology_counts.selected_by([term.selector]):
                weights[shape_id] = weights.get(shape_id, 0.0) + 1.0
        self._away = _tallies(topology_counts, unwanted)
        self._theirs = _tallies(topology_counts, topology_counts.kept_away_by(shape))
        self._n_nodes = topology_counts.n_nodes

    @property
    def tallies(self) -> tuple[TopologyCount, ...]:
        """The topology counts on which the answers depend."""
        return (*(tally for view in self._near for tally in view), *self._away, *self._theirs)

    def allowed(self) -> Bools:
        """Return which nodes pass all three checks, shape (n_nodes,)."""
        found = np.zeros(self._n_nodes, dtype=bool)
        for tally in (*self._away, *self._theirs):
            found |= tally.present()
        np.logical_not(found, out=found)
        for near in self._nearby():
            found &= near
        return found

    def _nearby(self) -> list[Bools]:
        """Return for each key of an affinity term which nodes satisfy it, with and without pods of nominated room."""
        found: list[Bools] = []
        for view in self._near:
            first = self._first_may_start and not any(tally.total for tally in view)
            found += [tally.codes > 0 if first else tally.present() for tally in view]
        return found

    def refused(self) -> Bools:
        """Return which nodes fail each check, shape (3, n_nodes): AFFINITY, ANTI_AFFINITY, THEIRS."""
        refused = np.zeros((3, self._n_nodes), dtype=bool)
        for near in self._nearby():
            refused[AFFINITY] |= ~near
        for tally in self._away:
            refused[ANTI_AFFINITY] |= tally.present()
        for tally in self._theirs:
            refused[THEIRS] |= tally.present()
        # The filter stops at the first failure.
        refused[ANTI_AFFINITY] &= ~refused[AFFINITY]
        refused[THEIRS] &= ~(refused[AFFINITY] | refused[ANTI_AFFINITY])
        return refused


def _tallies(topology_counts: TopologyCounts, weights: dict[str, dict[int, float]]) -> list[TopologyCount]:
    found: list[tuple[str, Weights]] = [(key, counted) for key, counted in weights.items() if counted]
    return [topology_counts.count(key, counted) for key, counted in found]
