"""Merge patch, JSON patch and strategic merge patch, as functions."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.apiserver.patches import json_patch, merge_patch
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.strategic import strategic_merge

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from("xyz"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches_of_the_standard(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


@given(_JSON, _JSON)
def test_a_merge_patch_applied_twice_is_the_same_as_once(target: Any, patch: Any) -> None:
    once = merge_patch(copy.deepcopy(target), copy.deepcopy(patch))
    assert merge_patch(copy.deepcopy(once), copy.deepcopy(patch)) == once


@pytest.mark.parametrize(
    ("document", "operations", "result"),
    [
        ({"foo": ["a", "b"]}, [{"op": "add", "path": "/foo/1", "value": "x"}], {"foo": ["a", "x", "b"]}),
        ({"foo": ["a"]}, [{"op": "add", "path": "/foo/-", "value": "b"}], {"foo": ["a", "b"]}),
        ({"foo": ["a", "b"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["a"]}),
        ({"a": {"x": 1}}, [{"op": "move", "from": "/a/x", "path": "/b"}], {"a": {}, "b": 1}),
        ({"a": 1}, [{"op": "add", "path": "", "value": {"b": 2}}], {"b": 2}),
        ({"a/b": 1, "m~n": 2}, [{"op": "remove", "path": "/a~1b"}, {"op": "remove", "path": "/m~0n"}], {}),
        ({"a": [1, 2]}, [{"op": "test", "path": "/a", "value": [1, 2]}], {"a": [1, 2]}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": None}], {"a": None}),
    ],
)
def test_json_patches_of_the_standard(document: Any, operations: Any, result: Any) -> None:
    assert json_patch(document, operations) == result


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/list/5", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "remove", "path": "/none"},
        {"op": "remove", "path": "/list/x"},
        {"op": "test", "path": "/a", "value": 2},
        {"op": "replace", "path": "no-slash", "value": 2},
        {"op": "add", "path": "/a"},
        {"path": "/a"},
        "text",
    ],
)
def test_a_json_patch_that_does_not_apply_is_422_whatever_is_wrong(operation: Any) -> None:
    with pytest.raises(StatusError) as caught:
        json_patch({"a": 1, "list": [1]}, [operation])
    assert caught.value.code == 422


def test_strategic_merge_goes_into_lists_by_key_at_every_depth() -> None:
    target = {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}}
    patch = {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "2"}, {"name": "Y"}]}]}}
    merged = strategic_merge(target, patch)
    assert merged["spec"]["containers"] == [
        {"name": "a", "env": [{"name": "Y"}, {"name": "X", "value": "2"}]},
        {"name": "b"},
    ]


def test_ports_are_keyed_by_where_they_stand() -> None:
    pod = strategic_merge(
        {"containers": [{"name": "a", "ports": [{"containerPort": 80}]}]},
        {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}]},
    )
    assert pod["containers"][0]["ports"] == [{"containerPort": 80, "name": "web"}]
    service = strategic_merge({"spec": {"ports": [{"port": 1}]}}, {"spec": {"ports": [{"port": 1, "name": "x"}]}})
    assert service["spec"]["ports"] == [{"port": 1, "name": "x"}]


def test_strategic_directives() -> None:
    target = {"conditions": [{"type": "A"}, {"type": "B"}], "map": {"x": 1, "y": 2}, "finalizers": ["a", "b"]}
    patch = {
        "conditions": [{"$patch": "replace"}, {"type": "C"}],
        "map": {"$retainKeys": ["x", "z"], "z": 3},
        "$deleteFromPrimitiveList/finalizers": ["a"],
        "$setElementOrder/conditions": [{"type": "C"}],
    }
    assert strategic_merge(target, patch) == {
        "conditions": [{"type": "C"}],
        "map": {"x": 1, "z": 3},
        "finalizers": ["b"],
    }
    with pytest.raises(StatusError, match="Unknown patch type"):
        strategic_merge({}, {"map": {"$patch": "explode"}})
