"""Draws dashboards without a Grafana: one picture each, in Grafana's layout, from the answers of a Prometheus."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib
from matplotlib.figure import Figure

from tools.dashboards.description import HEIGHT, WIDTH, Dashboard, Panel, Target

matplotlib.use("Agg")

_INCHES: Final = (18.0, 0.36)  # width of a page, height of a unit of the grid
_INK, _FAINT, _PAPER = "#1f2430", "#8a8f9c", "#ffffff"
_COLORS: Final = (
    *("#3274d9", "#e0752d", "#299c46", "#c4162a", "#a352cc", "#0f8a8a", "#b8860b", "#e377c2"),
    *("#7f7f7f", "#17becf", "#8c564b", "#9edae5"),
)
_LEGEND_ROWS: Final = 3
_LEGEND_CHARS: Final = 40
_CHARS_PER_WIDTH: Final = 11  # letters of a legend in one of the columns of the grid
_POINTS: Final = 400
_SIZES: Final = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_TIMES: Final = ((86400.0, "days"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"))
_COUNTS: Final = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


class Answered(NamedTuple):
    """One series of an answer."""

    labels: Mapping[str, str]
    points: Sequence[tuple[float, float]]
    """Unix seconds and value."""


class _Line(NamedTuple):
    """A series, what the legend calls it, and whether its line is dashed."""

    name: str
    one: Answered
    dashed: bool

    @property
    def values(self) -> list[float]:
        return [value for _, value in self.one.points]


Ask = Callable[[str, float, float, float], Sequence[Answered]]
"""Answers a query over some time: query, start, end, step."""


class Window(NamedTuple):
    """The time that a picture shows, in Unix seconds, and the interval between two scrapes."""

    start: float
    end: float
    scrape_s: float

    @property
    def step(self) -> float:
        """The time between two points."""
        return max(self.scrape_s, (self.end - self.start) / _POINTS)


def query_of(expression: str, window: Window) -> str:
    """Return a query with Grafana's variables replaced: every queue, every namespace."""
    rate_interval = max(4 * window.scrape_s, window.step + window.scrape_s)
    replaced = expression.replace("$__rate_interval", f"{math.ceil(rate_interval)}s")
    return re.sub(r'"\$\w+"', '".*"', replaced)


def draw(dashboard: Dashboard, ask: Ask, window: Window, file: Path) -> None:
    """Write the picture of a dashboard."""
    bottom = max(panel.y for panel in dashboard.panels) + HEIGHT
    figure = Figure(figsize=(_INCHES[0], (bottom + 3) * _INCHES[1]), facecolor=_PAPER)
    top = bottom + 3

    def place(x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
        return x / WIDTH, 1 - (y + 3 + height) / top, width / WIDTH, height / top

    figure.text(0.01, 1 - 1.2 / top, dashboard.title, fontsize=18, color=_INK, weight="bold", va="center")
    figure.text(0.01, 1 - 2.3 / top, dashboard.says, fontsize=10, color=_FAINT, va="center")
    for row in dashboard.rows:
        figure.text(0.01, 1 - (row.y + 3.5) / top, row.title, fontsize=12, color=_INK, weight="bold", va="center")
    for panel in dashboard.panels:
        axes = figure.add_axes(place(panel.x + 0.95, panel.y + 1.1, panel.width - 1.25, HEIGHT - 3.1))
        _draw_panel(axes, panel, ask, window)
    figure.savefig(file, dpi=75)


def _draw_panel(axes: Any, panel: Panel, ask: Ask, window: Window) -> None:
    axes.set_title(panel.title, fontsize=10, color=_INK, loc="left", weight="bold", pad=4)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=7, colors=_FAINT)
    series = [
        _Line(_legend(target, one), one, target.dashed)
        for target in panel.targets
        for one in ask(query_of(target.query, window), window.start, window.end, window.step)
    ]
    if panel.kind != "timeseries":  # these show the present, and not what has ended
        series = [line for line in series if line.one.points[-1][0] > window.end - 1.5 * window.step]
    if not series:
        axes.set_axis_off()
        text = f"no data: {panel.empty[0].lower()}{panel.empty[1:]}" if panel.empty else "no data"
        axes.text(0.5, 0.5, text, ha="center", va="center", color=_FAINT, fontsize=9)
    elif panel.kind == "stat":
        _draw_stat(axes, panel, series)
    elif panel.kind == "bargauge":
        _draw_bars(axes, panel, series)
    else:
        _draw_lines(axes, panel, series, window)


