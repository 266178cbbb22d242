"""The combined filters of one class that depend on other pods or on what volumes they get.

Volcano asks them in this order, and a reason that no eviction could resolve is the last one of its node:

    InterPodAffinity -> volumes on the node -> VolumeZone -> PodTopologySpread -> VolumeBinding
"""

from typing import Final

import numpy as np

from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools
from volcano_py.plugins.predicates.claims import N_REASONS, ZONE, ClaimFilter
from volcano_py.plugins.predicates.pod_affinity import AFFINITY, PodAffinity
from volcano_py.plugins.predicates.spread import NO_LABEL, HardSpread

INTER_POD: Final = 5
"""The number of reasons of `pod_affinity` and `spread` together; those of `claims` follow."""
_BINDING: Final = slice(INTER_POD + ZONE + 1, INTER_POD + N_REASONS)


class Filter:
    """InterPodAffinity, hard spread constraints and volume claims of a class; each may be missing, but not all."""

    def __init__(
        self,
        shape_id: int,
        n_nodes: int,
        affinity: PodAffinity | None,
        spread: HardSpread | None,
        claims: ClaimFilter | None = None,
    ) -> None:
        self._n_nodes = n_nodes
        self._affinity = affinity
        self._spread = spread
        self._claims = claims
        parts = [part for part in (affinity, spread) if part is not None]
        self._tallies = [tally for part in parts for tally in part.tallies]
        self.own_pods_matter = any(shape_id in tally.weights for tally in self._tallies)
        if claims is not None:
            self.own_pods_matter |= claims.own_pods_matter
        self._versions: list[int] = []
        self._allowed: Bools | None = None

    def allowed(self) -> Bools:
        """Return where the shape may be placed now, shape (n_nodes,); the same array until a count changes."""
        versions = [tally.version for tally in self._tallies]
        if self._claims is not None:
            versions.append(self._claims.version)
        if self._allowed is None or versions != self._versions:
            self._versions = versions
            parts = (self._affinity, self._spread, self._claims)
            answers = [part.allowed() for part in parts if part is not None]
            self._allowed = answers[0]
            for answer in answers[1:]:
                self._allowed = self._allowed & answer
        return self._allowed

    def unresolvable(self) -> Bools:
        """Return which nodes no eviction could make fit, shape (n_nodes,).

        They fail required affinity, lack the label of a spread constraint, or cannot give claims their volumes.
        """
        refused = self.refused()
        unresolvable = refused[AFFINITY] | refused[3 + NO_LABEL]
        return np.asarray(unresolvable if self._claims is None else unresolvable | self._claims.unresolvable())

    def refused(self) -> Bools:
        """Return which nodes are refused: by the reasons of `pod_affinity`, `spread` and `claims`, (11, n_nodes)."""
        refused = np.zeros((INTER_POD + N_REASONS, self._n_nodes), dtype=bool)
        if self._affinity is not None:
            refused[:3] = self._affinity.refused()
        if self._claims is not None:
            refused[INTER_POD:] = self._claims.refused() & ~refused[AFFINITY]
        if self._spread is not None:
            refused[3:INTER_POD] = self._spread.refused() & ~ended(refused)
            refused[_BINDING] &= ~refused[3 + NO_LABEL]
        return refused


def ended(refused: Bools) -> Bools:
    """Return which nodes have one of these reasons after which VolumeBinding is not asked, shape (n_nodes,)."""
    return np.asarray(refused[AFFINITY] | refused[INTER_POD + ZONE] | refused[3 + NO_LABEL])


def inter_pod_filter(ssn: State, task: TaskInfo, pod_affinity: bool, spread: bool, zone: bool) -> Filter | None:
    """Return the filter of a class, made of the enabled parts; None if nothing can affect it."""
    topology_counts, shape = ssn.topology_counts, task.shape
    affinity = hard = claims = None
    if topology_counts is not None and shape.has_inter_pod_terms:
        affinity = PodAffinity(shape, topology_counts) if pod_affinity else None
        if affinity is not None and not affinity.tallies:
            affinity = None
        hard = HardSpread(ssn, shape, topology_counts) if spread and any(one.hard for one in shape.spread) else None
    if ssn.volumes is not None:
        need = ssn.volumes.need_of(task)
        if need.reached or need.wanted or need.exclusive:
            claims = ClaimFilter(ssn.volumes, task, ssn.nodes, zone=zone)
    if affinity is None and hard is None and claims is None:
        return None
    return Filter(task.shape_id, len(ssn.nodes), affinity, hard, claims)
