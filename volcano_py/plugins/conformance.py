"""Conformance: pods that the cluster itself depends on are no victims.

The plugin protects every pod of the namespace kube-system and every pod of the priority classes system-cluster-critical
and system-node-critical (`TaskTrait.CRITICAL`). (Volcano: plugins/conformance.)

In Volcano, if this plugin's tier allows no victim, a later tier decides alone and may choose a critical pod. In a
later tier, this plugin allows every victim whom the earlier tiers do not. Here a protected pod is never evicted,
whatever the tiers, and the vote of the plugin counts only beside others that protect (`Plugin.protects`).
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
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.objects import TaskTrait


class Conformance(Plugin, Preemptable, Reclaimable, UnifiedEvictable, VictimTasks, VictimFilter):
    """Protection of the cluster's own pods."""

    name = "conformance"
    protects = True
    counts = frozenset({"preemptable", "reclaimable", "protected", "unified_evictable"})

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks that are not critical."""
        return ~_critical(candidates)

    def safe_from(self, candidates: VictimCandidates) -> Floats:
        """Return infinity for critical tasks, and no limit for others, shape (n,)."""
        return np.where(_critical(candidates), np.inf, -np.inf)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks that are not critical."""
        return ~_critical(candidates)

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks that are not critical."""
        return ~_critical(candidates)

    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Return no victims; the plugin answers only so that its filter applies to this action."""
        return np.zeros(len(candidates), dtype=bool)

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return the critical tasks."""
        return _critical(candidates)


def _critical(candidates: VictimCandidates) -> Bools:
    return np.asarray(candidates.traits & TaskTrait.CRITICAL.value > 0)
