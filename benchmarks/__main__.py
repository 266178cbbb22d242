"""`make bench`: run the workloads, print tables, keep the numbers as JSON in benchmarks/results/.

python -m benchmarks            everything
python -m benchmarks decision   one of: decision, neighbours, binding
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table

from benchmarks import binding, decision, neighbours

HERE = Path(__file__).parent
RUNNERS = {"decision": decision.run, "neighbours": neighbours.run, "binding": binding.run}


def main() -> int:
    """Run what was asked for; a workload that fails is reported and the others run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("workloads", nargs="*", choices=[*RUNNERS, []], help="default: all")
    names = parser.parse_args().workloads or list(RUNNERS)
    console = Console(width=160)
    record: dict[str, Any] = {"when": datetime.now(UTC).isoformat(timespec="seconds"), "machine": _machine()}
    for name in names:
        workload = yaml.safe_load((HERE / "workloads" / f"{name}.yaml").read_text())
        record[name] = RUNNERS[name](workload)
        console.print(_table(name, record[name]))
    target = HERE / "results" / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    target.write_text(json.dumps(record, indent=1) + "\n")
    console.print(f"kept in {target.relative_to(HERE.parent)}")
    return 0


def _machine() -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "commit": commit.stdout.strip(),
    }


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=name, title_justify="left", box=None)
    flat = [_flatten(row) for row in rows]
    for column in flat[0]:
        table.add_column(column, justify="right")
    for row in flat:
        table.add_row(*(str(row.get(column, "")) for column in flat[0]))
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
