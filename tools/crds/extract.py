"""Makes `kubernetes.json` from the OpenAPI document of a kube-apiserver.

    kubectl get --raw /openapi/v3/api/v1 | python -m tools.crds.extract

A pod template stays as its user wrote it, so defaults are left out. So is everything else that a structural schema does
not take, and all but the first paragraph of each description.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

DATA = Path(__file__).with_name("kubernetes.json")
ROOTS = (
    "io.k8s.api.core.v1.ObjectReference",
    "io.k8s.api.core.v1.PersistentVolumeClaimSpec",
    "io.k8s.api.core.v1.PodTemplateSpec",
    "io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector",
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
)
"""The types that `kinds/*.yaml` name; with them come the types of their fields."""
KEPT = frozenset(
    {
        "additionalProperties",
        "allOf",
        "description",
        "enum",
        "format",
        "items",
        "oneOf",
        "properties",
        "required",
        "type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    }
)
METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
METADATA_FIELDS = ("annotations", "finalizers", "labels", "name", "namespace")
"""What a template may say about the objects made from it."""


def extract(document: Schema) -> Schema:
    """Return the schemas that are needed, by name and trimmed, with the version of Kubernetes."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    found: dict[str, Schema] = {}
    wanted = list(ROOTS)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = _trimmed(name, schemas[name])
            wanted.extend(_references(found[name]))
    return {"version": document["info"]["version"], "schemas": dict(sorted(found.items()))}


def reference(schema: Schema) -> str | None:
    """Return the name of the type that a schema refers to; None if it refers to none."""
    target: str | None = schema.get("$ref")
    return target.rpartition("/")[2] if target else None


def _trimmed(name: str, schema: Schema) -> Schema:
    kept = _kept(schema)
    if name == METADATA:
        kept["properties"] = {field: kept["properties"][field] for field in METADATA_FIELDS}
    return kept


def _kept(schema: Schema) -> Schema:
    made: Schema = {}
    for key, value in schema.items():
        if key == "$ref":
            made[key] = value
        elif key not in KEPT:
            continue
        elif key == "properties":
            made[key] = {name: _kept(child) for name, child in value.items()}
        elif key in ("items", "additionalProperties"):
            made[key] = _kept(value)
        elif key in ("allOf", "oneOf"):
            made[key] = [_kept(child) for child in value]
        elif key == "description":
            made[key] = value.partition("\n\n")[0]
        else:
            made[key] = value
    return made


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for child in schema for name in _references(child)]
    if not isinstance(schema, dict):
        return []
    found = [name for child in schema.values() for name in _references(child)]
    target = reference(schema) if isinstance(schema.get("$ref"), str) else None
    return [*found, target] if target else found


def main() -> int:
    """Read the document from the standard input and write the data file."""
    DATA.write_text(json.dumps(extract(json.load(sys.stdin)), indent=1) + "\n")
    print(f"wrote {DATA}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
