"""Schedulers that YAML files describe, and one of them as a process.

name      how it is called in tables
command   the program and its arguments; the program is looked up beside Python, among the built ones, and in PATH
conf      a file beside the YAML file that the command gets as {conf}; optional
gangs     whether it binds all pods of a gang or none (true) or one pod at a time (false); optional, true
ready     a URL that answers 200 once it has read everything; optional: ready at once
cycles    the URL of its metrics, and the counter of its cycles there; optional
stop      the signal that ends it, and within how many seconds; optional: SIGTERM, 20 s

In the command, the file ``conf`` and the URLs, {kubeconfig}, {conf}, {folder}, {port} and {port2} are filled in.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
import yaml

from benchmarks.daemon import THIS_CHECKOUT
from benchmarks.servers import memory_mib
from tests.controlplane.binaries import PROGRAMS, find_binaries
from tests.controlplane.ports import free_ports

FOLDER: Final = Path(__file__).parents[1] / "schedulers"
BUILT_IN: Final = (FOLDER / "volcano-py.yaml", FOLDER / "kube-scheduler.yaml")
_READY_S = 120.0
_TAIL = 3000


class ProgramMissing(Exception):
    """The program of a scheduler was found nowhere; the message says how to get it."""


class Cycles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a scheduler counts its cycles."""

    url: str
    metric: str


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a scheduler is ended."""

    signal: str = "SIGTERM"
    within_s: float = 20.0


class SchedulerFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scheduler as its YAML file describes it."""

    name: str
    command: tuple[str, ...]
    conf: str = ""
    gangs: bool = True
    ready: str = ""
    cycles: Cycles | None = None
    stop: Stop = Stop()


def read(path: Path) -> SchedulerFile:
    """Read a file; the path of ``conf`` becomes absolute. Raises ValueError that names the file and the mistake."""
    try:
        found = msgspec.convert(yaml.safe_load(path.read_text()), SchedulerFile)
        getattr(signal, found.stop.signal)
    except (OSError, yaml.YAMLError, msgspec.ValidationError, AttributeError) as error:
        raise ValueError(f"{path} does not describe a scheduler: {error}") from error
    if not found.command:
        raise ValueError(f"{path}: command is empty")
    return msgspec.structs.replace(found, conf=str((path.parent / found.conf).resolve()) if found.conf else "")


def program(name: str) -> Path:
    """Return the path of a program; ProgramMissing says where it was looked for."""
    beside = Path(sys.executable).parent / name  # a name that is a path stands for itself
    if beside.is_file():
        return beside
    if built := find_binaries().paths.get(name):
        return built
    if found := shutil.which(name):
        return Path(found)
    way = f"`python -m tests.controlplane.build {name}` builds it (needs Go)"
    known = name in {one.name for one in PROGRAMS}
    raise ProgramMissing(f"{name} is missing: {way if known else 'put it into PATH, or give its path'}")


@dataclass
class Running:
    """A scheduler that runs."""

    pid: int
    started_at: float
    ready_at: float
    cycles_at: Cycles | None

    def cpu_s(self) -> float:
        """Return the CPU seconds of its processes."""
        ticks = 0
        for pid in self._pids():
            with contextlib.suppress(OSError):  # a process may end between the two looks
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def rss_mib(self) -> float:
        """Return the resident memory of its processes."""
        total = 0.0
        for pid in self._pids():
            with contextlib.suppress(OSError):
                total += memory_mib(pid)
        return round(total, 1)

    async def cycles(self) -> float | None:
        """Return how many cycles it has run; None if its file does not say where it counts them."""
        if self.cycles_at is None:
            return None
        text = await _get(self.cycles_at.url)
        found = re.findall(rf"^{self.cycles_at.metric}(?:\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))

    def _pids(self) -> list[int]:
        """Return the processes of its group: its own and those that it started."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if int((entry / "stat").read_text().rpartition(")")[2].split()[2]) == self.pid:
                        found.append(int(entry.name))
        return found


@contextlib.asynccontextmanager
async def running(scheduler: SchedulerFile, kubeconfig: Path) -> AsyncIterator[Running]:
    """Run a scheduler until the block ends; it is ready when the block begins."""
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        fill = _filler(kubeconfig, Path(folder))
        if scheduler.conf:
            (Path(folder) / "conf.yaml").write_text(fill(_text(scheduler.conf)))
        first, *rest = scheduler.command
        command = [str(program(fill(first))), *map(fill, rest)]
        log = Path(folder) / "output.log"
        started = time.monotonic()
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *command, stdout=output, stderr=output, env=THIS_CHECKOUT, start_new_session=True
            )
        try:
            await _until_ready(fill(scheduler.ready), process, log, scheduler.name)
            at = scheduler.cycles
            cycles = msgspec.structs.replace(at, url=fill(at.url)) if at else None
            yield Running(process.pid, started, time.monotonic(), cycles)
            if process.returncode is not None:
                raise RuntimeError(f"{scheduler.name} ended with {process.returncode}:\n{_tail(log)}")
        finally:
            await _end(process, scheduler.stop)


def _text(path: str) -> str:
    return Path(path).read_text()


def _filler(kubeconfig: Path, folder: Path) -> "_Filler":
    port, port2 = free_ports(2)
    values = {"kubeconfig": kubeconfig, "conf": folder / "conf.yaml", "folder": folder, "port": port, "port2": port2}
    return _Filler({f"{{{name}}}": str(value) for name, value in values.items()})


@dataclass(frozen=True)
class _Filler:
    """Fills values into a text."""

    values: dict[str, str]

    def __call__(self, text: str) -> str:
        for name, value in self.values.items():
            text = text.replace(name, value)
        return text


async def _end(process: asyncio.subprocess.Process, stop: Stop) -> None:
    """Send the signal to the process; end its whole group if it does not end in time."""
    if process.returncode is not None:
        return
    process.send_signal(getattr(signal, stop.signal))
    try:
        await asyncio.wait_for(process.wait(), stop.within_s)
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _until_ready(url: str, process: asyncio.subprocess.Process, log: Path, name: str) -> None:
    if not url:
        return
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline and process.returncode is None:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            await _get(url)
            return
        await asyncio.sleep(0.05)
    raise RuntimeError(f"{name} did not become ready:\n{_tail(log)}")


async def _get(url: str) -> str:
    """Read a page of a program of this machine; its certificate is its own."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as session,
        session.get(url, ssl=context, raise_for_status=True) as response,
    ):
        return await response.text()


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-_TAIL:]


def order(schedulers: Sequence[SchedulerFile], rounds: int) -> list[SchedulerFile]:
    """Return who runs when: forwards and then backwards in each round, so that A and B run as A-B-B-A."""
    return [*schedulers, *reversed(schedulers)] * rounds
