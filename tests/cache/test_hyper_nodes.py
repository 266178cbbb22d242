"""HyperNodes on their way into snapshots."""

from typing import Any

import msgspec
from structlog.testing import capture_logs

from volcano_py.api.meta import LabelSelector, LabelSelectorRequirement
from volcano_py.api.topology import HyperNode, HyperNodeMember, HyperNodeStatus, MemberSelector
from volcano_py.cache.changes import Change
from volcano_py.cache.cluster import ClusterCache
from volcano_py.model.hyper_nodes import HyperNodeTree
from volcano_py.testing import a_hyper_node, a_node, added, deleted, modified, quarantined


def tree(cache: ClusterCache) -> HyperNodeTree:
    return cache.snapshot().facts.hyper_nodes


def unreadable_one(name: str) -> HyperNode:
    selector = LabelSelector(match_expressions=[LabelSelectorRequirement("rack", "Near", ["r1"])])
    members = [HyperNodeMember(type="Node", selector=MemberSelector(label_match=selector))]
    written = a_hyper_node(name)
    return msgspec.structs.replace(written, spec=msgspec.structs.replace(written.spec, members=members))


def test_a_cluster_without_hyper_nodes_has_an_empty_tree(make_cluster: Any) -> None:
    assert tree(make_cluster()).by_name == {}


def test_hyper_nodes_form_the_tree_of_a_snapshot(make_cluster: Any) -> None:
    cache = make_cluster(a_hyper_node("spine", 2, children=["rack"]), a_hyper_node("rack", 1, ["n1", "n2"]))

    assert tree(cache).ancestors("rack") == ["rack", "spine"]
    assert tree(cache).by_tier == {1: ("rack",), 2: ("spine",)}


def test_a_tier_that_no_column_holds_counts_as_the_highest(make_cluster: Any) -> None:
    far = a_hyper_node("far", 2**63 - 1, children=["rack"])
    cache = make_cluster(
        far, a_hyper_node("rack", 1, ["n1"]), a_hyper_node("top", 2**70, children=["far"]), a_node("n1")
    )

    snapshot = cache.snapshot()

    assert snapshot.facts.hyper_nodes.top_tier < 2**62
    assert tree(cache).ancestors("rack")[:2] == ["rack", "far"]


def test_the_tree_follows_changes_and_deletions(make_cluster: Any) -> None:
    rack = a_hyper_node("rack", 1, ["n1"])
    cache = make_cluster(rack, a_hyper_node("spine", 2, children=["rack"]))

    modified(cache, a_hyper_node("rack", 0, ["n1"], tier_name="leaf"))
    assert tree(cache).tier_named("leaf") == 0
    deleted(cache, rack)

    assert list(tree(cache).by_name) == ["spine"]
    assert tree(cache).is_leaf("spine")


def test_the_tree_is_made_once_for_many_snapshots(make_cluster: Any) -> None:
    cache = make_cluster(a_hyper_node("rack", 1, ["n1"]))
    before = tree(cache)

    added(cache, a_node("n1"))
    modified(cache, msgspec.structs.replace(a_hyper_node("rack", 1, ["n1"]), status=HyperNodeStatus(node_count=1)))

    assert tree(cache) is before


def test_a_snapshot_keeps_its_tree(make_cluster: Any) -> None:
    cache = make_cluster(a_hyper_node("rack", 1, ["n1"]))
    snapshot = cache.snapshot()

    modified(cache, a_hyper_node("rack", 5, ["n1"]))

    assert snapshot.facts.hyper_nodes.by_name["rack"].tier == 1


def test_every_change_of_a_hyper_node_may_help_a_job(make_cluster: Any, changes_of: Any) -> None:
    cache = make_cluster()
    found = changes_of(cache)

    added(cache, a_hyper_node("rack", 1, ["n1"]))
    modified(cache, a_hyper_node("rack", 1, ["n1", "n2"]))
    deleted(cache, a_hyper_node("rack", 1, ["n1", "n2"]))

    assert found == [{Change.FACT}] * 3


def test_the_count_of_nodes_in_the_status_changes_nothing(make_cluster: Any, changes_of: Any) -> None:
    rack = a_hyper_node("rack", 1, ["n1"])
    cache = make_cluster(rack)
    found = changes_of(cache)

    modified(cache, msgspec.structs.replace(rack, status=HyperNodeStatus(node_count=1)))

    assert found == []


def test_a_hyper_node_that_cannot_be_read_is_told_and_left_out(make_cluster: Any) -> None:
    cache = make_cluster(unreadable_one("rack"), a_hyper_node("other", 1, ["n1"]))

    (entry,) = cache.unreadable()
    assert entry.message == (
        "HyperNode rack cannot be read: spec.members[0].selector.labelMatch.matchExpressions[0].operator: 'Near' is "
        "not an operator: use one of In, NotIn, Exists, DoesNotExist"
    )
    assert list(tree(cache).by_name) == ["other"]
    modified(cache, a_hyper_node("rack", 1, ["n2"]))
    assert cache.unreadable() == ()
    assert list(tree(cache).by_name) == ["other", "rack"]


def test_a_hyper_node_that_can_no_longer_be_read_leaves_the_tree(make_cluster: Any) -> None:
    rack = a_hyper_node("rack", 1, ["n1"])
    cache = make_cluster(rack)

    cache.facts.hyper_nodes.on_quarantine(quarantined(rack, "Expected `int`", spec={"tier": "low"}))

    assert tree(cache).by_name == {}


def test_contradictions_are_logged_once_and_the_rest_is_a_tree(make_cluster: Any) -> None:
    cache = make_cluster(
        a_hyper_node("a", 2, children=["leaf"]),
        a_hyper_node("b", 2, children=["leaf"]),
        a_hyper_node("leaf", 1, ["n1"]),
    )

    with capture_logs() as logs:
        assert tree(cache).parent == {"leaf": "a"}
        added(cache, a_hyper_node("c", 1, ["n2"]))
        assert not tree(cache).ready

    assert [entry["problem"] for entry in logs] == [
        "HyperNode leaf is a member of a, b: it counts for a; let one HyperNode have it"
    ]


def test_a_contradiction_that_comes_back_is_logged_again(make_cluster: Any) -> None:
    second = a_hyper_node("b", 2, children=["leaf"])
    cache = make_cluster(a_hyper_node("a", 2, children=["leaf"]), second, a_hyper_node("leaf", 1, ["n1"]))

    with capture_logs() as logs:
        tree(cache)
        deleted(cache, second)
        assert tree(cache).ready
        added(cache, second)
        tree(cache)

    assert len(logs) == 2
