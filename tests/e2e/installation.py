"""What an installation of `manifests/` looks like on an API server, and the job that shows whether it works."""

from __future__ import annotations

from typing import Any

import yaml

from tests.controlplane.install import ALWAYS_CONFIGURED
from tests.controlplane.waiting import wait_until
from tests.e2e.commands import REPOSITORY
from tests.e2e.control_plane import ControlPlane

QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
COMPLETED_S = 60.0

Obj = dict[str, Any]


def configurations(plane: ControlPlane) -> list[Obj]:
    """Return the webhook configurations on the API server."""
    return [one for kind in ("mutating", "validating") for one in plane.request("GET", WEBHOOKS.format(kind))["items"]]


def queues(plane: ControlPlane) -> dict[str, str]:
    """Return the state of each queue."""
    return {one["metadata"]["name"]: one.get("status", {}).get("state", "") for one in queue_items(plane)}


def queue_items(plane: ControlPlane) -> list[Obj]:
    return list(plane.request("GET", QUEUES)["items"])


def phase(plane: ControlPlane, name: str = "hello") -> str:
    return str(plane.request("GET", f"{JOBS}/{name}").get("status", {}).get("state", {}).get("phase", ""))


def wait_open(plane: ControlPlane, timeout: float = 30.0) -> None:
    """Wait until both queues are open: from then on a job is accepted."""
    wait_until("open queues", lambda: queues(plane) == {"root": "Open", "default": "Open"}, timeout)


def apply_hello(plane: ControlPlane) -> None:
    plane.kubectl("apply", "-f", str(REPOSITORY / "examples" / "hello.yaml"))


def wait_completed(plane: ControlPlane, name: str = "hello") -> None:
    wait_until(f"job {name} completes", lambda: phase(plane, name) == "Completed", COMPLETED_S)


def versions(plane: ControlPlane, *arguments: str) -> dict[str, str]:
    """Return the resourceVersion of every object of a kustomization."""
    listed = plane.kubectl("get", *arguments, "-o", "json").stdout
    items = yaml.safe_load(listed)["items"]
    return {f"{one['kind']}/{one['metadata']['name']}": one["metadata"]["resourceVersion"] for one in items}


def nodes_of(plane: ControlPlane, app: str) -> set[str]:
    """Return the nodes of the pods of one program."""
    pods = plane.request("GET", "/api/v1/namespaces/volcano-system/pods")["items"]
    return {one["spec"]["nodeName"] for one in pods if one["metadata"]["labels"]["app"] == app}


def changed(said: str) -> list[str]:
    """Return the lines of `kubectl apply` about objects that it changed."""
    lines = [line for line in said.splitlines() if not line.endswith("unchanged")]
    return [line for line in lines if not line.startswith(ALWAYS_CONFIGURED)]
