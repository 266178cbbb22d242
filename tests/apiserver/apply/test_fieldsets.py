"""Sets of fields, and what merging and removing do with them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from volcano_py.apiserver.apply.fieldsets import fields_of, path_text, read_fields, write_fields
from volcano_py.apiserver.apply.merging import merged, without
from volcano_py.apiserver.apply.structure import Named

ROOT = Named()
leaves = st.one_of(st.integers(), st.text(max_size=3), st.booleans(), st.lists(st.integers(), max_size=2))
names = st.sampled_from(["a", "b", "c", "labels"])
containers = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("xyz")}, optional={"image": st.text(max_size=3)}),
    unique_by=lambda item: item["name"],
    max_size=3,
)
trees: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda inner: st.dictionaries(names, inner, min_size=1, max_size=3), max_leaves=8
)
objects = st.fixed_dictionaries(
    {"spec": st.fixed_dictionaries({}, optional={"containers": containers, "a": trees, "b": trees})},
    optional={"data": st.dictionaries(names, st.text(max_size=3), max_size=3)},
)


@given(objects)
def test_a_set_survives_being_written_and_read(obj: dict[str, Any]) -> None:
    fields = frozenset(fields_of(obj, ROOT))
    assert read_fields(write_fields(fields)) == fields


@given(objects, objects)
def test_applied_fields_are_in_the_merged_object(live: dict[str, Any], config: dict[str, Any]) -> None:
    after = fields_of(merged(live, config, ROOT), ROOT)
    for path, value in fields_of(config, ROOT).items():
        if value in ({}, []):  # an empty map or list adds nothing to what is there
            continue
        assert after[path] == value


@given(objects, objects)
def test_applying_twice_is_applying_once(live: dict[str, Any], config: dict[str, Any]) -> None:
    once = merged(live, config, ROOT)
    assert merged(once, config, ROOT) == once


@given(objects)
def test_removing_every_field_leaves_nothing(obj: dict[str, Any]) -> None:
    assert not without(obj, frozenset(fields_of(obj, ROOT)), ROOT)


def test_paths_read_as_in_a_real_conflict() -> None:
    path = ("f:spec", "f:containers", 'k:{"name":"a"}', "f:args", 'v:"x"')
    assert path_text(path) == '.spec.containers[name="a"].args[="x"]'


def test_ports_are_distinguished_by_number_and_protocol() -> None:
    ports = [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}]
    obj = {"spec": {"containers": [{"name": "a", "ports": ports}]}}
    elements = {path[-1] for path in fields_of(obj, ROOT) if path[-1].startswith('k:{"containerPort"')}
    assert elements == {
        'k:{"containerPort":53,"protocol":"UDP"}',
        'k:{"containerPort":53,"protocol":"TCP"}',
    }
