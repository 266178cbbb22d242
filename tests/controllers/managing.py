"""A controller manager on an embedded API server, both in this process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from volcano_py.apiserver import ApiServer
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import ManagerOptions
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.reflector import ReflectorOptions
from volcano_py.runtime.signals import Shutdown
from volcano_py.testing import a_group, a_pod, a_queue, manifest

GROUPS = "podgroups.scheduling.volcano.sh"
QUEUES = "queues.scheduling.volcano.sh"
REPLICA_SETS = "replicasets.apps"
GROUP_NAME = "scheduling.k8s.io/group-name"


@asynccontextmanager
async def controllers(url: str, code: int = 0, **options: Any) -> AsyncIterator[ControllerManager]:
    """Start a controller manager and wait until it is ready; it must end in order, or by itself with this code."""
    chosen: dict[str, Any] = {
        "metrics_address": None,
        "health_address": None,
        "reflectors": ReflectorOptions(absent_retry_s=0.1),
        "count_after_s": 0.05,
        **options,
    }
    manager, shutdown = ControllerManager(Credentials(url), ManagerOptions(**chosen)), Shutdown()
    running = asyncio.create_task(manager.run(shutdown), name="manager")
    try:
        ready = asyncio.create_task(manager.ready.wait())
        await asyncio.wait([ready, running], timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert ready.done(), manager.not_ready()
        yield manager
        if not running.done():
            shutdown.request("end of test")
        async with asyncio.timeout(30):
            assert await running == code
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def put_pod(
    server: ApiServer,
    name: str,
    owner: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Create a pod of our scheduler, with an owner if one is given."""
    meta: dict[str, Any] = {} if labels is None else {"labels": labels}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        meta["ownerReferences"] = [
            {**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]},
        ]
    return server.create(manifest(a_pod(name, annotations=annotations, cpu="500m"), metadata=meta))


def pod_spec() -> dict[str, Any]:
    """Return the spec of the pods of `put_pod`."""
    spec: dict[str, Any] = manifest(a_pod(cpu="500m"))["spec"]
    return spec


def put_workload(server: ApiServer, kind: str, name: str, replicas: int = 1, **annotations: str) -> dict[str, Any]:
    """Create a workload whose pod template names our scheduler; no controller creates the pods."""
    labels = {"app": name}
    body: dict[str, Any] = {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {**pod_spec(), "restartPolicy": "Always"}},
        },
    }
    if kind in ("ReplicaSet", "StatefulSet"):
        body["spec"]["replicas"] = replicas
    return server.create(body)


def group_of(server: ApiServer, pod: str) -> str:
    """Return the group that a pod names, "" for none."""
    found = server.get("pods", pod, "default")
    assert found is not None
    return str(found["metadata"].get("annotations", {}).get(GROUP_NAME, ""))


def group(server: ApiServer, owner: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the PodGroup of an owner or bare pod."""
    return server.get(GROUPS, f"podgroup-{owner['metadata']['uid']}", "default")


def put_group(server: ApiServer, name: str, queue: str = "default", phase: str = "Pending") -> None:
    """Create a PodGroup in a phase."""
    server.create(manifest(a_group(name, queue=queue), status={"phase": phase}))


def put_queue(server: ApiServer, name: str, **spec: Any) -> None:
    server.create(manifest(a_queue(name), spec=spec))


def status(server: ApiServer, queue: str) -> dict[str, Any]:
    """Return the status of a queue, {} if it has none or does not exist."""
    found = server.get(QUEUES, queue)
    return {} if found is None else dict(found.get("status", {}))


def state(server: ApiServer, queue: str) -> str:
    return str(status(server, queue).get("state", ""))
