"""Conformance: pods that the cluster itself depends on are no victims.

Protected is every pod of the namespace kube-system and every pod of the priority classes system-cluster-critical and
system-node-critical (`TaskTrait.CRITICAL`). (Volcano: plugins/conformance.)

In Volcano another tier decides alone where this plugin's tier lets nobody go, and may take a critical pod. Here what is
protected stays, whatever the tiers.
"""

import numpy as np

from volcano_py.framework.contract.extension_points import (
    Preemptable,
    Preemptor,
    Reclaimable,
    UnifiedEvictable,
    VictimFilter,
    VictimTasks,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.model.arrays import Bools
from volcano_py.model.objects import TaskTrait


class Conformance(Plugin, Preemptable, Reclaimable, UnifiedEvictable, VictimTasks, VictimFilter):
    """Protection of the cluster's own pods."""

    name = "conformance"
    counts = frozenset({"preemptable", "reclaimable", "protected", "unified_evictable"})

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Let go what is not critical."""
        return ~_critical(candidates)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Let go what is not critical."""
        return ~_critical(candidates)

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Let go what is not critical."""
        return ~_critical(candidates)

    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Name nobody; the plugin answers here so that its filter counts."""
        return np.zeros(len(candidates), dtype=bool)

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return what is critical."""
        return _critical(candidates)


def _critical(candidates: VictimCandidates) -> Bools:
    return np.asarray(candidates.traits & TaskTrait.CRITICAL.value > 0)
