"""Access to a running API server as its administrator: requests, kubectl, and credentials for ServiceAccounts."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.certificates import Pair, write_secret
from tests.controlplane.rest import Http

CONNECTIONS = 8
TOKEN_LIFETIME_S = 4 * 3600


class KubectlFailed(Exception):
    """A kubectl command ended with an error; the message holds what it printed."""


@dataclass(frozen=True)
class Endpoint:
    """The address and CA of an API server, as in a kubeconfig's `cluster` entry."""

    entry: Mapping[str, Any]

    @property
    def url(self) -> str:
        """The base URL, without a slash at the end."""
        return str(self.entry["server"]).rstrip("/")

    @property
    def ca_pem(self) -> bytes:
        """The CA certificates of the server; empty to use the system's."""
        return base64.b64decode(self.entry.get("certificate-authority-data", ""))

    @classmethod
    def of(cls, url: str, ca_pem: bytes) -> Endpoint:
        """Describe a server whose certificate this authority signed."""
        return cls({"server": url, "certificate-authority-data": base64.b64encode(ca_pem).decode()})

    def kubeconfig(self, user: Mapping[str, Any], namespace: str = "default") -> bytes:
        """Return a kubeconfig with one context: this server, this user entry."""
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "tests",
                "clusters": [{"name": "tests", "cluster": dict(self.entry)}],
                "users": [{"name": "tests", "user": dict(user)}],
                "contexts": [
                    {"name": "tests", "context": {"cluster": "tests", "user": "tests", "namespace": namespace}}
                ],
            }
        ).encode()


def certificate_user(pair: Pair) -> dict[str, str]:
    """Return the `user` entry of a kubeconfig for a client certificate."""
    return {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }


def client_ssl_context(ca_pem: bytes, pair: Pair, folder: Path) -> ssl.SSLContext:
    """Return a context that trusts this authority and presents this client certificate.

    The ssl module takes a client certificate from a file only, so it passes through `folder`.
    """
    context = ssl.create_default_context(cadata=ca_pem.decode())
    path = write_secret(folder / "admin.pem", pair.certificate + pair.key)
    context.load_cert_chain(path)
    return context


class Cluster:
    """One API server as its administrator sees it.

    Everything here is synchronous and may be called from any thread; asynchronous tests use `asyncio.to_thread` where
    a call may take long.
    """

    def __init__(
        self,
        *,
        endpoint: Endpoint,
        http: Http,
        ssl_context: ssl.SSLContext,
        kubeconfig: Path,
        kubectl: Path,
        folder: Path,
        url: str = "",
    ) -> None:
        self.endpoint = endpoint
        self.http = http
        self.url = url or endpoint.url
        self.ssl_context = ssl_context
        self.kubeconfig = kubeconfig
        self._kubectl = kubectl
        self._folder = folder

    @classmethod
    def borrowed(cls, proxy: str, kubeconfig: Path, kubectl: Path, folder: Path) -> Cluster:
        """Describe the cluster of a kubeconfig, which `kubectl proxy` serves at `proxy`."""
        shown = subprocess.run(
            [str(kubectl), f"--kubeconfig={kubeconfig}", "config", "view", "--raw", "--minify", "--flatten", "-ojson"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        clusters = json.loads(shown.stdout)["clusters"] if shown.returncode == 0 else None
        if not clusters:
            raise KubectlFailed(f"{kubeconfig} names no cluster: {shown.stderr.strip() or 'no current context'}")
        context = ssl.create_default_context()
        return cls(
            endpoint=Endpoint(clusters[0]["cluster"]),
            http=Http(proxy, context),
            ssl_context=context,
            kubeconfig=kubeconfig,
            kubectl=kubectl,
            folder=folder,
            url=proxy,
        )

    def request(self, method: str, path: str, body: object = None, **how: Any) -> Any:
        """Send a request as the administrator and return the decoded answer; see `Http.request`."""
        return self.http.request(method, path, body, **how)

    def create_all(self, path: str, objects: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Create these objects at one path, over several connections, and return them in the same order."""
        with ThreadPoolExecutor(min(CONNECTIONS, len(objects) or 1)) as pool:
            return list(pool.map(lambda each: self.request("POST", path, each), objects))

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; raise KubectlFailed on an error unless `check` is false."""
        ran = subprocess.run(
            [str(self._kubectl), f"--cache-dir={self._folder / 'kubectl-cache'}", *arguments],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        if check and ran.returncode:
            raise KubectlFailed(
                f"kubectl {' '.join(arguments)} ended with {ran.returncode}: {ran.stderr or ran.stdout}"
            )
        return ran

    def token_for(self, namespace: str, serviceaccount: str) -> str:
        """Return a new token of a ServiceAccount, as a pod that runs under it would get."""
        answer = self.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{serviceaccount}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": TOKEN_LIFETIME_S},
            },
        )
        return str(answer["status"]["token"])

    def kubeconfig_for(self, namespace: str, serviceaccount: str) -> Path:
        """Write a kubeconfig for a ServiceAccount, with exactly its rights; return its path."""
        user = {"token": self.token_for(namespace, serviceaccount)}
        path = self._folder / f"kubeconfig-{namespace}-{serviceaccount}"
        return write_secret(path, self.endpoint.kubeconfig(user, namespace))
