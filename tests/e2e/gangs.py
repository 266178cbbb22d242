"""Gangs on a real API server: create them, read them, and end their pods as the programs inside would."""

from __future__ import annotations

import json
import secrets
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from tests.controlplane.cluster import Cluster
from volcano_py.api.quantity import parse_quantity
from volcano_py.testing import a_group, a_pod, manifest

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups"
PODS = "/api/v1/namespaces/{namespace}/pods"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Role:
    """A role: a number of equal pods of a gang."""

    name: str
    replicas: int
    requests: Mapping[str, str]


def pod_group(name: str, minimum: int, queue: str = "default", **spec: Any) -> dict[str, Any]:
    """Return a PodGroup; ``spec`` adds fields."""
    return manifest(a_group(name, namespace="", min_available=minimum, queue=queue), spec=spec)


def pods_of(group: str, roles: Sequence[Role], selector: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the pods of a gang; they run on nodes with these labels until a test ends them."""
    pods = [
        manifest(
            a_pod(f"{group}-{role.name}-{index}", namespace="", group=group, role=role.name, **role.requests),
            spec={"restartPolicy": "Never", "nodeSelector": dict(selector)},
        )
        for role in roles
        for index in range(role.replicas)
    ]
    for pod in pods:
        pod["spec"]["containers"][0]["command"] = ["train"]
    return pods


def _count_bound(watch: IO[bytes], bound: set[str], count: int) -> bool:
    """Note which pods a watch shows as bound; say whether they are enough, False if the watch ends before."""
    for line in watch:
        pod = json.loads(line)["object"]
        if pod.get("spec", {}).get("nodeName"):
            bound.add(pod["metadata"]["uid"])
        if len(bound) >= count:
            return True
    return False


class Gangs:
    """The gangs of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str, selector: Mapping[str, str]) -> None:
        self._cluster = cluster
        self.namespace = namespace
        self._groups = GROUPS.format(namespace=namespace)
        self._pods = PODS.format(namespace=namespace)
        self.selector = dict(selector)

    def create(self, name: str, minimum: int, *roles: Role) -> None:
        """Create one gang: its PodGroup first, then its pods."""
        self.create_groups({name: minimum})
        self.create_pods(pods_of(name, roles, self.selector))

    def create_groups(self, minimums: Mapping[str, int], queue: str = "default", **spec: Any) -> None:
        """Create PodGroups; ``spec`` adds fields to each."""
        groups = [pod_group(name, minimum, queue, **spec) for name, minimum in minimums.items()]
        self._cluster.create_all(self._groups, groups)

    def create_pods(self, pods: Sequence[Mapping[str, Any]]) -> None:
        """Create pods over several connections, in no particular order."""
        self._cluster.create_all(self._pods, pods)

    def make_pods(self, name: str, *roles: Role) -> list[dict[str, Any]]:
        """Return the pods of a gang without creating them."""
        return pods_of(name, roles, self.selector)

    def group(self, name: str) -> dict[str, Any]:
        """Return a PodGroup."""
        answer: dict[str, Any] = self._cluster.request("GET", f"{self._groups}/{name}")
        return answer

    def condition(self, name: str, type_: str) -> dict[str, Any]:
        """Return a condition of a PodGroup, {} if it has none of that type."""
        conditions = self.group(name).get("status", {}).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == type_), {})

    def pods(self) -> list[dict[str, Any]]:
        """Return all pods."""
        items: list[dict[str, Any]] = self._cluster.request("GET", self._pods)["items"]
        return items

    @contextmanager
    def once_bound(self, count: int, then: Callable[[], None], timeout: float = 20.0) -> Iterator[None]:
        """Call a function at the moment when `count` pods are bound, during the block or after it.

        It uses a watch: five hundred pods are bound within half a second, too fast for polling with lists.
        """
        url = f"{self._cluster.url}{self._pods}?watch=true"
        bound: set[str] = set()
        deadline = time.monotonic() + timeout

        def open_watch() -> IO[bytes]:
            opened: IO[bytes] = urllib.request.urlopen(url, timeout=timeout, context=self._cluster.ssl_context)
            return opened

        def count_bound(first: IO[bytes]) -> None:
            watch = first
            # The server may end a watch at any time; a new one begins with the pods as they are.
            while time.monotonic() < deadline:
                with watch:
                    if _count_bound(watch, bound, count):
                        then()
                        return
                watch = open_watch()
            watch.close()
            raise AssertionError(f"{len(bound)} of {count} pods are bound after {timeout:g} s")

        with ThreadPoolExecutor(1) as elsewhere:
            done = elsewhere.submit(count_bound, open_watch())
            yield
            done.result(timeout)

    def by_group(self) -> dict[str, list[dict[str, Any]]]:
        """Return pods by the gang they belong to."""
        found: dict[str, list[dict[str, Any]]] = {}
        for pod in self.pods():
            found.setdefault(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], []).append(pod)
        return found

    def bound(self) -> list[dict[str, Any]]:
        """Return the pods that have a node."""
        return [pod for pod in self.pods() if pod["spec"].get("nodeName")]

    def end(self, pods: Sequence[Mapping[str, Any]]) -> None:
        """End pods with phase Succeeded."""
        for pod in pods:
            self._cluster.request(
                "PATCH",
                f"{self._pods}/{pod['metadata']['name']}/status",
                {"status": {"phase": "Succeeded"}},
                content_type=MERGE,
            )

    def change_a_node(self) -> None:
        """Give one of the nodes on which these pods may run a label value that it has never had."""
        nodes = self._cluster.request("GET", "/api/v1/nodes")["items"]
        name = next(
            node["metadata"]["name"] for node in nodes if self.selector.items() <= node["metadata"]["labels"].items()
        )
        label = {"metadata": {"labels": {"e2e.volcano-py/changed": secrets.token_hex(4)}}}
        self._cluster.request("PATCH", f"/api/v1/nodes/{name}", label, content_type=MERGE)


def running(pod: Mapping[str, Any]) -> bool:
    """Say whether a pod runs."""
    return bool(pod["status"].get("phase") == "Running")


def overfull(cluster: Cluster) -> list[str]:
    """Return every node whose pods request more than it has, with the numbers.

    Pods in a terminating namespace of an earlier test do not count: their nodes may already be gone.
    """
    spaces = cluster.request("GET", "/api/v1/namespaces")["items"]
    going = {space["metadata"]["name"] for space in spaces if space["status"].get("phase") == "Terminating"}
    nodes = {node["metadata"]["name"]: node for node in cluster.request("GET", "/api/v1/nodes")["items"]}
    asked: dict[tuple[str, str], Any] = {}
    for pod in cluster.request("GET", "/api/v1/pods")["items"]:
        where = pod["spec"].get("nodeName")
        if not where or pod["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        if pod["metadata"]["namespace"] in going:
            continue
        asked[where, "pods"] = asked.get((where, "pods"), 0) + 1
        for container in pod["spec"]["containers"]:
            for name, amount in container.get("resources", {}).get("requests", {}).items():
                asked[where, name] = asked.get((where, name), 0) + parse_quantity(amount)
    problems = []
    for (where, name), amount in sorted(asked.items()):
        has = parse_quantity(nodes[where]["status"]["allocatable"].get(name, "0")) if where in nodes else 0
        if amount > has:
            problems.append(f"node {where}: {float(amount):g} {name} asked, {float(has):g} there")
    return problems
