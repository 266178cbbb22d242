"""What a run of many seeds adds up and prints."""

import io

import pytest
from rich.console import Console

from tests.simulation import runner
from tests.simulation.report import Progress, duration, line, show
from tests.simulation.runner import Result, Summary

WIDTHS = (80, 120, 200)


def a_summary() -> Summary:
    """Return what came of five seeds, of which two violate something."""
    summary = Summary("short", 5, seconds=10.0)
    wrong = (("one leader", "scheduler-1 wrote pods default/a too late " * 12), ("rest", "something is still written"))
    summary.add(Result(3, "c", wrong, ("kill", "409"), 7, 100.0))
    summary.add(Result(0, "a", (), ("kill",), 5, 100.0))
    summary.add(Result(1, "b", wrong[1:], ("partition",), 5, 100.0))
    summary.add(Result(2, broken="KeyError in a fault"))
    return summary


def test_results_are_added_up() -> None:
    """Schedules, faults and invariants are counted; the first seed tells what is wrong."""
    summary = a_summary()
    assert (summary.done, summary.failed, summary.bound, summary.virtual_s) == (4, 2, 17, 300.0)
    assert summary.struck == {"kill": 2, "409": 1, "partition": 1}
    assert summary.violated == {"rest": 2, "one leader": 1}
    assert summary.first == {"rest": [1, 3], "one leader": [3]}
    assert summary.text["rest"] == "something is still written"
    assert not summary.flawless
    assert Summary("short", 0).flawless


@pytest.mark.parametrize("width", WIDTHS)
def test_the_summary_fits_the_terminal(width: int) -> None:
    """No line is wider, and every invariant and fault that matters can be read."""
    out = io.StringIO()
    show(a_summary(), Console(file=out, width=width))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    for part in ("one leader", "partition", "story 1", "stopped before the end", "KeyError in a fault"):
        assert part in text


def test_progress_is_one_line() -> None:
    """It says how far, how fast, how long, and how bad."""
    assert line(a_summary()) == "4 of 5 schedules, 0.4 a second, 2 s left, 2 with a violation"
    assert duration(59) == "59 s"
    assert duration(3700) == "1 h 1 min"
    assert duration(200000) == "2 d 7 h"


def test_violations_are_told_at_once() -> None:
    """Where there is no terminal, each gets a line."""
    out, summary = io.StringIO(), a_summary()
    Progress(out).show(summary, Result(3, violations=(("one leader", "too late"),)))
    assert "seed 3: one leader: too late" in out.getvalue()


def test_seeds_are_run_and_counted() -> None:
    """In this process, without a pool."""
    heard: list[int] = []
    summary = runner.run_all(range(2), "short", 1, lambda _, result: heard.append(result.seed if result else -1))
    assert heard == [0, 1]
    assert summary.done == 2
    assert summary.bound > 0


def test_an_interrupted_run_tells_what_it_has_found() -> None:
    """Ctrl-C ends it with the results so far."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    summary = runner.run_all(range(5), "short", 1, interrupt)
    assert summary.done == 1
    assert "stopped" not in line(summary)
