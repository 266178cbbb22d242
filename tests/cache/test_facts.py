"""Namespaces, quotas, disruption budgets and shards on their way into snapshots."""

from typing import Any

import msgspec
import pytest

from volcano_py.api.core import ResourceQuota
from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.model.facts import BudgetRecord, ClusterFacts, Shard
from volcano_py.model.selectors import label_selector
from volcano_py.testing import a_budget, a_cluster, a_namespace, a_quota, a_shard, added, deleted, modified, quarantined


def facts(cache: ClusterCache) -> ClusterFacts:
    return cache.snapshot().facts


def with_selector(budget: PodDisruptionBudget, selector: LabelSelector | None) -> PodDisruptionBudget:
    return msgspec.structs.replace(budget, spec=msgspec.structs.replace(budget.spec, selector=selector))


def test_labels_and_annotations_of_namespaces_are_known(make_cluster: Any) -> None:
    cache = make_cluster(a_namespace("ml", labels={"team": "a"}, annotations={"note": "b"}))

    assert facts(cache).namespace_labels("ml") == {"kubernetes.io/metadata.name": "ml", "team": "a"}
    assert facts(cache).namespaces["ml"].annotations == {"note": "b"}


def test_an_unknown_namespace_has_no_labels(make_cluster: Any) -> None:
    namespace = a_namespace("ml", labels={"team": "a"})
    cache = make_cluster(namespace)

    deleted(cache, namespace)

    assert facts(cache).namespace_labels("ml") == {}


def test_a_quota_says_what_is_enforced_and_what_is_used(make_cluster: Any) -> None:
    cache = make_cluster(a_quota(cpu="1500m", **{"requests.cpu": 2, "count/pods": 0}, used={"cpu": 1}))

    (quota,) = facts(cache).quotas["default"]
    assert quota.hard == {"cpu": 1500, "requests.cpu": 2000, "count/pods": 0}
    assert quota.used == {"cpu": 1000, "requests.cpu": 0, "count/pods": 0}


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        pytest.param([], 1, id="no-quota"),
        pytest.param([None], 1, id="a-quota-without-a-weight"),
        pytest.param([3, 5, 2], 5, id="the-highest"),
        pytest.param(["0"], 1, id="zero-does-not-count"),
        pytest.param(["1500m"], 1, id="a-fraction-does-not-count"),
    ],
)
def test_the_weight_of_a_namespace_comes_from_its_quotas(make_cluster: Any, weights: list[Any], expected: int) -> None:
    cache = make_cluster(*(a_quota(f"q{number}", weight=weight) for number, weight in enumerate(weights)))

    assert facts(cache).namespace_weight("default") == expected


def test_a_quota_that_cannot_be_read_is_reported_and_left_out(make_cluster: Any) -> None:
    broken: ResourceQuota = a_quota(cpu="lots")
    cache = make_cluster(broken)

    (entry,) = cache.unreadable()
    assert entry.message.startswith("ResourceQuota default/quota cannot be read: status.hard[cpu]: ")
    assert facts(cache).quotas == {}
    modified(cache, a_quota(cpu=1))
    assert cache.unreadable() == ()


def test_a_budget_allows_what_its_controller_says(make_cluster: Any) -> None:
    cache = make_cluster(a_budget(labels={"app": "web"}, allowed=2, disrupted=["p1"]))

    (budget,) = facts(cache).budgets["default"]
    assert budget.allowed == 2
    assert budget.covers("p2", {"app": "web"})
    assert not budget.covers("p1", {"app": "web"})
    assert not budget.covers("p2", {"app": "db"})


def test_a_budget_allows_nothing_until_its_controller_has_seen_it(make_cluster: Any) -> None:
    cache = make_cluster(a_budget(allowed=2, seen=False))

    assert facts(cache).budgets["default"][0].allowed == 0


def test_a_budget_without_selector_covers_nothing_and_one_with_an_empty_one_everything(make_cluster: Any) -> None:
    cache = make_cluster(a_budget("every"), with_selector(a_budget("none"), None))

    every, none = facts(cache).budgets["default"]
    assert every.covers("p1", {})
    assert not none.covers("p1", {})


