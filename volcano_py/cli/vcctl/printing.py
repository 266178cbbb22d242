"""Tables of fixed widths, as Volcano's programs print them, and objects as JSON or YAML."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from volcano_py.cli.vcctl.call import Call

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

Row = Sequence[str]


class Table:
    """Columns with widths; a cell that is too long makes its column wider, so that two never touch."""

    def __init__(self, headers: Row, widths: Sequence[int], rows: Iterable[Row]) -> None:
        self.rows = [list(row) for row in rows]
        self._headers = list(headers)
        last = len(self._headers) - 1
        self._widths = [
            width
            if place == last
            else max([width, *(len(row[place]) + 1 for row in self.rows if len(row[place]) >= width)])
            for place, width in enumerate(widths)
        ]

    def squeeze(self, width: int) -> None:
        """Make columns narrower until a row fits, as far as their cells allow; programs never see this."""
        for gap in (2, 1):
            if sum(self._widths) <= width:
                return
            longest = [
                max(len(header), *(len(row[place]) for row in self.rows)) if self.rows else len(header)
                for place, header in enumerate(self._headers)
            ]
            last = len(longest) - 1
            self._widths = [size + (gap if place < last else 0) for place, size in enumerate(longest)]

    def header(self) -> str:
        """Return the first line."""
        return self._line(self._headers, coloured=False)

    def line(self, row: Row, *, coloured: bool = False) -> str:
        """Return a row."""
        return self._line(row, coloured=coloured)

    def text(self, *, coloured: bool = False) -> str:
        """Return the whole table."""
        return "".join([self.header(), *(self.line(row, coloured=coloured) for row in self.rows)])

    def _line(self, row: Row, *, coloured: bool) -> str:
        cells = []
        for cell, width in zip(row, self._widths, strict=True):
            padded = cell.ljust(width)
            colour = _COLOURS.get(cell) if coloured else None
            cells.append(f"\033[{colour}m{cell}\033[0m{padded[len(cell) :]}" if colour else padded)
        return "".join(cells) + "\n"


def spaced(headers: Row, rows: Sequence[Row], gap: int, *, with_headers: bool = True) -> Table:
    """Return a table whose columns are as wide as their longest cell and a gap."""
    widths = []
    for place, header in enumerate(headers):
        longest = max((len(row[place]) for row in rows), default=0)
        widths.append(max(longest, len(header)) + gap if with_headers else max(longest + gap, len(header) + 1))
    return Table(headers, widths, rows)


def show(call: Call, table: Table) -> None:
    """Print a table; on a terminal that is too narrow, its columns stand closer."""
    if call.on_terminal:
        table.squeeze(call.width)
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
