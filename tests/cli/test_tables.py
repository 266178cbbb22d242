"""Tables as they stand on terminals of different widths."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from volcano_py.cli.demo import screen
from volcano_py.cli.tables import compact, explained, numbers
from volcano_py.local.demo import Frame
from volcano_py.local.workload import JobView

WIDTHS = (80, 100, 120, 160, 200)
WHY = (
    "6/6 tasks in gang unschedulable: pod group is not ready, 6 Pending, 6 minAvailable; Pending: 6 Unschedulable. "
    "Origin reason is train-2-worker-1: 0/18 nodes are unavailable: 14 node(s) had untolerated taint(s), "
    "4 Insufficient cpu."
)


def printed(width: int, *renderables: Any) -> list[str]:
    console = Console(width=width, file=StringIO(), color_system=None, force_terminal=True)
    console.print(*renderables, sep="\n")
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def a_frame() -> Frame:
    jobs = [
        JobView("gpu-gang", "Running", 100, 100, 100, 100, 0, ""),
        JobView("train-0", "Completed", 6, 6, 6, 0, 6, ""),
        JobView("train-1", "Inqueue", 6, 6, 4, 0, 0, WHY),
        JobView("train-2", "Pending", 6, 6, 0, 0, 0, WHY),
        JobView(
            "train-3", "Inqueue", 6, 6, 0, 0, 0, 'queue "small" may not hold more: 1 cpu asked, 3 held, 3 deserved'
        ),
    ]
    nodes = [(f"gpu-{i:02d}", "nvidia.com/gpu", 8.0, 8.0) for i in range(13)]
    return Frame(12.3, jobs, [*nodes, *((f"worker-{i}", "cpu", 3.0, 4.0) for i in range(4))], "the gang waits whole")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_columns_of_the_demo_keep_their_width_and_the_reason_is_cut(width: int) -> None:
    lines = printed(width, screen(a_frame(), width))

    for cells in (
        ("gpu-gang", "Running", "100/100"),
        ("train-0", "ended", "6/6"),
        ("train-1", "Inqueue", "4/6"),
        ("train-2", "Pending", "0/6"),
    ):
        assert any(line.split()[: len(cells)] == list(cells) for line in lines), cells
    (waits,) = (line for line in lines if line.startswith("train-2"))
    assert "4 Insufficient cpu" in waits
    assert ("14 node(s) had untolerated taint(s) (of 18 nodes)" in waits) == (width >= 120)
    assert max(map(len, lines)) <= width
    nodes = [line.split() for line in lines if line.startswith("gpu-0")]
    assert all(cells[1:3] == ["8/8", "GPU"] and "…" not in "".join(cells) for cells in nodes)
    assert len(nodes) == 9


@pytest.mark.parametrize("width", WIDTHS)
def test_only_the_last_column_of_an_explained_table_is_cut(width: int) -> None:
    rows = [["a-name-of-some-length", Text("Pending"), "why " * 60], ["b", Text("Running"), ""]]
    lines = printed(width, explained(("name", "phase", "why it waits"), rows, "jobs"))

    assert lines[0] == "jobs"
    assert lines[1].split() == ["name", "phase", "why", "it", "waits"]
    assert lines[2].startswith("a-name-of-some-length  Pending  why why")
    assert lines[2].endswith("…")
    assert len(lines) == 4
    assert max(map(len, lines)) <= width


def test_a_compact_table_is_as_wide_as_its_content() -> None:
    assert printed(80, compact(("a", "b"), [["1", "22"]])) == ["a  b", "1  22"]


def a_measurement(columns: int, rows: int) -> list[dict[str, str]]:
    return [
        {f"quantity {column}\n[unit]": f"{row * 1000 + column}" for column in range(columns)} for row in range(rows)
    ]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("columns", "rows"), [(3, 4), (9, 4), (30, 3), (30, 40)])
def test_every_number_of_a_table_is_shown_on_every_terminal(width: int, columns: int, rows: int) -> None:
    lines = printed(width, *numbers("measured", a_measurement(columns, rows), width))
    text = "\n".join(lines)

    assert lines[0] == "measured"
    assert "…" not in text
    assert max(map(len, lines)) <= width
    found = text.split()
    for row in range(rows):
        for column in range(columns):
            assert str(row * 1000 + column) in found


def test_a_table_that_is_too_wide_is_transposed() -> None:
    upright = printed(120, *numbers("m", a_measurement(3, 2), 120))
    aside = printed(26, *numbers("m", a_measurement(3, 2), 26))

    assert upright[1:3] == ["quantity 0  quantity 1  quantity 2", "    [unit]      [unit]      [unit]"]
    assert aside == [
        "m",
        "quantity 0 [unit]  0",
        "quantity 1 [unit]  1",
        "quantity 2 [unit]  2",
        "quantity 0 [unit]  1000",
        "quantity 1 [unit]  1001",
        "quantity 2 [unit]  1002",
    ]
