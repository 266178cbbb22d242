"""HyperNodes from labels of nodes, and what the configuration may say."""

import time
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.api.topology import HyperNode
from volcano_py.controllers.hypernode.configuration import KEY, ConfigurationError, read, sources
from volcano_py.controllers.hypernode.discovery import plan
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.writes import Create, Delete, Patch
from volcano_py.kube.resource import HYPER_NODES
from volcano_py.model.hyper_nodes import HyperNodeTree, NodeNames, hyper_node_record

TYPES = {"roce": ("rack", "spine")}


def applied(existing: list[HyperNode], decided: Plan) -> list[HyperNode]:
    """Return the HyperNodes after all writes of a plan."""
    found = {one.metadata.name: one for one in existing}
    for write in (write for step in decided.steps for write in (step if isinstance(step, tuple) else (step,))):
        match write:
            case Create(body=body):
                assert isinstance(body, Mapping)
                assert body["metadata"]["name"] not in found
                found[body["metadata"]["name"]] = with_uid(body)
            case Patch(name=name, body=body):
                assert body["metadata"]["uid"] == found[name].metadata.uid
                labels = {**found[name].metadata.labels, **body["metadata"]["labels"]}
                found[name] = with_uid({**body, "metadata": {**body["metadata"], "labels": labels}})
            case Delete(name=name, uid=uid):
                assert found.pop(name).metadata.uid == uid
            case _:
                raise AssertionError(write)
    return list(found.values())


def with_uid(body: Mapping[str, Any]) -> HyperNode:
    meta = {**body["metadata"], "uid": f"uid-{body['metadata']['name']}"}
    return msgspec.convert({**body, "metadata": meta}, HyperNode)


def domains(found: list[HyperNode], nodes: Mapping[str, Mapping[str, str]]) -> dict[tuple[int, str, str], set[str]]:
    """Return the nodes below each HyperNode, by tier, label and value."""
    tree = HyperNodeTree(hyper_node_record(one) for one in found)
    names = NodeNames(list(nodes), list(nodes.values()))
    rows = tree.domains(names)
    return {
        (one.spec.tier, one.spec.tier_name, one.metadata.labels[one.spec.tier_name]): {
            names.names[row] for row in rows[one.metadata.name]
        }
        for one in found
    }


nodes_of_racks = st.dictionaries(
    st.sampled_from([f"node-{index}" for index in range(8)]),
    st.fixed_dictionaries({}, optional={"rack": st.sampled_from(["r1", "r2", "r3", ""]), "spine": st.just("s1")}),
)


@given(nodes_of_racks, nodes_of_racks)
def test_domains_are_the_nodes_with_the_labels_and_names_stay(
    before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]
) -> None:
    first = applied([], plan(TYPES, before, []))
    second = applied(first, plan(TYPES, after, first))

    for nodes, found in ((before, first), (after, second)):
        expected: dict[tuple[int, str, str], set[str]] = {}
        for name, labels in nodes.items():
            if labels.get("rack"):
                expected.setdefault((1, "rack", labels["rack"]), set()).add(name)
                if labels.get("spine"):
                    expected.setdefault((2, "spine", labels["spine"]), set())
        for (tier, key, value), members in domains(found, nodes).items():
            if tier == 1:
                assert members == expected.pop((tier, key, value))
            else:  # a rack is below the spine if one of its nodes is
                racks = {labels["rack"] for labels in nodes.values() if labels.get("rack") and labels.get("spine")}
                assert members == {name for name, labels in nodes.items() if labels.get("rack") in racks}
                expected.pop((tier, key, value))
        assert expected == {}
        assert plan(TYPES, nodes, found) == NOTHING
    values = {(one.spec.tier_name, one.metadata.labels[one.spec.tier_name]): one.metadata.name for one in first}
    for one in second:
        known = (one.spec.tier_name, one.metadata.labels[one.spec.tier_name])
        assert values.get(known, one.metadata.name) == one.metadata.name


