"""Nodes without machines: Node objects that kwok makes Ready."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.controlplane.cluster import CONNECTIONS, Cluster
from tests.controlplane.rest import ApiFailure
from volcano_py.testing import a_node, manifest

NODES = "/api/v1/nodes"
NOT_READY_TAINT = "node.kubernetes.io/not-ready"


class NodesNotReady(Exception):
    """Created nodes did not become Ready and free of the not-ready taint in time."""


def node_object(
    name: str,
    *,
    cpu: str | int = 4,
    memory: str = "16Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    extended: Mapping[str, str | int] | None = None,
    taints: Sequence[str] = (),
    ready: bool = False,
) -> dict[str, Any]:
    """Return a Node; with `ready` its status already says Ready, for control planes without kwok."""
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **(labels or {})}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return manifest(
        a_node(name, cpu=cpu, memory=memory, pods=pods, labels=labels, taints=taints, **(extended or {})),
        metadata={"annotations": {"kwok.x-k8s.io/node": "fake"}},  # a borrowed cluster's kwok may select by it
        status={"conditions": conditions} if ready else {},
    )


def create_nodes(cluster: Cluster, nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Create these nodes over several connections and return their names."""
    return [node["metadata"]["name"] for node in cluster.create_all(NODES, nodes)]


def wait_nodes_ready(cluster: Cluster, names: Iterable[str], timeout: float = 60.0) -> None:
    """Wait until every named node is Ready and has no not-ready taint."""
    wanted = set(names)
    deadline = time.monotonic() + timeout
    while wanted:
        listed = cluster.request("GET", f"{NODES}?resourceVersion=0")["items"]
        wanted -= {node["metadata"]["name"] for node in listed if _is_ready(node)}
        if wanted and time.monotonic() >= deadline:
            raise NodesNotReady(
                f"{len(wanted)} nodes, for example {min(wanted)}, are not Ready and untainted after {timeout:g} s:"
                " is kwok running (on a borrowed cluster: for nodes annotated kwok.x-k8s.io/node=fake)?"
            )
        if wanted:
            # a list of thousands of nodes costs the server more than the nodes themselves, so poll rarely
            time.sleep(max(0.05, len(listed) / 2000))


def delete_nodes(cluster: Cluster, names: Sequence[str]) -> None:
    """Delete these nodes; nodes that are already gone are ignored."""

    def delete(name: str) -> None:
        try:
            cluster.request("DELETE", f"{NODES}/{name}", {"gracePeriodSeconds": 0})
        except ApiFailure as refused:
            if refused.code != 404:
                raise

    with ThreadPoolExecutor(min(CONNECTIONS, len(names) or 1)) as pool:
        list(pool.map(delete, names))


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node["status"].get("conditions", ())
    tainted = any(taint["key"] == NOT_READY_TAINT for taint in node["spec"].get("taints", ()))
    return not tainted and any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
