"""Prove that two versions of volcano_py decide the same.

python -m benchmarks.equal_decisions --old /tmp/oldenv/bin/python --clusters 2000

The same random clusters go to the version installed in another environment (--old) and to that of this checkout. Every
cycle's decisions, in order and with all their fields, and what of its report does not depend on the clock, must be
equal. The two run with different hash seeds on purpose. The exit code is 1 if they differ anywhere.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.equal_decisions.compare import first_difference
from benchmarks.equal_decisions.draw import Json
from benchmarks.equal_decisions.generate import a_case
from benchmarks.equal_decisions.tally import Tally

DRIVER = Path(__file__).parent / "drive.py"
ROOT = Path(__file__).parents[2]


class DriverFailed(Exception):
    """A driver ended before it had answered."""


@dataclass(frozen=True, slots=True)
class Version:
    """An interpreter and where it finds volcano_py."""

    label: str
    python: str
    root: Path | None  # a checkout; None: what is installed
    hash_seed: str

    def where(self) -> str:
        """Return the file of the package that runs there."""
        return str(json.loads(self._run("", "--where"))["file"])

    def answers(self, cases: list[str]) -> list[str]:
        """Return one line for each case."""
        lines = self._run("".join(f"{case}\n" for case in cases)).splitlines()
        if len(lines) != len(cases):
            raise DriverFailed(f"{self.label}: {len(lines)} answers to {len(cases)} cases")
        return lines

    def _run(self, given: str, *arguments: str) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        env |= {"PYTHONHASHSEED": self.hash_seed, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if self.root is not None:
            env["PYTHONPATH"] = str(self.root)
        done = subprocess.run(  # from a directory that has no package of that name
            [self.python, str(DRIVER), *arguments],
            input=given,
            cwd=tempfile.gettempdir(),
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DriverFailed(f"{self.label}: the driver ended with {done.returncode}\n{done.stderr[-4000:]}")
        return done.stdout


def main() -> int:
    """Compare; return 0 if all cases are equal."""
    options = _options()
    old = Version("old", options.old, None, "1")
    new = Version("new", options.new, options.new_root, "2")
    places = [old.where(), new.where()]
    print(f"old: {places[0]} (PYTHONHASHSEED={old.hash_seed})\nnew: {places[1]} (PYTHONHASHSEED={new.hash_seed})")
    if len(set(places)) < 2:
        print("both versions are the same package: give --old an environment in which another one is installed")
        return 1
    began, tally, failed = time.monotonic(), Tally(), list[Json]()
    for case, left, right in _results(old, new, options):
        tally.add(case, right)
        difference = first_difference(left, right, texts=not options.without_texts)
        if difference is not None:
            failed.append(case)
            if len(failed) == 1:
                print(difference, flush=True)
        if tally.cases % options.chunk == 0:
            print(f"{tally.cases} cases, {len(failed)} differ, {time.monotonic() - began:.0f} s", flush=True)
    print(*tally.lines(), sep="\n")
    print(f"{tally.cases} cases, {len(failed)} differ, {time.monotonic() - began:.0f} s")
    if failed:
        options.failed.write_text("".join(f"{json.dumps(case)}\n" for case in failed))
        seeds = ", ".join(str(case["seed"]) for case in failed[:50])
        print(f"cases that differ are kept in {options.failed}; seeds: {seeds}")
    return 1 if failed else 0


def _results(old: Version, new: Version, options: argparse.Namespace) -> Iterator[tuple[Json, str, str]]:
    """Yield every case with what both versions say of it, in order."""
    last = options.first + options.clusters
    ahead: deque[tuple[list[Json], Future[list[str]], Future[list[str]]]] = deque()
    with ThreadPoolExecutor(options.processes) as pool:
        for first in range(options.first, last, options.chunk):
            cases = [a_case(seed) for seed in range(first, min(first + options.chunk, last))]
            lines = [json.dumps(case) for case in cases]
            ahead.append((cases, pool.submit(old.answers, lines), pool.submit(new.answers, lines)))
            if len(ahead) > options.processes:
                yield from _answered(*ahead.popleft())
        while ahead:
            yield from _answered(*ahead.popleft())


def _answered(cases: list[Json], old: Future[list[str]], new: Future[list[str]]) -> Iterator[tuple[Json, str, str]]:
    return zip(cases, old.result(), new.result(), strict=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.equal_decisions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--old", required=True, help="interpreter of an environment in which the old version is installed"
    )
    parser.add_argument("--new", default=sys.executable, help="interpreter for the new version (this one)")
    parser.add_argument("--new-root", type=Path, default=ROOT, help="checkout of the new version (this one)")
    parser.add_argument("--clusters", type=int, default=2000, help="how many cases")
    parser.add_argument("--from", dest="first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--processes", type=int, default=2, help="drivers at a time")
    parser.add_argument("--chunk", type=int, default=50, help="cases for one driver")
    parser.add_argument("--without-texts", action="store_true", help="leave aside what people read")
    parser.add_argument(
        "--failed", type=Path, default=Path("equal-decisions-failed.jsonl"), help="for cases that differ"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
