"""Types of Kubernetes as structural schemas: everything in place, descriptions of one sentence.

A definition must not refer to others, so every type is written out wherever it is used. A pod template has three lists
of containers, and each has its own copy. What differs from the document of the API server:

- A quantity, or an integer that may be a name, is `x-kubernetes-int-or-string`.
- The values of an enumeration stand in the description and are not checked: a later Kubernetes may have more of them,
  and Kubernetes itself takes an empty text for a default.
- A list whose keys may be absent is replaced as a whole by server-side apply (`ports`, `imagePullSecrets`). To be
  merged by keys, these would need defaults, and defaults would change the template.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from tools.crds.extract import DATA, reference

Schema = dict[str, Any]

QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": (
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
    ),
    "x-kubernetes-int-or-string": True,
}
_IN_PLACE: dict[str, Schema] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
}
_SHORTEST, _LONGEST = 40, 200
"""Characters of a description: sentences are taken until there are 40, because many first ones say only "Optional.".

Definitions must stay small enough for `kubectl apply`, which keeps a second copy in an annotation.
"""
_MOST_VALUES = 12
_SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)\.(?=\s)")
_MORE = re.compile(r"\.? *\bMore info\b.*")
_SPACE = re.compile(r"\s+")


@cache
def _schemas() -> dict[str, Schema]:
    loaded: dict[str, Schema] = json.loads(DATA.read_text())["schemas"]
    return loaded


def knows(name: str) -> bool:
    """Say whether the data file has a type of this name."""
    return name in _schemas()


def structural(name: str) -> Schema:
    """Return a type as a structural schema, without references."""
    return _structural({"$ref": f"#/components/schemas/{name}"})


def _structural(schema: Schema) -> Schema:
    target = reference(schema)
    if target is not None:
        return dict(_IN_PLACE[target]) if target in _IN_PLACE else _structural(_schemas()[target])
    if "allOf" in schema:  # a reference with a description of its own
        (only,) = schema["allOf"]
        made = _structural(only)
        if "description" in schema:
            made = {"description": described(schema), **{k: v for k, v in made.items() if k != "description"}}
        return made
    made = {"description": described(schema)} if "description" in schema else {}
    for key in ("type", "format", "required", "x-kubernetes-map-type"):
        if key in schema:
            made[key] = schema[key]
    if "properties" in schema:
        made["properties"] = {field: _structural(child) for field, child in sorted(schema["properties"].items())}
    for key in ("items", "additionalProperties"):
        if key in schema:
            made[key] = _structural(schema[key])
    return made | _list_type(schema, made)


def _list_type(schema: Schema, made: Schema) -> Schema:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if kind is None:
        return {}
    if keys is None:
        return {"x-kubernetes-list-type": kind}
    if set(keys) <= set(made["items"].get("required", ())):
        return {"x-kubernetes-list-map-keys": keys, "x-kubernetes-list-type": kind}
    return {"x-kubernetes-list-type": "atomic"}


def described(schema: Schema) -> str:
    """Return the description of a schema, cut to what says what it is, with the values of an enumeration."""
    text = _MORE.sub("", _SPACE.sub(" ", schema["description"]).strip()).removesuffix(".")
    for end in _SENTENCE.finditer(text):
        if end.start() >= _SHORTEST:
            text = text[: end.start()]
            break
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rpartition(" ")[0].rstrip(",;(") + " .."
    values = [value or '""' for value in schema.get("enum", ())]
    named = f" One of {', '.join(values)}." if 0 < len(values) <= _MOST_VALUES else ""
    return f"{text}.{named}"
