"""Objects as the changes that make them from a plain one.

A change is a path and a value: ``{"spec/tasks/0/replicas": 3}``. The value GONE takes a field out; an index
one past the end of a list adds an item.
"""

import copy
from collections.abc import Mapping
from typing import Any, Final

GONE: Final = object()
Changes = Mapping[str, Any]


def changed(plain: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """Return an object with changes; the plain one stays as it is."""
    made: dict[str, Any] = copy.deepcopy(dict(plain))
    for path, value in changes.items():
        *way, last = path.split("/")
        owner: Any = made
        for step in way:
            if isinstance(owner, list):
                if int(step) == len(owner):
                    owner.append({})
                owner = owner[int(step)]
            else:
                owner = owner.setdefault(step, {})
        if isinstance(owner, list):
            if int(last) == len(owner):
                owner.append(None)
            owner[int(last)] = copy.deepcopy(value)
        elif value is GONE:
            owner.pop(last, None)
        else:
            owner[last] = copy.deepcopy(value)
    return made
