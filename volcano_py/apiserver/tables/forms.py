"""Forms of an answer other than the objects themselves: tables, and metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from volcano_py.apiserver.objects import Obj, encode
from volcano_py.apiserver.resources import Resource, ServedVersion
from volcano_py.apiserver.status import StatusError, bad_request
from volcano_py.apiserver.store import Stored
from volcano_py.apiserver.tables.built_in import LAYOUTS
from volcano_py.apiserver.tables.layout import PLAIN, Layout, custom_layout

_META = "meta.k8s.io"
_META_VERSIONS = ("v1", "v1beta1")
_INCLUDE = ("None", "Metadata", "Object")


class Form(Protocol):
    """How objects are written into an answer."""

    def one(self, stored: Stored) -> bytes:
        """The answer to a get, and the object of a watch event."""

    def many(self, items: Iterable[Stored], list_meta: Obj) -> bytes:
        """The answer to a list."""


@dataclass(slots=True)
class TableForm:
    """Tables. In a watch only the first one carries the column definitions, as on a real server."""

    layout: Layout
    served: ServedVersion
    kind: str
    meta_version: str
    include: str
    header_once: bool = False
    _headers_sent: bool = False

    def one(self, stored: Stored) -> bytes:
        """A table of one row."""
        return self.many((stored,), {"resourceVersion": stored.obj["metadata"].get("resourceVersion", "")})

    def many(self, items: Iterable[Stored], list_meta: Obj) -> bytes:
        """A table of many rows."""
        columns: list[Obj] = [] if self.header_once and self._headers_sent else list(self.layout.columns)
        self._headers_sent = True
        return encode(
            {
                "kind": "Table",
                "apiVersion": f"{_META}/{self.meta_version}",
                "metadata": list_meta,
                "columnDefinitions": columns,
                "rows": [self._row(stored.obj) for stored in items],
            }
        )

    def _row(self, obj: Obj) -> Obj:
        row: Obj = {"cells": self.layout.cells(obj)}
        if self.include == "Object":
            row["object"] = {**obj, "kind": self.kind, "apiVersion": self.served.api_version}
        elif self.include == "Metadata":
            row["object"] = _metadata_only(obj, self.meta_version)
        else:
            row["object"] = None
        return row


@dataclass(frozen=True, slots=True)
class MetadataForm:
    """PartialObjectMetadata, for clients that need only metadata."""

    meta_version: str

    def one(self, stored: Stored) -> bytes:
        """The metadata of one object."""
        return encode(_metadata_only(stored.obj, self.meta_version))

    def many(self, items: Iterable[Stored], list_meta: Obj) -> bytes:
        """The metadata of many objects."""
        return encode(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": f"{_META}/{self.meta_version}",
                "metadata": list_meta,
                "items": [_metadata_only(stored.obj, self.meta_version) for stored in items],
            }
        )


def _metadata_only(obj: Obj, version: str) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"{_META}/{version}", "metadata": obj["metadata"]}


def form_for(
    accept: str, resource: Resource, served: ServedVersion, query: Mapping[str, str], watch: bool
) -> Form | None:
    """The form that an Accept header asks for; None for the objects themselves, 406 if none is acceptable."""
    if ";" not in accept:
        return None
    for text in accept.split(","):
        media, *parts = (part.strip() for part in text.split(";"))
        if media not in ("application/json", "*/*", "application/*"):
            continue
        given = dict(part.split("=", 1) for part in parts if "=" in part)
        wanted = given.get("as", "")
        if not wanted:
            return None
        if given.get("g") != _META or given.get("v") not in _META_VERSIONS:
            continue
        if wanted == "Table":
            return _table(resource, served, given["v"], query, watch)
        if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return MetadataForm(given["v"])
    raise _not_acceptable()


def _not_acceptable() -> StatusError:
    return StatusError(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, "
        "application/json;as=Table;v=v1;g=meta.k8s.io, application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    )


def _table(
    resource: Resource, served: ServedVersion, meta_version: str, query: Mapping[str, str], watch: bool
) -> TableForm:
    include = query.get("includeObject") or "Metadata"
    if include not in _INCLUDE:
        raise bad_request(
            f'Unable to convert to Table as requested: Invalid value: "{include}": must be one of {", ".join(_INCLUDE)}'
        )
    if resource.custom:
        layout = custom_layout(served.printer_columns)
    else:
        layout = LAYOUTS.get(resource.collection, PLAIN)
    return TableForm(layout, served, resource.kind, meta_version, include, header_once=watch)
