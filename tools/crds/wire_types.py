"""From the types of `volcano_py.api` to schemas: which fields there are, and what each of them holds."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import msgspec
from msgspec import inspect

from tools.crds.kubernetes import QUANTITY

Schema = dict[str, Any]

_SCALARS: dict[type[inspect.Type], Schema] = {
    inspect.StrType: {"type": "string"},
    inspect.IntType: {"type": "integer", "format": "int32"},
    inspect.BoolType: {"type": "boolean"},
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
    inspect.AnyType: {},  # what it is, the words say
}
_WRITTEN_BY_THE_SERVER = frozenset({"apiVersion", "kind", "metadata"})


def fields(module: str | None, name: str) -> dict[str, Schema]:
    """Return the fields of a type with their schemas; none if the module has no such type.

    A field that holds another type of our own is a ``$ref`` to the name of that type.
    """
    kind = getattr(_module(module), name, None) if module else None
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return {}
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {
        field.encode_name: _schema(field.type)
        for field in info.fields
        if field.encode_name not in _WRITTEN_BY_THE_SERVER
    }


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"volcano_py.api.{name}")


def _schema(held: inspect.Type) -> Schema:
    if isinstance(held, inspect.UnionType):
        variants = [variant for variant in held.types if not isinstance(variant, inspect.NoneType)]
        return _schema(variants[0]) if len(variants) == 1 else dict(QUANTITY)
    if isinstance(held, inspect.StructType):
        return {"$ref": held.cls.__name__}
    if isinstance(held, inspect.ListType):
        return {"type": "array", "items": _schema(held.item_type)}
    if isinstance(held, inspect.DictType):
        if isinstance(held.value_type, inspect.AnyType):
            return {}
        return {"type": "object", "additionalProperties": _schema(held.value_type)}
    return dict(_SCALARS[type(held)])
