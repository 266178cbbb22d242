"""Conformance: pods that the cluster itself depends on are no victims.

Protected is every pod of the namespace kube-system and every pod of the priority classes system-cluster-critical and
system-node-critical (`TaskTrait.CRITICAL`). (Volcano: plugins/conformance.)

In Volcano another tier decides alone where this plugin's tier lets nobody go, and may take a critical pod. Here what is
protected stays, whatever the tiers.
"""

import numpy as np

from volcano_py.framework.evictables import Evictables
from volcano_py.framework.extension import (
    Claim,
    Preemptable,
    Reclaimable,
    UnifiedEvictable,
    VictimFilter,
    VictimTasks,
)
from volcano_py.framework.plugin import Plugin
from volcano_py.model.objects import TaskTrait
from volcano_py.model.resources import Bools


class Conformance(Plugin, Preemptable, Reclaimable, UnifiedEvictable, VictimTasks, VictimFilter):
    """Protection of the cluster's own pods."""

    name = "conformance"
    counts = frozenset({"preemptable", "reclaimable", "spared", "unified_evictable"})

    def preemptable(self, claim: Claim, candidates: Evictables) -> Bools:
        """Let go what is not critical."""
        return ~_critical(candidates)

    def reclaimable(self, claim: Claim, candidates: Evictables) -> Bools:
        """Let go what is not critical."""
        return ~_critical(candidates)

    def unified_evictable(self, claim: Claim, candidates: Evictables) -> Bools:
        """Let go what is not critical."""
        return ~_critical(candidates)

    def victim_tasks(self, candidates: Evictables) -> Bools:
        """Name nobody; the plugin answers here so that its filter counts."""
        return np.zeros(len(candidates), dtype=bool)

    def spared(self, claim: Claim | None, candidates: Evictables) -> Bools:
        """Return what is critical."""
        return _critical(candidates)


def _critical(candidates: Evictables) -> Bools:
    return np.asarray(candidates.traits & TaskTrait.CRITICAL.value > 0)
