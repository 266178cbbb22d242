"""The scheduler daemon as a child process of a test, under the ServiceAccount of manifests/."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.controlplane.install import Installed
from tests.controlplane.ports import free_ports
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from volcano_py.local.scheduler import GANG_CONF, NO_GANG_CONF

__all__ = ["GANG_CONF", "NO_GANG_CONF", "Daemon"]

CYCLES = 'volcano_py_cycles_total{result="ended"} '
VC_SCHEDULER = Path(sys.executable).with_name("vc-scheduler")


class Daemon:
    """One scheduler process, which a test may kill and start again."""

    def __init__(
        self,
        plane: ControlPlane,
        installed: Installed,
        conf: str = GANG_CONF,
        name: str = "vc-scheduler",
        flags: Sequence[str] = ("--leader-elect=false",),
    ) -> None:
        self._plane = plane
        self._name = name
        folder = plane.processes.folder
        self._conf = folder / f"{name}.yaml"
        self._conf.write_text(conf)
        self._flags = flags
        self._kubeconfig = plane.kubeconfig_for(installed.namespace, installed.service_account)

    def start(self) -> Daemon:
        """Start it and wait until it reports ready."""
        metrics, health = free_ports(2)
        self._health = f"http://127.0.0.1:{health}"
        self._metrics = f"http://127.0.0.1:{metrics}"
        self._plane.processes.start(
            self._name,
            [
                VC_SCHEDULER,
                f"--kubeconfig={self._kubeconfig}",
                f"--scheduler-conf={self._conf}",
                f"--listen-address=127.0.0.1:{metrics}",
                f"--healthz-address=127.0.0.1:{health}",
                "--log-format=json",
                *self._flags,
            ],
        )
        wait_until("the scheduler is ready", self.ready, 30.0)
        return self

    def ready(self) -> bool:
        """Ask /readyz; raise with the end of the log if the process has ended."""
        self._plane.processes.check_alive(self._name)
        try:
            with urllib.request.urlopen(f"{self._health}/readyz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def metrics_address(self) -> str:
        """Host and port of /metrics, once it was started."""
        return urllib.parse.urlsplit(self._metrics).netloc

    def metrics(self) -> str:
        """Return the text of /metrics."""
        with urllib.request.urlopen(f"{self._metrics}/metrics", timeout=5) as answer:
            return str(answer.read().decode())

    def ask(self, path: str) -> Any:
        """Return the JSON document at a path of the operators' server."""
        with urllib.request.urlopen(f"{self._metrics}{path}", timeout=5) as answer:
            return json.load(answer)

    def leads(self) -> bool:
        """Say whether it leads."""
        return "\nvolcano_py_leader 1.0" in self.metrics()

    def write_conf(self, text: str) -> None:
        """Replace its configuration file atomically while it runs."""
        new = self._conf.with_suffix(".new")
        new.write_text(text)
        new.rename(self._conf)

    def take_conf(self, text: str) -> None:
        """Replace its configuration file and wait until the scheduler uses it."""
        before = self.ask("/debug/conf")["hash"]
        if self._conf.read_text() == text:
            return
        self.write_conf(text)
        wait_until("the scheduler uses the configuration", lambda: self.ask("/debug/conf")["hash"] != before, 10.0)

    def cycles(self) -> int:
        """Return how many cycles have ended."""
        (line,) = (line for line in self.metrics().splitlines() if line.startswith(CYCLES))
        return int(float(line.removeprefix(CYCLES)))

    def ended(self, timeout: float) -> int:
        """Wait until it has ended by itself and return its exit code."""
        return self._plane.processes.wait(self._name, timeout)

    def log(self) -> str:
        """Return what it has logged."""
        return self._plane.processes.log(self._name).read_text()

    def kill(self) -> None:
        """Send SIGKILL and wait until it is gone."""
        self._plane.processes.kill(self._name)

    def stop(self) -> None:
        """Send SIGTERM and wait until it has ended."""
        self._plane.processes.stop(self._name)

    def alive(self) -> bool:
        """Say whether it still runs."""
        return self._name in self._plane.processes.running

    def pid(self) -> int:
        """Return its process id."""
        return self._plane.processes.pid(self._name)
