"""Select the webhooks that see a write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.resources import Resource

_GROUP = "admissionregistration.k8s.io"
MUTATING = f"mutatingwebhookconfigurations.{_GROUP}"
VALIDATING = f"validatingwebhookconfigurations.{_GROUP}"


@dataclass(frozen=True, slots=True)
class Subject:
    """The properties of a write by which webhooks select."""

    resource: Resource
    version: str
    subresource: str
    operation: str
    namespace: str | None
    name: str


def any_configured(registry: Registry) -> bool:
    """Whether any webhook is configured; cheap, because every write asks."""
    collections = registry.store.collections
    return any(name in collections and bool(collections[name].items) for name in (MUTATING, VALIDATING))


def hooks_for(registry: Registry, kind: str, subject: Subject, obj: Obj | None, old: Obj | None) -> Iterator[Obj]:
    """The webhooks of a kind (MUTATING or VALIDATING) that select a write, by configuration name, then position."""
    if subject.resource.group == _GROUP:
        return  # webhooks must not be able to block changes of webhook configurations
    for stored in registry.store.collection(kind).scan():
        for hook in stored.obj.get("webhooks") or ():
            if _rules_match(hook, subject) and _selectors_match(registry, hook, subject, obj, old):
                yield hook


def _rules_match(hook: Obj, subject: Subject) -> bool:
    return any(_rule_matches(rule, subject, hook.get("matchPolicy")) for rule in hook.get("rules") or ())


def _rule_matches(rule: Obj, subject: Subject, policy: Any) -> bool:
    resource = subject.resource
    versions = resource.versions if policy == "Equivalent" else (subject.version,)
    scope = "Namespaced" if resource.namespaced else "Cluster"
    if resource.collection == "namespaces":
        scope = "Cluster"
    return (
        _names(rule.get("operations"), subject.operation)
        and _names(rule.get("apiGroups"), resource.group)
        and any(_names(rule.get("apiVersions"), version) for version in versions)
        and rule.get("scope", "*") in ("*", scope)
        and any(_resource_matches(pattern, subject) for pattern in rule.get("resources") or ())
    )


def _names(allowed: list[str] | None, value: str) -> bool:
    return "*" in (allowed or ()) or value in (allowed or ())


def _resource_matches(pattern: str, subject: Subject) -> bool:
    plural, slash, subresource = pattern.partition("/")
    if plural not in ("*", subject.resource.plural):
        return False
    if not slash:
        return not subject.subresource
    return subresource in ("*", subject.subresource)


def _selectors_match(registry: Registry, hook: Obj, subject: Subject, obj: Obj | None, old: Obj | None) -> bool:
    objects = [item for item in (obj, old) if item is not None]
    if not any(selects(hook.get("objectSelector"), _labels(item)) for item in objects):
        return False
    selector = hook.get("namespaceSelector")
    if subject.resource.collection == "namespaces":
        return any(selects(selector, _labels(item)) for item in objects)
    if subject.namespace is None:
        return True
    namespace = registry.peek("namespaces", subject.namespace)
    return selects(selector, _labels(namespace or {}))


def _labels(obj: Obj) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def selects(selector: Obj | None, labels: dict[str, str]) -> bool:
    """Whether a LabelSelector selects labels; an empty one selects all."""
    if not selector:
        return True
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_expression_holds(item, labels) for item in selector.get("matchExpressions") or ())


def _expression_holds(expression: Obj, labels: dict[str, str]) -> bool:
    value, values = labels.get(str(expression.get("key"))), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
