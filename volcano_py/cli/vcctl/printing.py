"""Tables of fixed widths, as Volcano's programs print them, and objects as JSON or YAML."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.texts import columns, head, one_line, tail

NOTHING: Final = "No resources found"
_COLOURS: Final = {
    **dict.fromkeys(("Running", "Completed", "Succeed", "Succeeded", "Open"), "32"),
    **dict.fromkeys(("Pending", "Inqueue", "Restarting", "Aborting", "Terminating", "Completing", "Closing"), "33"),
    **dict.fromkeys(("Failed", "Aborted", "Terminated", "Unknown", "Closed", "Error", "CrashLoopBackOff"), "31"),
}
_TOP: Final = ("kind", "apiVersion", "metadata", "spec", "status")
_METADATA: Final = (
    *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers"),
)

_NAME: Final = 24
"""Long cells are not cut below this while there are spare columns to leave out."""
_CUT: Final = 8

Row = Sequence[str]
Layout = list[tuple[int, int]]
"""The places of the columns that are shown, and their widths."""


class Table:
    """Columns with widths; a cell that is too long makes its column wider, so that two never touch.

    `fit` makes a table for a terminal; programs never see that.
    """

    def __init__(self, headers: Row, widths: Sequence[int], rows: Iterable[Row], spare: Sequence[str] = ()) -> None:
        self.rows = [_clean(row) for row in rows]
        self._headers = list(headers)
        self._least = list(widths)
        self._cells = [max((columns(row[place]) for row in self.rows), default=0) for place in range(len(headers))]
        self._spare = [self._headers.index(name) for name in spare if name in self._headers]
        self._limit, self._narrow = 0, False
        self._layout: Layout = self._arranged()

    def fit(self, width: int) -> None:
        """Keep every line within a width: columns stand closer, long cells are cut, spare columns go."""
        self._limit = width
        self._layout = self._arranged()

    def grow(self, rows: Iterable[Row]) -> None:
        """Make room for rows that were not there at first."""
        for row in rows:
            self._cells = [max(old, columns(cell)) for old, cell in zip(self._cells, _clean(row), strict=True)]
        self._layout = self._arranged()

    def header(self) -> str:
        """Return the first line."""
        return self._line(self._headers, coloured=False)

    def line(self, row: Row, *, coloured: bool = False) -> str:
        """Return a row."""
        return self._line(_clean(row), coloured=coloured)

    def text(self, *, coloured: bool = False) -> str:
        """Return the whole table."""
        return "".join([self.header(), *(self.line(row, coloured=coloured) for row in self.rows)])

    def _arranged(self) -> Layout:
        last = len(self._headers) - 1
        widths = [
            width if place == last or longest < width else longest + 1
            for place, (width, longest) in enumerate(zip(self._least, self._cells, strict=True))
        ]
        ends = [*widths[:-1], max(widths[-1], self._cells[-1], len(self._headers[-1]))]
        self._narrow = bool(self._limit) and sum(ends) > self._limit
        if not self._narrow:
            return list(enumerate(widths))
        longest = [max(cell, len(header)) for cell, header in zip(self._cells, self._headers, strict=True)]
        return narrowed(longest, [len(header) for header in self._headers], self._spare, self._limit)

    def _line(self, row: Row, *, coloured: bool) -> str:
        cells = []
        for place, width in self._layout:
            cell = row[place]
            # The last column needs no gap behind it.
            shown = cut(cell, width - (place != self._layout[-1][0])) if self._narrow else cell
            colour = _COLOURS.get(cell) if coloured else None
            padding = " " * (width - columns(shown))
            cells.append(f"\033[{colour}m{shown}\033[0m{padding}" if colour else f"{shown}{padding}")
        return "".join(cells) + "\n"


def narrowed(longest: Sequence[int], headers: Sequence[int], spare: Sequence[int], limit: int) -> Layout:
    """Return which columns stand on a terminal that is too narrow for all, and how wide each is with its gap.

    Columns stand closer first. Then long cells are cut, but not below `_NAME` characters. If that is not enough, spare
    columns go, in their order, and then the last ones.
    """
    shown = list(range(len(longest)))
    going = [*spare, *(place for place in reversed(shown[1:]) if place not in spare)]
    while True:
        gaps = len(shown) - 1
        for gap in (2, 1):
            if sum(longest[place] for place in shown) + gap * gaps <= limit:
                return [(place, longest[place] + (gap if place != shown[-1] else 0)) for place in shown]
        least = _NAME if any(place in shown for place in spare) else _CUT
        if not gaps or sum(min(longest[place], max(least, headers[place])) for place in shown) + gaps <= limit:
            break
        shown.remove(going.pop(0))
    widths = {place: longest[place] for place in shown}
    while sum(widths.values()) + gaps > limit and max(widths.values()) > 1:
        widths[max(widths, key=lambda place: widths[place])] -= 1  # the longest names give way
    return [(place, widths[place] + (place != shown[-1])) for place in shown]


def cut(text: str, width: int) -> str:
    """Return a text that is not longer than a width; what is left out in its middle becomes an ellipsis.

    Names begin alike and end differently, so that both ends are needed to tell them apart.
    """
    if columns(text) <= width:
        return text
    kept = max(width - 1, 0)
    return f"{head(text, kept - kept // 2)}…{tail(text, kept // 2)}" if width > 0 else ""


def _clean(row: Row) -> list[str]:
    return [one_line(cell) for cell in row]


def spaced(
    headers: Row, rows: Sequence[Row], gap: int, *, with_headers: bool = True, spare: Sequence[str] = ()
) -> Table:
    """Return a table whose columns are as wide as their longest cell and a gap."""
    widths = []
    for place, header in enumerate(headers):
        longest = max((columns(one_line(row[place])) for row in rows), default=0)
        widths.append(max(longest, len(header)) + gap if with_headers else max(longest + gap, len(header) + 1))
    return Table(headers, widths, rows, spare)


def show(call: Call, table: Table) -> None:
    """Print a table; on a terminal, none of its lines is wider than that."""
    if call.on_terminal:
        table.fit(call.width)
    call.write(table.text(coloured=call.coloured))


def cleaned(obj: Mapping[str, Any], api_version: str = "", kind: str = "") -> dict[str, Any]:
    """Return an object without bookkeeping, its fields in the usual order."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    full = {"spec": {}, "status": {}, **obj, "metadata": _ordered(metadata, _METADATA)}
    full["kind"] = obj.get("kind") or kind
    full["apiVersion"] = obj.get("apiVersion") or api_version
    return _ordered(full, _TOP)


def as_json(document: Any) -> str:
    """Return JSON that is indented by two."""
    return json.dumps(document, indent=2, ensure_ascii=False, default=_time) + "\n"


def as_yaml(document: Any) -> str:
    """Return YAML with sorted keys."""
    import yaml

    plain = json.loads(json.dumps(document, default=_time))
    text: str = yaml.safe_dump(plain, default_flow_style=False, allow_unicode=True, width=2**20)
    return text


def _ordered(fields: Mapping[str, Any], first: Sequence[str]) -> dict[str, Any]:
    return {key: fields[key] for key in (*(k for k in first if k in fields), *(k for k in fields if k not in first))}


def _time(value: Any) -> str:
    return str(value.isoformat().replace("+00:00", "Z"))
