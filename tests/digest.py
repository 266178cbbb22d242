"""A digest at the end of a failed run: which tests failed, and why, in a few short lines.

A build server often keeps only the last lines of a run. Pytest's own summary prints whole messages there (a page of
metrics that lacks a line, a list of 500 pods), and a few of them push the names of the tests out of sight.
"""

from __future__ import annotations

import linecache
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

MOST_TESTS = 10
MOST_CHARACTERS = 240

Report = pytest.TestReport | pytest.CollectReport


def digest(reports: Sequence[Report]) -> Iterator[str]:
    """Yield two lines for each failed test, at most `MOST_TESTS` of them, and one that counts the others."""
    for report in reports[:MOST_TESTS]:
        phase = getattr(report, "when", "collect")
        part = "" if phase == "call" else f" ({phase})"
        yield f"{report.nodeid}{part}, after {getattr(report, 'duration', 0.0):.1f} s{_where(report)}"
        yield f"    {_shortened(_message(report))}"
    if len(reports) > MOST_TESTS:
        yield f"... and {len(reports) - MOST_TESTS} more"


def _where(report: Report) -> str:
    """Quote the last executed line of the test's own file: the failing line may be in a helper."""
    own = Path(report.nodeid.split("::")[0])
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", ())
    places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None) is not None]
    lines = [place.lineno for place in places if Path(place.path).name == own.name]
    return f", line {lines[-1]}: {_shortened(linecache.getline(str(own), lines[-1]))}" if lines else ""


def _message(report: Report) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash is not None else report.longreprtext


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}... ({len(line)} characters)"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """Print the digest below everything except the counts."""
    yield
    failed = [*terminalreporter.stats.get("failed", ()), *terminalreporter.stats.get("error", ())]
    if failed:
        terminalreporter.section("what failed, in short")
        for line in digest(failed):
            terminalreporter.write_line(line)
