"""Values of decisions and reports as plain JSON, and patches of plain JSON."""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import msgspec
import numpy as np

RENAMED: dict[str, str] = {}
"""New name of a class that decisions and reports are made of -> the name by which both versions print it."""

Json = dict[str, Any]

NEW_FIELDS: Final = frozenset({"prepare"})
"""Fields that versions of before do not have: there they are as good as empty."""


def plain(value: Any) -> Any:
    """Return a value as JSON: what has fields becomes a mapping with the name of its class.

    New fields are left out while they are empty.
    """
    if isinstance(value, Enum):
        return f"{name_of(value)}.{value.name}"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    names = None
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
    elif dataclasses.is_dataclass(value):
        names = tuple(field.name for field in dataclasses.fields(value))
    elif isinstance(value, tuple):
        names = getattr(value, "_fields", None)
    if names is not None:
        fields = {name: plain(getattr(value, name)) for name in names}
        return {"is": name_of(value), **{name: one for name, one in fields.items() if one or name not in NEW_FIELDS}}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(one) for one in value), key=repr)
    return [plain(one) for one in value]


def merged(obj: Json, patch: Json) -> Json:
    """Return an object after a JSON merge patch; neither is changed."""
    result = {key: value for key, value in obj.items() if key not in patch}
    for key, value in patch.items():
        if isinstance(value, dict):
            before = obj.get(key)
            result[key] = merged(before if isinstance(before, dict) else {}, value)
        elif value is not None:
            result[key] = value
    return result


def name_of(value: Any) -> str:
    """Return the name of a value's class, the same one in both versions."""
    return RENAMED.get(type(value).__name__, type(value).__name__)
