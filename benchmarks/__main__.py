"""`make bench`: run the workloads, print tables, keep the numbers as JSON in benchmarks/results/, and draw them.

python -m benchmarks                      everything
python -m benchmarks decision session     some of it
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table

from benchmarks import binding, decision, evictions, idle, limits, neighbours, plot, restart, session

HERE = Path(__file__).parent
WIDE = 14  # columns that fit beside each other
Rows = list[dict[str, Any]]
RUNNERS: dict[str, Callable[[dict[str, Any]], Rows]] = {
    "decision": decision.run,
    "evictions": evictions.run,
    "neighbours": neighbours.run,
    "session": session.run,
    "restart": restart.run,
    "idle": idle.run,
    "binding": binding.run,
}


def main() -> int:
    """Run what was asked for, one workload after another, and keep the result; exit with 1 if a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", choices=[*RUNNERS, []], help="default: all")
    names = parser.parse_args().workloads or list(RUNNERS)
    console = Console(width=180)
    record: dict[str, Any] = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": _machine()}
    found: list[limits.Line] = []
    for name in names:
        workload = yaml.safe_load((HERE / "workloads" / f"{name}.yaml").read_text())
        record[name] = RUNNERS[name](workload)
        console.print(_table(name, record[name]))
        found += limits.lines(workload.get("limits", []), record[name])
    record["limits"] = [line.as_json() for line in found]
    record["load_average_after"] = [round(one, 2) for one in os.getloadavg()]
    console.print(_limits(found))
    target = HERE / "results" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    target.write_text(json.dumps(record, indent=1) + "\n")
    picture = plot.draw(record, plot.OUT / f"{target.stem}.png")
    console.print(f"kept in {target.relative_to(HERE.parent)}, drawn in {picture.relative_to(HERE.parent)}")
    return 0 if all(line.met for line in found) else 1


def _machine() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": commit.stdout.strip(),
        "load_average": [round(one, 2) for one in os.getloadavg()],  # others on the machine make every number worse
    }


def _table(name: str, rows: Rows) -> Table:
    """Return a table with a line per row; one with many columns lies on its side."""
    table = Table(title=name, title_justify="left", box=None)
    flat = [_flatten(row) for row in rows]
    columns = list(dict.fromkeys(column for row in flat for column in row))
    if len(columns) > WIDE:
        table.show_header = False
        for column in columns:
            table.add_row(column.replace("\n", " "), *(str(row.get(column, "")) for row in flat))
        return table
    for column in columns:
        table.add_column(column, justify="right")
    for row in flat:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    return table


def _limits(found: list[limits.Line]) -> Table:
    table = Table(title="limits", title_justify="left", box=None)
    for column in ("", "measured", "limit", ""):
        table.add_column(column, justify="right" if column else "left")
    for line in found:
        bound = f"{'>=' if line.at_least else '<='} {line.limit:g}"
        table.add_row(line.what, f"{line.value:g}", bound, "met" if line.met else "[red]missed[/red]")
    return table


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            flat.update({f"{key}\n{inner}": number for inner, number in value.items()})
        else:
            flat[key] = value
    return flat


if __name__ == "__main__":
    sys.exit(main())
