"""The tree of commit 6cdffff with the injection, with the simulation, and with a mend or without one."""

import re
import shutil
import subprocess
from pathlib import Path
from threading import Lock
from typing import Final

COMMIT: Final = "6cdffff"
HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
_RETRY_QUEUE: Final = (
    "from volcano_py.kube.retry_queue import RetryQueue\n",
    "from typing import Generic, TypeVar\n\nclass RetryQueue(Generic[TypeVar('K')]):\n    pass\n\n\n",
)
_OWN_FAULTS: Final = (
    "from volcano_py.kube.own_faults import OwnFaults\n",
    "\nclass OwnFaults:\n    survived = False\n\n\n",
)
_CHANGES: Final = (
    ("insight.py", *_RETRY_QUEUE),
    ("world.py", *_OWN_FAULTS),
    ("insight.py", " & ~TaskTrait.BACKING_OFF", ""),
    ("drawing.py", "_WITH_WEBHOOKS: Final = 0.25", "_WITH_WEBHOOKS: Final = 0.0"),
    ("drawing.py", "_WIDE: Final = 0.33", "_WIDE: Final = 0.0"),  # nobody carried out commands
    ("invariants/__init__.py", "        processes.RequestsEnd,\n", ""),  # its watches lasted for ten minutes
)
"""What of the simulation that commit has not: file, what stands there, and what takes its place."""
_OF_JOBS: Final = re.compile(r"^ +(jobs|versions|commands)\.\w+,\n", re.MULTILINE)
"""Invariants that need jobs or Commands; that commit has none."""
_PARTS: Final = ("volcano_py", "conf", "manifests")


def mends() -> list[str]:
    """Return the numbers of the defects for which there is a mend."""
    return sorted(file.stem for file in (HERE / "mends").glob("*.patch"))


class Trees:
    """Makes trees in a folder, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()

    def tree(self, mend: str = "") -> Path:
        """Return the tree with a mend, or without one."""
        tree = self._folder / (f"with-{mend}" if mend else "as-it-was")
        with self._lock:
            if not tree.exists():
                part = tree.with_suffix(".part")
                shutil.rmtree(part, ignore_errors=True)
                part.mkdir(parents=True)
                self._fill(part, mend)
                part.rename(tree)
        return tree

    def _fill(self, tree: Path, mend: str) -> None:
        archive = subprocess.run(("git", "archive", COMMIT, *_PARTS), cwd=ROOT, check=True, capture_output=True)
        subprocess.run(("tar", "-x"), cwd=tree, input=archive.stdout, check=True)
        _apply(tree, HERE / "injection.patch")
        if mend:
            _apply(tree, HERE / "mends" / f"{mend}.patch")
        tests = tree / "tests"
        tests.mkdir()
        (tests / "__init__.py").touch()
        shutil.copytree(
            ROOT / "tests" / "simulation", tests / "simulation", ignore=shutil.ignore_patterns("__pycache__")
        )
        shutil.copy(HERE / "programs.py", tests / "simulation" / "programs.py")
        for name in ("plan.py", "drawing.py"):
            file = tests / "simulation" / name
            file.write_text(file.read_text().replace('"vcjob"', '"gang"'))
        registered = tests / "simulation" / "invariants" / "__init__.py"
        registered.write_text(_OF_JOBS.sub("", registered.read_text()))
        for file, *change in _CHANGES:
            _change(tests / "simulation" / file, *change)


def _change(file: Path, present: str, former: str) -> None:
    text = file.read_text()
    if present not in text:
        raise ValueError(f"{file.name} has changed: there is no {present!r} any more")
    file.write_text(text.replace(present, former))


def _apply(tree: Path, patch: Path) -> None:
    # Outside of every repository, `git apply` takes the folder as it is.
    env = {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    subprocess.run(("git", "apply", "--whitespace=nowarn", str(patch)), cwd=tree, check=True, env=env)
