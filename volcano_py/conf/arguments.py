"""Reads plugin and action arguments by type, as Volcano does: a value of another type leaves the default.

5 is an integer and 5.0 is not; "5" is neither. An integer must fit into 64 bits, and a number must be finite. ``warn``
receives a message for each value that was ignored.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from volcano_py.api import keys

Warn = Callable[[str], None]
"""Takes a message. If it begins with "argument KEY", it is shown with the line of that argument."""

_BEYOND: Final = 2**63
_GREATEST: Final = sys.float_info.max
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def get_int(arguments: Mapping[str, Any], key: str, default: int, warn: Warn | None = None) -> int:
    """Return the integer at a key; floating point numbers and quoted numbers do not count."""
    value = arguments.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and -_BEYOND <= value < _BEYOND:
        return value
    huge = isinstance(value, int) and not isinstance(value, bool)
    _warn_of_type(warn, arguments, key, "an integer of 64 bits" if huge else "an integer", default)
    return default


def get_natural(arguments: Mapping[str, Any], key: str, default: int, warn: Warn | None = None) -> int:
    """Return the integer at a key, such as a weight; a negative one leaves the default."""
    value = get_int(arguments, key, default, warn)
    if value >= 0:
        return value
    if warn is not None:
        warn(f"argument {key} is {value}, which is below 0; the default {default!r} is used")
    return default


def get_float(arguments: Mapping[str, Any], key: str, default: float, warn: Warn | None = None) -> float:
    """Return the number at a key; integers count, quoted numbers do not."""
    value = arguments.get(key)
    if isinstance(value, int | float) and not isinstance(value, bool) and -_GREATEST <= value <= _GREATEST:
        return float(value)
    _warn_of_type(warn, arguments, key, "a number", default)
    return default


def get_bool(arguments: Mapping[str, Any], key: str, default: bool, warn: Warn | None = None) -> bool:
    """Return the truth value at a key: a boolean, or a string that Go parses as one, such as "true" or "0"."""
    value = arguments.get(key)
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value in _TRUE | _FALSE:
        return value in _TRUE
    _warn_of_type(warn, arguments, key, "true or false", default)
    return default


def get_string(arguments: Mapping[str, Any], key: str, default: str, warn: Warn | None = None) -> str:
    """Return the text at a key; numbers and booleans do not count unless they are quoted."""
    value = arguments.get(key)
    if isinstance(value, str):
        return value
    _warn_of_type(warn, arguments, key, "text", default)
    return default


def get_resource_weights(arguments: Mapping[str, Any], prefix: str, warn: Warn) -> dict[str, float]:
    """Return the weight of each resource, 1 if it states none; a negative one counts as 1.

    ``PREFIXcpu`` and ``PREFIXmemory`` have keys of their own. ``PREFIXresources`` lists the other resources, and
    ``PREFIXresources.<name>`` is the weight of one of them; it has no effect if the list lacks the name.
    """
    listing, own = f"{prefix}resources", {keys.CPU: f"{prefix}cpu", keys.MEMORY: f"{prefix}memory"}
    listed = (name.strip() for name in get_string(arguments, listing, "", warn).split(","))
    weights = {name: f"{listing}.{name}" for name in listed if name} | own
    for key in arguments:
        name = key.removeprefix(f"{listing}.")
        if name != key and weights.get(name) != key:
            remedy = f"write {own[name]}" if name in own else f"add {name} to {listing}"
            warn(f"argument {key} has no effect: {remedy}")
    return {name: float(get_natural(arguments, key, 1, warn)) for name, key in weights.items()}


def _warn_of_type(warn: Warn | None, arguments: Mapping[str, Any], key: str, wanted: str, default: object) -> None:
    if warn is not None and arguments.get(key) is not None:
        warn(f"argument {key} is {_shown(arguments[key])}, which is not {wanted}; the default {default!r} is used")


def _shown(value: object) -> str:
    """Return a value as text for a warning; Python refuses to write integers of thousands of digits."""
    if isinstance(value, int) and not -_GREATEST <= value <= _GREATEST:
        return "an integer of hundreds of digits"
    return repr(value)
