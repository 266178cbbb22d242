"""ConfigMaps and Secrets: their keys must be valid file names, and `stringData` becomes `data`."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

from volcano_py.apiserver.kinds.conform import MapOf, Shape, Struct, flag, text
from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.status import FieldError, bad_request, forbidden_field, invalid_value

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_TEXTS = MapOf(text)
_SHAPE = Struct({"data": _TEXTS, "binaryData": _TEXTS, "stringData": _TEXTS, "immutable": flag, "type": text})


@dataclass(frozen=True, slots=True)
class DataStrategy(Strategy):
    """How ConfigMaps are written."""

    shape: Shape | None = _SHAPE

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Keys must be valid file names."""
        return [
            invalid_value(f"{field}[{key}]", key, problem)
            for field in ("data", "binaryData")
            for key in obj.get(field) or ()
            if (problem := _key_problem(key))
        ]

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """An immutable object keeps its data."""
        if not old.get("immutable"):
            return []
        fixed = ("immutable", "data", "binaryData")
        detail = "field is immutable when `immutable` is set"
        return [forbidden_field(name, detail) for name in fixed if obj.get(name) != old.get(name)]


@dataclass(frozen=True, slots=True)
class SecretStrategy(DataStrategy):
    """How Secrets are written: `stringData` is turned into `data`."""

    def default(self, obj: Obj, context: WriteContext) -> None:
        """The type defaults to Opaque; `stringData` is encoded into `data`."""
        obj["type"] = obj.get("type") or "Opaque"
        texts = obj.pop("stringData", None)
        if texts:
            encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}
        for key, value in (obj.get("data") or {}).items():
            try:
                base64.b64decode(value, validate=True)
            except binascii.Error as error:
                raise bad_request(f"data[{key}] of a Secret is no base64: {error}; use stringData for text") from error


def _key_problem(key: str) -> str:
    if len(key) > 253:
        return "must be no more than 253 bytes"
    if key in (".", "..") or key.startswith(".."):
        return "must not be '.', '..' or start with '..'"
    if _KEY.fullmatch(key):
        return ""
    return (
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
        "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
    )
