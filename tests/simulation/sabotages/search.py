"""Searches for the first seed that finds a sabotage: copies the project, sabotages the copy, and runs seeds there."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.simulation.drawing import draw_plan
from tests.simulation.plan import SHORT
from tests.simulation.sabotages.sabotage import Sabotage
from tests.simulation.sabotages.seeds import WITHOUT_FAULTS

ROOT: Final = Path(__file__).parents[3]
COPIED: Final = ("volcano_py", "tests/simulation", "conf", "manifests")
CALM: Final = (0,)
"""The plans of these seeds without their faults must hold in the sabotaged project, too."""


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one sabotage."""

    sabotage: Sabotage
    seed: str = ""
    """The seed that finds it; "" if none does."""
    invariant: str = ""
    text: str = ""
    tried: int = 0
    flawed: tuple[str, ...] = ()
    """Seeds that also violate an invariant without the sabotage."""


@dataclass(frozen=True, slots=True)
class _Result:
    seed: str
    invariant: str
    text: str


@contextmanager
def project(sabotage: Sabotage | None = None) -> Iterator[Path]:
    """Copy what a simulation needs into a temporary folder, and sabotage it."""
    with tempfile.TemporaryDirectory(prefix="sabotage-") as folder:
        root = Path(folder)
        for name in COPIED:
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "tests" / "__init__.py", root / "tests" / "__init__.py")
        if sabotage is not None:
            sabotage.apply_in(root)
        yield root


def run(root: Path, lines: Iterable[str]) -> Iterator[_Result]:
    """Run seeds in a copy, one after another, up to the first violation."""
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "tests.simulation.sabotages.seeds"]
    with (root / "problems.txt").open("w") as problems:
        worker = subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=problems,
            text=True,
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        with worker:
            try:
                for line in lines:
                    worker.stdin.write(line + "\n")
                    worker.stdin.flush()
                    answer = worker.stdout.readline()
                    if not answer:
                        said = (root / "problems.txt").read_text()[-2000:]
                        raise RuntimeError(f"the simulation of seed {line} ended without an answer: {said}")
                    result = _Result(**json.loads(answer))
                    yield result
                    if result.invariant:
                        return
            finally:
                worker.kill()


def order(sabotage: Sabotage, seeds: int) -> list[int]:
    """Return the seeds, those first whose plans have what may find the sabotage."""
    if not sabotage.likely:
        return list(range(seeds))
    return sorted(range(seeds), key=lambda seed: (*sabotage.rank(draw_plan(seed, SHORT)), seed))


def search(
    sabotage: Sabotage,
    seeds: int,
    is_flawed: Callable[[str], bool],
    *,
    ordered: bool = True,
    most: int | None = None,
) -> Found:
    """Run seeds until one finds the sabotage; ``is_flawed`` says whether a seed fails without it, too.

    Not ``ordered``: try likely seeds first, and at most ``most`` of them.
    """
    flawed: list[str] = []
    tried = 0
    with project(sabotage) as root:
        for calm in run(root, [f"{WITHOUT_FAULTS}{seed}" for seed in CALM]):
            if calm.invariant:
                return Found(sabotage, calm.seed, calm.invariant, calm.text)
        left = iter((list(range(seeds)) if ordered else order(sabotage, seeds))[:most])
        while True:
            results = list(run(root, map(str, left)))
            tried += len(results)
            if not results or not (result := results[-1]).invariant:
                return Found(sabotage, tried=tried, flawed=tuple(flawed))
            if not is_flawed(result.seed):
                return Found(sabotage, result.seed, result.invariant, result.text, tried, tuple(flawed))
            flawed.append(result.seed)
