"""`make bench`: run the workloads, print tables, store the numbers as JSON in benchmarks/results/, and draw them.

python -m benchmarks                      everything
python -m benchmarks decision session     some of it
python -m benchmarks steady --server real one of it with its own options (--help names them)
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
from rich.table import Table
from rich.text import Text

from benchmarks import (
    admission,
    binding,
    borrowing,
    claims,
    decision,
    deep,
    evictions,
    idle,
    jobs,
    lag,
    limits,
    million,
    neighbours,
    plot,
    restart,
    session,
    topology,
)
from benchmarks.console import a_console
from benchmarks.steady import halves as steady
from volcano_py.cli.tables import Cell, explained, numbers
from volcano_py.runtime import garbage

HERE = Path(__file__).parent
Rows = list[dict[str, Any]]
RUNNERS: dict[str, Callable[[dict[str, Any]], Rows]] = {
    "decision": decision.run,
    "claims": claims.run,
    "topology": topology.run,
    "evictions": evictions.run,
    "neighbours": neighbours.run,
    "session": session.run,
    "deep": deep.run,
    "million": million.run,
    "borrowing": borrowing.run,
    "restart": restart.run,
    "lag": lag.run,
    "million-daemon": lag.run,
    "idle": idle.run,
    "binding": binding.run,
    "jobs": jobs.run,
    "admission": admission.run,
    "steady": steady.run,
}
ON_REQUEST = {"million-daemon"}
"""Not among the default ones: it takes a quarter of an hour and 14 GB."""


def main() -> int:
    """Run the chosen workloads one after another and store the result; return 1 if a limit is missed.

    Garbage is collected as in vc-scheduler.
    """
    garbage.collect_in_small_steps()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", choices=[*RUNNERS, []], help=f"default: all but {', '.join(ON_REQUEST)}"
    )
    steady.add_options(parser)
    options = vars(parser.parse_args())
    names = options.pop("workloads") or [name for name in RUNNERS if name not in ON_REQUEST]
    console = a_console()
    record: dict[str, Any] = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": _machine()}
    found: list[limits.Line] = []
    for name in names:
        workload = yaml.safe_load((HERE / "workloads" / f"{name}.yaml").read_text())
        record[name] = RUNNERS[name]({**workload, "options": options} if name == "steady" else workload)
        rows = [{column: str(value) for column, value in _flatten(row).items()} for row in record[name]]
        console.print(*numbers(name, rows, console.width), sep="\n")
        found += limits.lines(workload.get("limits", []), record[name])
    record["limits"] = [line.as_json() for line in found]
    record["load_average_after"] = [round(one, 2) for one in os.getloadavg()]
    console.print(_limits(found))
    target = HERE / "results" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    target.write_text(json.dumps(record, indent=1) + "\n")
    picture = plot.draw(record, plot.OUT / f"{target.stem}.png")
    console.print(f"results: {target.relative_to(HERE.parent)}, plot: {picture.relative_to(HERE.parent)}")
    return 0 if all(line.met for line in found) else 1


def _machine() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": commit.stdout.strip(),
        "load_average": [round(one, 2) for one in os.getloadavg()],  # other processes make every number worse
    }


def _limits(found: list[limits.Line]) -> Table:
    rows: list[list[Cell]] = []
    for line in found:
        bound = f"{'>=' if line.at_least else '<='} {line.limit:g}"
        met = Text("met") if line.met else Text("missed", style="red")
        rows.append([f"{line.value:g}", bound, met, line.what])
    return explained(("measured", "limit", "", "what"), rows, "limits")


def _flatten(row: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if key == "series":
            continue  # for the plot
        if isinstance(value, dict):
            flat.update({f"{key}\n{inner}": number for inner, number in _flatten(value).items()})
        else:
            flat[key] = value
    return flat


if __name__ == "__main__":
    sys.exit(main())
