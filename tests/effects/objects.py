"""Pods, nodes and PodGroups on the embedded server."""

from typing import Any

from volcano_py.apiserver import ApiServer
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.testing import a_group, a_node, a_pod, manifest

JOB = JobKey("default", "gang")


def put_node(server: ApiServer, name: str) -> None:
    server.create(manifest(a_node(name, cpu=64, memory="256Gi", pods=1000)))


def put_pod(server: ApiServer, name: str, **spec: Any) -> TaskRef:
    pod = server.create(manifest(a_pod(name), spec=spec))
    return TaskRef("default", name, pod["metadata"]["uid"])


def put_group(server: ApiServer, name: str, status: dict[str, Any] | None = None) -> str:
    """Create a PodGroup and return its uid."""
    group = server.create(manifest(a_group(name), **({"status": status} if status is not None else {})))
    uid: str = group["metadata"]["uid"]
    return uid


def binds(server: ApiServer, count: int, node: str = "n1") -> list[Bind]:
    """Create pods and return binds of all of them to one node."""
    return [Bind(put_pod(server, f"p{number}"), node, JOB) for number in range(count)]


def node_of(server: ApiServer, name: str) -> str:
    pod = server.get("pods", name, "default")
    assert pod is not None
    node: str = pod["spec"].get("nodeName", "")
    return node
