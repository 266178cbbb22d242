"""The vc-controller-manager command as a process: flags, probes, signals, exit codes."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.controlplane.ports import free_port
from tests.daemon.cluster import put_pod, serve_definitions
from tests.daemon.test_process import asked, until_ready
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.cli.vc_controller_manager import main
from volcano_py.testing import a_namespace, manifest

COMMAND = (sys.executable, "-m", "volcano_py.cli.vc_controller_manager", "--log-format=json")


@asynccontextmanager
async def command(*flags: str, program: tuple[str, ...] = COMMAND) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(*program, *flags, stderr=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str]:
    """Wait for the end and return exit code and log."""
    async with asyncio.timeout(60):
        _, log = await process.communicate()
    assert process.returncode is not None
    return process.returncode, log.decode()


async def test_it_works_answers_probes_and_ends_in_order() -> None:
    metrics, health = free_port(), free_port()
    async with ApiServer() as server:
        serve_definitions(server)
        server.create(manifest(a_namespace("volcano-system")))  # of the lease
        flags = (
            f"--master={server.url}",
            f"--listen-address=127.0.0.1:{metrics}",
            f"--healthz-address=127.0.0.1:{health}",
            "--controllers=*",
            "--scheduler-name=volcano",
        )
        async with command(*flags) as process:
            await until_ready(health)
            put_pod(server, "p1")
            await until(lambda: (server.get("pods", "p1", "default") or {})["metadata"].get("annotations"))
            assert await asked(f"http://127.0.0.1:{health}/healthz") == (200, "ok\n")
            _, text = await asked(f"http://127.0.0.1:{metrics}/metrics")
            assert 'volcano_py_controller_turns_total{controller="pg-controller",result="done"}' in text

            process.send_signal(signal.SIGTERM)
            code, log = await ended(process)

    assert code == 0
    assert "controllers are ready" in log
    assert "controllers end" in log


@pytest.mark.parametrize(
    ("flag", "problem"),
    [
        ("--controllers=nobody", "'nobody' is not a controller"),
        ("--kube-api-qps=none", "'none' is not a rate"),
        ("--max-requeue-num=0", "'0' is not a count"),
        ("--inherit-owner-annotations=maybe", "'maybe' is neither true nor false"),
        ("--listen-address=here", "'here' is not a listen address"),
    ],
)
def test_a_flag_that_cannot_be_read_is_refused(capsys: pytest.CaptureFixture[str], flag: str, problem: str) -> None:
    with pytest.raises(SystemExit) as end:
        main([flag])

    assert end.value.code == 2
    assert problem in capsys.readouterr().err


def test_a_missing_cluster_is_reported_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--log-format=json", f"--kubeconfig={tmp_path / 'absent'}"]) == 2
    assert "check --kubeconfig" in capsys.readouterr().err
