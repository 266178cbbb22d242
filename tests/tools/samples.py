"""Values that have every field of a type of Kubernetes."""

from __future__ import annotations

from typing import Any

from tools.crds import kubernetes

POD_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"
CLAIM = "io.k8s.api.core.v1.PersistentVolumeClaimSpec"


def every_field(name: str) -> Any:
    """Return a value with every field of a type; lists and maps have one entry."""
    return _sample(kubernetes.structural(name))


def _sample(schema: dict[str, Any]) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return "1"
    if schema["type"] == "object":
        if "additionalProperties" in schema:
            return {"key": _sample(schema["additionalProperties"])}
        return {field: _sample(child) for field, child in schema.get("properties", {}).items()}
    if schema["type"] == "array":
        return [_sample(schema["items"])]
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    return {"string": "text", "integer": 7, "number": 0.5, "boolean": True}[schema["type"]]
