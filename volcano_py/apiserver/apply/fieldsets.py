"""Sets of fields: paths as tuples of elements, written as `fieldsV1` writes them.

`f:spec` is a field, `k:{"name":"a"}` an item of a keyed list, `v:"a"` a member of a set.
"""

from __future__ import annotations

from typing import Any

from volcano_py.apiserver.apply.structure import KEY_DEFAULTS, Structure
from volcano_py.apiserver.objects import Obj, decode, encode

Path = tuple[str, ...]
FieldSet = frozenset[Path]

_UNOWNED_META = (
    "name",
    "namespace",
    "creationTimestamp",
    "uid",
    "generation",
    "resourceVersion",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_UNOWNED = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{n}") for n in _UNOWNED_META)}
)


def fields_of(obj: Obj, structure: Structure) -> dict[Path, Any]:
    """Every field of an object that can be owned, with its value. Items of keyed lists count as fields too."""
    found: dict[Path, Any] = {}
    _collect(obj, structure, (), found)
    return {path: value for path, value in found.items() if path not in _UNOWNED}


def _collect(value: Any, structure: Structure, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value and not structure.atomic:
        for name, item in value.items():
            _collect(item, structure.child(name), (*path, f"f:{name}"), found)
    elif isinstance(value, list) and value and structure.list_kind == "map":
        for item in value:
            where = (*path, item_element(item, structure.keys))
            found[where] = None  # that it is there; what is in it follows
            _collect(item, structure.item, where, found)
    elif isinstance(value, list) and value and structure.list_kind == "set":
        for item in value:
            found[(*path, f"v:{encode(item).decode()}")] = item
    else:
        found[path] = value


def item_element(item: Any, keys: tuple[str, ...]) -> str:
    """The path element of an item of a keyed list."""
    fields = item if isinstance(item, dict) else {}
    return "k:" + encode({key: fields.get(key, KEY_DEFAULTS.get(key)) for key in sorted(keys)}).decode()


def write_fields(fields: FieldSet) -> Obj:
    """As nested objects, the form in which `managedFields` keeps them."""
    root: Obj = {}
    inner = {path[:length] for path in fields for length in range(1, len(path))}
    for path in sorted(fields):
        node = root
        for element in path:
            node = node.setdefault(element, {})
        if path in inner or path[-1].startswith("k:"):
            node["."] = {}
    return root


def read_fields(nested: Any) -> FieldSet:
    """The set that nested objects describe."""
    found: set[Path] = set()

    def walk(node: Any, path: Path) -> None:
        if not isinstance(node, dict):
            return
        if path and (not node or "." in node):
            found.add(path)
        for element, below in node.items():
            if element != ".":
                walk(below, (*path, element))

    walk(nested, ())
    return frozenset(found)


def path_text(path: Path) -> str:
    """A path as conflicts name it: `.spec.containers[name="a"].image`."""
    parts: list[str] = []
    for element in path:
        kind, rest = element[:2], element[2:]
        if kind == "k:":
            keys = decode(rest.encode())
            parts.append("[" + ",".join(f"{key}={encode(value).decode()}" for key, value in keys.items()) + "]")
        elif kind == "v:":
            parts.append(f"[={rest}]")
        else:
            parts.append(f".{rest}")
    return "".join(parts)
