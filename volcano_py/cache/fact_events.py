"""Events of namespaces, quotas, disruption budgets, shards and HyperNodes: one record per object, read by few plugins.

If an object cannot be read, a namespace counts as one without labels, a quota, a NodeShard or a HyperNode as absent
(admission still enforces the quota), and a budget as one that allows no disruption in its namespace. HyperNodes that
contradict each other are used as far as they form a tree; what does not is logged.
"""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import structlog

from volcano_py.api.core import Namespace, ResourceQuota
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.api.shard import NodeShard
from volcano_py.api.topology import HyperNode
from volcano_py.cache.changes import Change
from volcano_py.cache.facts import budget_record, namespace_record, quota_record, shard_record
from volcano_py.cache.state import ClusterState
from volcano_py.cache.unreadable_objects import Unreadable, UnreadableObjects
from volcano_py.kube.delivery import Event, EventType, KubernetesObject, Quarantined
from volcano_py.model.facts import BudgetRecord, NamespaceRecord, NodeShardRecord, QuotaRecord
from volcano_py.model.hyper_nodes import HyperNode as HyperNodeRecord
from volcano_py.model.hyper_nodes import HyperNodeTree, hyper_node_record
from volcano_py.snapshot.facts import FactStore

log = structlog.get_logger()

W = TypeVar("W", bound=KubernetesObject)
R = TypeVar("R")


class FactEvents(Generic[W, R]):
    """Keeps the records of one kind equal to the API server's objects."""

    def __init__(
        self,
        kind: str,
        state: ClusterState,
        unreadable: UnreadableObjects,
        *,
        read: Callable[[W], R],
        get: Callable[[str, str], R | None],
        put: Callable[[R], None],
        drop: Callable[[str, str], None],
        helps: Callable[[R | None, R | None], bool],
        instead: Callable[[str, str], R | None] = lambda _, __: None,
    ) -> None:
        """Take how objects are read and where records go.

        ``helps`` says whether a change of a record may let a pending job be placed. ``instead`` returns the record of
        an object that cannot be read, by namespace and name.
        """
        self._kind = kind
        self._state = state
        self._unreadable = unreadable
        self._read = read
        self._get = get
        self._put = put
        self._drop = drop
        self._helps = helps
        self._instead = instead

    def on_events(self, events: list[Event[W]]) -> None:
        """Apply changes in order."""
        for event in events:
            if event.type is EventType.DELETED or event.object is None:
                self._unreadable.discard(self._kind, event.uid)
                self._become(event.namespace, event.name, None)
            else:
                self._apply(event.object)
        self._state.notify()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave out an object that does not fit its type."""
        self._leave_out(Unreadable(self._kind, entry.namespace, entry.name, entry.uid, entry.message))
        self._state.notify()

    def on_release(self, entry: Quarantined) -> None:
        """Forget why an object was left out; its event follows, unless it is gone."""
        self._unreadable.discard(self._kind, entry.uid)
        self._become(entry.namespace, entry.name, None)
        self._state.notify()

    def _apply(self, obj: W) -> None:
        meta = obj.metadata
        try:
            record = self._read(obj)
        except ValueError as error:
            named = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            message = f"{self._kind} {named} cannot be read: {error}"
            self._leave_out(Unreadable(self._kind, meta.namespace, meta.name, meta.uid, message))
            return
        self._unreadable.discard(self._kind, meta.uid)
        self._become(meta.namespace, meta.name, record)

    def _leave_out(self, entry: Unreadable) -> None:
        self._unreadable.add(entry)
        self._become(entry.namespace, entry.name, self._instead(entry.namespace, entry.name))

    def _become(self, namespace: str, name: str, after: R | None) -> None:
        before = self._get(namespace, name)
        if before == after:
            return
        if after is None:
            self._drop(namespace, name)
        else:
            self._put(after)
        self._state.note(Change.FACT if self._helps(before, after) else Change.FACT_WORSE)


class FactEventHandlers:
    """The event handlers of namespaces, quotas, disruption budgets, shards and HyperNodes."""

    def __init__(self, state: ClusterState, unreadable: UnreadableObjects) -> None:
        self.namespaces = _namespace_events(state, unreadable)
        self.quotas = _quota_events(state, unreadable)
        self.budgets = _budget_events(state, unreadable)
        self.shards = _shard_events(state, unreadable)
        self.hyper_nodes = _hyper_node_events(state, unreadable)
        self._told: frozenset[str] = frozenset()

    def tell(self, tree: HyperNodeTree) -> None:
        """Log the contradictions among HyperNodes, each once while it lasts."""
        for problem in tree.problems:
            if problem not in self._told:
                log.warning("HyperNodes contradict each other", problem=problem)
        self._told = frozenset(tree.problems)


def _namespace_events(state: ClusterState, unreadable: UnreadableObjects) -> FactEvents[Namespace, NamespaceRecord]:
    facts: FactStore = state.store.facts
    return FactEvents(
        "Namespace",
        state,
        unreadable,
        read=namespace_record,
        get=lambda _, name: facts.namespace(name),
        put=facts.set_namespace,
        drop=lambda _, name: facts.remove_namespace(name),
        helps=lambda before, after: (before.labels if before else {}) != (after.labels if after else {}),
    )


def _quota_events(state: ClusterState, unreadable: UnreadableObjects) -> FactEvents[ResourceQuota, QuotaRecord]:
    facts = state.store.facts
    return FactEvents(
        "ResourceQuota",
        state,
        unreadable,
        read=quota_record,
        get=facts.quota,
        put=facts.set_quota,
        drop=facts.remove_quota,
        helps=_quota_helps,
    )


def _budget_events(state: ClusterState, unreadable: UnreadableObjects) -> FactEvents[PodDisruptionBudget, BudgetRecord]:
    facts = state.store.facts
    return FactEvents(
        "PodDisruptionBudget",
        state,
        unreadable,
        read=budget_record,
        get=facts.budget,
        put=facts.set_budget,
        drop=facts.remove_budget,
        helps=_budget_helps,
        instead=BudgetRecord,
    )


def _shard_events(state: ClusterState, unreadable: UnreadableObjects) -> FactEvents[NodeShard, NodeShardRecord]:
    facts = state.store.facts
    return FactEvents(
        "NodeShard",
        state,
        unreadable,
        read=shard_record,
        get=lambda _, name: facts.node_shard(name),
        put=facts.set_node_shard,
        drop=lambda _, name: facts.remove_node_shard(name),
        helps=lambda _, __: True,
    )


def _hyper_node_events(state: ClusterState, unreadable: UnreadableObjects) -> FactEvents[HyperNode, HyperNodeRecord]:
    facts = state.store.facts
    return FactEvents(
        "HyperNode",
        state,
        unreadable,
        read=hyper_node_record,
        get=lambda _, name: facts.hyper_node(name),
        put=facts.set_hyper_node,
        drop=lambda _, name: facts.remove_hyper_node(name),
        helps=lambda _, __: True,
    )


def _quota_helps(before: QuotaRecord | None, after: QuotaRecord | None) -> bool:
    if before is None:
        return after is not None and after.weight is not None
    if after is None or before.weight != after.weight:
        return True
    return _less_of_some(after.used, before.used) or any(
        name not in after.hard or after.hard[name] > limit for name, limit in before.hard.items()
    )


def _less_of_some(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    return any(left.get(name, 0.0) < amount for name, amount in right.items())


def _budget_helps(before: BudgetRecord | None, after: BudgetRecord | None) -> bool:
    if before is None or after is None:
        return after is None
    return before.selector != after.selector or after.allowed > before.allowed or after.disrupted != before.disrupted
