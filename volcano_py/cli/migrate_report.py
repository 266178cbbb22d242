"""Prints the report of `volcano-py migrate check` for people, in as many columns as the terminal has."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from volcano_py.migration.findings import Finding, Group, Ref, Report

_WIDE: Final = 110
"""From so many columns on, findings are rows of a table; below, each is a short paragraph."""
_OBJECT: Final = 42
_SHORT: Final = 30
_MOST: Final = 20
"""Findings of one rule that are shown without --verbose."""
_COLOURS: Final = {Group.BLOCKS: "bold red", Group.DIFFERS: "yellow", Group.MISSING: "magenta", Group.REPLACED: "cyan"}
_MEANING: Final = {
    Group.BLOCKS: "solve it before you switch",
    Group.DIFFERS: "it works, but differently",
    Group.MISSING: "it is in use, and does not exist here",
    Group.REPLACED: "our manifests would overwrite it",
}


def print_report(console: Console, report: Report, *, verbose: bool) -> None:
    """Print the summary, the findings by group, and what to know besides."""
    console.print(summary(report), style="bold")
    findings = report.sorted()
    for group, members in groupby(findings, key=lambda one: one.group):
        shown = list(members)
        console.print()
        console.print(Text(f"{group.value} ({len(shown)}): {_MEANING[group]}", style=_COLOURS[group]))
        chosen, left_out = _chosen(shown, verbose=verbose)
        console.print(_table(chosen) if console.width >= _WIDE else _paragraphs(chosen))
        for line in left_out:
            console.print(Text(f"  {line}", style="dim"))
    if verbose:
        _print_same(console, report)
    for title, lines in (("not looked at", report.not_looked_at), ("notes", report.notes)):
        if lines:
            console.print()
            console.print(Text(f"{title}:", style="bold"))
            for line in lines:
                console.print(Padding(Text(line), (0, 0, 0, 2)))


def summary(report: Report) -> str:
    """Return the first line."""
    counts = report.counts()
    if counts[Group.BLOCKS]:
        verdict = "cannot be switched yet"
    elif report.not_looked_at:
        verdict = "not everything could be looked at"
    else:
        verdict = "can be switched"
    objects, same = len(set(report.looked_at)), len(report.same())
    parts = [f"{number} {_verb(group, number)}" for group in Group if (number := counts[group])]
    return f"{verdict}: {objects:,} objects looked at, {same:,} same{''.join(f', {part}' for part in parts)}"


def _verb(group: Group, number: int) -> str:
    """Return the name of a group as a verb after a number: 1 differs, 2 differ."""
    return group.value if number == 1 else group.value.removesuffix("s")


def _chosen(findings: Sequence[Finding], *, verbose: bool) -> tuple[list[Finding], list[str]]:
    """Return the findings to show, and a line for each rule with more of them than fit."""
    if verbose:
        return list(findings), []
    by_rule: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        by_rule.setdefault((one.ref.kind, one.rule), []).append(one)
    chosen = [one for members in by_rule.values() for one in members[:_MOST]]
    left_out = [
        f"and {len(members) - _MOST:,} more of {kind} with {rule}: --verbose shows them"
        for (kind, rule), members in by_rule.items()
        if len(members) > _MOST
    ]
    return chosen, left_out


def _table(findings: Sequence[Finding]) -> RenderableType:
    objects = [_object(one.ref) for one in findings]
    width = min(max(len(line) for text in objects for line in text.split("\n")) + 2, _OBJECT)
    table = Table(box=None, padding=(0, 2, 0, 0), expand=True, header_style="dim")
    table.add_column("  OBJECT", width=width, overflow="fold")
    table.add_column("WHAT", ratio=8, overflow="fold")
    table.add_column("WHAT TO DO", ratio=7, overflow="fold")
    before = None
    for one, shown in zip(findings, objects, strict=True):
        again = one.ref == before  # an object with several findings is named once
        table.add_row(Padding(Text("" if again else shown), (0, 0, 0, 2)), Text(one.what), Text(one.advice))
        before = one.ref
    return table


def _object(ref: Ref) -> str:
    """Return an object in one line if it is short, else its kind above its name."""
    line = str(ref)
    return line if len(line) <= _SHORT else line.replace(" ", "\n", 1)


def _paragraphs(findings: Sequence[Finding]) -> RenderableType:
    table = Table.grid(padding=0)
    for line in _lines(findings):
        table.add_row(line)
    return table


def _lines(findings: Sequence[Finding]) -> Iterator[RenderableType]:
    for ref, members in groupby(findings, key=lambda one: one.ref):
        yield Padding(Text(str(ref), style="bold"), (0, 0, 0, 2))
        for one in members:
            yield Padding(Text(one.what), (0, 0, 0, 4))
            yield Padding(Text(f"→ {one.advice}", style="dim"), (0, 0, 0, 4))


def _print_same(console: Console, report: Report) -> None:
    same = report.same()
    console.print()
    console.print(Text(f"same ({len(same):,})", style="green"))
    for kind, members in groupby(same, key=lambda ref: ref.kind):
        names = [f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name for ref in members]
        console.print(Padding(Text(f"{kind}: {', '.join(names)}"), (0, 0, 0, 2)))
