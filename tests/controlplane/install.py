"""Install `manifests/` into a cluster, as a user does with `kubectl apply -k`."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.waiting import wait_until
from volcano_py.local.manifests import definitions

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
NAMESPACE = "volcano-system"
SERVICE_ACCOUNT = "volcano-scheduler"


@dataclass(frozen=True)
class Installed:
    """The installed manifests: the ServiceAccount under which the scheduler runs."""

    namespace: str = NAMESPACE
    service_account: str = SERVICE_ACCOUNT


def install(cluster: Cluster) -> Installed:
    """Apply everything in `manifests/` and wait until its custom resources are served."""
    cluster.kubectl("apply", "-k", str(MANIFESTS))
    wait_established(cluster)
    return Installed()


def wait_established(cluster: Cluster) -> None:
    """Wait until the API server serves the custom resources of `manifests/crds`, and lists them for kubectl."""
    names = {definition["metadata"]["name"] for definition in definitions()}
    crds = [f"crd/{name}" for name in sorted(names)]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *crds)

    def listed() -> bool:  # some seconds later than they are served
        return names <= set(cluster.kubectl("api-resources", "--output=name").stdout.split())

    wait_until("the custom resources in discovery", listed, 30.0)


@contextlib.contextmanager
def install_beside(cluster: Cluster, folder: Path) -> Iterator[Installed]:
    """Install into a borrowed cluster under names of our own, and remove everything afterwards.

    Existing custom resource definitions are kept; all other names get a suffix, so that an installed scheduler keeps
    its own objects.
    """
    suffix = secrets.token_hex(3)
    names = Installed(f"{NAMESPACE}-{suffix}", f"{SERVICE_ACCOUNT}-{suffix}")
    overlay = folder.resolve() / f"install-{suffix}"
    overlay.mkdir()
    kustomization = {
        "resources": [os.path.relpath(MANIFESTS / "rbac", overlay)],  # kustomize takes no absolute paths
        "namespace": names.namespace,
        "nameSuffix": f"-{suffix}",
    }
    (overlay / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    with contextlib.ExitStack() as undo:

        def undo_with(*arguments: str) -> None:
            undo.callback(cluster.kubectl, "delete", "--ignore-not-found", "--wait=false", *arguments)

        for crd in sorted((MANIFESTS / "crds").glob("*.yaml")):
            group, _, plural = crd.stem.partition("_")
            name = f"{plural}.{group}"
            if not cluster.kubectl("get", "crd", name, "--ignore-not-found", "-oname").stdout:
                undo_with("-f", str(crd))
                cluster.kubectl("create", "-f", str(crd))
        undo_with("namespace", names.namespace)
        cluster.kubectl("create", "namespace", names.namespace)
        undo_with("-k", str(overlay))
        cluster.kubectl("apply", "-k", str(overlay))
        wait_established(cluster)
        yield names
