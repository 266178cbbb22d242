"""Runs one of the programs and measures how late its event loop is.

python -m benchmarks.lagging FILE PROGRAM FLAGS...    PROGRAM: vc-scheduler or vc-controller-manager

FILE gets one sample per sleep of 2 ms, as JSON: the monotonic time when it ended, by how much it was too long, and how
much of that is explained by CPU time of the process (its other threads included). The rest is the work of other
processes, which take the core away on a busy machine.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from volcano_py.cli import vc_controller_manager, vc_scheduler
from volcano_py.controllers.manager import ControllerManager
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.runtime.supervisor import Supervisor

_EVERY_S = 0.002
_MARKS = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


class Sample(NamedTuple):
    """One sleep."""

    at: float
    late_s: float
    own_s: float


def read(file: Path, since: float = 0.0, until: float = float("inf")) -> list[Sample]:
    """Return the samples of a program that has ended, of a span of monotonic time."""
    samples = msgspec.json.decode(file.read_bytes(), type=list[Sample])
    return [sample for sample in samples if since <= sample.at < until]


def marks(lags_s: list[float]) -> dict[str, float]:
    """Return percentiles of lags, and the greatest, in ms."""
    ordered = sorted(lags_s) or [0.0]
    return {
        name: round(ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1000, 2) for name, part in _MARKS.items()
    }


async def _sample(target: Path) -> None:
    """Take samples until cancelled, and write them then: a program may exit without returning from `main`."""
    samples: list[Sample] = []
    try:
        while True:
            started, cpu = time.monotonic(), time.process_time()
            await asyncio.sleep(_EVERY_S)
            now = time.monotonic()
            late = now - started - _EVERY_S
            samples.append(Sample(now, late, max(0.0, min(late, time.process_time() - cpu))))
    finally:
        target.write_bytes(msgspec.json.encode(samples))  # noqa: ASYNC240 - the loop has nothing else to do any more


def _program(name: str, target: Path) -> Callable[[list[str]], int]:
    """Return the main function of a program whose services include the sampling; the program stays as it is."""
    if name == "vc-scheduler":
        start_scheduler = SchedulerDaemon.start

        def scheduler_started(daemon: SchedulerDaemon, services: Supervisor) -> None:
            start_scheduler(daemon, services)
            services.start("lag", _sample(target))

        SchedulerDaemon.start = scheduler_started  # type: ignore[method-assign]
        return vc_scheduler.main
    start_controllers = ControllerManager.start

    def controllers_started(manager: ControllerManager, services: Supervisor) -> None:
        start_controllers(manager, services)
        services.start("lag", _sample(target))

    ControllerManager.start = controllers_started  # type: ignore[method-assign]
    return vc_controller_manager.main


def main() -> int:
    """Run the program that the command line names."""
    target, name, flags = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    return _program(name, target)(flags)


if __name__ == "__main__":
    sys.exit(main())
