"""Structural schemas: prune, default, validate."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.apiserver.crds.schema import apply_defaults, prune, validate

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "default": 3},
        "b": {
            "type": "object",
            "default": {},
            "properties": {"c": {"type": "string", "default": "x"}, "d": {"type": "string", "nullable": True}},
        },
        "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string"}}}},
        "open": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"c": {"type": "object", "properties": {}}},
        },
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        },
    },
}
_VALUES = st.recursive(
    st.none() | st.integers(0, 3) | st.just("x"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "d", "list", "open", "z"]), inner, max_size=4)
    ),
    max_leaves=10,
)


def _prune(value: Any) -> tuple[Any, list[str]]:
    copied = copy.deepcopy(value)
    return copied, prune(copied, SCHEMA)


def test_unknown_fields_are_pruned_at_every_level_and_named() -> None:
    value = {"a": 1, "z": 1, "b": {"c": "1", "z": 1}, "list": [{"c": "1"}, {"z": 1}]}
    pruned, paths = _prune(value)
    assert pruned == {"a": 1, "b": {"c": "1"}, "list": [{"c": "1"}, {}]}
    assert sorted(paths) == ["b.z", "list[1].z", "z"]


def test_the_type_and_metadata_of_the_object_itself_are_never_pruned() -> None:
    value = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "a"}}
    assert _prune(value) == (value, [])
    assert _prune({"b": {"kind": "K"}}) == ({"b": {}}, ["b.kind"])


def test_an_embedded_resource_keeps_its_type_and_metadata() -> None:
    value = {"template": {"kind": "Pod", "metadata": {"labels": {}}, "spec": {"any": 1}, "z": 1}}
    assert _prune(value)[1] == ["template.z"]


def test_fields_that_are_preserved_may_still_know_some_of_their_children() -> None:
    assert _prune({"open": {"any": {"x": 1}, "c": {"z": 1}}})[1] == ["open.c.z"]


@given(_VALUES)
def test_pruning_twice_finds_nothing_more(value: Any) -> None:
    once, _ = _prune(value)
    assert _prune(once) == (once, [])


def test_defaults_fill_what_is_missing_also_in_defaults() -> None:
    value: dict[str, Any] = {}
    apply_defaults(value, SCHEMA)
    assert value == {"a": 3, "b": {"c": "x"}}


def test_null_is_replaced_by_the_default_but_kept_where_it_is_allowed() -> None:
    value = {"a": None, "b": {"c": None, "d": None}}
    apply_defaults(value, SCHEMA)
    assert value == {"a": 3, "b": {"c": "x", "d": None}}


def test_null_without_a_default_is_taken_away_but_not_out_of_a_list() -> None:
    strings = {"type": "object", "additionalProperties": {"type": "string"}}
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "m": strings, "l": {"type": "array", "items": strings}},
    }
    value = {"a": None, "m": {"k": None, "v": "1"}, "l": [None, {"k": None}]}
    apply_defaults(value, schema)
    assert value == {"m": {"v": "1"}, "l": [None, {}]}


def test_defaults_of_two_objects_are_not_the_same_object() -> None:
    one: dict[str, Any] = {}
    two: dict[str, Any] = {}
    apply_defaults(one, SCHEMA)
    apply_defaults(two, SCHEMA)
    one["b"]["c"] = "changed"
    assert two["b"]["c"] == "x"


@given(_VALUES)
def test_defaults_applied_twice_are_the_same_as_once(value: Any) -> None:
    once = copy.deepcopy(value)
    apply_defaults(once, SCHEMA)
    twice = copy.deepcopy(once)
    apply_defaults(twice, SCHEMA)
    assert twice == once


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        ([1, 1], {"type": "array", "x-kubernetes-list-type": "set"}, "Duplicate value: 1"),
        (
            [{"name": "a", "v": 1}, {"name": "a", "v": 2}],
            {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            'Duplicate value: {"name":"a"}',
        ),
        ([1, 2, 3], {"type": "array", "maxItems": 2}, "Too many: 3: must have at most 2 items"),
        ({"a": 1}, {"type": "object", "minProperties": 2}, "should have at least 2 properties"),
        ({"a": 1, "b": 1}, {"type": "object", "maxProperties": 1}, "Too many: 2"),
        (7, {"type": "integer", "multipleOf": 2}, "should be a multiple of 2"),
        (7, {"type": "integer", "maximum": 7, "exclusiveMaximum": True}, "should be less than 7"),
        (True, {"type": "integer"}, 'must be of type integer: "boolean"'),
        (None, {"type": "string"}, 'must be of type string: "null"'),
        (1, {"oneOf": [{"minimum": 0}, {"minimum": 1}]}, "must validate one and only one schema (oneOf)"),
        (1, {"anyOf": [{"minimum": 2}, {"minimum": 3}]}, "must validate at least one schema (anyOf)"),
        (1, {"not": {"minimum": 1}}, "must not validate the schema (not)"),
        (1, {"allOf": [{"minimum": 2}]}, "should be greater than or equal to 2"),
        (1 << 31, {"type": "integer", "format": "int32"}, "must be of type integer with format int32 in f"),
        (-(1 << 31) - 1, {"type": "integer", "format": "int32"}, "must be of type integer with format int32 in f"),
        ("a\n", {"type": "string", "pattern": "^a$"}, "should match '^a$'"),
        ("today", {"type": "string", "format": "date-time"}, 'must be of type date-time: "today"'),
        ("2026-02-30T00:00:00Z", {"type": "string", "format": "date-time"}, "must be of type date-time"),
        ("2026-W01-1T00:00:00Z", {"type": "string", "format": "date-time"}, "must be of type date-time"),
        ("2026-01-01T24:00:00Z", {"type": "string", "format": "date-time"}, "must be of type date-time"),
        ("2026-01-01T00:00:00", {"type": "string", "format": "date-time"}, "must be of type date-time"),
    ],
)
def test_every_keyword_finds_values_that_violate_it(value: Any, schema: dict[str, Any], problem: str) -> None:
    [error] = validate(value, schema, "f")
    assert problem in error.message


@pytest.mark.parametrize(
    ("value", "schema", "wanted", "found"),
    [
        (1.5, {"type": "integer"}, "integer", "number"),
        (1 << 63, {"type": "integer"}, "integer", "number"),
        (1.5, {"type": "integer", "format": "int32"}, "int32", "float64"),
        (1 << 63, {"type": "integer", "format": "int64"}, "int64", "float64"),
    ],
)
def test_a_number_that_is_no_integer_is_reported_twice_as_by_kubernetes(
    value: float, schema: dict[str, Any], wanted: str, found: str
) -> None:
    first, second = validate(value, schema, "f")
    assert (first.field, first.message) == (
        "f",
        f'Invalid value: "{found}": f in body must be of type {wanted}: "{found}"',
    )
    assert second.field == "<nil>"


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ((1 << 31) - 1, {"type": "integer", "format": "int32"}),
        ((1 << 63) - 1, {"type": "integer"}),
        ("$\n", {"type": "string", "pattern": "^[$]\n"}),
        ("a$", {"type": "string", "pattern": r"a\$"}),
        ("2026-01-01T00:00:00Z", {"type": "string", "format": "date-time"}),
        ("2026-01-01t23:59:59.123456+01:00", {"type": "string", "format": "date-time"}),
        (None, {"type": "string", "nullable": True}),
        (2, {"type": "number"}),
        (2.0, {"type": "integer"}),
        ("5", {"x-kubernetes-int-or-string": True}),
        (5, {"x-kubernetes-int-or-string": True}),
        ("any", {"x-kubernetes-preserve-unknown-fields": True}),
        ("xay", {"type": "string", "pattern": "a"}),
    ],
)
def test_values_that_keep_the_rules_pass(value: Any, schema: dict[str, Any]) -> None:
    assert validate(value, schema, "f") == []
