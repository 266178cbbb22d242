"""Network-topology-aware: which domain a gang gets, and which node near its other tasks.

A gang, or a sub-group, with a topology. Each part is placed in one domain, of the lowest tier that has room for it.

    domain   100 * weight * sum_r w_r * (used_r + request_r) / allocatable_r / sum_r w_r, 0 if a resource is exceeded.
             If several have the highest score, 100 * weight * (tasks of the part there / all its tasks) is added.
    node     100 * weight * (tier of the whole cluster - tier of LCA) / (tier of the whole cluster - lowest tier).
             LCA is the lowest domain above the node's leaf and above the other tasks. It is 1 for their leaf itself.
             If several nodes have the highest score, the part's tasks in the node's leaf are added as above.

Other pods go where domains are fullest. Tier 2 counts ``fading`` times as much as tier 1, and so on:

    node     100 * weight * sum_t fading^(t-1) * binpack(domain of the node at tier t) / sum_t fading^(t-1)

where binpack is the formula of domains for one pod, 1 for a node without a domain at a tier. (Volcano: plugins/
network-topology-aware.)
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from volcano_py.conf.arguments import Warn
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.topology import DomainOrder, DomainView, LeafOrder, NearOrder, Part, TierLimits
from volcano_py.framework.state.domain_sums import DomainSums
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Codes, Floats, Ints
from volcano_py.plugins.network_topology_aware.arguments import KEYS, Arguments, parse
from volcano_py.snapshot.domains import Domains

_BEST = 100.0
_PLACED_BY_TOPOLOGY = 1


class NetworkTopologyAware(Plugin, TierLimits, DomainOrder, LeafOrder, NearOrder):
    """Scores of domains, and of nodes by their domains."""

    name = "network-topology-aware"
    arguments = KEYS

    def __init__(self, arguments: Arguments | None = None) -> None:
        self._args = arguments or Arguments()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> Arguments:
        """Read the arguments; a negative number counts as the default.

        ``weight`` (1). Weights of resources: ``hypernode.binpack.cpu`` and ``hypernode.binpack.memory`` (1), and for
        names in ``hypernode.binpack.resources`` the keys ``hypernode.binpack.resources.<name>`` (1). For pods without
        topology: ``hypernode.binpack.normal-pod.enable`` (true), ``hypernode.binpack.normal-pod.fading`` (0.8). The
        actions for gangs try at most ``hypernode.gradient.evict.max-hypernodes`` (8) domains of one tier.
        """
        return parse(arguments, warn)

    def equivalence_keys(self, ssn: State) -> Ints | None:
        """Tell the tasks of jobs that are placed by topology from other tasks of their shape."""
        jobs = ssn.jobs.rules.with_topology
        if not len(jobs):
            return None
        chosen = np.zeros(len(ssn.jobs) + 1, dtype=np.int64)  # the last one stands for tasks without a job
        chosen[jobs] = _PLACED_BY_TOPOLOGY
        return np.where(ssn.tasks.job >= 0, chosen[ssn.tasks.job], 0)

    def on_session_open(self, ssn: State) -> None:
        """Arrange the configured weights in this snapshot's resource order."""
        self._ssn = ssn
        self._weights = ssn.resources.vector(self._args.resource_weights)  # (n_resources,)
        self._sums = DomainSums(ssn)
        self._tiers: Sequence[Codes] = ()

    def most_domains(self) -> int:
        """Return the configured number."""
        return self._args.most_domains

    # Gangs and sub-groups with a topology

    def domain_order(self, part: Part, domains: DomainView) -> Floats:
        """Return how full each domain would be, shape (n_domains,)."""
        scores = self._binpack(part.request, domains.used, domains.allocatable)
        best = scores == scores.max()
        if np.count_nonzero(best) > 1 and len(part.tasks):
            scores = np.where(best, scores + domains.tasks / len(part.tasks), scores)
        return scores * (_BEST * self._args.weight)

    def near_order(self, part: Part, domains: Domains, begun: int, counts: Ints, group: Bools) -> Floats:
        """Return how near each node of a group is to the other tasks, shape (n_nodes,)."""
        lowest, highest = domains.tier_of[0], domains.tier_of[domains.top]
        scores = (highest - domains.common_tiers(begun)) / max(highest - lowest, 1)
        scores[domains.innermost == begun] = 1.0
        best = group & (scores == scores.max(where=group, initial=0.0))
        if np.count_nonzero(best) > 1 and len(part.tasks):
            scores = np.where(best, scores + counts[domains.leaf] / len(part.tasks), scores)
        return np.asarray(scores * (_BEST * self._args.weight))

    # Other pods

    def _scored(self, task: TaskInfo) -> bool:
        by_topology = task.equivalence_key(self.name) == _PLACED_BY_TOPOLOGY
        return self._args.normal_pods and not by_topology and bool(self._ssn.facts.hyper_nodes.by_name)

    def leaf_order(self, task: TaskInfo) -> Floats | None:
        """Return how full the domains above each node would be, shape (n_nodes,); None for tasks with a topology."""
        if not self._scored(task):
            return None
        found = self._binpack(task.request, self._sums.used(), self._sums.allocatable)
        total, weights = np.zeros(len(self._ssn.nodes)), 0.0
        for tier, at_tier in zip(self._ssn.domains.tiers, self._at_tiers(), strict=True):  # a Python loop over tiers
            weight = self._args.fading ** max(tier.tier - 1, 0)
            total += weight * np.where(at_tier >= 0, found[at_tier], 1.0)
            weights += weight
        return np.asarray(total * (_BEST * self._args.weight / weights if weights else 0.0))

    def _at_tiers(self) -> Sequence[Codes]:
        """Return the domain of each node at each tier, -1 for none, shape (n_nodes,) each."""
        if not self._tiers:
            domains = self._ssn.domains
            self._tiers = [domains.at(tier) for tier in domains.tiers]
        return self._tiers

    def _binpack(self, request: Floats, used: Floats, allocatable: Floats) -> Floats:
        """Return how full columns would be with a request, from 0 to 1; 0 where it does not fit."""
        rows = np.flatnonzero((request > 0) & (self._weights > 0))
        weights = self._weights[rows]
        if not weights.sum():
            return np.zeros(used.shape[1])
        after = used[rows] + request[rows, None]
        capacity = allocatable[rows]
        fits = (after <= capacity).all(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(capacity > 0, after / capacity, 0.0)
        return np.asarray(np.where(fits, weights @ shares / weights.sum(), 0.0))
