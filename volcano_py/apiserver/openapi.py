"""OpenAPI documents: enough for `kubectl apply` with server-side validation, and for `kubectl explain`.

Custom resources are published with the schema of their definition. A built-in kind is published with only those fields
whose types this server checks; its description says so. The request body of a patch does not list the strategic merge
patch, so kubectl uses its own merge keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from volcano_py.apiserver.crds.custom import CustomStrategy
from volcano_py.apiserver.kinds import conform
from volcano_py.apiserver.kinds.shapes import METADATA, SCHEMA
from volcano_py.apiserver.objects import Obj, encode
from volcano_py.apiserver.resources import Resource, ResourceTable, ServedVersion

PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""How clients ask for version 2. It is no media type by the rules (RFC 9110 knows no @), so the answer says another."""
PROTOBUF_V2_ANSWER = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
EMPTY_V2: Obj = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "v1.36.0"}, "paths": {}}
"""Version 2 of the format is published empty: clients that know version 3 do not need it."""

_OPEN: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_INCOMPLETE = (
    "Only the fields whose types the embedded API server checks are listed; it knows the names of all others. "
    "The whole reference: https://kubernetes.io/docs/reference/kubernetes-api/"
)
_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
_LEAVES: Mapping[int, Obj] = {
    id(conform.text): {"type": "string"},
    id(conform.whole): {"type": "integer", "format": "int64"},
    id(conform.number): {"type": "number"},
    id(conform.flag): {"type": "boolean"},
    id(conform.a_quantity): {"type": "string", "format": "quantity"},
}


def index(table: ResourceTable) -> Obj:
    """The answer to /openapi/v3: where the document of each group and version is."""
    paths: Obj = {}
    for group, resources in table.groups().items():
        for version in sorted({version for resource in resources for version in resource.versions}):
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = hashlib.sha256(encode(document(table, group, version))).hexdigest()[:32]
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(table: ResourceTable, group: str, version: str) -> Obj | None:
    """The OpenAPI document of one group and version; None when it is not served."""
    schemas: Obj = {}
    paths: Obj = {}
    for resource in table.groups().get(group, ()):
        served = resource.versions.get(version)
        if served is None:
            continue
        kind: Obj = {"group": group, "version": version, "kind": resource.kind}
        name = f"{'.'.join(reversed(group.split('.'))) or 'core'}.{version}.{resource.kind}"
        schemas[name] = {**_schema(resource, served), "x-kubernetes-group-version-kind": [kind]}
        paths.update(_paths(resource, served, kind, name))
    if not paths:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _paths(resource: Resource, served: ServedVersion, kind: Obj, schema: str) -> Obj:
    root = f"/apis/{served.api_version}" if resource.group else f"/api/{served.api_version}"
    where = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{root}/{resource.plural}"
    answer = {"200": {"description": "OK", "content": {"application/json": {"schema": _reference(schema)}}}}

    def operation(action: str, *parameters: str) -> Obj:
        return {
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": kind,
            "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in parameters],
            "responses": answer,
        }

    writes = ("dryRun", "fieldManager", "fieldValidation")
    body = {"content": {item: {"schema": {"type": "object"}} for item in _PATCHES}}
    return {
        where: {"get": operation("list"), "post": operation("post", *writes)},
        f"{where}/{{name}}": {
            "get": operation("get"),
            "put": operation("put", *writes),
            "patch": {**operation("patch", *writes, "force"), "requestBody": body},
            "delete": operation("delete", "dryRun", "gracePeriodSeconds", "propagationPolicy"),
        },
    }


def _reference(schema: str) -> Obj:
    return {"$ref": f"#/components/schemas/{schema}"}


def _schema(resource: Resource, served: ServedVersion) -> Obj:
    strategy = resource.strategy
    if isinstance(strategy, CustomStrategy):
        schema = dict(strategy.rules[served.name].schema)
    else:
        schema = {**_OPEN, "description": _INCOMPLETE}
        if strategy.shape is not None:
            schema.update(_of_shape(strategy.shape))
    meta = {**_of_shape(METADATA), "description": "Standard metadata of an object."}
    properties = {
        "apiVersion": {"type": "string", "description": "Version of the schema of this object."},
        "kind": {"type": "string", "description": "What kind of object this is."},
        "metadata": meta,
    }
    schema["properties"] = {**(schema.get("properties") or {}), **properties}
    return schema


def _of_shape(shape: Any) -> Obj:
    """The schema of a shape (see kinds.conform)."""
    if shape is SCHEMA:  # it contains itself
        return dict(_OPEN)
    if isinstance(shape, conform.Struct):
        properties = {name: _of_shape(field) for name, field in shape.fields.items()}
        return {"type": "object", "properties": properties}
    if isinstance(shape, conform.ListOf):
        return {"type": "array", "items": _of_shape(shape.item)}
    if isinstance(shape, conform.MapOf):
        return {"type": "object", "additionalProperties": _of_shape(shape.value)}
    return dict(_LEAVES.get(id(shape), _OPEN))
