"""Tables for narrow terminals: columns that identify a row keep their width, and explanations are cut."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

_GAP = 2
NARROW = 100
"""Terminals with fewer columns show short bars."""

Cell = str | Text


def explained(headers: Sequence[str], rows: Sequence[Sequence[Cell]], title: str = "") -> Table:
    """Return a table as wide as the terminal; the last column gets the remaining width, cut with an ellipsis."""
    table = _plain(title)
    table.expand = True
    for number, header in enumerate(headers, 1):
        ratio = 1 if number == len(headers) else None
        table.add_column(Text(header), no_wrap=True, overflow="ellipsis", ratio=ratio)
    return _filled(table, rows)


def compact(headers: Sequence[str], rows: Sequence[Sequence[Cell]], title: str = "") -> Table:
    """Return a table as wide as its content."""
    table = _plain(title)
    for header in headers:
        table.add_column(Text(header), no_wrap=True)
    return _filled(table, rows)


def numbers(title: str, rows: Sequence[Mapping[str, str]], width: int) -> list[Table]:
    """Return rows of numbers as tables that fit into a width.

    If one table with a line for each row does not fit, the tables are transposed: each row becomes a column. Each table
    has as many columns as fit, and repeats the names. A header may have several lines.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [[row.get(column, "") for column in columns] for row in rows]
    needed = [
        max(len(text) for text in (*header.split("\n"), *(row[place] for row in cells)))
        for place, header in enumerate(columns)
    ]
    if sum(needed) + _GAP * len(needed) <= width:
        table = _plain(title)
        for column in columns:
            table.add_column(Text(column), justify="right", no_wrap=True)
        return [_filled(table, cells)]
    names = [column.replace("\n", " ") for column in columns]
    left = width - max(map(len, names)) - _GAP
    found: list[Table] = []
    while cells:
        count, used = 0, 0
        while count < len(cells) and (not count or used + _width(cells[count]) <= left):
            used += _width(cells[count])
            count += 1
        table = _plain("" if found else title)
        table.show_header = False
        table.add_column(no_wrap=True)
        for _ in range(count):
            table.add_column(justify="right", no_wrap=True, overflow="ellipsis")
        _filled(table, [[name, *(row[place] for row in cells[:count])] for place, name in enumerate(names)])
        found.append(table)
        cells = cells[count:]
    return found


def _plain(title: str) -> Table:
    return Table(box=None, padding=(0, _GAP, 0, 0), title=Text(title) if title else None, title_justify="left")


def _filled(table: Table, rows: Sequence[Sequence[Cell]]) -> Table:
    """Add rows; text in brackets is not markup."""
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def _width(row: Sequence[str]) -> int:
    return max(map(len, row), default=0) + _GAP


def bar(share: float, colour: str, width: int) -> Text:
    """Return a bar; a share of 1 fills it."""
    full = round(min(max(share, 0.0), 1.0) * width)
    return Text("█" * full, style=colour) + Text("·" * (width - full), style="dim")
