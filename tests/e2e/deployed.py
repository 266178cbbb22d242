"""The programs of installed Deployments as child processes of a test, started as a kubelet would start them.

    deployed = Deployed(plane)
    deployed.start_all()
    deployed.ready()

Flags, environment, mounted files and the ServiceAccount are those that the API server has. Whatever a kubelet would not
start, and whatever this module does not know, raises NotStartable.
"""

from __future__ import annotations

import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Endpoint
from tests.controlplane.ports import free_ports
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import NotInTime, wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.pod_files import Mounts, NotStartable, environment, expanded, only_container

__all__ = ["Deployed", "NotStartable"]

NAMESPACE = "volcano-system"
BIN = Path(sys.executable).parent
LOOPBACK = "127.0.0.1"
CREATED_S, READY_S, STOP_S = 20.0, 60.0, 45.0


@dataclass(frozen=True)
class Program:
    """The flags of a program that say where it listens, each with the port that it has without the flag."""

    metrics: tuple[str, int]
    health: tuple[str, int] = ("--healthz-address", 11251)
    webhooks: tuple[str, int] | None = None

    def listens(self) -> dict[str, int]:
        """Return the default port by flag."""
        return dict(one for one in (self.metrics, self.health, self.webhooks) if one is not None)


PROGRAMS = {
    "vc-scheduler": Program(("--listen-address", 8080)),
    "vc-controller-manager": Program(("--listen-address", 8081)),
    "vc-webhook-manager": Program(("--metrics-address", 8082), webhooks=("--port", 8443)),
}


@dataclass(frozen=True)
class Replica:
    """One started process: where its metrics are, and where a kubelet would ask whether it is ready."""

    process: str
    metrics: str
    readiness: str


