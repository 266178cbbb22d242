"""The report of an experiment: a table for the terminal and a plot."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl

from benchmarks.console import a_console
from volcano_py.cli.tables import numbers

OUT = Path(__file__).parents[1] / "out" / "article"

Line = Sequence[tuple[float, float]]
"""Steps (time, number): from that time on, that number."""


@dataclass(slots=True)
class Panel:
    """One panel of a plot: a line of steps for each name, or a bar for each name and group."""

    title: str
    lines: Mapping[str, Line] = field(default_factory=dict)
    bars: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # group -> name -> number
    y: str = "pods running"
    until: float | None = None


@dataclass(slots=True)
class Report:
    """A table, its rows by column, and the panels of a plot, which share their y axis."""

    name: str
    title: str
    rows: list[dict[str, object]]
    panels: list[Panel] = field(default_factory=list)

    def show(self) -> None:
        """Print the table, draw the plot, and print the name of its file."""
        console = a_console()
        rows = [
            {name: f"{value:.4g}" if isinstance(value, float) else str(value) for name, value in row.items()}
            for row in self.rows
        ]
        console.print(*numbers(f"{self.name}  {self.title}", rows, console.width), sep="\n")
        if self.panels:
            console.print(f"plot: {self.draw(OUT / f'{self.name.lower()}.png')}")

    def draw(self, path: Path) -> Path:
        """Draw the panels side by side."""
        mpl.use("Agg")  # no screen is needed
        from matplotlib import pyplot

        path.parent.mkdir(parents=True, exist_ok=True)
        figure, axes = pyplot.subplots(
            1, len(self.panels), figsize=(5.2 * len(self.panels), 3.6), sharey=True, squeeze=False, layout="constrained"
        )
        for panel, axis in zip(self.panels, axes[0], strict=True):
            _draw(panel, axis)
        axes[0][0].set_ylabel(self.panels[0].y)
        axes[0][0].set_ylim(bottom=0)
        figure.suptitle(f"{self.name}: {self.title}")
        figure.savefig(path, dpi=110)
        pyplot.close(figure)
        return path


def at(line: Line, time: float) -> float:
    """Return the value of a line at a time."""
    before = [number for when, number in line if when <= time]
    return before[-1] if before else 0.0


def _draw(panel: Panel, axis) -> None:
    axis.set_title(panel.title, fontsize=10)
    names = sorted(panel.lines)
    times = sorted({time for line in panel.lines.values() for time, _ in line} | ({panel.until} - {None}))
    if names:  # stacked, so that equal numbers do not hide each other
        heights = [[at(panel.lines[name], time) for time in times] for name in names]
        axis.stackplot(times, heights, labels=names, step="post", alpha=0.85)
        axis.set_xlabel("seconds")
    groups = list(panel.bars)
    bars = list(dict.fromkeys(name for group in panel.bars.values() for name in group))
    width = 0.8 / max(len(bars), 1)
    for place, name in enumerate(bars):
        heights = [panel.bars[group].get(name, 0.0) for group in groups]
        found = axis.bar([i + place * width for i in range(len(groups))], heights, width, label=name)
        axis.bar_label(found, fontsize=8)
    if groups:
        axis.set_xticks([i + 0.4 - width / 2 for i in range(len(groups))], groups)
    if names or len(bars) > 1:
        axis.legend(fontsize=8, ncols=2)
    axis.grid(alpha=0.3, axis="y")
