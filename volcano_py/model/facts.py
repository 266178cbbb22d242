"""Facts about the cluster that are neither nodes nor work: namespaces, quotas, budgets for disruptions, shards.

Plugins read them from ``ssn.facts``. A kind that the API server does not serve or does not let us read has no records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

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
    """One ResourceQuota: what the objects of its namespace may use together, and use now.

    Amounts stand under the names that the quota uses (``cpu`` and ``requests.cpu`` are two names), in the units of
    `volcano_py.model.resources.amount_of`; what that does not count (``requests.cpu``, ``count/pods``) in thousandths.
    """

    namespace: str
    name: str
    hard: Mapping[str, float] = field(default_factory=dict)  # status.hard: what is enforced
    used: Mapping[str, float] = field(default_factory=dict)  # status.used
    weight: int | None = None  # of its namespace, from spec.hard; None if it does not say, or says nothing valid


@dataclass(frozen=True, slots=True)
class BudgetRecord:
    """One PodDisruptionBudget: how many of the pods it selects may still be taken away now.

    The number is that of the disruption controller (status.disruptionsAllowed). It is 0 while the controller has not
    seen the present spec, as for the API server's own evictions. A budget that cannot be read selects every pod of its
    namespace and allows nothing: what it protects is not known.
    """

    namespace: str
    name: str
    selector: LabelSelector | None = EVERYTHING  # None selects nothing
    allowed: int = 0
    disrupted: frozenset[str] = frozenset()  # names of pods on their way out that are counted already

    def covers(self, pod_name: str, labels: Mapping[str, str]) -> bool:
        """Say whether taking away this pod of its namespace costs the budget one disruption."""
        return self.selector is not None and pod_name not in self.disrupted and self.selector.matches(labels)


@dataclass(frozen=True, slots=True)
class NodeShardRecord:
    """One NodeShard: the nodes that a scheduler is to have, and what it says that it has."""

    name: str
    desired: frozenset[str] = frozenset()
    in_use: frozenset[str] = frozenset()
    to_remove: frozenset[str] = frozenset()  # in use and not desired any more
    to_add: frozenset[str] = frozenset()  # desired and not in use yet


@dataclass(frozen=True, slots=True)
class Shard:
    """The nodes that are this scheduler's where nodes are divided among schedulers.

    A ``strict`` one (Volcano's mode hard) keeps pods off all other nodes; else (soft) those are the second choice.
    """

    nodes: frozenset[str] = frozenset()  # names; one that has no node means nothing
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """All of them at one moment; never changed, so snapshots share it."""

    namespaces: Mapping[str, NamespaceRecord] = field(default_factory=dict)  # by name
    quotas: Mapping[str, tuple[QuotaRecord, ...]] = field(default_factory=dict)  # namespace -> by name
    budgets: Mapping[str, tuple[BudgetRecord, ...]] = field(default_factory=dict)  # namespace -> by name
    shard: Shard | None = None  # None: every node is this scheduler's

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; one that nobody knows has none."""
        record = self.namespaces.get(namespace)
        return _NO_LABELS if record is None else record.labels

    def namespace_weight(self, namespace: str) -> int:
        """Return the weight of a namespace among those of a queue: the highest that its quotas give it, else 1."""
        weights = [quota.weight for quota in self.quotas.get(namespace, ()) if quota.weight is not None]
        return max(weights, default=DEFAULT_NAMESPACE_WEIGHT)


NO_FACTS: Final = ClusterFacts()


def nodes_of_shard(own: NodeShardRecord, all_shards: Iterable[NodeShardRecord]) -> frozenset[str]:
    """Return the nodes that a scheduler may use: those it is to have, without what others still use.

    So a node that changes hands is taken by the new scheduler once the old one has said that it let go. (Volcano:
    cache/shard_coordinator.go.)
    """
    taken = (other.in_use for other in all_shards if other.name != own.name)
    return own.desired.difference(*taken)