class Deployed:
    """The Deployments of a namespace, whose programs run as processes of this machine."""

    def __init__(self, plane: ControlPlane, namespace: str = NAMESPACE) -> None:
        self._plane = plane
        self._namespace = namespace
        self._started: dict[str, list[Replica]] = {}
        self._mounts: dict[str, Mounts] = {}
        self._serial = 0

    # Life

    def names(self) -> list[str]:
        """Return the names of the Deployments of the namespace."""
        return [one["metadata"]["name"] for one in self._get("apis/apps/v1", "deployments")["items"]]

    def start_all(self) -> Deployed:
        """Start one process for each Deployment of the namespace."""
        for name in self.names():
            self.start(name)
        return self

    def start(self, name: str, replicas: int = 1, flags: Sequence[str] = ()) -> Deployed:
        """Start processes of one Deployment, once its pods exist; further flags come last."""
        deployment = self._deployment(name)
        if self._plane.options.controller_manager and self._plane.owned:
            self._wait_until_pods_exist(name)
        for _ in range(replicas):
            self._started.setdefault(name, []).append(self._start(deployment, flags))
        return self

    def ready(self, timeout: float = READY_S) -> Deployed:
        """Wait until every process answers the readiness probe of its Deployment."""
        for name, replicas in self._started.items():
            for replica in replicas:
                wait_until(f"{name} is ready", lambda one=replica: self.is_ready(one), timeout)  # type: ignore[misc]
        return self

    def is_ready(self, replica: Replica) -> bool:
        """Ask a process once; raise with the end of its log if it has ended."""
        self._plane.processes.check_alive(replica.process)
        try:
            with urllib.request.urlopen(replica.readiness, timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def sync_files(self) -> None:
        """Write the mounted files again, as a kubelet does when a ConfigMap or a Secret has changed."""
        for mounts in self._mounts.values():
            mounts.write()

    def stop(self, *names: str) -> None:
        """Stop the processes of these Deployments, or of all, with SIGTERM to all at once."""
        processes = self._plane.processes
        stopped = [one.process for name in names or tuple(self._started) for one in self._started.pop(name, [])]
        alive = [process for process in stopped if process in processes.running]
        for process in alive:
            processes.signal(process, signal.SIGTERM)
        for process in alive:
            processes.stop(process, STOP_S)
        for process in stopped:
            del self._mounts[process]

    # What it shows

    def replicas(self, name: str) -> list[Replica]:
        """Return the processes of a Deployment that were started and not stopped."""
        return list(self._started.get(name, []))

    def metrics(self, name: str, replica: int = 0) -> str:
        """Return the text of /metrics of one process."""
        with urllib.request.urlopen(f"{self._started[name][replica].metrics}/metrics", timeout=5) as answer:
            return str(answer.read().decode())

    def metrics_address(self, name: str, replica: int = 0) -> str:
        """Return the base URL of the metrics server of one process."""
        return self._started[name][replica].metrics

    def log(self, name: str) -> str:
        """Return what the processes of a Deployment have logged, those that were stopped included."""
        logs = sorted(self._plane.processes.folder.glob(f"{name}-pod[0-9]*.log"))
        return "".join(log.read_text(errors="replace") for log in logs)

    # What a kubelet does

    def _start(self, deployment: dict[str, Any], flags: Sequence[str]) -> Replica:
        spec = deployment["spec"]["template"]["spec"]
        self._serial += 1
        process = f"{deployment['metadata']['name']}-pod{self._serial}"
        container = only_container(spec, process)
        program = container["command"][0] if len(container.get("command", [])) == 1 else None
        if program not in PROGRAMS:
            raise NotStartable(f"{process}: the command {container.get('command')} is none of {', '.join(PROGRAMS)}")
        mounts = Mounts(self._plane, self._namespace, process, spec, container)
        mounts.write()
        names = {"metadata.namespace": self._namespace, "metadata.name": process, "status.podIP": LOOPBACK}
        variables = environment(self._plane, self._namespace, process, container, names)
        arguments = [mounts.rewritten(expanded(one, variables)) for one in container.get("args", [])]
        own, ports = self._addresses(PROGRAMS[program], arguments)
        self._plane.processes.start(
            process,
            [
                *(
                    "env",
                    "-i",
                    *self._inherited(),
                    *(f"{key}={mounts.rewritten(one)}" for key, one in variables.items()),
                ),
                *(BIN / program, *without_service(arguments)),
                *(f"--kubeconfig={self._kubeconfig(spec, process)}", *own, *flags),
            ],
        )
        self._mounts[process] = mounts
        metrics = ports[PROGRAMS[program].metrics[0]][1]
        return Replica(process, f"http://{LOOPBACK}:{metrics}", readiness(container, dict(ports.values()), process))

    @staticmethod
    def _inherited() -> list[str]:
        """Return what a container gets from its image: nothing of this machine but the way to Python's modules."""
        found = {"PATH": f"{BIN}:/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        if "PYTHONPATH" in os.environ:
            found["PYTHONPATH"] = os.environ["PYTHONPATH"]
        return [f"{name}={value}" for name, value in found.items()]

    @staticmethod
    def _addresses(program: Program, arguments: Sequence[str]) -> tuple[list[str], dict[str, tuple[int, int]]]:
        """Return flags with free ports of loopback; and by flag, the container's port and the free one."""
        given = dict(one.partition("=")[::2] for one in arguments)
        known = {flag: int(given.get(flag, f":{port}").rpartition(":")[2]) for flag, port in program.listens().items()}
        free = dict(zip(known, free_ports(len(known)), strict=True))
        flags = []
        if program.webhooks is not None:
            url = given.get("--webhook-url", "")
            if url.startswith(f"https://{LOOPBACK}:"):  # a user's address of this machine: that is where it listens
                free["--port"] = int(url.rpartition(":")[2])
            flags = [f"--listen-address={LOOPBACK}", f"--webhook-url=https://{LOOPBACK}:{free['--port']}"]
        flags += [f"{flag}={port if flag == '--port' else f'{LOOPBACK}:{port}'}" for flag, port in free.items()]
        return flags, {flag: (known[flag], free[flag]) for flag in known}

    def _kubeconfig(self, spec: Mapping[str, Any], process: str) -> Path:
        account = spec.get("serviceAccountName", "default")
        try:
            token = self._plane.token_for(self._namespace, account)
        except ApiFailure as failed:
            raise NotStartable(
                f"{process}: no token for ServiceAccount {self._namespace}/{account}: {failed}"
            ) from failed
        path = self._plane.processes.folder / f"{process}.kubeconfig"
        endpoint: Endpoint = self._plane.cluster.endpoint
        path.write_bytes(endpoint.kubeconfig({"token": token}, self._namespace))
        path.chmod(0o600)
        return path

    def _wait_until_pods_exist(self, name: str) -> None:
        """Wait until its pods are made: admission may refuse them, for instance for a missing PriorityClass."""
        refused: list[str] = []

        def made() -> bool:
            deployment = self._deployment(name)
            status = deployment.get("status", {})
            failures = [one for one in status.get("conditions", []) if one["type"] == "ReplicaFailure"]
            refused[:] = [f"{one['reason']}: {one['message']}" for one in failures if one["status"] == "True"]
            seen = status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
            return bool(seen and status.get("updatedReplicas", 0) >= deployment["spec"]["replicas"])

        try:
            wait_until(f"the pods of {name}", made, CREATED_S)
        except NotInTime as late:
            raise NotStartable(f"{name}: its pods are not made: {', '.join(refused) or late}") from late

    def _deployment(self, name: str) -> dict[str, Any]:
        try:
            return dict(self._get("apis/apps/v1", f"deployments/{name}"))
        except ApiFailure as failed:
            raise NotStartable(f"Deployment {self._namespace}/{name} cannot be read: {failed}") from failed

    def _get(self, group: str, path: str) -> Any:
        return self._plane.request("GET", f"/{group}/namespaces/{self._namespace}/{path}")


def without_service(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without the Service of webhooks: API servers of tests resolve no Services."""
    return [one for one in arguments if one.partition("=")[0] not in {"--webhook-service-name", "--webhook-url"}]


def readiness(container: Mapping[str, Any], ports: Mapping[int, int], process: str) -> str:
    """Return the address that the readiness probe asks, with the port of this machine."""
    asked = container.get("readinessProbe", {}).get("httpGet")
    if asked is None:
        raise NotStartable(f"{process}: it has no readinessProbe with httpGet")
    named = {one.get("name"): one["containerPort"] for one in container.get("ports", [])}
    port = named.get(asked["port"], asked["port"])
    if port not in ports:
        raise NotStartable(f"{process}: the readiness probe asks port {asked['port']}; it listens on {sorted(ports)}")
    return f"{asked.get('scheme', 'HTTP').lower()}://{LOOPBACK}:{ports[port]}{asked['path']}"
