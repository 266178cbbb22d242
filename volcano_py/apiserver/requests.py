"""One request as the verbs see it, and the decoding of its body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import yaml

from volcano_py.apiserver.apply.server_side import Applier
from volcano_py.apiserver.objects import Obj, decode
from volcano_py.apiserver.patches import json_patch, merge_patch
from volcano_py.apiserver.protobuf.decoding import MEDIA_TYPE, ProtobufError, decode_object
from volcano_py.apiserver.registry import PatchFunction
from volcano_py.apiserver.routing import Target
from volcano_py.apiserver.status import bad_request, invalid, required, unsupported_media_type
from volcano_py.apiserver.strategic import strategic_merge

JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"
_MERGE, _JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_YAML: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TRUE = ("true", "1")


@dataclass(slots=True)
class Call:
    """One request, decoded as far as every verb needs it."""

    target: Target
    query: Mapping[str, str]
    body: bytes
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def manager(self) -> str:
        """The sender's name in `metadata.managedFields`."""
        return self.query.get("fieldManager") or self.headers.get("User-Agent", "").partition("/")[0][:128]


def object_of(call: Call) -> Obj:
    """The object in the body; 400 if there is none, 415 if it is not JSON."""
    kind = call.target.resource.kind
    what = f"the object provided is unrecognized (must be of type {kind})"
    body = body_of(call, what)
    if not isinstance(body, dict):
        raise bad_request(f"{what}: it is no JSON object")
    return body


def body_of(call: Call, what: str) -> object:
    """The body, from JSON or (for known kinds) protobuf; 400 that names the unreadable part, or 415."""
    if call.content_type == MEDIA_TYPE:
        try:
            return decode_object(call.body)
        except ProtobufError as error:
            raise bad_request(f"{what}: {error}") from error
    if call.content_type not in (JSON, ""):
        raise unsupported_media_type((JSON,))
    try:
        return decode(call.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"{what}: couldn't get version/kind; json parse error: {error}") from error


def patch_function(call: Call) -> PatchFunction:
    """The change that the body of a PATCH describes."""
    accepted = (_JSON_PATCH, _MERGE) if call.target.resource.custom else (_JSON_PATCH, _MERGE, _STRATEGIC)
    if call.content_type not in accepted:
        raise unsupported_media_type((*accepted, APPLY_PATCH))
    try:
        patch = decode(call.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"error decoding patch: {error}") from error
    if call.content_type == _JSON_PATCH:
        if not isinstance(patch, list):
            raise bad_request("error decoding patch: a JSON patch is a list of operations")
        operations: list[object] = patch
        return lambda current: json_patch(current, operations)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch is an object")
    document: Obj = patch
    if call.content_type == _MERGE:
        return lambda current: merge_patch(current, document)
    return lambda current: strategic_merge(current, document)


def applied(call: Call) -> tuple[Obj, Applier]:
    """The configuration of a server-side apply, and who applies it."""
    target, query = call.target, call.query
    manager = query.get("fieldManager", "")
    if not manager:
        errors = [required("fieldManager", "is required for apply patch")]
        raise invalid("meta.k8s.io", "PatchOptions", "", errors)
    try:
        config = yaml.load(call.body, Loader=_YAML)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from error
    if not isinstance(config, dict):
        raise bad_request("error decoding YAML: an applied configuration is an object")
    config = _without_nulls(config)
    meta = config.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise bad_request("error decoding YAML: metadata must be an object")
    if meta.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    served = target.resource.versions[target.version]
    for name, expected in (("apiVersion", served.api_version), ("kind", target.resource.kind)):
        if config.get(name) != expected:
            raise bad_request(f"an applied configuration must say {name}: {expected}, not {config.get(name)!r}")
    meta.setdefault("name", target.name)
    if target.namespace:
        meta.setdefault("namespace", target.namespace)
    if target.subresource == "status":
        config = {key: config[key] for key in ("apiVersion", "kind", "metadata", "status") if key in config}
    elif "status" in served.subresources:
        config.pop("status", None)
    return config, Applier(manager, served.api_version, target.subresource, query.get("force") in _TRUE)


def _without_nulls(value: Obj) -> Obj:
    """The configuration without null fields, which count as not applied."""
    cleaned: Obj = {}
    for name, item in value.items():
        if isinstance(item, dict):
            cleaned[name] = _without_nulls(item)
        elif item is not None:
            cleaned[name] = item
    return cleaned
