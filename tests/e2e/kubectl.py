"""A real kubectl in a namespace of its own, on the embedded API server and on a real one."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
import yaml

from tests.controlplane.binaries import find_binaries
from tests.controlplane.processes import Processes
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from volcano_py.local.kubeconfig import kubeconfig
from volcano_py.testing import a_group, a_node, a_pod, manifest

REPOSITORY = Path(__file__).resolve().parents[2]


class Run(Protocol):
    """Runs kubectl with a standard input; returns the finished process."""

    def __call__(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]: ...


@dataclass(frozen=True)
class Kubectl:
    """kubectl in a namespace of its own."""

    run: Run
    namespace: str

    def __call__(self, *arguments: str, stdin: Any = None) -> str:
        """Run a command that must succeed; returns its output."""
        ran = self.run("-n", self.namespace, *arguments, stdin=as_yaml(stdin))
        assert ran.returncode == 0, (arguments, ran.stdout, ran.stderr)
        return ran.stdout

    def fails(self, *arguments: str, stdin: Any = None) -> str:
        """Run a command that must fail; returns its error output."""
        ran = self.run("-n", self.namespace, *arguments, stdin=as_yaml(stdin))
        assert ran.returncode != 0, (arguments, ran.stdout)
        return ran.stderr

    def apply(self, obj: Any, *flags: str) -> str:
        """Apply an object."""
        return self("apply", *flags, "-f", "-", stdin=obj).strip()

    def table(self, *arguments: str) -> list[list[str]]:
        """The rows of a table as cells, the header first."""
        return [re.split(r" {2,}", line.strip()) for line in self("get", *arguments).splitlines()]

    def read(self, *arguments: str) -> Any:
        """An object or list."""
        return json.loads(self("get", *arguments, "-o", "json"))


def as_yaml(document: Any) -> str | None:
    """Return input for kubectl: text unchanged, one or several objects as YAML."""
    if document is None or isinstance(document, str):
        return document
    return yaml.safe_dump_all(document if isinstance(document, list) else [document])


@pytest.fixture(scope="module")
def embedded() -> Iterator[Run]:
    """An embedded API server with kubelets, in a process of its own."""
    binary = find_binaries()["kubectl"]
    processes = Processes(prefix="volcano-py-kubectl-")
    try:
        argv = [sys.executable, "-m", "volcano_py.apiserver", "--port", "0", "--kubelet", "--node-lifecycle"]
        processes.start("apiserver", argv, env={"PYTHONPATH": str(REPOSITORY)})
        serving = wait_until(
            "the embedded API server",
            lambda: re.search(r"serving on (\S+)", processes.log("apiserver").read_text()),
            20.0,
        )
        config = processes.folder / "kubeconfig"
        config.write_text(kubeconfig(serving[1]))

        def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [str(binary), f"--cache-dir={processes.folder / 'cache'}", *arguments],
                env={**os.environ, "KUBECONFIG": str(config)},
                input=stdin or "",
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )

        applied = run("apply", "-f", str(REPOSITORY / "manifests" / "crds"))
        assert applied.returncode == 0, applied.stderr
        # kubectl keeps the kinds that it has read; `explain` may miss one that came after that.
        wait_until("kubectl to know the new kinds", lambda: "jobflows" in run("api-resources").stdout, 20.0)
        yield run
    finally:
        processes.close()


@pytest.fixture(params=["embedded", "real"])
def server(request: pytest.FixtureRequest) -> Run:
    """Each of the two servers."""
    if request.param == "embedded":
        run: Run = request.getfixturevalue("embedded")
        return run
    request.getfixturevalue("installed")
    plane: ControlPlane = request.getfixturevalue("control_plane")

    def run_real(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return plane.kubectl(*arguments, stdin=stdin, check=False)

    return run_real


@pytest.fixture
def kubectl(server: Run) -> Iterator[Kubectl]:
    """kubectl in a new namespace."""
    namespace = f"kubectl-{secrets.token_hex(4)}"
    made = Kubectl(server, namespace)
    made("create", "namespace", namespace)
    wait_until(
        "the service account", lambda: server("-n", namespace, "get", "sa", "default").returncode == 0, 30.0, every=0.05
    )
    yield made
    server("delete", "namespace", namespace, "--wait=false")


@pytest.fixture
def node(kubectl: Kubectl) -> Iterator[str]:
    """A node that is ready."""
    name = f"node-{secrets.token_hex(3)}"
    kubectl.apply(manifest(a_node(name, labels={"node-role.kubernetes.io/worker": ""})))
    kubectl("wait", "--for=condition=Ready", f"node/{name}", "--timeout=30s")
    yield name
    kubectl("delete", "node", name)


def config(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"key": "value"}}


def pod(name: str = "a", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "busybox:1"}]
    body = {"containers": containers, "restartPolicy": "Never", "automountServiceAccountToken": False, **spec}
    return manifest(a_pod(name, namespace="", scheduler="nobody", labels=labels or {"app": name}), spec=body)


def group(name: str = "gang", members: int = 3) -> dict[str, Any]:
    return manifest(a_group(name, namespace="", queue="", min_available=members))
