"""The first second of a program, before it has read its flags."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from volcano_py.cli import start

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
INTERRUPTED = """
import os, sys
from volcano_py.cli import start

class Interruption:
    def find_spec(self, name, path, target=None):
        if name == "volcano_py.cli.{module}":
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Interruption())
start.{module}()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_signal_during_loading_ends_the_program_without_a_traceback(script: str, number: signal.Signals) -> None:
    module = script.replace("-", "_")
    assert SCRIPTS[script] == f"volcano_py.cli.start:{module}"

    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module, number=int(number))],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (128 + number, "", "")


def _help_of(script: str, stdout: int | None, before: str = "") -> tuple[int, str]:
    program = f"{before}\nfrom volcano_py.cli import start\nimport sys\nsys.exit(start.{script}())"
    ended = subprocess.run(
        [sys.executable, "-c", program, "--help"],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": ""},
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(("script", "code"), [("volcano_py", 128 + signal.SIGPIPE), ("vcctl", 0)])
def test_a_reader_that_has_seen_enough_ends_a_program_without_a_complaint(script: str, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert _help_of(script, writing) == (code, "")
    finally:
        os.close(writing)


@pytest.mark.parametrize("script", ["volcano_py", "vcctl"])
def test_a_program_does_not_need_an_output(script: str) -> None:
    assert _help_of(script, None, "import sys; sys.stdout = None") == (0, "")


@pytest.mark.parametrize("script", ["vc-scheduler", "vc-controller-manager", "vc-webhook-manager"])
def test_a_hangup_during_loading_does_not_end_a_daemon(script: str) -> None:
    module = script.replace("-", "_")
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED.format(module=module, number=int(signal.SIGHUP)), "--seed=x"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )

    assert ended.returncode == 2, ended.stderr  # it lived to read its flags


def test_the_started_program_is_the_scheduler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["vc-scheduler", "--seed=x"])

    with pytest.raises(SystemExit) as ended:
        start.vc_scheduler()

    assert ended.value.code == 2
    assert "vc-scheduler: error: argument --seed" in capsys.readouterr().err
