"""The definitions in manifests/crds against the types that read and write these objects."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import inspect

from volcano_py.api import keys
from volcano_py.api.meta import Wire
from volcano_py.cache.watched_kinds import WATCHED_KINDS

CRDS = Path(__file__).resolve().parents[2] / "manifests" / "crds"
KINDS: dict[str, type[Wire]] = {
    kind.resource.plural: kind.type for kind in WATCHED_KINDS if kind.resource.group == keys.SCHEDULING_GROUP
}
SCALARS: dict[type[inspect.Type], dict[str, str]] = {
    inspect.StrType: {"type": "string"},
    inspect.IntType: {"type": "integer"},
    inspect.BoolType: {"type": "boolean"},
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
}


def crd(plural: str) -> dict[str, Any]:
    path = CRDS / f"{keys.SCHEDULING_GROUP}_{plural}.yaml"
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def version(plural: str) -> dict[str, Any]:
    (only,) = crd(plural)["spec"]["versions"]
    assert only["name"] == keys.SCHEDULING_VERSION
    served: dict[str, Any] = only
    return served


def schema(plural: str, *path: str) -> dict[str, Any]:
    """Follow property names into a schema; "[]" enters the items of a list."""
    found: dict[str, Any] = version(plural)["schema"]["openAPIV3Schema"]
    for name in path:
        found = found["items"] if name == "[]" else found["properties"][name]
    return found


def mismatches(ours: inspect.Type, theirs: dict[str, Any] | None, where: str) -> list[str]:
    """List what a value of our type could hold that the schema would refuse or drop."""
    if theirs is None:
        return [f"{where}: not in the schema, so the API server drops it"]
    if isinstance(ours, inspect.UnionType):
        variants = [variant for variant in ours.types if not isinstance(variant, inspect.NoneType)]
        if len(variants) > 1:  # a quantity
            return [] if theirs.get("x-kubernetes-int-or-string") else [f"{where}: not a quantity in the schema"]
        return mismatches(variants[0], theirs, where)
    if isinstance(ours, inspect.StructType):
        properties = theirs.get("properties", {})
        return [
            problem
            for part in ours.fields
            for problem in mismatches(part.type, properties.get(part.encode_name), f"{where}.{part.encode_name}")
        ]
    if isinstance(ours, inspect.ListType):
        return mismatches(ours.item_type, theirs.get("items"), f"{where}[]")
    if isinstance(ours, inspect.DictType):
        return mismatches(ours.value_type, theirs.get("additionalProperties"), f"{where}{{}}")
    expected = SCALARS[type(ours)]
    actual = {key: theirs.get(key) for key in expected}
    return [] if actual == expected else [f"{where}: {expected} expected, the schema says {actual}"]


def structural_errors(node: dict[str, Any], where: str) -> list[str]:
    """List places without a type, which the API server does not accept in a structural schema."""
    errors = []
    if "type" not in node and not node.get("x-kubernetes-int-or-string"):
        errors.append(where)
    for name, child in node.get("properties", {}).items():
        errors += structural_errors(child, f"{where}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            errors += structural_errors(node[keyword], f"{where}.{keyword}")
    return errors


@pytest.mark.parametrize("plural", KINDS)
def test_every_field_of_our_types_exists_in_the_schema_with_its_type(plural: str) -> None:
    kind = inspect.type_info(KINDS[plural])
    assert isinstance(kind, inspect.StructType)
    problems = [
        problem
        for part in kind.fields
        if part.name != "metadata"
        for problem in mismatches(part.type, schema(plural).get("properties", {}).get(part.encode_name), part.name)
    ]
    assert problems == []


def test_a_field_that_the_schema_lacks_is_found() -> None:
    class Longer(Wire, frozen=True):
        min_member: int = 0
        brand_new: str = ""

    ours = inspect.type_info(Longer)
    assert mismatches(ours, schema("podgroups", "spec"), "spec") == [
        "spec.brandNew: not in the schema, so the API server drops it"
    ]


@pytest.mark.parametrize("plural", KINDS)
def test_the_schema_is_structural(plural: str) -> None:
    assert structural_errors(schema(plural), plural) == []


@pytest.mark.parametrize(
    ("plural", "scope", "names", "subresources"),
    [
        pytest.param(
            "podgroups",
            "Namespaced",
            {"kind": "PodGroup", "singular": "podgroup", "shortNames": ["pg", "podgroup-v1beta1"]},
            {},
            id="podgroup-has-no-status-subresource",
        ),
        pytest.param(
            "queues",
            "Cluster",
            {"kind": "Queue", "singular": "queue", "shortNames": ["q", "queue-v1beta1"]},
            {"status": {}},
            id="queue-has-one",
        ),
    ],
)
def test_names_and_scope_are_those_that_users_know(
    plural: str, scope: str, names: dict[str, object], subresources: dict[str, object]
) -> None:
    spec = crd(plural)["spec"]
    assert (spec["group"], spec["scope"]) == (keys.SCHEDULING_GROUP, scope)
    assert crd(plural)["metadata"]["name"] == f"{plural}.{keys.SCHEDULING_GROUP}"
    assert names.items() <= spec["names"].items()
    assert version(plural)["subresources"] == subresources
    assert version(plural)["served"]
    assert version(plural)["storage"]


def test_every_phase_that_the_scheduler_writes_is_allowed() -> None:
    phases = {getattr(keys, name) for name in dir(keys) if name.startswith("PHASE_")}
    assert phases == set(schema("podgroups", "status", "phase")["enum"])


@pytest.mark.parametrize(
    ("path", "default"),
    [
        pytest.param(("podgroups", "spec", "queue"), "default", id="podgroup-queue"),
        pytest.param(("podgroups", "spec", "networkTopology", "mode"), "hard", id="topology-mode"),
        pytest.param(("podgroups", "spec", "subGroupPolicy", "[]", "subGroupSize"), 1, id="sub-group-size"),
        pytest.param(("podgroups", "spec", "subGroupPolicy", "[]", "minSubGroups"), 0, id="min-sub-groups"),
        pytest.param(("queues", "spec", "weight"), 1, id="queue-weight"),
        pytest.param(("queues", "spec", "priority"), 0, id="queue-priority"),
        pytest.param(("queues", "spec", "dequeueStrategy"), "traverse", id="dequeue-strategy"),
    ],
)
def test_the_api_server_fills_in_what_volcano_fills_in(path: tuple[str, ...], default: object) -> None:
    assert schema(*path)["default"] == default


@pytest.mark.parametrize("plural", KINDS)
def test_absent_fields_are_not_written_back(plural: str) -> None:
    # Otherwise a field the user left to the API server would come back set.
    empty = msgspec.json.decode(b'{"metadata": {}}', type=KINDS[plural])
    assert msgspec.to_builtins(empty) == {"metadata": {}}


@pytest.mark.parametrize("text", ["1", "100m", "16Gi", "1.5", "2e3", "-1", ".5", "4k"])
def test_a_quantity_passes_the_schema(text: str) -> None:
    assert re.search(schema("queues", "spec", "capability")["additionalProperties"]["pattern"], text)


@pytest.mark.parametrize("text", ["", "4 Gi", "lots", "1Kb", "1e"])
def test_a_text_that_is_no_quantity_fails_the_schema(text: str) -> None:
    assert not re.search(schema("queues", "spec", "capability")["additionalProperties"]["pattern"], text)