def _draw_stat(axes: Any, panel: Panel, lines: list[_Line]) -> None:
    axes.set_axis_off()
    value = lines[0].values[-1]
    level = next((color for least, color in reversed(list(panel.levels.items())) if value >= least), _COLORS[0])
    text, color = panel.words.get(int(value), (shown(value, panel.unit), level))
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=26, color=color)


def _draw_bars(axes: Any, panel: Panel, lines: list[_Line]) -> None:
    last = sorted((line.values[-1], line.name) for line in lines)
    places = range(len(last))
    axes.barh(places, [value for value, _ in last], color=_COLORS[0], alpha=0.35, height=0.7)
    axes.set_yticks(list(places), [""] * len(last))
    axes.set_xticks([])
    for place, (value, name) in zip(places, last, strict=True):
        text, where = f"{_short(name, 60)}: {shown(value, panel.unit)}", axes.get_yaxis_transform()
        axes.text(0.01, place, text, transform=where, va="center", fontsize=7.5 if len(last) < 8 else 6, color=_INK)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)


def _draw_lines(axes: Any, panel: Panel, lines: list[_Line], window: Window) -> None:
    columns = _columns(panel, lines)
    most = _LEGEND_ROWS * columns
    named = most - 1 if len(lines) > most else most
    for index, line in enumerate(lines):
        times, color = [at for at, _ in line.one.points], _COLORS[index % len(_COLORS)]
        label = _short(line.name, _LEGEND_CHARS) if index < named else None
        axes.plot(times, line.values, color=color, linewidth=1.1, label=label, linestyle="--" if line.dashed else "-")
        if not line.dashed and len(lines) <= len(_COLORS):  # the areas of 500 queues would hide every line
            axes.fill_between(times, line.values, color=color, alpha=0.05, linewidth=0)
    axes.set_ylim(bottom=0)
    axes.set_xlim(window.start, window.end)
    ticks = [window.start + (window.end - window.start) * part / 4 for part in range(5)]
    axes.set_xticks(ticks, [f"{datetime.fromtimestamp(tick, UTC):%H:%M:%S}" for tick in ticks])
    numbers = [value for line in lines for value in line.values if math.isfinite(value)]
    _set_scale(axes, panel, max(numbers, default=0.0))
    if len(lines) > most:
        axes.plot([], [], " ", label=f"and {len(lines) - named} more")
    if any(line.name for line in lines):
        place = {"loc": "upper left", "bbox_to_anchor": (-0.06, -0.14), "borderaxespad": 0.0}
        look = {"fontsize": 6.5, "frameon": False, "handlelength": 1.2, "columnspacing": 1.0, "labelcolor": _INK}
        axes.legend(ncols=columns, **place, **look)


def _columns(panel: Panel, lines: list[_Line]) -> int:
    longest = max(len(_short(line.name, _LEGEND_CHARS)) for line in lines)
    return max(1, _CHARS_PER_WIDTH * panel.width // (longest + 6))


def _set_scale(axes: Any, panel: Panel, highest: float) -> None:
    axes.grid(axis="y", color="#eceef2", linewidth=0.8)
    if not highest > 0:  # a line at zero
        axes.set_ylim(0, 1)
        axes.set_yticks([0], ["0"])
        return
    if panel.unit == "bytes":  # powers of two are the round numbers
        step = 2.0 ** math.ceil(math.log2(highest / 4))
        axes.set_yticks([step * part for part in range(int(highest / step) + 2)])
    else:
        axes.locator_params(axis="y", nbins=5)
    axes.yaxis.set_major_formatter(lambda value, _: shown(value, panel.unit))


def _legend(target: Target, one: Answered) -> str:
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: one.labels.get(found[1], ""), target.legend).strip()


def _short(text: str, most: int) -> str:
    text = re.sub(r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "-…", text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shown(value: float, unit: str) -> str:
    """Return a value as Grafana shows it in a unit."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if unit == "percentunit":
        percent = value * 100
        return f"{percent:.0f}%" if percent >= 1000 else f"{percent:.3g}%"
    if unit == "bytes":
        return _scaled(value, _SIZES)
    if unit in ("s", "ms"):
        return _scaled(value / (1000 if unit == "ms" else 1), _TIMES)
    if unit == "ops":
        return f"{_scaled(value, _COUNTS)}/s"
    return _scaled(value, _COUNTS)


def _scaled(value: float, scales: Sequence[tuple[float, str]]) -> str:
    if not value:
        return "0"
    factor, name = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    return f"{value / factor:.3g}{' ' if len(name) > 1 else ''}{name}"
