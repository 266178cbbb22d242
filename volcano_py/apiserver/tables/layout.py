"""The table layout of a kind: its columns, and the cells of one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from volcano_py.apiserver.objects import Obj, encode
from volcano_py.apiserver.tables.ages import age
from volcano_py.apiserver.tables.jsonpath import PathError, compile_path

Cells = Callable[[Obj], list[Any]]
NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Layout:
    """Column definitions as the API writes them, and the function that fills a row in the same order."""

    columns: tuple[Obj, ...]
    cells: Cells


def column(name: str, kind: str = "string", *, wide: bool = False, form: str = "", description: str = "") -> Obj:
    """Describe a column; a wide one is shown with `-o wide` only."""
    priority = 1 if wide else 0
    return {"name": name, "type": kind, "format": form, "description": description or name, "priority": priority}


NAME_COLUMN = column("Name", form="name", description="Name of the object, unique in its namespace.")


def layout(names: str, cells: Cells) -> Layout:
    """Describe a table by the names of the columns after the first; `+` before a name makes it a wide one."""
    columns = [column(name.removeprefix("+"), wide=name.startswith("+")) for name in names.split(", ")]
    return Layout((NAME_COLUMN, *columns), lambda obj: [obj["metadata"]["name"], *cells(obj)])


def born(obj: Obj) -> str:
    """The AGE cell."""
    return age(obj["metadata"].get("creationTimestamp"))


PLAIN = layout("Age", lambda obj: [born(obj)])
"""The table of a kind without columns of its own."""


def custom_layout(printer_columns: tuple[Obj, ...]) -> Layout:
    """The table of a custom resource, from its definition's additionalPrinterColumns."""
    if not printer_columns:
        printer_columns = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)
    columns: list[Obj] = [NAME_COLUMN]
    readers: list[Callable[[Obj], Any]] = []
    for item in printer_columns:
        path, kind = str(item.get("jsonPath", "")), str(item.get("type", "string"))
        try:
            readers.append(_reader(path, kind))
        except PathError as error:
            # Admission does not check the path, so the column itself shows the error.
            readers.append(_constant(f"<{error}>"))
        columns.append(
            {
                "name": item.get("name", ""),
                "type": kind,
                "format": item.get("format", ""),
                "description": item.get("description")
                or f"Custom resource definition column (in JSONPath format): {path}",
                "priority": item.get("priority", 0),
            }
        )
    return Layout(tuple(columns), lambda obj: [obj["metadata"]["name"], *(read(obj) for read in readers)])


def _constant(text: str) -> Callable[[Obj], Any]:
    return lambda obj: text


def _reader(path: str, kind: str) -> Callable[[Obj], Any]:
    find = compile_path(path)

    def read(obj: Obj) -> Any:
        found = find(obj)
        return _cell(found[0], kind) if found else None

    return read


def _cell(value: Any, kind: str) -> Any:
    """A value as its column's type shows it; a value of another type gives an empty cell."""
    if value is None:
        return None
    if kind == "date":
        return age(value)
    if kind == "string":
        if isinstance(value, bool):
            return "true" if value else "false"
        return value if isinstance(value, str) else encode(value).decode()
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else float(value)
