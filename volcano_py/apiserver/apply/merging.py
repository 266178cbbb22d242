"""Merge an applied configuration into the live object, and remove the fields that no manager owns any more."""

from __future__ import annotations

from typing import Any

from volcano_py.apiserver.apply.fieldsets import FieldSet, Path, item_element
from volcano_py.apiserver.apply.structure import Structure
from volcano_py.apiserver.objects import encode


def merged(live: Any, applied: Any, structure: Structure) -> Any:
    """The live value with the applied one on top; neither is changed."""
    if isinstance(live, dict) and isinstance(applied, dict) and not structure.atomic:
        result = dict(live)
        for name, value in applied.items():
            result[name] = merged(live[name], value, structure.child(name)) if name in live else value
        return result
    if isinstance(live, list) and isinstance(applied, list):
        if structure.list_kind == "map":
            return _merged_items(live, applied, structure)
        if structure.list_kind == "set":
            return [*live, *(item for item in applied if item not in live)]
    return applied


def _merged_items(live: list[Any], applied: list[Any], structure: Structure) -> list[Any]:
    wanted = {item_element(item, structure.keys): item for item in applied}
    result = []
    for item in live:
        change = wanted.pop(item_element(item, structure.keys), None)
        result.append(item if change is None else merged(item, change, structure.item))
    return [*result, *wanted.values()]


def without(value: Any, gone: FieldSet, structure: Structure, path: Path = ()) -> Any:
    """The value without some fields; None for an object or list that loses its last entry."""
    if not gone:
        return value
    if isinstance(value, dict) and not structure.atomic:
        kept: dict[str, Any] = {}
        for name, item in value.items():
            below = _remaining(item, gone, structure.child(name), (*path, f"f:{name}"))
            if below is not None or item is None:
                kept[name] = below
        return kept if kept or not value else None
    if isinstance(value, list) and structure.list_kind == "map":
        items = [_remaining(item, gone, structure.item, (*path, item_element(item, structure.keys))) for item in value]
        left = [item for item in items if item is not None]
        return left if left or not value else None
    if isinstance(value, list) and structure.list_kind == "set":
        left = [item for item in value if (*path, f"v:{encode(item).decode()}") not in gone]
        return left if left or not value else None
    return value


def _remaining(value: Any, gone: FieldSet, structure: Structure, path: Path) -> Any:
    if path in gone:
        return None
    below = frozenset(item for item in gone if item[: len(path)] == path)
    return without(value, below, structure, path)
