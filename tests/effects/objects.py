"""Pods and nodes on the embedded server, as plain JSON."""

from typing import Any

from volcano_py.apiserver import ApiServer
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef

JOB = JobKey("default", "gang")


def put_node(server: ApiServer, name: str) -> None:
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    server.create(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}
    )


def put_pod(server: ApiServer, name: str, **spec: Any) -> TaskRef:
    pod = server.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulerName": "volcano", "containers": [{"name": "main", "image": "busybox"}], **spec},
        }
    )
    return TaskRef("default", name, pod["metadata"]["uid"])


def put_group(server: ApiServer, name: str, status: dict[str, Any] | None = None) -> str:
    """Create a PodGroup and return its uid."""
    group = server.create(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minMember": 1, "queue": "default"},
            **({"status": status} if status is not None else {}),
        }
    )
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
