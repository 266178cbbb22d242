"""Webhook configurations: defaults, and refusal of features that this server lacks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from volcano_py.apiserver.kinds.conform import ListOf, Shape, Struct, an_object, text, whole
from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.kinds.shapes import LABEL_SELECTOR
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.status import FieldError, forbidden_field, invalid_value, required, unsupported_value

_TEXTS = ListOf(text)
_RULE = Struct({**dict.fromkeys(("apiGroups", "apiVersions", "operations", "resources"), _TEXTS), "scope": text})
_HOOK = Struct(
    {
        **dict.fromkeys(("name", "failurePolicy", "matchPolicy", "sideEffects", "reinvocationPolicy"), text),
        "clientConfig": Struct({"url": text, "caBundle": text, "service": an_object}),
        "rules": ListOf(_RULE),
        "namespaceSelector": LABEL_SELECTOR,
        "objectSelector": LABEL_SELECTOR,
        "timeoutSeconds": whole,
        "admissionReviewVersions": _TEXTS,
        "matchConditions": ListOf(an_object),
    }
)
_SHAPE = Struct({"webhooks": ListOf(_HOOK)})
_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("failurePolicy", "Fail"),
    ("matchPolicy", "Equivalent"),
    ("timeoutSeconds", 10),
)
_CHOICES = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "sideEffects": ("None", "NoneOnDryRun"),
}
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


@dataclass(frozen=True, slots=True)
class WebhookStrategy(Strategy):
    """How webhook configurations are written."""

    shape: Shape | None = _SHAPE
    has_generation: bool = True
    mutating: bool = False

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Fill in the defaults of a real server."""
        for hook in obj.get("webhooks") or ():
            for name, value in _DEFAULTS:
                hook.setdefault(name, value)
            for name in ("namespaceSelector", "objectSelector"):
                hook.setdefault(name, {})
            if self.mutating:
                hook.setdefault("reinvocationPolicy", "Never")
            for rule in hook.get("rules") or ():
                rule.setdefault("scope", "*")

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Check everything that is needed to call the webhooks."""
        errors: list[FieldError] = []
        seen: set[str] = set()
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path, name = f"webhooks[{index}]", hook.get("name", "")
            errors.extend(_hook_errors(hook, path))
            if name in seen:
                errors.append(FieldError(f"{path}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"'))
            seen.add(name)
        return errors


def _hook_errors(hook: Obj, path: str) -> Iterator[FieldError]:
    name = hook.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif name.count(".") < 2:
        yield invalid_value(f"{path}.name", name, "should be a domain with at least three segments separated by dots")
    if "v1" not in (hook.get("admissionReviewVersions") or ()):
        detail = "must include at least one of v1" if hook.get("admissionReviewVersions") else ""
        yield required(f"{path}.admissionReviewVersions", detail or "must specify one of v1")
    for field, allowed in _CHOICES.items():
        if field == "sideEffects" and not hook.get(field):
            yield required(f"{path}.{field}", "must specify one of None, NoneOnDryRun")
        elif hook.get(field) not in allowed:
            yield unsupported_value(f"{path}.{field}", hook.get(field), allowed)
    if not 1 <= hook["timeoutSeconds"] <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield invalid_value(f"{path}.timeoutSeconds", hook["timeoutSeconds"], detail)
    if hook.get("matchConditions"):
        yield forbidden_field(
            f"{path}.matchConditions", "the embedded API server evaluates no CEL: narrow the rules or the selectors"
        )
    for number, rule in enumerate(hook.get("rules") or ()):
        for field in ("apiGroups", "apiVersions", "operations", "resources"):
            if not rule.get(field):
                yield required(f"{path}.rules[{number}].{field}")
        for operation in rule.get("operations") or ():
            if operation not in _OPERATIONS:
                yield unsupported_value(f"{path}.rules[{number}].operations", operation, _OPERATIONS)
    yield from _client_errors(hook.get("clientConfig") or {}, f"{path}.clientConfig")


def _client_errors(client: Obj, path: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if bool(url) == bool(service):
        yield required(path, "exactly one of url or service is required")
    elif url and urlsplit(url).scheme != "https":
        yield invalid_value(f"{path}.url", url, "'https' is the only allowed URL scheme")
    try:
        base64.b64decode(client.get("caBundle") or "", validate=True)
    except binascii.Error as error:
        yield invalid_value(f"{path}.caBundle", client["caBundle"], f"is no base64: {error}")
