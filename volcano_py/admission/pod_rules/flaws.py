"""The sentences of the API server about a field, as refusals: the message is what follows the path and a colon."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from volcano_py.admission.contract import Refusal

Flaws = Iterator[Refusal]


def required(path: str, detail: str = "") -> Refusal:
    """Return the refusal of a field that is missing."""
    return Refusal(f"Required value: {detail}" if detail else "Required value", path, "fill in this field")


def invalid(path: str, value: Any, detail: str) -> Refusal:
    """Return the refusal of a value that breaks a rule."""
    return Refusal(f"Invalid value: {_shown(value)}: {detail}", path, "change this value")


def forbidden(path: str, detail: str) -> Refusal:
    """Return the refusal of a field that may not be set here."""
    return Refusal(f"Forbidden: {detail}", path, "take this field out")


def not_supported(path: str, value: Any, allowed: Iterable[str]) -> Refusal:
    """Return the refusal of a value that is not among those allowed."""
    names = ", ".join(_shown(one) for one in sorted(allowed))
    return Refusal(f"Unsupported value: {_shown(value)}: supported values: {names}", path, f"use one of {names}")


def duplicate(path: str, value: Any) -> Refusal:
    """Return the refusal of a value that stands there twice."""
    return Refusal(f"Duplicate value: {_shown(value)}", path, "choose another name")


def not_found(path: str, value: Any, detail: str = "") -> Refusal:
    """Return the refusal of a name that nothing has."""
    message = f"Not found: {_shown(value)}" + (f": {detail}" if detail else "")
    return Refusal(message, path, "add what this names, or correct the name")


def each(path: str, value: Any, problems: Iterable[str]) -> Flaws:
    """Yield one refusal for each thing that is wrong with a value."""
    return (invalid(path, value, problem) for problem in problems)


def one_of(path: str, value: str, allowed: Collection[str]) -> Flaws:
    """Judge a value of a closed set; an empty one has a default."""
    if value and value not in allowed:
        yield not_supported(path, value, allowed)


def within(path: str, value: int | None, low: int, high: int) -> Flaws:
    """Judge a number with limits."""
    if value is not None and not low <= value <= high:
        yield invalid(path, value, f"must be between {low} and {high}, inclusive")


def not_negative(path: str, value: int | None) -> Flaws:
    """Judge a number that is not below zero."""
    if value is not None and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()
