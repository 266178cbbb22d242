"""Shows how a run of many seeds goes on, and what came of it."""

import shutil
import sys
from typing import Final, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tests.simulation.faults import FAULTS
from tests.simulation.runner import Result, Summary

_BLOCK: Final = 46
"""Columns that a fault and its number take."""
_STEPS: Final = 10
"""So many lines tell the progress where there is no terminal."""
_MOST_TOLD: Final = 20
"""So many violations are told at once; the summary has all."""


class Progress:
    """One line that is written again and again on a terminal, a few lines elsewhere."""

    def __init__(self, out: TextIO = sys.stderr) -> None:
        self._out = out
        self._terminal = out.isatty()
        self._told = 0
        self._next = 0.0

    def show(self, summary: Summary, result: Result | None) -> None:
        """Take another result."""
        if result is not None and (result.violations or result.broken) and self._told < _MOST_TOLD:
            self._told += 1
            name, text = result.violations[0] if result.violations else ("the simulation itself fails", result.broken)
            self._write(_cut(f"seed {result.seed}: {name}: {text}", self._width()), lasting=True)
        if self._terminal:
            self._write(_cut(line(summary), self._width() - 1), lasting=False)
        elif summary.done >= self._next * summary.wanted and result is not None:
            self._next += 1 / _STEPS
            self._write(line(summary), lasting=True)

    def end(self) -> None:
        """Take the line away."""
        if self._terminal:
            self._out.write("\r\x1b[K")
            self._out.flush()

    def _write(self, text: str, *, lasting: bool) -> None:
        if self._terminal:
            self._out.write(f"\r\x1b[K{text}" + ("\n" if lasting else ""))
        else:
            self._out.write(f"{text}\n")
        self._out.flush()

    def _width(self) -> int:
        return shutil.get_terminal_size().columns if self._terminal else 200


def line(summary: Summary) -> str:
    """Return the progress as one line."""
    left = (summary.wanted - summary.done) / summary.rate if summary.rate else 0.0
    text = f"{summary.done:,} of {summary.wanted:,} schedules, {summary.rate:.1f} a second"
    if summary.done and summary.done < summary.wanted:
        text += f", {duration(left)} left"
    return f"{text}, {summary.failed} with a violation"


def duration(seconds: float) -> str:
    """Return a time in two units."""
    for unit, name, part, below in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= unit:
            whole = int(seconds // unit)
            return f"{whole} {name} {int(seconds % unit // part)} {below}"
    return f"{seconds:.0f} s"


def show(summary: Summary, console: Console) -> None:
    """Print the summary."""
    say = console.print
    stopped = "" if summary.done == summary.wanted else f" of {summary.wanted:,}, stopped before the end,"
    pace = f"in {duration(summary.seconds)}, {summary.rate:.1f} a second"
    say(
        f"{summary.done:,} {summary.size} schedules{stopped} {pace}; "
        f"{duration(summary.virtual_s)} of virtual time, {summary.bound:,} pods bound",
        highlight=False,
    )
    if summary.done:
        say()
        say(_faults(summary, console.width))
        missing = sorted(set(FAULTS) - set(summary.struck))
        if missing:
            say(f"took no effect: {', '.join(missing)}", highlight=False)
    for result in summary.broken[:_MOST_TOLD]:
        say(f"\nThe simulation itself fails with seed {result.seed}:\n{result.broken}", highlight=False, markup=False)
    say()
    if summary.violated:
        say(_violations(summary))
        seed = min(seeds[0] for seeds in summary.first.values())
        size = "" if summary.size == "short" else f" --size {summary.size}"
        say(f"\nTell one: python -m tests.simulation story {seed}{size}", highlight=False)
    elif summary.done and not summary.broken:
        say("No invariant was violated.")


def _faults(summary: Summary, width: int) -> Table:
    """Return in how many schedules each fault took effect, in as many columns as fit."""
    rows = [
        (name, f"{count:,}") for name, count in sorted(summary.struck.items(), key=lambda each: (-each[1], each[0]))
    ]
    blocks = max(1, min(width // _BLOCK, 4))
    height = -(-len(rows) // blocks)
    table = _plain()
    for _ in range(blocks):
        table.add_column(Text("fault"), overflow="ellipsis", no_wrap=True)
        table.add_column(Text("schedules"), justify="right", no_wrap=True)
    for place in range(height):
        cells: list[str] = []
        for block in range(blocks):
            index = block * height + place
            cells.extend(rows[index] if index < len(rows) else ("", ""))
        table.add_row(*map(Text, cells))
    return table


def _violations(summary: Summary) -> Table:
    table = _plain()
    table.expand = True
    table.add_column(Text("violated invariant"), no_wrap=True, overflow="ellipsis", max_width=34)
    table.add_column(Text("schedules"), justify="right", no_wrap=True)
    table.add_column(Text("first seeds, and what is wrong in the first"), ratio=1)
    for name, count in sorted(summary.violated.items(), key=lambda each: (-each[1], each[0])):
        seeds = ", ".join(map(str, summary.first[name]))
        table.add_row(Text(name), Text(f"{count:,}"), Text(f"{seeds}\n{_cut(summary.text[name], 300)}"))
    return table


def _plain() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)


def _cut(text: str, width: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= width else f"{flat[: max(width - 1, 1)]}…"
