"""Check that the object in a request is of the type, namespace and name that the path gives."""

from __future__ import annotations

from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.protobuf.messages import drop_unknown, message_of
from volcano_py.apiserver.resources import Resource
from volcano_py.apiserver.status import bad_request, invalid, invalid_value

_METADATA = "meta/v1.ObjectMeta"
WRONG_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


def check_type(resource: Resource, obj: Obj, context: WriteContext) -> None:
    """Refuse an object whose kind or version is not that of the request, or whose fields have wrong types.

    Unknown fields of a built-in kind, and of the metadata of any kind, are dropped with a warning, or refused if the
    request asks for strict validation.
    """
    expected = resource.versions[context.version].api_version
    kind, api_version = obj.get("kind") or "", obj.get("apiVersion") or ""
    if resource.custom:
        _check_custom_type(resource, expected, kind, api_version, obj)
    elif (kind and kind != resource.kind) or (api_version and api_version != expected):
        version = api_version or expected
        what = f'{kind or resource.kind} in version "{version}" cannot be handled as a {resource.kind}'
        raise bad_request(f"{what}: send an object of {expected}, kind {resource.kind}")
    resource.strategy.check_shape(obj)
    if context.from_outside and resource.custom:
        unknown = drop_unknown(obj.get("metadata") or {}, _METADATA)
        context.report_unknown([f"metadata.{path}" for path in unknown], resource.kind)
    elif context.from_outside:
        context.report_unknown(drop_unknown(obj, message_of(expected, resource.kind)), resource.kind)
    obj["kind"], obj["apiVersion"] = resource.kind, resource.storage.api_version


def _check_custom_type(resource: Resource, expected: str, kind: str, api_version: str, obj: Obj) -> None:
    missing = "Kind" if not kind else "apiVersion" if not api_version else ""
    if missing:
        what = f"Object '{missing}' is missing"
        raise bad_request(f"the object provided is unrecognized (must be of type {resource.kind}): {what}")
    if api_version != expected:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )
    if kind != resource.kind:
        name = str((obj.get("metadata") or {}).get("name", ""))
        raise invalid(resource.group, kind, name, [invalid_value("kind", kind, f"must be {resource.kind}")])


def place(meta: Obj, namespace: str | None) -> None:
    """Put an object into the namespace of its request; 400 if it names another."""
    own = meta.get("namespace") or ""
    if namespace is None:
        if own:
            raise bad_request(WRONG_NAMESPACE)
        return
    if own and own != namespace:
        raise bad_request(WRONG_NAMESPACE)
    meta["namespace"] = namespace


def check_name(meta: Obj, name: str) -> None:
    """Refuse an object whose name differs from the one in the path."""
    own = meta.get("name") or ""
    if not own:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    if own != name:
        raise bad_request(f"the name of the object ({own}) does not match the name on the URL ({name})")
