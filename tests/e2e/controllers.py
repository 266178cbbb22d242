"""The controller manager as a child process of a test, under the ServiceAccount of manifests/."""

from __future__ import annotations

import re
import secrets
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from pathlib import Path

from tests.controlplane.install import Installed
from tests.controlplane.ports import free_ports
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane

SCHEDULER_ACCOUNT, CONTROLLERS_ACCOUNT = "volcano-scheduler", "volcano-controllers"
REQUESTS = re.compile(
    r'^volcano_py_api_requests_total\{resource="(?P<resource>[^"]*)",result="(?P<result>[^"]*)",verb="(?P<verb>[^"]*)"\}'
    r" (?P<count>[0-9.e+]+)$",
    re.MULTILINE,
)


class Controllers:
    """One vc-controller-manager with exactly the rights of manifests/."""

    def __init__(self, plane: ControlPlane, installed: Installed, *flags: str) -> None:
        self._plane = plane
        self._name = f"vc-controller-manager-{secrets.token_hex(2)}"
        account = installed.service_account.replace(SCHEDULER_ACCOUNT, CONTROLLERS_ACCOUNT)
        kubeconfig = plane.kubeconfig_for(installed.namespace, account)
        metrics, health = free_ports(2)
        self._health = f"http://127.0.0.1:{health}/readyz"
        self._metrics = f"http://127.0.0.1:{metrics}/metrics"
        self._command: list[str | Path] = [
            sys.executable,
            "-m",
            "volcano_py.cli.vc_controller_manager",
            f"--kubeconfig={kubeconfig}",
            f"--listen-address=127.0.0.1:{metrics}",
            f"--healthz-address=127.0.0.1:{health}",
            f"--leader-elect-resource-namespace={installed.namespace}",
            "--log-format=json",
            *flags,
        ]

    def start(self) -> Controllers:
        """Start it and wait until it reports ready."""
        self._plane.processes.start(self._name, self._command)
        wait_until("the controllers are ready", self._ready, 30.0)
        return self

    def _ready(self) -> bool:
        self._plane.processes.check_alive(self._name)
        try:
            with urllib.request.urlopen(self._health, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    @property
    def metrics_address(self) -> str:
        """Host and port of /metrics."""
        return urllib.parse.urlsplit(self._metrics).netloc

    def metrics(self) -> str:
        """Return the text of /metrics."""
        with urllib.request.urlopen(self._metrics, timeout=5) as answer:
            return str(answer.read().decode())

    def requests(self) -> Counter[tuple[str, str]]:
        """Return how many requests it has sent, by verb and resource; refused ones count as well."""
        found: Counter[tuple[str, str]] = Counter()
        for line in REQUESTS.finditer(self.metrics()):
            found[line["verb"], line["resource"]] += int(float(line["count"]))
        return found

    def log(self) -> str:
        """Return what it has logged."""
        log = self._plane.processes.log(self._name)
        return log.read_text() if log.exists() else ""

    def refused(self) -> list[str]:
        """Return the lines of its log about rights that it lacks."""
        return [line for line in self.log().splitlines() if "by RBAC" in line]

    def kill(self) -> None:
        """Send SIGKILL and wait until it is gone."""
        self._plane.processes.kill(self._name)

    def stop(self) -> None:
        """Send SIGTERM and wait until it has ended."""
        if self._name in self._plane.processes.running:
            self._plane.processes.stop(self._name)
