"""A real control plane for one test run: etcd, kube-apiserver, kube-controller-manager and kwok as child processes.

    with ControlPlane() as plane:
        plane.kubectl("get", "nodes")

Everything listens on loopback, keeps its data and logs in one temporary folder, and dies with the run.
`ControlPlane.borrow(kubeconfig)` gives the same view of a cluster that somebody else runs.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.controlplane.binaries import Binaries, MissingPrograms, find_binaries
from tests.controlplane.cluster import Cluster, client_ssl_context
from tests.controlplane.ports import free_ports
from tests.controlplane.processes import ProcessEnded, Processes
from tests.controlplane.rest import ApiFailure, Http
from tests.controlplane.servers import APISERVER, CONTROLLERS, ETCD, KWOK, SCHEDULER, Options, Servers
from tests.controlplane.waiting import wait_until

__all__ = ["ControlPlane", "NotOurs", "Options"]

STAGES = Path(__file__).with_name("stages")
START_S = 60.0
STOP_S = 75.0  # the API server finishes requests in flight, which may take a minute
ATTEMPTS = 3  # another program may take a free port before the server binds it
NOT_YET = (ApiFailure, OSError)


class NotOurs(Exception):
    """The cluster is borrowed, so this run must not stop or restart it."""


class ControlPlane:
    """An API server, with etcd, controllers and kwok.

    All calls are synchronous and may be made from any thread.
    """

    def __init__(self, options: Options | None = None, binaries: Binaries | None = None) -> None:
        self.options = options or Options()
        self.binaries = binaries or find_binaries()
        self._processes: Processes | None = None
        self._cluster: Cluster | None = None
        self._servers: Servers | None = None  # stays None for a borrowed cluster

    @classmethod
    def borrow(cls, kubeconfig: Path) -> ControlPlane:
        """Return a view of the cluster that a kubeconfig names; the cluster is never stopped."""
        plane = cls()
        plane._processes = processes = Processes(prefix="volcano-py-e2e-")
        try:
            plane._cluster = _reach(kubeconfig, plane.binaries, processes)
        except BaseException:
            plane.stop()
            raise
        return plane

    def start(self) -> ControlPlane:
        """Start everything; return once the API server is ready and its controllers work."""
        self.binaries.require(self.options.programs())
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._start_once()
            except ProcessEnded as ended:
                self.stop()
                if "address already in use" not in str(ended) or attempt == ATTEMPTS:
                    raise
            except BaseException:
                self.stop()
                raise
            else:
                break
        return self

    def stop(self) -> None:
        """Stop everything, remove the folder, and raise LeftBehind if anything is still there."""
        cluster, self._cluster = self._cluster, None
        processes, self._processes = self._processes, None
        if cluster is not None:
            cluster.http.close()
        if processes is None:
            return
        for name in processes.running:  # no state here needs a slow, graceful stop
            processes.kill(name)
        processes.close()

    def __enter__(self) -> ControlPlane:
        """Start, for use in a `with` statement."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    @property
    def owned(self) -> bool:
        """Whether this run started the API server and may therefore restart or kill it."""
        return self._servers is not None

    @property
    def cluster(self) -> Cluster:
        """The administrator's view of the running API server."""
        if self._cluster is None:
            raise RuntimeError("the control plane is not running: call start() first")
        return self._cluster

    @property
    def processes(self) -> Processes:
        """The child processes and their folder; processes that tests start here are cleaned up as well."""
        if self._processes is None:
            raise RuntimeError("the control plane is not running: call start() first")
        return self._processes

    @property
    def url(self) -> str:
        """The base URL for the administrator; for a borrowed cluster, a loopback proxy that holds the credentials."""
        return self.cluster.url

    @property
    def server_url(self) -> str:
        """The base URL of the API server itself, for callers with credentials of their own."""
        return self.cluster.endpoint.url

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.cluster.kubeconfig

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """A context that trusts the API server and presents the administrator's certificate."""
        return self.cluster.ssl_context

    def ssl_context_without_certificate(self) -> ssl.SSLContext:
        """Return a context that trusts the API server and presents no certificate, for callers with a token."""
        return ssl.create_default_context(cadata=self.ca_pem.decode() or None)

    @property
    def ca_pem(self) -> bytes:
        """The certificate of the authority that signed the API server's."""
        return self.cluster.endpoint.ca_pem

    @property
    def audit_log(self) -> Path | None:
        """The audit log of our own API server; None if it writes none."""
        return self._servers.audit_log if self._servers is not None else None

    def request(self, method: str, path: str, body: object = None, **how: Any) -> Any:
        """Send a request as the administrator; see `Http.request`."""
        return self.cluster.request(method, path, body, **how)

    def kubectl(self, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; see `Cluster.kubectl`."""
        return self.cluster.kubectl(*arguments, **how)

    def token_for(self, namespace: str, serviceaccount: str) -> str:
        """Return a new token of a ServiceAccount."""
        return self.cluster.token_for(namespace, serviceaccount)

    def kubeconfig_for(self, namespace: str, serviceaccount: str) -> Path:
        """Write a kubeconfig with the rights of a ServiceAccount and return its path."""
        return self.cluster.kubeconfig_for(namespace, serviceaccount)

    def restart_apiserver(self) -> None:
        """Stop the API server gracefully, start it on the same port, and wait until it is ready."""
        self._ours()
        # It keeps its port while it finishes requests; a new server cannot bind the port before that.
        self.processes.stop(APISERVER, STOP_S)
        self.start_apiserver()

    def kill_apiserver(self) -> None:
        """Kill the API server; `start_apiserver` starts it again."""
        self._ours()
        self.processes.kill(APISERVER)

    def start_apiserver(self) -> None:
        """Start the API server on its port, with its data, and wait until it is ready."""
        servers = self._ours()
        self.cluster.http.close()
        self.processes.start(APISERVER, servers.apiserver())
        self._wait_ready()

    def _ours(self) -> Servers:
        if self._servers is None:
            raise NotOurs(f"{self.url} was not started by this run, so it is not stopped or restarted")
        return self._servers

    def _start_once(self) -> None:
        self._processes = processes = Processes(prefix="volcano-py-e2e-")
        self._servers = servers = Servers(self.options, self.binaries, processes.folder, free_ports(3))
        processes.start(ETCD, servers.etcd())
        processes.start(APISERVER, servers.apiserver())
        context = client_ssl_context(servers.endpoint.ca_pem, servers.admin, processes.folder)
        self._cluster = Cluster(
            endpoint=servers.endpoint,
            http=Http(servers.endpoint.url, context),
            ssl_context=context,
            kubeconfig=servers.kubeconfig("admin", "system:masters"),
            kubectl=self.binaries["kubectl"],
            folder=processes.folder,
        )
        self._wait_ready()
        if self.options.controller_manager:
            processes.start(CONTROLLERS, servers.controller_manager())
        if self.options.kwok:
            processes.start(KWOK, servers.kwok(STAGES))
        if self.options.scheduler:
            processes.start(SCHEDULER, servers.scheduler())
        if self.options.controller_manager:
            self._wait_until_controllers_work()
        for name in processes.running:
            processes.check_alive(name)

    def _wait_ready(self) -> None:
        def ready() -> bool:
            self.processes.check_alive(ETCD)
            self.processes.check_alive(APISERVER)
            return bool(self.request("GET", "/readyz") == "ok")

        wait_until(f"{self.url}/readyz", ready, START_S, tolerate=NOT_YET)

    def _wait_until_controllers_work(self) -> None:
        def made() -> bool:
            self.processes.check_alive(CONTROLLERS)
            return bool(self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default"))

        wait_until("the default ServiceAccount", made, START_S, tolerate=NOT_YET)


def _reach(kubeconfig: Path, binaries: Binaries, processes: Processes) -> Cluster:
    """Reach a cluster through `kubectl proxy`, which understands every way a kubeconfig can hold credentials."""
    kubectl = binaries.paths.get("kubectl") or shutil.which("kubectl")
    if kubectl is None:
        raise MissingPrograms(["kubectl"])
    (port,) = free_ports(1)
    processes.start(
        "kubectl-proxy",
        [kubectl, f"--kubeconfig={kubeconfig}", "proxy", "--address=127.0.0.1", f"--port={port}"],
    )
    cluster = Cluster.borrowed(f"http://127.0.0.1:{port}", kubeconfig, Path(kubectl), processes.folder)

    def answers() -> bool:
        processes.check_alive("kubectl-proxy")
        return bool(cluster.request("GET", "/readyz") == "ok")

    wait_until(f"the cluster of {kubeconfig}", answers, START_S, tolerate=NOT_YET)
    return cluster
