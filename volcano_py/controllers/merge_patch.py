"""The difference between two states of an object as a merge patch (RFC 7396)."""

from collections.abc import Mapping
from typing import Any


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that turns ``before`` into ``after``; {} if they are equal. Lists are replaced whole."""
    patch: dict[str, Any] = dict.fromkeys(name for name in before if name not in after)
    for name, value in after.items():
        former = before.get(name)
        if former == value:
            continue
        if isinstance(former, Mapping) and isinstance(value, Mapping):
            patch[name] = difference(former, value)
        else:
            patch[name] = value
    return patch
