"""Runs vcctl and the programs beside it as processes, against a real API server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.job_cluster import JobCluster

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = "import sys; from volcano_py.cli import start; sys.argv[0] = {0!r}; sys.exit(start.{1}())"


class Shell:
    """Runs the programs with the administrator's kubeconfig, which has a client certificate."""

    def __init__(self, cluster: JobCluster) -> None:
        self.cluster = cluster
        self.namespace = cluster.namespace

    @staticmethod
    def line(program: str, *words: str) -> list[str]:
        """Return the command line that runs a program of this checkout."""
        return [sys.executable, "-c", PROGRAM.format(program, program.replace("-", "_")), *words]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a program that is to reach the API server."""
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), "KUBECONFIG": str(self.cluster.plane.kubeconfig)}

    def run(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.line(program, *words), env=self.environment, capture_output=True, text=True, check=False, timeout=120
        )

    @contextmanager
    def begin(self, program: str, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command that goes on; it is killed if it has not ended by itself."""
        with subprocess.Popen(
            self.line(program, *words),
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def says(self, program: str, *words: str) -> str:
        """Run a command that must succeed."""
        ran = self.run(program, *words)
        assert (ran.returncode, ran.stderr) == (0, ""), (words, ran.stdout, ran.stderr)
        return ran.stdout

    def refuses(self, program: str, *words: str) -> str:
        """Run a command that must fail with one sentence."""
        ran = self.run(program, *words)
        assert (ran.returncode, ran.stderr) == (255, ""), (words, ran.stdout, ran.stderr)
        assert ran.stdout.startswith("Failed to")
        assert ran.stdout.count("\n") == 1
        return ran.stdout

    def vcctl(self, line: str) -> str:
        return self.says("vcctl", *line.split())

    def column(self, line: str, number: int) -> list[str]:
        """Return one column of a table without its header."""
        return [row.split()[number] for row in self.vcctl(line).splitlines()[1:]]