def test_hyper_nodes_of_others_are_left_alone_and_names_that_exist_are_kept() -> None:
    nodes = {"a": {"rack": "r1"}}
    theirs = with_uid(
        {"metadata": {"name": "hypernode-roce-tier1-mine", "labels": {"rack": "r1"}}, "spec": {"tier": 1}}
    )
    (made,) = applied([], plan(TYPES, nodes, []))
    meta = replace_name(made, "hypernode-roce-tier1-abcde")

    assert plan(TYPES, nodes, [theirs, meta]) == NOTHING
    assert plan({}, nodes, [theirs, meta]).steps == ((Delete(HYPER_NODES, "", meta.metadata.name, meta.metadata.uid),),)


def replace_name(one: HyperNode, name: str) -> HyperNode:
    return msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, name=name))


# Configuration


def entry(**config: Any) -> dict[str, Any]:
    return {"source": "label", "enabled": True, "config": {"networkTopologyTypes": config}}


def levels(*labels: str) -> list[dict[str, str]]:
    return [{"nodeLabel": label} for label in labels]


def test_values_whose_names_would_be_the_same_have_hyper_nodes_of_their_own() -> None:
    types = {"roce": ("example.com/rack",)}
    nodes = {name: {"example.com/rack": name} for name in ("rack-2446", "rack-4754")}  # they have the same hash

    found = applied([], plan(types, nodes, []))

    assert len(found) == 2
    assert plan(types, nodes, found) == NOTHING
    late = applied([], plan(types, {"rack-4754": nodes["rack-4754"]}, []))
    assert len(applied(late, plan(types, nodes, late))) == 2


def test_a_look_at_thousands_of_hyper_nodes_does_not_keep_the_event_loop() -> None:
    nodes = {f"node-{number}": {"rack": f"r{number}", "spine": f"s{number // 8}"} for number in range(4000)}
    found = applied([], plan(TYPES, nodes, []))
    begin = time.process_time()

    assert plan(TYPES, nodes, found) == NOTHING
    assert time.process_time() - begin < 5.0  # minutes, if every HyperNode is compared with every other


def test_the_labels_are_read_from_the_narrowest_and_the_node_itself_is_no_tier() -> None:
    text = yaml.safe_dump({"networkTopologyDiscovery": [entry(roce=levels("spine", "rack", "kubernetes.io/hostname"))]})

    found = sources(read({KEY: text}))

    assert (found.types, found.by_label, found.problems) == (TYPES, True, ())


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([entry(a=levels("x", "x", "h"))], "label x is there twice"),
        ([entry(**{"a" * 21: levels("x", "h")})], "more than 20 characters"),
        ([entry(a=[{"label": "x"}])], "an entry has no nodeLabel"),
        ([entry(a="x")], "not a list of node labels"),
        ([{"source": "label", "enabled": True}], "networkTopologyTypes is missing"),
        ([{"source": "ufm", "enabled": True}], "source 'ufm' is not supported: use label"),
        (["label"], "is not a mapping"),
        ("label", "is not a list"),
        ([entry(a=levels("x", "h")), entry(b=levels("x", "h"))], "configured twice"),
    ],
)
def test_what_has_no_effect_is_said(entries: Any, problem: str) -> None:
    found = sources({"networkTopologyDiscovery": entries})

    assert len(found.problems) == 1
    assert problem in found.problems[0]


def test_a_source_that_is_not_enabled_says_nothing() -> None:
    assert (
        sources({"networkTopologyDiscovery": [{"source": "ufm"}, {"source": "label", "enabled": False}]}).problems == ()
    )
    assert sources({}) == sources(read({KEY: ""}))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a", "a mapping is expected"),
        ("a: 1\nb: ]", "line 2: did not find expected node content"),
        ("a: 1\nb: 0x_", "line 2: '0x_' is not a number"),
        ("a: " + "[" * 900 + "]" * 900, "nested too deeply"),
    ],
    ids=["list", "no YAML", "no number", "deep"],
)
def test_a_document_that_cannot_be_read_names_the_place(text: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        read({KEY: text})
