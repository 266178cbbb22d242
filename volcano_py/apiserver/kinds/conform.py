"""Shapes: a small language for the types of fields, and the check of a value against a shape.

A real API server decodes every field into a typed struct and answers 400 when that fails; a shape does the same for
the fields it names and leaves all others alone. As in a real server, null is the same as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from volcano_py.apiserver.kinds.quantities import quantity
from volcano_py.apiserver.status import bad_request


class Shape(Protocol):
    """The type of a value. `accepts` is cheap; only `explain` works out which part is wrong."""

    def accepts(self, value: Any) -> bool:
        """Whether a value (not null) has this shape; normalizes it in place."""

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 for the first part of a value that does not have its shape."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A plain value."""

    wanted: str
    accepts: Callable[[Any], bool]

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 if the value has another type."""
        if not self.accepts(value):
            _refuse(value, path, self.wanted)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of equal shapes."""

    item: Shape

    def accepts(self, value: Any) -> bool:
        """Every item has the shape."""
        return type(value) is list and all(map(self.item.accepts, value))

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 for the first item of another shape."""
        if not isinstance(value, list):
            _refuse(value, path, "a list")
        for index, item in enumerate(value):
            self.item.explain(item, f"{path}[{index}]")


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys, its values of one shape."""

    value: Shape

    def accepts(self, value: Any) -> bool:
        """Every value has the shape. Null becomes an empty text, and quantities become text."""
        if type(value) is not dict:
            return False
        for name, item in value.items():
            if item is None and self.value is text:
                value[name] = ""
            elif not self.value.accepts(item):
                return False
            elif self.value is a_quantity and type(item) is not str:
                value[name] = str(item)
        return True

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 for the first value of another shape."""
        if not isinstance(value, dict):
            _refuse(value, path, "an object")
        for name, item in value.items():
            self.value.explain(item, f"{path}[{name}]")


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with known fields; others are left alone."""

    fields: Mapping[str, Shape]

    def accepts(self, value: Any) -> bool:
        """Every known field has its shape; known fields that are null are removed."""
        if type(value) is not dict:
            return False
        nulls: list[str] = []
        for name, item in value.items():
            shape = self.fields.get(name)
            if shape is None:
                continue
            if item is None:
                nulls.append(name)
            elif not shape.accepts(item):
                return False
        for name in nulls:
            del value[name]
        return True

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 for the first field of another shape."""
        if not isinstance(value, dict):
            _refuse(value, path, "an object")
        for name, item in value.items():
            shape = self.fields.get(name)
            if shape is not None and item is not None:
                shape.explain(item, f"{path}.{name}" if path else name)


def conform(value: Any, shape: Shape, path: str = "") -> None:
    """Check a value against its shape; 400 names the field. Nulls of known fields are removed in place."""
    if not shape.accepts(value):
        shape.explain(value, path)


def _refuse(value: Any, path: str, wanted: str) -> NoReturn:
    raise bad_request(f"json: cannot unmarshal {path or 'the object'}: {value!r:.80} is not {wanted}")


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _is_quantity(value: Any) -> bool:
    return (type(value) is str or _is_number(value)) and quantity(str(value)) is not None


text = Leaf("a string", lambda value: type(value) is str)
whole = Leaf("a whole number", lambda value: type(value) is int and -(2**63) <= value < 2**63)
number = Leaf("a number", _is_number)
flag = Leaf("true or false", lambda value: type(value) is bool)
anything = Leaf("anything", lambda value: True)
an_object = Leaf("an object", lambda value: type(value) is dict)
a_quantity = Leaf(
    "a quantity such as 500m, 2 or 1Gi: quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    _is_quantity,
)