def test_a_budget_that_cannot_be_read_protects_its_whole_namespace(make_cluster: Any) -> None:
    requirement = LabelSelectorRequirement("app", "Near", ["x"])
    cache = make_cluster(with_selector(a_budget(allowed=5), LabelSelector(match_expressions=[requirement])))

    (entry,) = cache.unreadable()
    assert "spec.selector.matchExpressions[0].operator: 'Near' is not an operator: use one of In" in entry.message
    assert facts(cache).budgets["default"] == (BudgetRecord("default", "budget"),)


def test_a_budget_of_the_wrong_type_protects_its_whole_namespace_until_it_is_corrected(make_cluster: Any) -> None:
    cache = make_cluster()
    broken = quarantined(a_budget(), "Expected `int`", status={"disruptionsAllowed": "many"})

    cache.facts.budgets.on_quarantine(broken)
    assert facts(cache).budgets["default"][0].covers("any", {})
    cache.facts.budgets.on_release(broken)

    assert facts(cache).budgets == {}
    assert cache.unreadable() == ()


def test_operators_of_a_selector_take_values_or_none() -> None:
    selector = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "Exists", ["a"])])

    with pytest.raises(ValueError, match=r"s\.matchExpressions\[0\]\.values: 1 given, operator Exists takes none"):
        label_selector(selector, "s")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(a_budget(allowed=0), a_budget(allowed=1), Change.FACT, id="budget-allows-more"),
        pytest.param(a_budget(allowed=1), a_budget(allowed=0), Change.FACT_WORSE, id="budget-allows-less"),
        pytest.param(a_quota(cpu=2, used={"cpu": 1}), a_quota(cpu=2), Change.FACT, id="quota-freed"),
        pytest.param(a_quota(cpu=2), a_quota(cpu=3), Change.FACT, id="quota-raised"),
        pytest.param(a_quota(cpu=2), a_quota(cpu=2, used={"cpu": 1}), Change.FACT_WORSE, id="quota-used"),
        pytest.param(a_quota(weight=1), a_quota(weight=2), Change.FACT, id="namespace-weighs-more"),
        pytest.param(a_namespace(), a_namespace(labels={"a": "b"}), Change.FACT, id="namespace-labelled"),
        pytest.param(a_namespace(), a_namespace(annotations={"a": "b"}), Change.FACT_WORSE, id="only-annotated"),
    ],
)
def test_what_each_change_reports(changes_of: Any, before: Any, after: Any, expected: Change) -> None:
    cache = a_cluster(before)
    told = changes_of(cache)

    modified(cache, after)
    modified(cache, after)

    assert told == [{expected}]


def test_a_budget_that_is_gone_may_help(changes_of: Any) -> None:
    cache = a_cluster(a_budget())
    told = changes_of(cache)

    deleted(cache, a_budget())

    assert told == [{Change.FACT}]


def test_snapshots_share_facts_until_they_change(make_cluster: Any) -> None:
    cache = make_cluster(a_namespace())

    first, second = facts(cache), facts(cache)
    added(cache, a_namespace("other"))

    assert first is second
    assert set(facts(cache).namespaces) == {"default", "other"}
    assert set(first.namespaces) == {"default"}


def our_nodes(cache: ClusterCache) -> set[str]:
    shard = facts(cache).shard
    assert shard is not None
    return set(shard.nodes)


def test_without_a_shard_of_our_own_nodes_are_not_divided(make_cluster: Any) -> None:
    assert facts(make_cluster(a_shard("ours", ["n1"]))).shard is None


def test_a_node_that_moves_to_our_shard_is_ours_once_the_other_scheduler_releases_it() -> None:
    cache = a_cluster()
    cache.use_shard("ours", strict=True)
    assert facts(cache).shard == Shard(strict=True)

    added(cache, a_shard("ours", ["n1", "n2"]), a_shard("theirs", ["n3"], in_use=["n2", "n3"]))
    assert our_nodes(cache) == {"n1"}

    modified(cache, a_shard("theirs", ["n3"], in_use=["n3"]))
    assert our_nodes(cache) == {"n1", "n2"}


def test_without_our_shard_the_last_nodes_stay_ours() -> None:
    cache = a_cluster()
    cache.use_shard("ours", strict=False)
    ours = a_shard("ours", ["n1"])
    added(cache, ours)

    deleted(cache, ours)

    assert our_nodes(cache) == {"n1"}
