"""Gangs by annotations on an API server without Volcano's CRDs: all or none, late pods, wrong numbers."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.controlplane.install import MANIFESTS, Installed
from tests.controlplane.namespaces import create_namespace, discard_namespace
from tests.controlplane.nodes import create_nodes, delete_nodes, node_object, wait_nodes_ready
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane, Options
from tests.e2e.daemon import Daemon
from volcano_py.testing import a_pod, manifest

GPU = "nvidia.com/gpu"
NUMBER = "scheduling.k8s.io/group-pod-num"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def bare_plane() -> Iterator[ControlPlane]:
    """An API server without the definitions of PodGroup and Queue."""
    if os.environ.get("KUBECONFIG"):
        pytest.skip("needs an API server without our definitions, and KUBECONFIG names one")
    with ControlPlane(Options(fast=True)) as plane:
        plane.kubectl("apply", "-f", str(MANIFESTS / "programs" / "namespace.yaml"))
        plane.kubectl("apply", "-k", str(MANIFESTS / "rbac"))
        yield plane


@pytest.fixture(scope="module")
def daemon(bare_plane: ControlPlane) -> Iterator[Daemon]:
    """A scheduler that is ready without the kinds PodGroup and Queue."""
    running = Daemon(bare_plane, Installed()).start()
    yield running
    assert running.alive()
    running.stop()


class Pods:
    """The pods and nodes of one test."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._pool = secrets.token_hex(4)
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._events = f"/api/v1/namespaces/{namespace}/events"
        self.nodes: list[str] = []

    def add_node(self, gpus: int) -> None:
        """Add a node with a number of GPUs for this test's pods."""
        name = f"gpu-{secrets.token_hex(3)}"
        self.nodes.append(name)
        node = node_object(name, cpu=32, memory="64Gi", labels={"pool": self._pool}, extended={GPU: gpus})
        create_nodes(self._plane.cluster, [node])
        wait_nodes_ready(self._plane.cluster, [name], 30.0)

    def create(self, names: Sequence[str], number: str | None = None, gang: str | None = "qj-1") -> None:
        """Create pods of one GPU each; without a gang they are ordinary pods."""
        notes: dict[str, str] = {} if gang is None else {"scheduling.k8s.io/group-name": gang}
        if number is not None:
            notes[NUMBER] = number
        self._plane.cluster.create_all(self._path, [self._pod(name, notes) for name in names])

    def _pod(self, name: str, notes: dict[str, str]) -> dict[str, Any]:
        spec = {"restartPolicy": "Never", "nodeSelector": {"pool": self._pool}}
        pod = manifest(a_pod(name, namespace="", gpu=1, annotations=notes), spec=spec)
        pod["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
        return pod

    def annotate(self, name: str, number: str) -> None:
        body = {"metadata": {"annotations": {NUMBER: number}}}
        self._plane.request("PATCH", f"{self._path}/{name}", body, content_type=MERGE)

    def delete(self, name: str) -> None:
        self._plane.request("DELETE", f"{self._path}/{name}?gracePeriodSeconds=0")

    def bound(self) -> set[str]:
        items = self._plane.request("GET", self._path)["items"]
        return {pod["metadata"]["name"] for pod in items if pod["spec"].get("nodeName")}

    def why(self, name: str) -> str:
        """Return why a pod waits, "" while no reason is recorded."""
        conditions = self._plane.request("GET", f"{self._path}/{name}")["status"].get("conditions", [])
        return next((c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"), "")

    def reasons(self) -> str:
        """Return the reasons of all waiting pods, joined into one text."""
        items = self._plane.request("GET", self._path)["items"]
        conditions = [c for pod in items for c in pod["status"].get("conditions", [])]
        return "; ".join(c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False")

    def events(self, name: str) -> list[str]:
        """Return the texts of the events of a pod."""
        items = self._plane.request("GET", self._events)["items"]
        return [event["message"] for event in items if event["involvedObject"]["name"] == name]

    def waits_because(self, name: str, text: str) -> None:
        """Wait until a pod's condition and an event give this reason."""
        wait_until(f"{name} says {text!r}", lambda: text in self.why(name), 10.0)
        wait_until(f"an event of {name} says so", lambda: any(text in event for event in self.events(name)), 10.0)


@pytest.fixture
def pods(bare_plane: ControlPlane, daemon: Daemon) -> Iterator[Pods]:
    namespace = create_namespace(bare_plane.cluster)
    made = Pods(bare_plane, namespace)
    yield made
    discard_namespace(bare_plane.cluster, namespace)
    delete_nodes(bare_plane.cluster, made.nodes)


def test_the_scheduler_is_ready_without_definitions_and_says_what_is_missing(
    bare_plane: ControlPlane, daemon: Daemon
) -> None:
    assert daemon.ready()
    log = bare_plane.processes.logs()["vc-scheduler"].read_text()
    assert "podgroups.scheduling.volcano.sh" in log
    assert "resources are not served, going on without them" in log


def test_a1_a_gang_of_a_hundred_waits_for_the_hundredth_gpu(pods: Pods) -> None:
    for gpus in (33, 33, 33):
        pods.add_node(gpus)
    names = [f"w-{number}" for number in range(100)]
    pods.create(names, "100")
    wait_until("the gang says what it lacks", lambda: "Insufficient nvidia.com/gpu" in pods.reasons(), 20.0)
    assert pods.bound() == set()

    pods.add_node(1)

    wait_until("all are bound", lambda: pods.bound() == set(names), 20.0)


def test_a2_ordinary_pods_do_not_split_a_gang(pods: Pods) -> None:
    pods.add_node(3)
    pods.create(["before"], "1", gang="single-1")
    wait_until("the first ordinary pod runs", lambda: pods.bound() == {"before"}, 10.0)
    pods.create(["g-0", "g-1", "g-2"], "3")
    pods.create(["after"], "1", gang="single-2")

    wait_until("the second ordinary pod runs", lambda: "after" in pods.bound(), 10.0)
    wait_until("the gang says what it lacks", lambda: "Insufficient nvidia.com/gpu" in pods.reasons(), 20.0)
    assert pods.bound() == {"before", "after"}

    pods.delete("before")
    pods.delete("after")
    wait_until("the whole gang runs", lambda: pods.bound() == {"g-0", "g-1", "g-2"}, 10.0)


def test_a3_nothing_is_bound_before_the_last_pod_and_a_deleted_one_sends_the_gang_back(pods: Pods) -> None:
    pods.add_node(8)
    pods.create(["g-0", "g-1"], "4")
    pods.waits_because("g-0", "4 minAvailable")
    pods.create(["g-2"], "4")
    pods.delete("g-1")
    pods.create(["g-3"], "4")
    pods.waits_because("g-3", "4 minAvailable")
    assert pods.bound() == set()

    pods.create(["g-4"], "4")

    wait_until("all are bound", lambda: pods.bound() == {"g-0", "g-2", "g-3", "g-4"}, 10.0)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        pytest.param(None, "pod g-2 has none", id="missing"),
        pytest.param("three", 'pod g-2 has "three", which is not a number', id="no-number"),
    ],
)
def test_a4_a_gang_with_a_wrong_number_waits_and_says_so(pods: Pods, number: str | None, said: str) -> None:
    pods.add_node(8)
    pods.create(["g-0", "g-1"], "3")
    pods.create(["g-2"], number)
    for name in ("g-0", "g-2"):
        pods.waits_because(name, said)
    assert pods.bound() == set()

    pods.annotate("g-2", "3")

    wait_until("all are bound", lambda: pods.bound() == {"g-0", "g-1", "g-2"}, 10.0)


def test_a4_if_numbers_differ_the_largest_counts(pods: Pods) -> None:
    pods.add_node(8)
    pods.create(["g-0"], "2")
    pods.create(["g-1"], "3")
    pods.waits_because("g-0", "(2, 3): the largest number counts")
    assert pods.bound() == set()

    pods.create(["g-2"], "3")

    wait_until("all are bound", lambda: pods.bound() == {"g-0", "g-1", "g-2"}, 10.0)


def test_a4_with_more_pods_than_the_number_the_number_is_the_minimum(pods: Pods) -> None:
    pods.add_node(4)
    pods.create([f"g-{number}" for number in range(5)], "3")

    wait_until("as many as there is room for are bound", lambda: len(pods.bound()) == 4, 10.0)
