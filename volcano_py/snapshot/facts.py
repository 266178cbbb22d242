"""The store of cluster facts: updated one by one, frozen into `ClusterFacts` for a snapshot."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from volcano_py.model.facts import (
    NO_FACTS,
    BudgetRecord,
    ClusterFacts,
    NamespaceRecord,
    NodeShardRecord,
    QuotaRecord,
    Shard,
    nodes_of_shard,
)
from volcano_py.model.hyper_nodes import NO_HYPER_NODES, HyperNode, HyperNodeTree

R = TypeVar("R", QuotaRecord, BudgetRecord)


class _PerNamespace(Generic[R]):
    """Records by namespace and name."""

    def __init__(self) -> None:
        self._records: dict[str, dict[str, R]] = {}

    def get(self, namespace: str, name: str) -> R | None:
        return self._records.get(namespace, {}).get(name)

    def set(self, record: R) -> None:
        self._records.setdefault(record.namespace, {})[record.name] = record

    def remove(self, namespace: str, name: str) -> None:
        records = self._records.get(namespace, {})
        records.pop(name, None)
        if not records:
            self._records.pop(namespace, None)

    def frozen(self) -> dict[str, tuple[R, ...]]:
        return {
            namespace: tuple(record for _, record in sorted(records.items()))
            for namespace, records in sorted(self._records.items())
        }


class FactStore:
    """Namespaces, quotas, budgets, shards and HyperNodes.

    The frozen copy for snapshots is made at most once per change, and the tree in it once per change of a HyperNode.
    """

    def __init__(self, on_labels: Callable[[str, Mapping[str, str]], None] = lambda _, __: None) -> None:
        """Take the callback for changed labels of a namespace; for a removed namespace it gets no labels."""
        self._on_labels = on_labels
        self._namespaces: dict[str, NamespaceRecord] = {}
        self._quotas: _PerNamespace[QuotaRecord] = _PerNamespace()
        self._budgets: _PerNamespace[BudgetRecord] = _PerNamespace()
        self._shards: dict[str, NodeShardRecord] = {}
        self._shard: Shard | None = None
        self._shard_name = ""
        self._hyper_nodes: dict[str, HyperNode] = {}
        self._tree: HyperNodeTree | None = NO_HYPER_NODES
        self._unreadable_queues: dict[str, str] = {}
        self._frozen: ClusterFacts | None = NO_FACTS

    @property
    def shard(self) -> Shard | None:
        """The nodes of this scheduler, None if nodes are not divided among schedulers."""
        return self._shard

    def namespace(self, name: str) -> NamespaceRecord | None:
        """Return a namespace, None if it is unknown."""
        return self._namespaces.get(name)

    def quota(self, namespace: str, name: str) -> QuotaRecord | None:
        """Return a quota, None if it is unknown."""
        return self._quotas.get(namespace, name)

    def budget(self, namespace: str, name: str) -> BudgetRecord | None:
        """Return a budget, None if it is unknown."""
        return self._budgets.get(namespace, name)

    def node_shard(self, name: str) -> NodeShardRecord | None:
        """Return a NodeShard, None if it is unknown."""
        return self._shards.get(name)

    def hyper_node(self, name: str) -> HyperNode | None:
        """Return a HyperNode, None if it is unknown."""
        return self._hyper_nodes.get(name)

    def use_shard(self, name: str, *, strict: bool) -> None:
        """Divide nodes among schedulers: this one uses the nodes of the NodeShard ``name``, none until it arrives."""
        self._shard_name = name
        self._shard = Shard(strict=strict)
        self._divide()

    def set_node_shard(self, record: NodeShardRecord) -> None:
        """Add or replace a NodeShard."""
        self._shards[record.name] = record
        self._divide()

    def remove_node_shard(self, name: str) -> None:
        """Forget a NodeShard; if it is this scheduler's own, the scheduler keeps its present nodes."""
        self._shards.pop(name, None)
        self._divide()

    def _divide(self) -> None:
        own = self._shards.get(self._shard_name)
        if self._shard is not None and own is not None:
            self._shard = replace(self._shard, nodes=nodes_of_shard(own, self._shards.values()))
        self._frozen = None

    def set_namespace(self, record: NamespaceRecord) -> None:
        """Add or replace a namespace."""
        self._namespaces[record.name] = record
        self._frozen = None
        self._on_labels(record.name, record.labels)

    def set_quota(self, record: QuotaRecord) -> None:
        """Add or replace a quota."""
        self._quotas.set(record)
        self._frozen = None

    def set_budget(self, record: BudgetRecord) -> None:
        """Add or replace a budget."""
        self._budgets.set(record)
        self._frozen = None

    def set_hyper_node(self, record: HyperNode) -> None:
        """Add or replace a HyperNode."""
        self._hyper_nodes[record.name] = record
        self._frozen = self._tree = None

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace."""
        self._namespaces.pop(name, None)
        self._frozen = None
        self._on_labels(name, {})

    def remove_quota(self, namespace: str, name: str) -> None:
        """Forget a quota."""
        self._quotas.remove(namespace, name)
        self._frozen = None

    def remove_budget(self, namespace: str, name: str) -> None:
        """Forget a budget."""
        self._budgets.remove(namespace, name)
        self._frozen = None

    def remove_hyper_node(self, name: str) -> None:
        """Forget a HyperNode."""
        self._hyper_nodes.pop(name, None)
        self._frozen = self._tree = None

    def set_unreadable_queue(self, name: str, problem: str) -> bool:
        """Note what is wrong with a queue, or forget it (""); say whether that is a change."""
        if self._unreadable_queues.get(name, "") == problem:
            return False
        self._unreadable_queues.pop(name, None)
        if problem:
            self._unreadable_queues[name] = problem
        self._frozen = None
        return True

    def frozen(self) -> ClusterFacts:
        """Return all facts as they are now, in order of the names."""
        if self._tree is None:
            self._tree = HyperNodeTree(self._hyper_nodes.values())
        if self._frozen is None:
            self._frozen = ClusterFacts(
                namespaces=dict(sorted(self._namespaces.items())),
                quotas=self._quotas.frozen(),
                budgets=self._budgets.frozen(),
                shard=self._shard,
                hyper_nodes=self._tree,
                unreadable_queues=dict(sorted(self._unreadable_queues.items())),
            )
        return self._frozen
