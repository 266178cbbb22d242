"""Commands as users call them, and objects that they find."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from volcano_py.cli.vcctl.program import start
from volcano_py.client.api import Api, Obj
from volcano_py.kube.resource import NAMESPACES, PODGROUPS, VCJOBS


class Ran(NamedTuple):
    """What a command did."""

    code: int
    out: str


class Cluster:
    """One API server and the commands against it."""

    def __init__(self, api: Api, capsys: pytest.CaptureFixture[str]) -> None:
        self.api = api
        self._capsys = capsys

    def warned(self, line: str, program: str = "vcctl", **words: str) -> tuple[Ran, str]:
        """Run a command, and return its warnings, too."""
        self._capsys.readouterr()
        code = start(program, [words.get(word, word) for word in line.split()])
        told = self._capsys.readouterr()
        return Ran(code, told.out), told.err

    def run(self, line: str, program: str = "vcctl", **words: str) -> Ran:
        """Run a command; ``words`` replace words of the line that have spaces."""
        self._capsys.readouterr()
        code = start(program, [words.get(word, word) for word in line.split()])
        told = self._capsys.readouterr()
        assert told.err == ""
        return Ran(code, told.out)

    def says(self, line: str, program: str = "vcctl", **words: str) -> str:
        """Run a command that must succeed; return what it printed."""
        ran = self.run(line, program, **words)
        assert ran.code == 0, ran.out
        return ran.out

    def refuses(self, line: str, program: str = "vcctl", **words: str) -> str:
        """Run a command that must fail, with one sentence; return it."""
        ran = self.run(line, program, **words)
        assert ran.code == 255, ran
        assert ran.out.startswith("Failed to")
        assert ran.out.count("\n") == 1
        return ran.out.strip()

    def namespace(self, name: str) -> str:
        """Make sure that a namespace exists."""
        if not self.api.exists(NAMESPACES, name):
            self.api.create(NAMESPACES, {"metadata": {"name": name}})
        return name

    def job(self, name: str, namespace: str, phase: str = "", **spec: Any) -> Obj:
        """Create a vcjob with a phase."""
        task = {"name": "worker", "replicas": 2, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
        wanted = {"minAvailable": 2, "schedulerName": "volcano", "queue": "default", "tasks": [task], **spec}
        made = self.api.create(VCJOBS, {"metadata": {"name": name}, "spec": wanted}, namespace)
        return self.phase(name, namespace, phase) if phase else made

    def phase(self, name: str, namespace: str, phase: str, **state: str) -> Obj:
        """Set the phase of a job as its controller would."""
        path = f"{VCJOBS.item(name, namespace)}/status"
        change = {"status": {"state": {"phase": phase, **state}, "running": 2 if phase == "Running" else 0}}
        return self.api._object("PATCH", path, change, content="application/merge-patch+json")

    def group(self, name: str, namespace: str, **fields: Any) -> Obj:
        """Create a PodGroup with a status."""
        return self.api.create(PODGROUPS, {"metadata": {"name": name}, **fields}, namespace)


# Processes

REPOSITORY = Path(__file__).resolve().parents[3]
PROGRAM = "import sys; from volcano_py.cli import start; sys.argv[0] = 'vcctl'; sys.exit(start.vcctl())"


def command(*words: str) -> list[str]:
    """Return the line that runs vcctl as a process of its own."""
    return [sys.executable, "-c", PROGRAM, *words]


def environment() -> dict[str, str]:
    """Return the variables of such a process."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY)}


@contextmanager
def begun(*words: str, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    """Start vcctl as a process; it is killed if it has not ended by itself."""
    with subprocess.Popen(
        command(*words), env=environment(), stdout=stdout, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()
