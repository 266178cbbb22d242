"""Converts namespaces, quotas, disruption budgets and shards to records."""

from fractions import Fraction
from sys import intern

from volcano_py.api import keys
from volcano_py.api import meta as wire
from volcano_py.api.core import Namespace, ResourceQuota
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.api.quantity import milli
from volcano_py.api.shard import NodeShard
from volcano_py.model.facts import BudgetRecord, NamespaceRecord, NodeShardRecord, QuotaRecord
from volcano_py.model.pod_request import read_resource_list
from volcano_py.model.resources import amount_of
from volcano_py.model.selectors import label_selector


def namespace_record(namespace: Namespace) -> NamespaceRecord:
    """Return the record of a namespace."""
    meta = namespace.metadata
    return NamespaceRecord(intern(meta.name), meta.labels, meta.annotations)


def quota_record(quota: ResourceQuota) -> QuotaRecord:
    """Return the record of a quota; raise QuantityError naming the field that cannot be read."""
    meta, spec, status = quota.metadata, quota.spec, quota.status
    return QuotaRecord(
        namespace=intern(meta.namespace),
        name=meta.name,
        hard=_amounts(status.hard, "status.hard"),
        used=_amounts(status.used, "status.used"),
        weight=_weight(read_resource_list(spec.hard, "spec.hard").get(keys.NAMESPACE_WEIGHT)),
    )


def budget_record(budget: PodDisruptionBudget) -> BudgetRecord:
    """Return the record of a disruption budget; raise ValueError naming the field that cannot be read."""
    meta, status = budget.metadata, budget.status
    selector = budget.spec.selector
    current = status.observed_generation >= meta.generation
    return BudgetRecord(
        namespace=intern(meta.namespace),
        name=meta.name,
        selector=None if selector is None else label_selector(selector, "spec.selector"),
        allowed=status.disruptions_allowed if current else 0,
        disrupted=frozenset(status.disrupted_pods),
    )


def shard_record(shard: NodeShard) -> NodeShardRecord:
    """Return the record of a NodeShard."""
    spec, status = shard.spec, shard.status
    return NodeShardRecord(
        name=shard.metadata.name,
        desired=frozenset(map(intern, spec.nodes_desired)),
        in_use=frozenset(map(intern, status.nodes_in_use)),
        to_remove=frozenset(status.nodes_to_remove),
        to_add=frozenset(status.nodes_to_add),
    )


def _amounts(quantities: wire.ResourceList, where: str) -> dict[str, float]:
    """Return an amount for every name, including zeros: a limit of 0 is not the same as no limit."""
    return {name: _amount(name, value) for name, value in read_resource_list(quantities, where).items()}


def _amount(name: str, value: Fraction) -> float:
    amount = amount_of(name, value)
    return float(milli(value)) if amount is None else amount


def _weight(written: Fraction | None) -> int | None:
    """Return the weight of a namespace; None unless it is a whole number above 0."""
    if written is None or written < 1 or written.denominator != 1:
        return None
    return int(written)
