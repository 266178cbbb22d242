"""The generator of `manifests/crds`: its files are up to date, small enough, and lose nothing of a pod template."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.samples import POD_TEMPLATE, every_field
from tools.crds import definitions as definitions_module
from tools.crds import kubernetes
from tools.crds.__main__ import CRDS, outdated, rendered
from tools.crds.definitions import SourceError, definitions
from tools.crds.extract import DATA, METADATA_FIELDS, extract, reference
from volcano_py.local import manifests

ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations of an object; `kubectl apply` keeps what it applied in one of them."""
RAW: dict[str, dict[str, Any]] = json.loads(DATA.read_text())["schemas"]
KINDS = {one["spec"]["names"]["plural"]: one for one in definitions()}


def root(plural: str) -> dict[str, Any]:
    found: dict[str, Any] = KINDS[plural]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def test_the_generated_files_are_up_to_date() -> None:
    assert outdated() == [], "run python -m tools.crds"


def test_a_changed_missing_or_superfluous_file_is_out_of_date(tmp_path: Path) -> None:
    for name, text in rendered().items():
        (tmp_path / name).write_text(text)
    assert outdated(tmp_path) == []
    (tmp_path / "bus.volcano.sh_commands.yaml").write_text("changed: true\n")
    (tmp_path / "batch.volcano.sh_jobs.yaml").unlink()
    (tmp_path / "none.volcano.sh_nothings.yaml").write_text("")
    assert outdated(tmp_path) == [
        "batch.volcano.sh_jobs.yaml",
        "bus.volcano.sh_commands.yaml",
        "none.volcano.sh_nothings.yaml",
    ]


@pytest.mark.parametrize("plural", KINDS)
def test_a_definition_is_small_enough_for_a_plain_apply(plural: str) -> None:
    applied = json.dumps(KINDS[plural], separators=(",", ":"))
    assert len(applied.encode()) < ANNOTATIONS_LIMIT * 3 // 4


def test_programs_read_the_same_as_kubectl() -> None:
    as_yaml = [yaml.load(file.read_text(), yaml.CSafeLoader) for file in sorted(CRDS.glob("*.yaml"))]
    assert list(manifests.definitions()) == as_yaml


def undescribed(schema: dict[str, Any], where: str) -> Iterator[str]:
    """Fields without a description; those that the API server itself defines are left out."""
    for name, child in schema.get("properties", {}).items():
        if where or name != "metadata":
            if not child.get("description", "").endswith("."):
                yield f"{where}.{name}"
            yield from undescribed(child, f"{where}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from undescribed(schema[keyword], where + "[]")


@pytest.mark.parametrize("plural", KINDS)
def test_every_field_has_a_description_that_is_a_sentence(plural: str) -> None:
    assert list(undescribed(root(plural), "")) == []


def raw_fields(name: str, where: str = "") -> Iterator[str]:
    """The path of every field below a type in the data file, independent of the generator."""
    for field, child in RAW[name].get("properties", {}).items():
        yield f"{where}.{field}"
        inner = child
        for keyword in ("items", "additionalProperties"):
            inner = inner.get(keyword, inner)
        target = reference(inner) or (reference(inner["allOf"][0]) if "allOf" in inner else None)
        if target:
            yield from raw_fields(target, f"{where}.{field}")


def sample_fields(value: Any, where: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from sample_fields(item, where)
    elif isinstance(value, dict):
        for field, child in value.items():
            if field != "key" or list(value) != ["key"]:
                yield f"{where}.{field}"
                yield from sample_fields(child, f"{where}.{field}")


def test_every_field_of_a_pod_template_is_in_the_definition() -> None:
    fields = set(raw_fields(POD_TEMPLATE))
    assert len(fields) > 1000
    assert set(sample_fields(every_field(POD_TEMPLATE))) == fields


def test_the_metadata_of_a_template_is_what_a_user_may_give_to_its_pods() -> None:
    template = root("jobs")["properties"]["spec"]["properties"]["tasks"]["items"]["properties"]["template"]
    assert tuple(template["properties"]["metadata"]["properties"]) == METADATA_FIELDS


def lists_by_keys(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every list that is merged by keys."""
    if schema.get("x-kubernetes-list-type") == "map":
        yield schema
    for child in schema.get("properties", {}).values():
        yield from lists_by_keys(child)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from lists_by_keys(schema[keyword])


def test_a_list_is_merged_by_keys_only_if_its_items_must_have_them() -> None:
    lists = list(lists_by_keys(kubernetes.structural(POD_TEMPLATE)))
    assert len(lists) > 10
    assert all(set(one["x-kubernetes-list-map-keys"]) <= set(one["items"]["required"]) for one in lists)


@pytest.mark.parametrize(
    ("text", "shortened"),
    [
        (
            "Optional. The name of the thing that is meant here. More text.",
            "Optional. The name of the thing that is meant here.",
        ),
        (
            "What a pod e.g. has, as long as it lives on a node. More.",
            "What a pod e.g. has, as long as it lives on a node.",
        ),
        ("The image. More info: https://example.com/images", "The image."),
        ("word " * 60, "word " * 39 + "word ..."),
    ],
)
def test_a_description_is_cut_after_a_sentence_that_says_something(text: str, shortened: str) -> None:
    assert kubernetes.described({"description": text}) == shortened


def test_values_of_an_enumeration_are_described_and_not_checked() -> None:
    spec = kubernetes.structural(POD_TEMPLATE)["properties"]["spec"]["properties"]
    assert "enum" not in spec["restartPolicy"]
    assert spec["restartPolicy"]["description"].endswith("One of Always, Never, OnFailure.")


def test_the_data_file_keeps_no_defaults_and_only_what_is_used() -> None:
    everything = {"type": "string", "default": "", "enum": ["a"], "x-kubernetes-patch-strategy": "merge"}
    names = ["io.k8s.api.core.v1.Unused", *RAW]
    document = {
        "info": {"version": "1.36"},
        "components": {"schemas": {name: RAW.get(name, everything) for name in names}},
    }
    document["components"]["schemas"]["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"] = everything
    made = extract(document)["schemas"]
    assert "io.k8s.api.core.v1.Unused" not in made
    assert made["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"] == {"type": "string", "enum": ["a"]}


BUS = """
group: bus.volcano.sh
version: v1alpha1
api: batch
kinds: {Command: {plural: commands, scope: Namespaced}}
types:
  Command:
    description: A request.
    fields: %s
"""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            "{action: {description: A.}}", "type Command has no words for message, reason, target", id="words"
        ),
        pytest.param(
            "{action: {}, reason: {}, message: {}, target: {$ref: Nobody}}", "there is no type Nobody", id="type"
        ),
        pytest.param(
            "{action: {}, reason: {}, message: {}, target: {type: object}, extra: {description: E.}}",
            "Command.extra has no type",
            id="neither",
        ),
    ],
)
def test_a_source_that_does_not_fit_our_types_says_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: str, message: str
) -> None:
    (tmp_path / "bus.yaml").write_text(BUS % fields)
    (tmp_path / "shared.yaml").write_text("types: {}\n")
    monkeypatch.setattr(definitions_module, "KINDS", tmp_path)
    with pytest.raises(SourceError, match=message):
        list(definitions())
