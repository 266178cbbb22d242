"""Read a folder of rows: every JSON file below it is an area, named by its path."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from volcano_py.model.resource_lists import UNLIMITED

NOW: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""The frozen current time."""

_KEYS: Final = frozenset(
    {"id", "name", "source", "operation", "input", "scheduler", "actions", "expect", "note", "missing", "ignore"}
)
_TWIN: Final = "/twin"


class RowsError(Exception):
    """A folder or a file of rows cannot be used."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a handler sees of a row. It hides id, name and source, because a result must not depend on them."""

    operation: str
    input: dict[str, Any]
    expect: dict[str, Any]
    scheduler: dict[str, Any] | None = None
    actions: tuple[str, ...] = ()
    note: str = ""  # describes a stand-in for code that a row cannot contain


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file."""

    id: str
    area: str
    case: Case
    ignore: str = ""
    unknown: tuple[str, ...] = field(default=())  # keys of the row that are not in the format

    @property
    def original(self) -> str:
        """The id of the row whose twin this is, or its own id."""
        return self.id.partition(_TWIN)[0]


def read_rows(folder: Path) -> list[Row]:
    """Return all rows below a folder, file by file; raise RowsError if there are none or a file has another form."""
    rows = [row for path in sorted(folder.rglob("*.json")) for row in _read_file(folder, path)]
    if not rows:
        raise RowsError(f"{folder}: there are no rows below this folder; name one that holds *.json files of rows")
    return rows


def _read_file(folder: Path, path: Path) -> Iterator[Row]:
    area = path.relative_to(folder).with_suffix("").as_posix()
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RowsError(f"{path}: is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("rows"), list):
        raise RowsError(f"{path}: has no list of rows")
    for number, raw in enumerate(document["rows"]):
        try:
            yield _row(area, raw)
        except KeyError as error:
            raise RowsError(f"{path}: rows[{number}] has no {error}") from error


def _row(area: str, raw: dict[str, Any]) -> Row:
    case = Case(
        operation=raw["operation"],
        input=_resolve(raw["input"]),
        expect=_resolve(raw["expect"]),
        scheduler=raw.get("scheduler"),
        actions=tuple(raw.get("actions", ())),
        note=raw.get("note", ""),
    )
    return Row(raw["id"], area, case, raw.get("ignore", ""), tuple(sorted(raw.keys() - _KEYS)))


def _resolve(value: Any) -> Any:
    """Replace the format's own values: times relative to the frozen current time, and the largest double."""
    if isinstance(value, list):
        return [_resolve(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"$now"}:
        return NOW + timedelta(seconds=value["$now"])
    if value.keys() == {"$float"}:
        if value["$float"] != "max":
            raise RowsError(f"$float: {value['$float']!r} is not in the format; only max is")
        return UNLIMITED
    return {key: _resolve(item) for key, item in value.items()}
