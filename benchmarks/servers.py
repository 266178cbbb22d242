"""The API servers of benchmarks: the embedded one in a separate process, and the real one."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.controlplane.install import install
from tests.e2e.control_plane import ControlPlane, Options

_SERVING = re.compile(r"serving on (http://\S+)")
_START_S = 900.0  # a million pods take minutes to create
_END_S = 60.0


@dataclass(frozen=True)
class Server:
    """An API server with the definitions of this project."""

    kind: str
    kubeconfig: Path
    pids: dict[str, int]  # its processes, for CPU seconds


@contextlib.contextmanager
def server(kind: str) -> Iterator[Server]:
    """Start an API server: ``embedded``, ``kubelet`` (embedded, with a stand-in that runs pods), or ``real``."""
    with real() if kind == "real" else _embedded(*(("--kubelet",) if kind == "kubelet" else ())) as running:
        yield running


def populated(nodes: int, pods: int, shapes: int, *waiting: int) -> contextlib.AbstractContextManager[Server]:
    """Start an embedded API server that is full from the start (:mod:`benchmarks.populated`).

    ``waiting`` are the numbers of jobs that wait, of pods of each, and of queues.
    """
    return _child("populated", ["benchmarks.populated", *map(str, (nodes, pods, shapes, *waiting))])


def observed() -> contextlib.AbstractContextManager[Server]:
    """Start an embedded API server that notes itself what happens to pods (:mod:`benchmarks.steady.apiserver`)."""
    return _child("observed", ["benchmarks.steady.apiserver"])


def _embedded(*flags: str) -> contextlib.AbstractContextManager[Server]:
    return _child("embedded", ["volcano_py.apiserver", "--port", "0", *flags])


@contextlib.contextmanager
def _child(kind: str, module: list[str]) -> Iterator[Server]:
    """Run a server module in a separate process."""
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        log = Path(folder) / "apiserver.log"
        with log.open("wb") as output:
            process = subprocess.Popen([sys.executable, "-m", *module], stdout=output, stderr=subprocess.STDOUT)
        try:
            url = _wait_for(log, process)
            kubeconfig = Path(folder) / "kubeconfig"
            cluster = {"name": "bench", "cluster": {"server": url}}
            context = {"name": "bench", "context": {"cluster": "bench", "user": "bench"}}
            kubeconfig.write_text(
                yaml.safe_dump(
                    {
                        "apiVersion": "v1",
                        "kind": "Config",
                        "current-context": "bench",
                        "clusters": [cluster],
                        "contexts": [context],
                        "users": [{"name": "bench", "user": {}}],
                    }
                )
            )
            yield Server(kind, kubeconfig, {"apiserver": process.pid})
        finally:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:  # a starved machine: it has nothing to complete
                process.kill()
                process.wait()


def _wait_for(log: Path, process: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        found = _SERVING.search(log.read_text())
        if found:
            return found.group(1)
        time.sleep(0.05)
    raise RuntimeError(f"the API server did not start:\n{log.read_text()}")


@contextlib.contextmanager
def real(*apiserver_args: str) -> Iterator[Server]:
    """Start etcd and kube-apiserver, the latter with some more arguments."""
    options = Options(
        controller_manager=False,
        kwok=False,
        heavy_load=True,
        taint_new_nodes=False,
        apiserver_args=apiserver_args,
    )
    with ControlPlane(options) as plane:
        install(plane.cluster)
        yield Server("real", plane.kubeconfig, dict(plane.processes.running))


def cpu_seconds(pid: int) -> float:
    """Return the CPU seconds a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """Return the resident set a process has now."""
    return _from_status(pid, "VmRSS")


def peak_memory_mib(pid: int) -> float:
    """Return the largest resident set a process has had."""
    return _from_status(pid, "VmHWM")


def _from_status(pid: int, line: str) -> float:
    found = re.search(rf"{line}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return round(int(found.group(1)) / 1024, 1) if found else 0.0
