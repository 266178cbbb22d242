"""Runs vc-scheduler and the controllers as users do, in separate processes; they are ready when the block begins."""

import asyncio
import contextlib
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.ports import free_ports
from volcano_py.conf.defaults import BUILT_IN_CONF

VC_SCHEDULER = Path(sys.executable).with_name("vc-scheduler")
VC_CONTROLLERS = VC_SCHEDULER.with_name("vc-controller-manager")
# An installed program runs the package of its installation; the result names the commit of this checkout.
THIS_CHECKOUT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
READY_S = 600.0  # a million pods take minutes to read
_END_S = 20.0
_REQUESTS = re.compile(r"^volcano_py_api_requests_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Daemon:
    """A running scheduler or controller manager."""

    pid: int
    metrics_port: int
    started_at: float  # monotonic time of the process start
    ready_at: float

    async def requests(self) -> Counter[tuple[str, str]]:
        """Return how many requests were answered so far, by verb and resource."""
        found: Counter[tuple[str, str]] = Counter()
        for labels, value in _REQUESTS.findall(await _get(self.metrics_port, "/metrics")):
            label = dict(_LABEL.findall(labels))
            found[label["verb"], label["resource"]] += int(float(value))
        return found


@contextlib.asynccontextmanager
async def daemon(
    kubeconfig: Path, *, elect: bool = False, conf: str = BUILT_IN_CONF, lag_file: Path | None = None
) -> AsyncIterator[Daemon]:
    """Run vc-scheduler until the block ends; it is ready when the block begins.

    With a file, it writes there how late its event loop was (:mod:`benchmarks.lagging`).
    """
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        path = Path(folder) / "conf.yaml"
        path.write_text(conf)
        command = (*_program(VC_SCHEDULER, lag_file), f"--scheduler-conf={path}")
        async with _running(command, kubeconfig, Path(folder), elect=elect) as started:
            yield started


@contextlib.asynccontextmanager
async def controllers(kubeconfig: Path, lag_file: Path | None = None) -> AsyncIterator[Daemon]:
    """Run vc-controller-manager until the block ends; with a file, it writes there how late its event loop was."""
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        command = _program(VC_CONTROLLERS, lag_file)
        async with _running((*command, "--enable-metrics", "--enable-healthz"), kubeconfig, Path(folder)) as started:
            yield started


def _program(program: Path, lag_file: Path | None) -> tuple[str, ...]:
    if lag_file is None:
        return (str(program),)
    return (sys.executable, "-m", "benchmarks.lagging", str(lag_file), program.name)


@contextlib.asynccontextmanager
async def _running(
    command: tuple[str, ...], kubeconfig: Path, folder: Path, *, elect: bool = False
) -> AsyncIterator[Daemon]:
    metrics, health = free_ports(2)
    output = folder / "output.log"
    started = time.monotonic()
    with output.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            f"--kubeconfig={kubeconfig}",
            f"--leader-elect={str(elect).lower()}",
            f"--listen-address=127.0.0.1:{metrics}",
            f"--healthz-address=127.0.0.1:{health}",
            stdout=log,
            stderr=log,
            env=THIS_CHECKOUT,
        )
    try:
        await _until_ready(health, process, output)
        yield Daemon(process.pid, metrics, started, time.monotonic())
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise


async def _until_ready(port: int, process: asyncio.subprocess.Process, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.returncode is None:
        with contextlib.suppress(OSError):
            if " 200 " in (await _get(port, "/readyz")).partition("\n")[0]:
                return
        await asyncio.sleep(0.05)
    raise RuntimeError(f"a program did not become ready:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return log.read_text()[-2000:]


async def _get(port: int, path: str) -> str:
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            return (await reader.read()).decode()
        finally:
            writer.close()
