"""Runs seeds, or plans that were written down, in the tree that it is started in; prints JSON, one line for each."""

import argparse
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import structlog

from tests.simulation.drawing import draw_plan
from tests.simulation.loop import HarnessError
from tests.simulation.plan import SIZES, Plan, read, written
from tests.simulation.world import Outcome, simulate


def main() -> None:
    """Run a range of seeds, or plans."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", nargs=3, metavar=("SIZE", "FIRST", "LAST"))
    parser.add_argument("--plan", type=Path, help="a file with a plan, instead")
    parser.add_argument("--shrink", default="", help="leave out the faults without which this invariant is violated")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    for plan in [read(options.plan.read_bytes())] if options.plan else _drawn(*options.seeds):
        try:
            outcome = simulate(plan)
            if options.shrink:
                outcome = _shrunk(outcome, options.shrink)
        except HarnessError as error:  # of the simulation itself: something is not as that commit has it
            print(json.dumps({"seed": plan.seed, "size": plan.size.name, "broken": str(error)}), flush=True)
            continue
        print(json.dumps(_told(outcome)), flush=True)


def _drawn(size: str, first: str, last: str) -> Iterator[Plan]:
    return (draw_plan(seed, SIZES[size]) for seed in range(int(first), int(last)))


def _told(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {"seed": outcome.plan.seed, "size": outcome.plan.size.name, "digest": outcome.digest}
    if outcome.violations:
        first = outcome.violations[0]
        found |= {"invariant": first.invariant, "text": first.text, "at": round(first.at, 1)}
        found["all"] = [(violation.invariant, violation.text) for violation in outcome.violations]
        found["strikes"] = [str(strike).strip() for strike in outcome.plan.strikes]
        found["plan"] = json.loads(written(outcome.plan))
    return found


def _shrunk(outcome: Outcome, invariant: str) -> Outcome:
    """Leave out every fault without which the invariant is violated, too."""
    plan = outcome.plan
    for strike in plan.strikes:
        fewer = simulate(plan.without(strikes=frozenset((strike.number,))))
        if any(violation.invariant == invariant for violation in fewer.violations):
            plan, outcome = fewer.plan, fewer
    return outcome


if __name__ == "__main__":
    main()
