"""Runs vc-controller-manager and measures how late its event loop is.

python -m benchmarks.lagging FILE FLAGS...    FILE gets the p50, p99, p99.9 and the greatest lag in ms, as JSON
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from volcano_py.cli.vc_controller_manager import main as run
from volcano_py.controllers.manager import ControllerManager
from volcano_py.runtime.supervisor import Supervisor

_EVERY_S = 0.002


def main() -> int:
    """Run the program with a task that notes by how much its sleeps are too long."""
    target, flags = Path(sys.argv[1]), sys.argv[2:]
    late: list[float] = []

    async def sample() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(_EVERY_S)
            late.append(time.perf_counter() - started - _EVERY_S)

    start = ControllerManager.start

    def started(manager: ControllerManager, services: Supervisor) -> None:
        start(manager, services)
        services.start("lag", sample())

    ControllerManager.start = started  # type: ignore[method-assign]  # the program under test stays as it is
    code = run(flags)
    ordered = sorted(late) or [0.0]
    marks = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    found = {
        name: round(ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1000, 2) for name, part in marks.items()
    }
    target.write_text(json.dumps({**found, "samples": len(late)}))
    return code


if __name__ == "__main__":
    sys.exit(main())
