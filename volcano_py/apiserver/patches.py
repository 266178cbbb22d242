"""Patch documents: JSON merge patch (RFC 7386) and JSON patch (RFC 6902). Strategic merge has its own module."""

from __future__ import annotations

from typing import Any

from volcano_py.apiserver.objects import copy_value
from volcano_py.apiserver.status import StatusError

_REJECTED = "the server rejected our request due to an error in our request"


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch; dictionaries of the target are changed in place, the result is returned."""
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merge_patch(target.get(name), value)
    return target


def json_patch(document: Any, operations: list[Any]) -> Any:
    """Apply a JSON patch in place and return the document; 422 when an operation does not apply."""
    for operation in operations:
        try:
            document = _apply(document, operation)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise _rejected(f"{operation}: {error}") from error
    return document


def _rejected(detail: str) -> StatusError:
    error = StatusError(422, "Invalid", _REJECTED)
    error.add_note(detail)
    return error


def _apply(document: Any, operation: Any) -> Any:
    kind, path = operation["op"], _pointer(operation["path"])
    if kind == "add":
        return _add(document, path, operation["value"])
    if kind == "remove":
        _remove(document, path)
        return document
    if kind == "replace":
        if not path:
            return operation["value"]
        parent, last = _read(document, path[:-1]), path[-1]
        parent[_index(parent, last)] = operation["value"]  # a missing key is added, as on a real API server
        return document
    if kind == "move":
        source = _pointer(operation["from"])
        value = _read(document, source)
        _remove(document, source)
        return _add(document, path, value)
    if kind == "copy":
        return _add(document, path, copy_value(_read(document, _pointer(operation["from"]))))
    if kind == "test":
        _test(document, path, operation["value"])
        return document
    raise ValueError(f"unknown operation {kind}")


def _test(document: Any, path: list[str], wanted: Any) -> None:
    parent = _read(document, path[:-1])
    missing = bool(path) and isinstance(parent, dict) and path[-1] not in parent
    found = None if missing else _read(document, path)  # a missing key equals null
    if found != wanted:
        raise ValueError(f"test failed: found {found!r}")


def _pointer(text: Any) -> list[str]:
    if not isinstance(text, str):
        raise TypeError(f"pointer {text!r} is no text")
    if text == "":
        return []
    if not text.startswith("/"):
        raise ValueError(f"pointer {text!r} must start with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def _index(parent: Any, part: str) -> Any:
    if isinstance(parent, list):
        index = int(part)
        return index if index >= 0 else len(parent) + index
    if not isinstance(parent, dict):
        raise TypeError(f"{part} is below a plain value")
    return part


def _read(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(document, part)]
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent, last = _read(document, path[:-1]), path[-1]
    if isinstance(parent, list):
        index = len(parent) if last == "-" else _index(parent, last)
        if index > len(parent):
            raise IndexError(f"index {index} is beyond the end")
        parent.insert(index, value)
    else:
        parent[_index(parent, last)] = value
    return document


def _remove(document: Any, path: list[str]) -> None:
    parent = _read(document, path[:-1])
    del parent[_index(parent, path[-1])]
