"""The vc-scheduler command as a process: flags, probes, signals, exit codes."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from tests.controlplane.ports import free_port
from tests.daemon.cluster import CONF, placed, put_job, put_node
from tests.effects.waiting import until
from volcano_py.cli.vc_scheduler import main

COMMAND = (sys.executable, "-m", "volcano_py.cli.vc_scheduler", "--log-format=json", "--leader-elect=false")


class Process:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self) -> tuple[int, str]:
        """Wait for the end and return exit code and log."""
        async with asyncio.timeout(60):
            _, log = await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode, log.decode()


@asynccontextmanager
async def command(*flags: str) -> AsyncIterator[Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, *flags, stderr=pipe)
    try:
        yield Process(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def asked(url: str) -> tuple[int, str]:
    """Return status and text of an answer, status 0 while nobody listens."""
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, await answer.text()
    except aiohttp.ClientConnectionError:
        return 0, ""


async def until_ready(port: int) -> None:
    async with asyncio.timeout(60):
        while (await asked(f"http://127.0.0.1:{port}/readyz"))[0] != 200:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


async def test_it_schedules_answers_probes_and_ends_in_order(server, tmp_path: Path):
    conf = tmp_path / "scheduler.conf"
    conf.write_text(CONF)
    metrics, health = free_port(), free_port()
    put_node(server, "n1")
    flags = (
        f"--master={server.url}",
        f"--scheduler-conf={conf}",
        f"--listen-address=127.0.0.1:{metrics}",
        f"--healthz-address=127.0.0.1:{health}",
        "--schedule-period=200ms",
    )
    async with command(*flags) as process:
        await until_ready(health)
        put_job(server, "gang", 3)
        await until(lambda: len(placed(server)) == 3)
        assert await asked(f"http://127.0.0.1:{health}/healthz") == (200, "ok\n")
        _, text = await asked(f"http://127.0.0.1:{metrics}/metrics")
        assert 'volcano_py_binds_total{result="bound"} 3.0' in text

        process.signal(signal.SIGHUP)
        assert await asked(f"http://127.0.0.1:{health}/healthz") == (200, "ok\n")

        process.signal(signal.SIGTERM)
        code, log = await process.ended()

    assert code == 0
    assert "scheduler is ready" in log
    assert "scheduler ends" in log
    assert "SIGHUP: the configuration is read again" in log


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        pytest.param("actions: alocate\ntiers: []\n", "bad.conf:1: actions: unknown action", id="unknown-action"),
        pytest.param("actions: allocate\ntiers: gang\n", "bad.conf:2: tiers must be a list", id="bad-structure"),
    ],
)
def test_a_bad_configuration_is_refused_with_file_and_line(tmp_path: Path, capsys, conf, problem):
    path = tmp_path / "bad.conf"
    path.write_text(conf)

    assert main(["--log-format=json", f"--scheduler-conf={path}"]) == 2
    assert problem in capsys.readouterr().err


async def test_a_missing_cluster_is_reported_with_a_remedy(tmp_path: Path):
    async with command(f"--kubeconfig={tmp_path / 'absent'}") as process:
        code, log = await process.ended()

    assert code == 2
    assert "check --kubeconfig" in log


HUNG = """
import argparse, sys, time
from tests.daemon.cluster import a_daemon
from volcano_py.cli.process import run

def hung(*_):
    print("hung", flush=True)
    time.sleep(3600)

url = sys.argv[1]
sys.exit(run(argparse.Namespace(master=url, kubeconfig=""), lambda _: a_daemon(url, cycle=hung)))
"""


async def test_a_cycle_that_hangs_does_not_keep_a_process_that_is_asked_to_end(server):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HUNG, server.url, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while b"hung" not in await process.stdout.readline():
                pass
            process.send_signal(signal.SIGTERM)
            await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()

    assert process.returncode == 0


BROKEN = """
import argparse, asyncio, sys, time
from volcano_py.cli.process import run

class Broken:
    async def run(self, shutdown):
        asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)
        await asyncio.sleep(0.1)
        raise ValueError("a bug")

sys.exit(run(argparse.Namespace(master="http://127.0.0.1:1", kubeconfig=""), lambda _: Broken()))
"""


async def test_a_process_with_a_bug_and_a_busy_thread_ends_with_code_1():
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", BROKEN, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(60):
            said = b"".join(await process.communicate())
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()

    assert process.returncode == 1
    assert b"a bug" in said
