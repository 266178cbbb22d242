"""API objects as this server keeps them: plain JSON dictionaries, and the operations that every module needs.

An object in the store is never changed in place: a write builds a new dictionary. Snapshots, history and shared
encodings therefore cost nothing.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from volcano_py.apiserver.origin import ORIGIN

Obj = dict[str, Any]
"""One API object (or a part of one) as decoded from JSON."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_second = 0
_second_text = ""


def object_key(namespace: str | None, name: str) -> str:
    """Key of an object inside its collection; sorts as a real API server lists (namespace, then name)."""
    return f"{namespace}/{name}" if namespace else name


def key_of(obj: Obj) -> str:
    """Key of an object read from its own metadata."""
    meta = obj["metadata"]
    return object_key(meta.get("namespace"), meta["name"])


def describe(obj: Obj) -> str:
    """Name an object for a message: kind and namespace/name."""
    meta = obj.get("metadata") or {}
    return f"{obj.get('kind', 'object')} {object_key(meta.get('namespace'), str(meta.get('name', '')))}"


def encode(value: Any) -> bytes:
    """Encode a JSON value."""
    return _encode(value)


def decode(data: bytes) -> Any:
    """Decode a JSON value into dictionaries and lists."""
    return _decode(data)


def copy_value(value: Any) -> Any:
    """Copy a JSON value so that the copy may be changed freely (a round trip is faster than deepcopy)."""
    return _decode(_encode(value))


def dig(obj: Any, *path: str) -> Any:
    """Follow keys through nested dictionaries; None where the path ends early."""
    for part in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(part)
    return obj


def timestamp(offset_s: float = 0.0) -> str:
    """Now (plus an offset) as the API writes times: whole seconds, UTC."""
    global _second, _second_text
    second = int(ORIGIN.get().time() + offset_s)
    if second != _second:
        _second_text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second))
        _second = second
    return _second_text
