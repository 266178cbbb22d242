"""How the servers of a control plane are started: their options, files and command lines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.audit import audit_log, audit_options
from tests.controlplane.binaries import Binaries
from tests.controlplane.certificates import Authority, token_key, write_secret
from tests.controlplane.cluster import Endpoint, certificate_user

APISERVER, ETCD, CONTROLLERS = "kube-apiserver", "etcd", "kube-controller-manager"
KWOK, SCHEDULER = "kwok", "kube-scheduler"

Argv = list[str | Path]


@dataclass(frozen=True)
class Options:
    """What to start and how; the defaults suit end-to-end tests."""

    controller_manager: bool = True
    """Without it, ServiceAccounts are not made, nodes keep taints, garbage stays and namespaces are not emptied."""
    kwok: bool = True
    """Without it nodes and pods stay as their creator left them."""
    scheduler: bool = False
    """kube-scheduler, for tests in which pods of the default scheduler matter."""
    fast: bool = False
    """Pods start and are removed without the one-second delay that makes their phases visible."""
    heavy_load: bool = False
    """For benchmarks: more requests in flight, and no node leases (a thousand nodes would renew 100 a second)."""
    taint_new_nodes: bool = True
    """Whether a new node is tainted until it is Ready, as on every real cluster."""
    apiserver_args: tuple[str, ...] = ()
    controller_manager_args: tuple[str, ...] = ()
    kwok_args: tuple[str, ...] = ()

    def programs(self) -> list[str]:
        """Return the names of the programs that these options start or use."""
        optional = {CONTROLLERS: self.controller_manager, KWOK: self.kwok, SCHEDULER: self.scheduler}
        return [ETCD, APISERVER, "kubectl", *(name for name, wanted in optional.items() if wanted)]

    def stages(self, folder: Path) -> list[Path]:
        """Return the stage files for kwok: with `fast`, NAME-fast.yaml stands in for NAME.yaml."""
        files = []
        for plain in sorted(folder.glob("*.yaml")):
            if plain.stem.endswith("-fast"):
                continue
            quick = plain.with_name(f"{plain.stem}-fast.yaml")
            files.append(quick if self.fast and quick.exists() else plain)
        return files

    def disabled_admission(self) -> list[str]:
        """Return the admission plugins to switch off."""
        if not self.controller_manager:
            # Both need a controller: one makes the default ServiceAccount, one removes the taint.
            return ["ServiceAccount", "TaintNodesByCondition"]
        return [] if self.taint_new_nodes else ["TaintNodesByCondition"]


class Servers:
    """The command lines of one control plane, with fixed ports, certificates and files."""

    def __init__(self, options: Options, binaries: Binaries, folder: Path, ports: list[int]) -> None:
        self._options = options
        self._binaries = binaries
        self._folder = folder
        secure_port, etcd_client, etcd_peer = ports
        self._secure_port = secure_port
        self._etcd_client = f"http://127.0.0.1:{etcd_client}"
        self._etcd_peer = f"http://127.0.0.1:{etcd_peer}"
        self._authority = Authority()
        self.ca = write_secret(folder / "ca.crt", self._authority.pem)
        server = self._authority.server()
        self._server_certificate = write_secret(folder / "server.crt", server.certificate)
        self._server_key = write_secret(folder / "server.key", server.key)
        self._token_key = write_secret(folder / "tokens.key", token_key())
        self.audit_log = audit_log(secure_port)
        self.endpoint = Endpoint.of(f"https://127.0.0.1:{secure_port}", self._authority.pem)
        self.admin = self._authority.client("volcano-py-admin", "system:masters")

    def kubeconfig(self, user: str, *groups: str) -> Path:
        """Write a kubeconfig for a user of these groups and return its path."""
        pair = self._authority.client(user, *groups)
        return write_secret(
            self._folder / f"{user.replace(':', '-')}.kubeconfig",
            self.endpoint.kubeconfig(certificate_user(pair)),
        )

    def etcd(self) -> Argv:
        """Return the command line of etcd."""
        return [
            self._binaries[ETCD],
            "--name=tests",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_client}",
            f"--advertise-client-urls={self._etcd_client}",
            f"--listen-peer-urls={self._etcd_peer}",
            f"--initial-advertise-peer-urls={self._etcd_peer}",
            f"--initial-cluster=tests={self._etcd_peer}",
            "--unsafe-no-fsync",  # the data need not survive a power failure
            "--log-level=warn",
        ]

    def apiserver(self) -> Argv:
        """Return the command line of kube-apiserver; a restart uses it again."""
        argv: Argv = [
            self._binaries[APISERVER],
            f"--etcd-servers={self._etcd_client}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._secure_port}",
            f"--tls-cert-file={self._server_certificate}",
            f"--tls-private-key-file={self._server_key}",
            f"--client-ca-file={self.ca}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._token_key}",
            f"--service-account-signing-key-file={self._token_key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            # A loopback address is refused as an endpoint; without this the server logs an error every ten seconds.
            "--endpoint-reconciler-type=none",
            # With this option a graceful stop ends watches soon; without it, the stop waits a minute for them.
            "--shutdown-watch-termination-grace-period=2s",
        ]
        if self._options.heavy_load:
            argv += ["--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000"]
        else:
            # Some clusters have this plugin: an owner that blocks deletion needs rights of its own.
            argv.append("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
        if self.audit_log is not None:
            argv += audit_options(self.audit_log, self._folder / "audit-policy.yaml")
        if disabled := self._options.disabled_admission():
            argv.append(f"--disable-admission-plugins={','.join(disabled)}")
        return [*argv, *self._options.apiserver_args]

    def controller_manager(self) -> Argv:
        """Return the command line of kube-controller-manager."""
        argv: Argv = [
            self._binaries[CONTROLLERS],
            f"--kubeconfig={self.kubeconfig('system:kube-controller-manager')}",
            "--secure-port=0",
            "--leader-elect=false",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={self._token_key}",
            f"--root-ca-file={self.ca}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]
        if self._options.heavy_load:
            argv.append("--node-monitor-grace-period=24h")  # node leases are not renewed
        return [*argv, *self._options.controller_manager_args]

    def kwok(self, stages: Path) -> Argv:
        """Return the command line of kwok, with the stages of a folder."""
        argv: Argv = [
            self._binaries[KWOK],
            f"--kubeconfig={self.kubeconfig('kwok', 'system:masters')}",
            "--manage-all-nodes=true",
            f"--node-lease-duration-seconds={0 if self._options.heavy_load else 40}",
            "--v=WARN",
        ]
        for stage in self._options.stages(stages):
            argv += ["--config", stage]
        return [*argv, *self._options.kwok_args]

    def scheduler(self) -> Argv:
        """Return the command line of kube-scheduler."""
        return [
            self._binaries[SCHEDULER],
            f"--kubeconfig={self.kubeconfig('system:kube-scheduler')}",
            "--secure-port=0",
            "--leader-elect=false",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
        ]
