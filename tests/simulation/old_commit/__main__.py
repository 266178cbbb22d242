"""See the package."""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.simulation.old_commit import noted
from tests.simulation.old_commit.defects import DEFECTS, Defect
from tests.simulation.old_commit.noted import Noted
from tests.simulation.old_commit.trees import Trees

Found = dict[str, Any]
_CHUNK: Final = 10
_TIMEOUT_S: Final = 900
_TAIL: Final = 2000
_ENOUGH: Final = 3
"""Seeds of one defect; further ones are not looked at."""


def main() -> int:
    """Scan, or verify what was found once."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.old_commit")
    parser.add_argument("--size", default="full", choices=("short", "full"))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--folder", type=Path, help="where the trees are made; else a temporary folder")
    parser.add_argument("--found", type=Path, nargs="*", help="read what scan.py has printed, instead of running seeds")
    parser.add_argument("--keep", action="store_true", help="shrink the first seed of each defect and write it down")
    parser.add_argument("--verify", action="store_true", help="run only what is written down")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        search = Search(Trees(options.folder or Path(folder)), options.keep)
        if options.verify:
            return search.verify(options.jobs)
        if options.found:
            lines = [line for file in options.found for line in file.read_text().splitlines()]
            search.look([json.loads(line) for line in lines])
        else:
            search.scan(options.size, range(options.first, options.last), options.jobs)
        return search.told()


def run(tree: Path, *what: str) -> list[Found]:
    """Run seeds or a plan in a tree; RuntimeError if the simulation of today does not start there."""
    command = (sys.executable, "-m", "tests.simulation.old_commit.scan", *what)
    env = {"PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "TZ": "UTC"}
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    if done.returncode:
        raise RuntimeError(f"the simulation does not run in {tree}: {done.stderr[-_TAIL:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


class Search:
    """Looks for seeds that show defects: with the mend of a defect they do not violate its invariant any more."""

    def __init__(self, trees: Trees, keep: bool) -> None:
        self._trees = trees
        self._keep = keep
        self._seeds: dict[str, list[str]] = {}

    def scan(self, size: str, seeds: range, jobs: int) -> None:
        """Run seeds."""
        tree = self._trees.tree()

        def chunk(first: int) -> list[Found]:
            return run(tree, "--seeds", size, str(first), str(min(first + _CHUNK, seeds.stop)))

        with ThreadPoolExecutor(jobs) as pool:
            for found in pool.map(chunk, seeds[::_CHUNK]):
                self.look(found)

    def look(self, found: list[Found]) -> None:
        """Say of each seed that has failed which defects it shows."""
        for one in found:
            what = f"{one['size']} seed {one['seed']}"
            if "broken" in one:
                print(f"{what} cannot be run: {one['broken'].splitlines()[0]}", flush=True)
            elif "invariant" in one:
                text = f"{one['invariant']!r}: {one['text'][:160]}"
                shows = [defect for defect in DEFECTS if self._shows(one, defect)]
                for defect in shows:
                    print(f"{what} violates {text}; with mend {defect.number} it does not", flush=True)
                if not shows and not any(defect.may_be(one) for defect in DEFECTS):
                    print(f"{what} violates {text}, which none of the defects does", flush=True)

    def _shows(self, found: Found, defect: Defect) -> bool:
        seeds = self._seeds.setdefault(defect.number, [])
        if len(seeds) >= _ENOUGH or not defect.may_be(found):
            return False
        where = ("--seeds", found["size"], str(found["seed"]), str(found["seed"] + 1))
        if not self._mended(where, defect):
            return False
        seeds.append(f"{found['size']} {found['seed']}")
        if self._keep and len(seeds) == 1:
            self._write_down(found, where, defect)
        return True

    def _mended(self, where: tuple[str, ...], defect: Defect) -> bool:
        """Say whether a seed does not violate the invariant any more once a defect is mended."""
        again = run(self._trees.tree(defect.number), *where)
        return bool(again) and "broken" not in again[0] and not defect.may_be(again[0])

    def _write_down(self, found: Found, where: tuple[str, ...], defect: Defect) -> None:
        invariant = next(each for each, text in found["all"] if defect.fits(each, text))
        less = run(self._trees.tree(), *where, "--shrink", invariant)[0]
        text = next(text for each, text in less["all"] if each == invariant)
        noted.keep(
            Noted(defect.number, found["size"], found["seed"], invariant, text[:200], less["strikes"], less["plan"])
        )

    def told(self) -> int:
        """Print the first seeds of each defect."""
        for defect in DEFECTS:
            print(f"{defect.number}  {defect.what}: {', '.join(self._seeds.get(defect.number, ())) or 'not found'}")
        print(f"{sum(map(bool, self._seeds.values()))} of {len(DEFECTS)} defects")
        return 0

    def verify(self, jobs: int) -> int:
        """Run what is written down with and without the mends; return 1 if a plan does not show its defect any more."""
        good = True
        with ThreadPoolExecutor(jobs) as pool:
            for shows, line in pool.map(self.verified, noted.all_of_them()):
                good &= shows
                print(line, flush=True)
        return 0 if good else 1

    def verified(self, one: Noted) -> tuple[bool, str]:
        """Return whether a plan shows its defect, and does not with the mend of it; and a line that says so."""
        defect = next(each for each in DEFECTS if each.number == one.defect)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(one.plan, file)
            file.flush()
            found = run(self._trees.tree(), "--plan", file.name)
            shows = bool(found) and defect.may_be(found[0]) and self._mended(("--plan", file.name), defect)
        word = "shows" if shows else "does not show"
        return shows, f"{one.size} seed {one.seed} {word} defect {one.defect}, {defect.what} ({one.invariant})"


if __name__ == "__main__":
    sys.exit(main())
