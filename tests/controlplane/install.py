"""Install `manifests/` into a cluster, as a user does with `kubectl apply -k`."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.waiting import wait_until
from volcano_py.local.manifests import definitions

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
NAMESPACE = "volcano-system"
SERVICE_ACCOUNT = "volcano-scheduler"
ALWAYS_CONFIGURED = "poddisruptionbudget.policy/"
"""What kubectl says of these when it applies them again: it sends their selector even if it is the same."""
WEBHOOK_CONFIGURATIONS = "(Mutating|Validating)WebhookConfiguration"


@dataclass(frozen=True)
class Installed:
    """The installed manifests: the ServiceAccount under which the scheduler runs."""

    namespace: str = NAMESPACE
    service_account: str = SERVICE_ACCOUNT


def install(cluster: Cluster) -> Installed:
    """Apply everything in `manifests/` but webhook configurations, and wait until its custom resources are served.

    No program answers reviews until a test starts one, and without answers nobody could write jobs and queues.
    """
    with tempfile.TemporaryDirectory() as folder:
        write_kustomization(Path(folder), without=WEBHOOK_CONFIGURATIONS)
        cluster.kubectl("apply", "-k", folder)
    wait_established(cluster)
    return Installed()


def write_kustomization(
    folder: Path,
    resources: Sequence[str | Path] = (MANIFESTS,),
    components: Sequence[str] = (),
    without: str = "",
    **more: Any,
) -> None:
    """Write a kustomization like one of a user, in a folder beside the checkout; `without` is a pattern of kinds."""

    def path(one: str | Path) -> str:  # kustomize takes no absolute paths
        return os.path.relpath(one, folder.resolve()) if Path(one).is_absolute() else str(one)

    document: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [path(one) for one in resources],
        "components": [path(MANIFESTS / "components" / one) for one in components],
        **more,
    }
    if without:
        nothing = {"$patch": "delete", "apiVersion": "all", "kind": "All", "metadata": {"name": "all"}}
        document["patches"] = [{"target": {"kind": without}, "patch": yaml.safe_dump(nothing)}]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))


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
    write_kustomization(overlay, [MANIFESTS / "rbac"], namespace=names.namespace, nameSuffix=f"-{suffix}")
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
