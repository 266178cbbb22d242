"""Field paths of stages: `status.phase`, `metadata.annotations["a.b/c"]`, `status.conditions[type=Ready].status`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.?(?P<name>[A-Za-z_][A-Za-z0-9_-]*)   # .name
      | \["(?P<quoted>[^"]+)"\]                 # ["any key"]
      | \[(?P<index>\d+)\]                      # [0]
      | \[(?P<key>[A-Za-z]+)=(?P<value>[^\]]+)\] # [type=Ready]
    """,
    re.VERBOSE,
)
Step = str | int | tuple[str, str]


@lru_cache(maxsize=512)
def parse_path(text: str) -> Sequence[Step]:
    """Split a path into steps; ValueError when it cannot be read."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f"field path {text!r} cannot be read at {text[position:]!r}")
        if match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["key"] is not None:
            steps.append((match["key"], match["value"]))
        else:
            steps.append(match["name"] or match["quoted"])
        position = match.end()
    if not steps:
        raise ValueError("a field path must not be empty")
    return tuple(steps)


def read_path(obj: Any, text: str) -> Any:
    """The value at a path; None where the path leads nowhere."""
    value = obj
    for step in parse_path(text):
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        elif isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = _item(value, *step)
        if value is None:
            return None
    return value


def _item(items: Any, key: str, wanted: str) -> Any:
    if not isinstance(items, list):
        return None
    return next((item for item in items if isinstance(item, dict) and str(item.get(key)) == wanted), None)
