"""Runs seeds until one violates an invariant; started in a copy of the project by `tests.simulation.sabotages.search`.

Reads seeds from its standard input, one a line, and writes one line of JSON for each.
"""

import json
import logging
import os
import signal
import sys
from dataclasses import replace

import structlog

from tests.simulation.drawing import draw_plan
from tests.simulation.plan import SHORT
from tests.simulation.world import simulate

LONGEST_S = 60.0
"""CPU seconds of one seed, after which it counts as endless."""
WITHOUT_FAULTS = "calm "
"""Before a seed: run its plan without its faults."""


def _say(line: str, invariant: str, text: str) -> None:
    print(json.dumps({"seed": line, "invariant": invariant, "text": text[:300]}), flush=True)


def _run(line: str) -> bool:
    """Run one seed; return whether every invariant held."""
    calm = line.startswith(WITHOUT_FAULTS)
    plan = draw_plan(int(line.removeprefix(WITHOUT_FAULTS)), SHORT)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        outcome = simulate(replace(plan, strikes=()) if calm else plan)
    except Exception as error:  # noqa: BLE001 - a fault or an invariant does not fit what a sabotage leads to
        _say(line, "the simulation itself fails", repr(error))
        return False
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    if not outcome.violations:
        _say(line, "", "")
        return True
    first = outcome.violations[0]
    _say(line, first.invariant, f"{first.text} (at {first.at:.1f} s)")
    return False


def main() -> int:
    """Run what the standard input says, up to the first violation."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    current = ""

    def endless(*_: object) -> None:
        _say(current, "endless", f"more than {LONGEST_S:.0f} s of CPU time")
        os._exit(0)  # the loop would take an exception for one of a callback

    signal.signal(signal.SIGPROF, endless)
    for line in sys.stdin:
        current = line.strip()
        if not _run(current):
            break
    return 0


if __name__ == "__main__":
    sys.exit(main())
