"""Descriptions of dashboards, as `descriptions/*.yaml` have them, and the queries that they stand for.

    rows:
    - title: Cycles
      panels:
      - title: Cycles
        says: Cycles per second by result.
        unit: ops
        ask: [{rate: volcano_py_cycles_total, by: result}]

A panel is a graph over time, unless `kind` says `stat` or `bargauge`. An entry of `ask` is one of

    query: ...                     a query as it is, with `legend`; `dashed: true` draws its lines dashed
    rate: COUNTER, by: LABELS      per second, with `where` for a selector and `on` for a metric of the same process
    quantiles: HISTOGRAM           the median and the 99th percentile
    p99: HISTOGRAM, by: LABELS     the 99th percentile only

A panel that is empty on a healthy cluster says why under `empty`. `levels: {0: red, 1: green}` colours the number of a
stat from each value up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).with_name("descriptions")
KINDS: Final = ("timeseries", "stat", "bargauge")
WIDTH: Final = 24
HEIGHT: Final = 7
_FIELDS: Final = {"title", "says", "kind", "unit", "width", "ask", "empty", "words", "levels"}
_WINDOW: Final = "[$__rate_interval]"


@dataclass(frozen=True, slots=True)
class Target:
    """A query and how its series are named."""

    query: str
    legend: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel and its place."""

    title: str
    says: str
    kind: str
    unit: str
    targets: tuple[Target, ...]
    x: int
    y: int
    width: int
    empty: str
    """Why it may have no data, empty if it must have some."""
    words: Mapping[int, tuple[str, str]]
    """What a stat shows instead of a number, with its colour."""
    levels: Mapping[float, str]
    """The colour of a stat from each value up; without levels, no value is better than another."""


@dataclass(frozen=True, slots=True)
class Row:
    """A heading and the panels below it."""

    title: str
    y: int
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard."""

    name: str
    title: str
    says: str
    variables: Mapping[str, tuple[str, str]]
    """For each variable what it is called, and the query for its values."""
    rows: tuple[Row, ...]

    @property
    def uid(self) -> str:
        """The name under which Grafana keeps it."""
        return f"volcano-py-{self.name}"

    @property
    def panels(self) -> list[Panel]:
        """All panels."""
        return [panel for row in self.rows for panel in row.panels]


class DescriptionError(ValueError):
    """A description cannot be used; the message names file and panel."""


def read_all() -> list[Dashboard]:
    """Return all dashboards, sorted by name."""
    return [read(file) for file in sorted(FOLDER.glob("*.yaml"))]


def read(file: Path) -> Dashboard:
    """Read a description."""
    found = yaml.safe_load(file.read_text())
    y, rows = 0, []
    for row in found["rows"]:
        panels = tuple(_placed(row["panels"], y + 1, file.name))
        rows.append(Row(row["title"], y, panels))
        y = max(panel.y for panel in panels) + HEIGHT
    variables = {name: (one["label"], one["values"]) for name, one in found.get("variables", {}).items()}
    return Dashboard(file.stem, found["title"], " ".join(found["says"].split()), variables, tuple(rows))


def _placed(panels: list[dict[str, Any]], y: int, where: str) -> Iterator[Panel]:
    x = 0
    for found in panels:
        if unknown := found.keys() - _FIELDS:
            raise DescriptionError(f"{where}: panel {found['title']!r} has unknown fields: {sorted(unknown)}")
        width = int(found.get("width", 8))
        if x + width > WIDTH:
            x, y = 0, y + HEIGHT
        words = {int(value): (text[0], text[1]) for value, text in found.get("words", {}).items()}
        yield Panel(
            title=found["title"],
            says=" ".join(found["says"].split()),
            kind=found.get("kind", "timeseries"),
            unit=found.get("unit", "short"),
            targets=tuple(target for asked in found["ask"] for target in _targets(asked, where)),
            x=x,
            y=y,
            width=width,
            empty=" ".join(found.get("empty", "").split()),
            words=words,
            levels=dict(sorted((float(value), color) for value, color in found.get("levels", {}).items())),
        )
        x += width


def _targets(asked: dict[str, Any], where: str) -> Iterator[Target]:
    if "query" in asked:
        yield Target(" ".join(asked["query"].split()), asked.get("legend", ""), bool(asked.get("dashed")))
        return
    for kind in ("rate", "p99", "quantiles"):
        if kind in asked:
            yield from _expanded(kind, asked)
            return
    raise DescriptionError(f"{where}: {asked} is none of query, rate, p99, quantiles")


def _expanded(kind: str, asked: dict[str, Any]) -> Iterator[Target]:
    labels = [label.strip() for label in asked.get("by", "").split(",") if label.strip()]
    legend = asked.get("legend") or " ".join(f"{{{{{label}}}}}" for label in labels)
    name = asked[kind] if kind == "rate" else f"{asked[kind]}_bucket"
    selector = f"{{{asked['where']}}}" if "where" in asked else ""
    taken = f"rate({name}{selector}{_WINDOW})"
    if "on" in asked:
        taken = f"{taken} and on (instance) {asked['on']}"
    if kind == "rate":
        yield Target(_summed(taken, labels), legend)
        return
    buckets = _summed(taken, ["le", *labels])
    if kind == "p99":
        yield Target(f"histogram_quantile(0.99, {buckets})", legend)
        return
    for share, words in ((0.5, "half"), (0.99, "99 of 100")):
        yield Target(f"histogram_quantile({share}, {buckets})", f"{legend} {words}".strip())


def _summed(query: str, labels: list[str]) -> str:
    return f"sum by ({', '.join(labels)}) ({query})" if labels else f"sum({query})"
