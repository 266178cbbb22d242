"""Jobs as users write them, for tests on a real API server: tasks whose containers run a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.scripted_kubelet import SELECTOR

BATCH = "batch.volcano.sh/v1alpha1"
FOR_EVER = "sleep infinity"
BUS = "bus.volcano.sh/v1alpha1"
Policy = dict[str, Any]


def from_annotation(name: str, key: str) -> dict[str, Any]:
    """Return a variable with the value of an annotation of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}}


VARIABLES = [
    from_annotation("RETRY", "volcano.sh/job-retry-count"),
    from_annotation("VERSION", "volcano.sh/job-version"),
    from_annotation("INDEX", "volcano.sh/task-index"),
]
"""Variables of every container: how often the job was restarted, all its pods killed, and which replica this is."""


def container(script: str, name: str = "main", **more: Any) -> dict[str, Any]:
    """Return a container that runs a script of `container_script`."""
    return {
        "name": name,
        "image": "busybox",
        "command": ["sh", "-c", script],
        "env": list(VARIABLES),
        "resources": {"requests": {"cpu": "10m"}},
        **more,
    }


def template(
    script: str = FOR_EVER,
    *,
    restart: str = "Never",
    init: str | None = None,
    annotations: Mapping[str, str] | None = None,
    selector: Mapping[str, str] | None = None,
    cpu: str = "10m",
    containers: Sequence[Mapping[str, Any]] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod template; `selector` adds to the nodes that are selected, `spec` to the spec of the pod."""
    main = container(script, resources={"requests": {"cpu": cpu}})
    if init is not None:
        spec["initContainers"] = [container(init, "first")]
    return {
        "metadata": {"annotations": dict(annotations or {})},
        "spec": {
            "restartPolicy": restart,
            "nodeSelector": {**SELECTOR, **(selector or {})},
            "containers": [main] if containers is None else list(containers),
            "terminationGracePeriodSeconds": 30,
            **spec,
        },
    }


def task(name: str, replicas: int, pods: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a task; `pods` is its template."""
    return {"name": name, "replicas": replicas, "template": template() if pods is None else pods, **more}


def on(event: str | Sequence[str] | int, action: str, timeout: str | None = None) -> Policy:
    """Return a policy for an event, a list of events or an exit code."""
    found: Policy = {"action": action}
    if isinstance(event, int):
        found["exitCode"] = event
    elif isinstance(event, str):
        found["event"] = event
    else:
        found["events"] = list(event)
    if timeout is not None:
        found["timeout"] = timeout
    return found


def vcjob(name: str, tasks: Sequence[Mapping[str, Any]], **spec: Any) -> dict[str, Any]:
    """Return a job for our scheduler; without `minAvailable`, all its pods are needed."""
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": sum(each["replicas"] for each in tasks),
            "tasks": list(tasks),
            **spec,
        },
    }


def command(action: str, kind: str, api_version: str, name: str, uid: str) -> dict[str, Any]:
    """Return a Command for an object."""
    return {
        "apiVersion": BUS,
        "kind": "Command",
        "metadata": {"generateName": f"{name}-"},
        "target": {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid},
        "action": action,
    }
