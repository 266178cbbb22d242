"""`python -m tests.simulation.sabotages [NAME ...] [--seeds 2000]`: says which seed finds each sabotage."""

import argparse
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.simulation.sabotages import SABOTAGES
from tests.simulation.sabotages.search import Found, project, run, search


def main(arguments: Sequence[str]) -> int:
    """Search for the sabotages that are named, or for all; return 1 if one is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.sabotages", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="sabotages; all if none is named")
    parser.add_argument("--seeds", type=int, default=2000, help="short seeds that may find it (2000)")
    parser.add_argument("--likely", action="store_true", help="try seeds first whose plans may find it")
    parser.add_argument("--most", type=int, help="try at most so many seeds")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in SABOTAGES]
    if unknown:
        parser.error(f"no such sabotage: {', '.join(unknown)}")
    found = []
    with project() as sound:

        @cache
        def is_flawed(seed: str) -> bool:
            return any(result.invariant for result in run(Path(sound), [seed]))

        for name in given.names or SABOTAGES:
            one = search(SABOTAGES[name], given.seeds, is_flawed, ordered=not given.likely, most=given.most)
            found.append(one)
            print(_row(one), flush=True)
    missed = [one.sabotage.name for one in found if not one.seed]
    print(f"{len(found) - len(missed)} of {len(found)} found" + (f"; not found: {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


def _row(found: Found) -> str:
    name = f"{found.sabotage.name:34}"
    beside = f"; seeds that fail without it, too: {', '.join(found.flawed)}" if found.flawed else ""
    if not found.seed:
        return f"{name} not found in {found.tried} seeds{beside}"
    return f"{name} found at seed {found.seed} ({found.tried} tried) by {found.invariant}: {found.text[:160]}{beside}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
