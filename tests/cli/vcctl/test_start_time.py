"""Commands that ask nobody start without what asking needs; lists start without what the scheduler needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
HEAVY = {"aiohttp", "argparse", "asyncio", "kubernetes_asyncio", "msgspec", "numpy", "rich", "structlog"}
ASKING = {"http.client", "ssl", "yaml", "json", "socket"}
SAY_MODULES = """
import sys
from volcano_py.cli import start
sys.argv = ["vcctl", *sys.argv[1:]]
code = start.vcctl()
sys.stderr.write(" ".join(sys.modules))
sys.exit(code)
"""


def modules_of(*arguments: str) -> tuple[int, set[str]]:
    ran = subprocess.run(
        [sys.executable, "-c", SAY_MODULES, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "KUBECONFIG": ""},
    )
    return ran.returncode, set(ran.stderr.split())


@pytest.mark.parametrize(
    "line",
    ["version", "--help", "job --help", "job list --help", "completion bash", "__complete jo", "__complete job l"],
)
def test_commands_that_ask_nobody_import_no_http_and_no_scheduler(line: str) -> None:
    code, modules = modules_of(*line.split())

    assert code == 0
    assert modules & (HEAVY | ASKING) == set()
    assert {one.split(".")[1] for one in modules if one.startswith("volcano_py.")} <= {"cli", "client"}


def test_a_list_imports_http_but_no_event_loop_and_no_scheduler() -> None:
    code, modules = modules_of("job", "list", "--master", "http://127.0.0.1:1")

    assert code == 255
    assert "http.client" in modules
    assert modules & HEAVY == set()
    assert {one.split(".")[1] for one in modules if one.startswith("volcano_py.")} <= {"api", "cli", "client", "kube"}
