"""Facts about the cluster besides nodes and jobs: namespaces, quotas, disruption budgets, node shards, HyperNodes.

Plugins read them from ``ssn.facts``. A kind has no records if the API server does not serve it or denies reading it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from volcano_py.model.hyper_nodes import NO_HYPER_NODES, HyperNodeTree
from volcano_py.model.selectors import EVERYTHING, LabelSelector

DEFAULT_NAMESPACE_WEIGHT: Final = 1
_NO_LABELS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class NamespaceRecord:
    """One namespace."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuotaRecord:
    """One ResourceQuota: how much the objects of its namespace may use together, and how much they use now.

    Keys are the quota's own names (``cpu`` and ``requests.cpu`` are two names). Units are those of
    `volcano_py.model.resources.amount_of`; names that it does not count (``requests.cpu``, ``count/pods``) are in
    thousandths.
    """

    namespace: str
    name: str
    hard: Mapping[str, float] = field(default_factory=dict)  # status.hard: what is enforced
    used: Mapping[str, float] = field(default_factory=dict)  # status.used
    weight: int | None = None  # the namespace's weight from spec.hard; None if it is missing or invalid


@dataclass(frozen=True, slots=True)
class BudgetRecord:
    """One PodDisruptionBudget: how many of the pods that it selects may still be evicted now.

    The number comes from the disruption controller (status.disruptionsAllowed). It is 0 until the controller has
    observed the current spec; the API server's own evictions do the same. A budget that cannot be read selects every
    pod of its namespace and allows no eviction, because nobody knows what it protects.
    """

    namespace: str
    name: str
    selector: LabelSelector | None = EVERYTHING  # None selects nothing
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()  # names of pods that are being evicted and already counted

    def covers(self, pod_name: str, labels: Mapping[str, str]) -> bool:
        """Say whether evicting this pod of the budget's namespace costs one disruption."""
        return self.selector is not None and pod_name not in self.disrupted and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class NodeShardRecord:
    """One NodeShard: the nodes assigned to a scheduler, and the nodes it reports as in use."""

    name: str
    desired: frozenset[str] = frozenset()
    in_use: frozenset[str] = frozenset()
    to_remove: frozenset[str] = frozenset()  # in use but no longer desired
    to_add: frozenset[str] = frozenset()  # desired but not in use yet


@dataclass(frozen=True, slots=True)
class Shard:
    """The nodes of this scheduler when nodes are divided among several schedulers.

    A ``strict`` shard (Volcano's mode hard) keeps pods off all other nodes. Otherwise (soft) those are second choice.
    """

    nodes: frozenset[str] = frozenset()  # names; a name without a node is ignored
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """All facts at one moment. It never changes, so snapshots share it."""

    namespaces: Mapping[str, NamespaceRecord] = field(default_factory=dict)  # by name
    quotas: Mapping[str, tuple[QuotaRecord, ...]] = field(default_factory=dict)  # namespace -> by name
    budgets: Mapping[str, tuple[BudgetRecord, ...]] = field(default_factory=dict)  # namespace -> by name
    shard: Shard | None = None  # None: every node is this scheduler's
    hyper_nodes: HyperNodeTree = NO_HYPER_NODES
    unreadable_queues: Mapping[str, str] = field(default_factory=dict)  # name -> what is wrong with it

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; an unknown namespace has none."""
        record = self.namespaces.get(namespace)
        return _NO_LABELS if record is None else record.labels

    def namespace_weight(self, namespace: str) -> int:
        """Return the weight of a namespace within a queue: the highest weight that its quotas give it, else 1."""
        weights = [quota.weight for quota in self.quotas.get(namespace, ()) if quota.weight is not None]
        return max(weights, default=DEFAULT_NAMESPACE_WEIGHT)


NO_FACTS: Final = ClusterFacts()


def nodes_of_shard(own: NodeShardRecord, all_shards: Iterable[NodeShardRecord]) -> frozenset[str]:
    """Return the nodes that a scheduler may use: its desired nodes without those that others still use.

    So a node that moves to another scheduler is used there only after the old scheduler has reported that it no longer
    uses the node. (Volcano: cache/shard_coordinator.go.)
    """
    taken = (other.in_use for other in all_shards if other.name != own.name)
    return own.desired.difference(*taken)
