"""Paths that name no object: version, discovery, OpenAPI."""

from __future__ import annotations

from volcano_py.apiserver import discovery, openapi
from volcano_py.apiserver.objects import Obj, encode
from volcano_py.apiserver.resources import ResourceTable
from volcano_py.apiserver.verbs import Reply


def answer(table: ResourceTable, method: str, path: str, host: str, accept: str) -> Reply | None:
    """The document at a path; None when there is none."""
    if method != "GET":
        return None
    if path.rstrip("/") == "/openapi/v2":
        if openapi.PROTOBUF_V2 in accept:
            return Reply(200, b"", content_type=openapi.PROTOBUF_V2_ANSWER)  # an empty message is an empty document
        return Reply(200, encode(openapi.EMPTY_V2))
    document = _document(table, path, host)
    return None if document is None else Reply(200, encode(document))


def _document(table: ResourceTable, path: str, host: str) -> Obj | None:
    match path.strip("/").split("/"):
        case ["version"]:
            return discovery.VERSION
        case ["api"]:
            return discovery.api_versions(host)
        case ["apis"]:
            return discovery.group_list(table)
        case ["api", version]:
            return discovery.resource_list(table, "", version)
        case ["apis", group]:
            return discovery.group(table, group)
        case ["apis", group, version]:
            return discovery.resource_list(table, group, version)
        case ["openapi", "v3"]:
            return openapi.index(table)
        case ["openapi", "v3", "api", version]:
            return openapi.document(table, "", version)
        case ["openapi", "v3", "apis", group, version]:
            return openapi.document(table, group, version)
    return None
