"""Builds the definitions of custom resources from `kinds/*.yaml`, one file per API group.

A file names the group, its version, and the module of `volcano_py.api` that has its types. Then come the kinds as
users see them, and the `types`. A type is an object with its fields, each with a description and whatever limits its
values. A type of `volcano_py.api` with the same name gives its fields and what they hold; the file describes each of
them, and adds fields that no program reads, with their `type`.

A ``$ref`` names another type of the file, one of `shared.yaml`, or one of Kubernetes. What stands beside a ``$ref``
comes on top of what it names. ``without: [default]`` leaves out a keyword everywhere below.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tools.crds import kubernetes, wire_types

Schema = dict[str, Any]

KINDS = Path(__file__).with_name("kinds")
_SHARED = "shared.yaml"
_ROOT: Schema = {
    "apiVersion": {
        "description": "The version of the schema of this object; a server may convert it or refuse it.",
        "type": "string",
    },
    "kind": {"description": "What kind of object this is.", "type": "string"},
    "metadata": {"type": "object"},
}


class SourceError(Exception):
    """A file of kinds does not fit the types of the project; the message says where and what to write."""


def definitions() -> Iterator[Schema]:
    """Yield every definition."""
    shared = _read(KINDS / _SHARED)
    for file in sorted(KINDS.glob("*.yaml")):
        if file.name != _SHARED:
            group = _read(file)
            builder = _Builder(file.name, _typed(shared) | _typed(group))
            for kind, shown in group["kinds"].items():
                yield _definition(group["group"], group["version"], kind, shown, builder.root(kind))


def file_name(definition: Schema) -> str:
    """Return the name of the file that holds a definition."""
    spec = definition["spec"]
    return f"{spec['group']}_{spec['names']['plural']}.yaml"


def _typed(group: Schema) -> dict[str, tuple[str | None, Schema]]:
    """Return the types of a file by name, each with the module that may have it."""
    return {name: (group.get("api"), words) for name, words in group["types"].items()}


def _read(file: Path) -> Schema:
    loaded: Schema = yaml.safe_load(file.read_text())
    return loaded


def _definition(group: str, version: str, kind: str, shown: Schema, schema: Schema) -> Schema:
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": shown["plural"],
        "singular": kind.lower(),
    }
    if shown.get("shortNames"):
        names["shortNames"] = shown["shortNames"]
    served: Schema = {"name": version, "served": True, "storage": True}
    if "subresources" in shown:
        served["subresources"] = shown["subresources"]
    if "columns" in shown:
        served["additionalPrinterColumns"] = shown["columns"]
    served["schema"] = {"openAPIV3Schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{shown['plural']}.{group}",
            "annotations": {"helm.sh/resource-policy": "keep"},
        },
        "spec": {"group": group, "scope": shown["scope"], "names": names, "versions": [served]},
    }


class _Builder:
    """Puts the types of one file together."""

    def __init__(self, file: str, types: dict[str, tuple[str | None, Schema]]) -> None:
        self._file = file
        self._types = types

    def root(self, kind: str) -> Schema:
        """Return the schema of a kind."""
        made = self._named(kind)
        return {**made, "properties": {**_ROOT, **made["properties"]}}

    def _named(self, name: str) -> Schema:
        if kubernetes.knows(name):
            return kubernetes.structural(name)
        if name not in self._types:
            raise SourceError(f"{self._file}: there is no type {name}: add it under types")
        module, words = self._types[name]
        if "fields" not in words:
            return self._schema(words, name)
        held = wire_types.fields(module, name)
        missing = held.keys() - words["fields"].keys()
        if missing:
            raise SourceError(f"{self._file}: type {name} has no words for {', '.join(sorted(missing))}: describe them")
        made = {key: value for key, value in words.items() if key != "fields"}
        made["type"] = "object"
        made["properties"] = {
            field: self._schema(_over(held.get(field, {}), said), f"{name}.{field}")
            for field, said in words["fields"].items()
        }
        return made

    def _schema(self, schema: Schema, where: str) -> Schema:
        made = {key: value for key, value in schema.items() if key not in ("$ref", "without")}
        if "$ref" in schema:
            made = {**self._named(schema["$ref"]), **made}
        else:
            for key in ("items", "additionalProperties"):
                if key in made:
                    made[key] = self._schema(made[key], f"{where}[]")
            if "properties" in made:
                made["properties"] = {
                    field: self._schema(child, f"{where}.{field}") for field, child in made["properties"].items()
                }
        if not (made.get("type") or made.get("x-kubernetes-int-or-string")):
            raise SourceError(f"{self._file}: {where} has no type: nothing in volcano_py.api says what it holds")
        for keyword in schema.get("without", ()):
            made = _without(made, keyword)
        return made


def _over(held: Schema, said: Schema) -> Schema:
    """Return what a type says, and what the words add; where both speak, the words count."""
    if "$ref" in said or "type" in said:
        return said
    made = dict(held)
    for key, value in said.items():
        made[key] = _over(held[key], value) if key in ("items", "additionalProperties") and key in held else value
    return made


def _without(schema: Schema, keyword: str) -> Schema:
    made: Schema = {}
    for key, value in schema.items():
        if key == "properties":
            made[key] = {field: _without(child, keyword) for field, child in value.items()}
        elif key in ("items", "additionalProperties"):
            made[key] = _without(value, keyword)
        elif key != keyword:
            made[key] = value
    return made
