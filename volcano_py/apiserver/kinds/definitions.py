"""CustomResourceDefinitions as objects: defaults, validation, and a finalizer until their custom resources are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from volcano_py.apiserver.kinds.conform import Shape
from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.kinds.shapes import DEFINITION
from volcano_py.apiserver.metadata import label_rule, subdomain_rule
from volcano_py.apiserver.objects import Obj, timestamp
from volcano_py.apiserver.status import (
    FieldError,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


@dataclass(frozen=True, slots=True)
class DefinitionStrategy(Strategy):
    """How definitions are written; an admitted one is established at once."""

    shape: Shape | None = DEFINITION
    has_generation: bool = True
    has_status: bool = True
    deletion_finalizers: tuple[str, ...] = (CLEANUP_FINALIZER,)
    returns_deleted: bool = True

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Default the names, and establish the definition."""
        Strategy.prepare_create(self, obj, context)
        if self.validate(obj, context):
            return  # validation refuses it right after this
        spec = obj["spec"]
        obj["status"] = {
            "conditions": [
                _condition("NamesAccepted", "NoConflicts", "no conflicts found"),
                _condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            ],
            "acceptedNames": dict(spec["names"]),
            "storedVersions": [version["name"] for version in spec["versions"] if version.get("storage")],
        }

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Fill in the names that follow from others, and the conversion strategy None."""
        spec = obj.setdefault("spec", {})
        names = spec.setdefault("names", {})
        if names.get("kind"):
            names.setdefault("singular", names["kind"].lower())
            names.setdefault("listKind", names["kind"] + "List")
        spec.setdefault("conversion", {"strategy": "None"})

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Check everything that is needed to serve the definition."""
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        names = spec["names"]
        errors = [required(f"spec.names.{field}") for field in ("plural", "kind") if not names.get(field)]
        group = spec.get("group") or ""
        if not group:
            errors.append(required("spec.group"))
        elif problem := subdomain_rule(group):
            errors.append(invalid_value("spec.group", group, problem))
        if spec.get("scope") not in ("Namespaced", "Cluster"):
            errors.append(unsupported_value("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced")))
        if name != f"{names.get('plural')}.{group}":
            errors.append(invalid_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
        if spec["conversion"].get("strategy") != "None":
            detail = "the embedded API server converts no versions: serve one schema, or use a real API server"
            errors.append(invalid_value("spec.conversion.strategy", spec["conversion"].get("strategy"), detail))
        errors.extend(_version_errors(spec.get("versions") or []))
        return errors

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """Group, scope and kind are fixed while objects may exist."""
        fixed = (("group",), ("scope",), ("names", "kind"), ("names", "plural"))
        errors = []
        for path in fixed:
            now, before = obj["spec"], old["spec"]
            for part in path:
                now, before = now.get(part), before.get(part)
            if now != before:
                errors.append(forbidden_field(f"spec.{'.'.join(path)}", "field is immutable"))
        return errors


def _condition(kind: str, reason: str, message: str) -> Obj:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": timestamp(),
        "reason": reason,
        "message": message,
    }


def _version_errors(versions: list[Obj]) -> list[FieldError]:
    if not versions:
        return [required("spec.versions", "must have at least one version")]
    errors: list[FieldError] = []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        names = [version.get("name") for version in versions]
        errors.append(invalid_value("spec.versions", names, "must have exactly one version marked as storage version"))
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        name = version.get("name") or ""
        if problem := label_rule(name):
            errors.append(invalid_value(f"{path}.name", name, problem))
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        where = f"{path}.schema.openAPIV3Schema"
        if not schema:
            errors.append(required(where, "schemas are required"))
            continue
        if schema.get("type") != "object":
            errors.append(invalid_value(f"{where}.type", schema.get("type", ""), "must be object at the root"))
        errors.extend(_structural_errors(schema, where))
    return errors


def _structural_errors(schema: Obj, path: str) -> Iterator[FieldError]:
    """Every level must name its type, or pruning would be impossible."""
    if not schema.get("type") and not (
        schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        yield required(f"{path}.type", "must not be empty for specified object fields")
    if "pattern" in schema:
        try:
            re.compile(schema["pattern"])
        except re.error as error:
            yield invalid_value(f"{path}.pattern", schema["pattern"], f"must be a valid regular expression: {error}")
    for name, child in (schema.get("properties") or {}).items():
        if isinstance(child, dict):
            yield from _structural_errors(child, f"{path}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from _structural_errors(schema[name], f"{path}.{name}")
