"""The JSONPath of printer columns: names, indices, `[*]` and `[?(@.field=="value")]`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterator[Any]]

_TOKEN = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\\])+)
      | \[\s*(?:'(?P<single>(?:\\.|[^'\\])*)'|"(?P<double>(?:\\.|[^"\\])*)")\s*\]
      | \[\s*(?P<index>-?\d+)\s*\]
      | \[\s*(?P<all>\*)\s*\]
      | \[\?\(\s*@(?P<field>[^=!<>\s]+)\s*(?P<operator>==|!=)\s*(?P<value>'[^']*'|"[^"]*"|[^)\s]+)\s*\)\]
    """,
    re.VERBOSE,
)


class PathError(ValueError):
    """A path outside the supported subset; the message says where."""


@lru_cache(maxsize=512)
def compile_path(text: str) -> Callable[[Any], list[Any]]:
    """Compile a path such as `.status.conditions[?(@.type=="Ready")].status`; PathError if it cannot be read."""
    steps: list[Step] = []
    path = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    path = path if path.startswith((".", "[")) else f".{path}"
    at = 0
    while at < len(path):
        match = _TOKEN.match(path, at)
        if match is None:
            raise PathError(f"JSONPath {text!r} cannot be read from {path[at:]!r} on")
        steps.append(_step(match))
        at = match.end()

    def find(value: Any) -> list[Any]:
        values = [value]
        for step in steps:
            values = [found for item in values for found in step(item)]
        return values

    return find


def _step(match: re.Match[str]) -> Step:
    groups = match.groupdict()
    if groups["all"] or groups["name"] == "*":
        return _every
    if groups["index"] is not None:
        return _at(int(groups["index"]))
    if groups["field"] is not None:
        return _filter(groups["field"], groups["operator"], groups["value"])
    name = next(part for part in (groups["name"], groups["single"], groups["double"]) if part is not None)
    return _named(re.sub(r"\\(.)", r"\1", name))


def _named(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _at(index: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _filter(field: str, operator: str, wanted: str) -> Step:
    quoted = wanted[0] in "'\""
    text = wanted[1:-1] if quoted else wanted
    find = compile_path(field)

    def holds(item: Any) -> bool:
        found = find(item)
        if not found:
            return operator == "!="
        value = found[0] if isinstance(found[0], str) else str(found[0]).lower()
        return (value == text) is (operator == "==")

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if holds(item))

    return step
