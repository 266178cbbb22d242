"""The webhook manager as a child process of a test, under the ServiceAccount of manifests/webhooks.

API servers of tests resolve no Services, so the process writes its address into the webhook configurations.
"""

from __future__ import annotations

import secrets
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.install import MANIFESTS
from tests.controlplane.ports import free_ports
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from volcano_py.admission.paths import WEBHOOKS

FOLDER = MANIFESTS / "webhooks"
NAMESPACE = "volcano-system"
ACCOUNT = "volcano-admission"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/volcano-admission-secret"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"


class Webhooks:
    """One vc-webhook-manager with exactly the rights of manifests/, and all webhook configurations."""

    def __init__(self, plane: ControlPlane, *flags: str) -> None:
        self._plane = plane
        self._name = f"vc-webhook-manager-{secrets.token_hex(2)}"
        plane.kubectl("apply", "-f", str(FOLDER / "rbac.yaml"))
        kubeconfig = plane.kubeconfig_for(NAMESPACE, ACCOUNT)
        self.port, metrics, health = free_ports(3)
        self._health = f"http://127.0.0.1:{health}/readyz"
        self._metrics = f"http://127.0.0.1:{metrics}/metrics"
        self._command: list[str | Path] = [
            sys.executable,
            "-m",
            "volcano_py.cli.vc_webhook_manager",
            f"--kubeconfig={kubeconfig}",
            "--listen-address=127.0.0.1",
            f"--port={self.port}",
            f"--metrics-address=127.0.0.1:{metrics}",
            f"--healthz-address=127.0.0.1:{health}",
            f"--enabled-admission={','.join(WEBHOOKS)}",
            "--feature-gates=SchedulingGatesQueueAdmission=true",
            "--log-format=json",
        ]
        self.flags = flags
        self._address = f"https://127.0.0.1:{self.port}"

    def listen_behind(self, port: int) -> Webhooks:
        """Tell API servers to ask at another port of this machine, such as that of a proxy."""
        self._address = f"https://127.0.0.1:{port}"
        return self

    # Life

    def start(self) -> Webhooks:
        """Start it and wait until it reports ready."""
        address = f"--webhook-url={self._address}"
        self._plane.processes.start(self._name, [*self._command, address, *self.flags])
        wait_until("the webhooks are ready", self.ready, 30.0, every=0.02)
        return self

    def install(self) -> Webhooks:
        """Apply all webhook configurations; return when API servers ask this process."""
        for folder in (FOLDER, FOLDER / "pods"):
            self._plane.kubectl("apply", "-f", str(folder / "configurations.yaml"))
        wait_until("API servers trust the webhooks", self.injected, 20.0)
        return self

    def uninstall(self) -> None:
        """Delete the webhook configurations, so that nothing needs this process any more."""
        for folder in (FOLDER, FOLDER / "pods"):
            self._plane.kubectl("delete", "--ignore-not-found", "-f", str(folder / "configurations.yaml"))

    def ready(self) -> bool:
        """Ask /readyz; raise with the end of the log if the process has ended."""
        self._plane.processes.check_alive(self._name)
        try:
            with urllib.request.urlopen(self._health, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def injected(self) -> bool:
        """Say whether every webhook has this process's address and a bundle."""
        self._plane.processes.check_alive(self._name)
        clients = [webhook["clientConfig"] for one in self.configurations() for webhook in one["webhooks"]]
        return all(client.get("caBundle") and client.get("url", "").startswith(self._address) for client in clients)

    def configurations(self) -> list[dict[str, Any]]:
        """Return the webhook configurations on the API server."""
        wanted = {one["metadata"]["name"] for one in written()}
        kinds = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
        found = [one for kind in kinds for one in self._plane.request("GET", f"{REGISTRATION}/{kind}")["items"]]
        return [one for one in found if one["metadata"]["name"] in wanted]

    def kill(self) -> None:
        """Send SIGKILL and wait until it is gone."""
        self._plane.processes.kill(self._name)

    def stop(self) -> None:
        """Send SIGTERM and wait until it has ended."""
        if self._name in self._plane.processes.running:
            self._plane.processes.stop(self._name)

    # What it shows

    def pid(self) -> int:
        """Return its process id."""
        return self._plane.processes.pid(self._name)

    @property
    def metrics_address(self) -> str:
        """Host and port of /metrics."""
        return urllib.parse.urlsplit(self._metrics).netloc

    def metrics(self) -> str:
        """Return the text of /metrics."""
        with urllib.request.urlopen(self._metrics, timeout=5) as answer:
            return str(answer.read().decode())

    def log(self) -> str:
        """Return what it has logged."""
        return self._plane.processes.log(self._name).read_text()

    def certificate(self) -> str:
        """Return the certificate that a new connection gets, as PEM."""
        return ssl.get_server_certificate(("127.0.0.1", self.port), timeout=5)


def written() -> list[dict[str, Any]]:
    """Return the webhook configurations of manifests/webhooks."""
    files = (FOLDER / "configurations.yaml", FOLDER / "pods" / "configurations.yaml")
    return [document for file in files for document in yaml.safe_load_all(file.read_text())]
