"""Volcano's own objects on an API server, as its Helm chart leaves them; its programs themselves are nowhere.

The pods of the Deployments never start: what stands on the API server is all that matters.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.cluster import KubectlFailed
from tests.controlplane.install import wait_established
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.migration.volcano_install import SCHEDULER_CONF, Release

__all__ = ["NAMESPACE", "SCHEDULER_CONF", "install", "install_webhooks", "release"]

Obj = dict[str, Any]

NAMESPACE = "volcano-system"
_NOT_OF_THE_RELEASE = ("Namespace", "Queue")


def release() -> list[Obj]:
    """Return what `helm get manifest` shows of Volcano's release: the issuer of the webhooks comes later."""
    found = [one for one in Release().objects() if one["kind"] not in _NOT_OF_THE_RELEASE]
    for one in found:
        for hook in one.get("webhooks", ()):
            del hook["clientConfig"]["caBundle"]
    return found


def install(plane: ControlPlane, folder: Path) -> None:
    """Create everything but the webhooks, as Helm does: without the annotation of `kubectl apply`."""
    objects = Release().objects()
    _create(plane, folder, [one for one in objects if one["kind"] == "CustomResourceDefinition"])

    def established() -> bool:
        wait_established(plane.cluster)
        return True

    wait_until("Volcano's definitions", established, 30.0, tolerate=(KubectlFailed,))  # new ones have no conditions
    plane.kubectl("create", "namespace", NAMESPACE)
    secret = {"tls.key": "key of Volcano", "tls.crt": "certificate of Volcano", "ca.crt": "issuer of Volcano"}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in secret.items()}
    meta = {"name": "volcano-admission-secret", "namespace": NAMESPACE}
    rest = [one for one in release() if one["kind"] != "CustomResourceDefinition" and "webhooks" not in one]
    _create(plane, folder, [{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}, *rest])


def install_webhooks(plane: ControlPlane, folder: Path) -> None:
    """Create the webhook configurations, with the issuer that Volcano's program writes into them."""
    _create(plane, folder, [one for one in Release().objects() if "webhooks" in one])


def _create(plane: ControlPlane, folder: Path, objects: list[Obj]) -> None:
    path = folder / "to-create.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    plane.kubectl("create", "--field-manager=helm", "-f", str(path))
