"""Pods with claims on a real API server, with the volume controllers of kube-controller-manager."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import Installed
from tests.controlplane.servers import CONTROLLERS
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.daemon import Daemon
from tests.e2e.gangs import MERGE, Gangs, Role, running
from tests.e2e.provisioner import Provisioner, Storage, annotations
from tests.e2e.test_leader import Candidates
from volcano_py.api.storage import SELECTED_NODE

LEFT_S = 30.0  # after a kill, nothing may stay promised for longer


class Cluster:
    """The gangs and the storage of one test, on nodes of its own."""

    def __init__(self, plane: ControlPlane, namespace: str, nodes: Sequence[str], pool: dict[str, str]) -> None:
        self.plane = plane
        self.nodes = list(nodes)
        self.gangs = Gangs(plane.cluster, namespace, pool)
        self.storage = Storage(plane.cluster, namespace)

    def create(self, name: str, size: int, *storage_classes: str) -> list[str]:
        """Create a gang whose pods have a claim each, of the pod's name, of these classes in turn; return the names."""
        pods = self.gangs.make_pods(name, Role("worker", size, {"cpu": "100m"}))  # a node has room for all of them
        for pod, storage_class in zip(pods, cycle(storage_classes), strict=False):
            claim = pod["metadata"]["name"]
            self.storage.make_claim(claim, storage_class)
            pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
        self.gangs.create_groups({name: size})
        self.gangs.create_pods(pods)
        return [pod["metadata"]["name"] for pod in pods]

    def places(self) -> dict[str, str]:
        """Return the nodes of bound pods by name."""
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in self.gangs.bound()}

    def wait_running(self, count: int, timeout: float = 60.0) -> None:
        wait_until(f"{count} pods run", lambda: sum(map(running, self.gangs.pods())) == count, timeout)

    def phases(self) -> list[str]:
        """Return the phases of the volumes."""
        return [one.get("status", {}).get("phase", "") for one in self.storage.volumes()]

    def events(self, about: str, reason: str) -> list[str]:
        """Return the messages of the events about an object."""
        path = f"/api/v1/namespaces/{self.gangs.namespace}/events"
        found = self.plane.request("GET", path)["items"]
        return [one["message"] for one in found if (one["involvedObject"]["name"], one["reason"]) == (about, reason)]

    def cordon(self, nodes: Sequence[str], cordoned: bool) -> None:
        for node in nodes:
            body = {"spec": {"unschedulable": cordoned}}
            self.plane.request("PATCH", f"/api/v1/nodes/{node}", body, content_type=MERGE)

    def judge(self, pods: Sequence[str]) -> None:
        """Every pod is where its volume is, no volume is given twice, and nothing is promised."""
        bound, places = self.storage.bound(), self.places()
        assert sorted(places) == sorted(bound) == sorted(pods)
        assert len(set(bound.values())) == len(pods)
        assert {pod: self.storage.node_of(bound[pod]) for pod in pods} == places
        assert self.storage.promised() == []


@pytest.fixture
def pool() -> dict[str, str]:
    return {"e2e.volcano-py/pool": f"volumes-{secrets.token_hex(3)}"}


@pytest.fixture
def cluster(
    control_plane: ControlPlane, installed: Installed, namespace: str, make_nodes: MakeNodes, pool: dict[str, str]
) -> Iterator[Cluster]:
    made = Cluster(control_plane, namespace, make_nodes(12, cpu=4, memory="16Gi", labels=pool), pool)
    yield made
    made.storage.close()


@pytest.fixture
def daemon(control_plane: ControlPlane, installed: Installed) -> Iterator[Daemon]:
    made = Daemon(control_plane, installed, name=f"vc-scheduler-volumes-{secrets.token_hex(2)}").start()
    yield made
    if made.alive():
        made.stop()


def test_a_claim_is_bound_to_a_volume_on_the_chosen_node_and_the_pod_follows(cluster: Cluster, daemon: Daemon) -> None:
    kind = cluster.storage.make_class()
    volume = cluster.storage.make_volume(kind, cluster.nodes[7])

    pods = cluster.create("single", 1, kind)

    cluster.wait_running(1)
    cluster.judge(pods)
    assert cluster.storage.bound() == {pods[0]: volume}
    assert cluster.places() == {pods[0]: cluster.nodes[7]}


def test_a_gang_goes_where_the_volumes_are(cluster: Cluster, daemon: Daemon) -> None:
    kind = cluster.storage.make_class()
    with_volume = cluster.nodes[2:10]
    for node in with_volume:
        cluster.storage.make_volume(kind, node)

    pods = cluster.create("eight", 8, kind)

    cluster.wait_running(8)
    cluster.judge(pods)
    assert sorted(cluster.places().values()) == sorted(with_volume)


def test_a_gang_without_enough_volumes_waits_and_promises_nothing(cluster: Cluster, daemon: Daemon) -> None:
    kind = cluster.storage.make_class()
    for node in cluster.nodes[:3]:
        cluster.storage.make_volume(kind, node)
    pods = cluster.create("four", 4, kind)

    wait_until("it says why", lambda: bool(cluster.events(pods[0], "FailedScheduling")), 30.0)
    time.sleep(2.0)
    assert cluster.places() == {}
    assert cluster.storage.promised() == []

    cluster.storage.make_volume(kind, cluster.nodes[3])
    cluster.wait_running(4)
    cluster.judge(pods)


def test_a_gang_is_placed_again_when_a_provisioner_refuses_once(cluster: Cluster, daemon: Daemon) -> None:
    with Provisioner(cluster.storage) as provisioner:
        provisioner.refuses = lambda name: name.endswith("-3") and not provisioner.refused

        pods = cluster.create("dynamic", 8, provisioner.storage_class)

        wait_until("one claim is refused", lambda: bool(provisioner.refused), 30.0)
        cluster.wait_running(8)
        cluster.judge(pods)
        (refused,) = provisioner.refused
        said = cluster.events("dynamic", "FailedScheduling")
        assert any(
            f"/{refused} gets no volume for node " in text and "8 pods are placed again" in text for text in said
        )


def test_what_a_gang_was_promised_is_taken_back_when_another_claim_gets_nothing(
    cluster: Cluster, daemon: Daemon
) -> None:
    kind = cluster.storage.make_class()
    cluster.storage.make_volume(kind, cluster.nodes[0])
    with Provisioner(cluster.storage) as provisioner:
        provisioner.refuses = lambda name: not provisioner.refused

        pods = cluster.create("mixed", 2, kind, provisioner.storage_class)

        wait_until("the claim is refused", lambda: bool(provisioner.refused), 30.0)
        cluster.wait_running(2)
        cluster.judge(pods)


def test_a_volume_that_was_promised_to_a_pod_that_is_gone_is_free_again(
    cluster: Cluster, daemon: Daemon, own_control_plane: ControlPlane
) -> None:
    kind = cluster.storage.make_class()
    cluster.storage.make_volume(kind, cluster.nodes[3])
    wait_until("the volume is available", lambda: cluster.phases() == ["Available"], 20.0)
    own_control_plane.processes.signal(CONTROLLERS, signal.SIGSTOP)  # so that nobody binds the claim
    try:
        (pod,) = cluster.create("gone", 1, kind)
        wait_until("the volume is promised", lambda: len(cluster.storage.promised()) == 1, 30.0)

        own_control_plane.request("DELETE", f"/api/v1/namespaces/{cluster.gangs.namespace}/pods/{pod}")

        wait_until("nothing is promised", lambda: not cluster.storage.promised(), LEFT_S)
        assert cluster.places() == {}
    finally:
        own_control_plane.processes.signal(CONTROLLERS, signal.SIGCONT)


def test_a_scheduler_that_is_killed_between_promise_and_bind_leaves_nothing_promised(
    cluster: Cluster, daemon: Daemon
) -> None:
    with Provisioner(cluster.storage) as provisioner:
        provisioner.works.clear()
        pods = cluster.create("killed", 8, provisioner.storage_class)
        wait_until("all volumes are asked for", lambda: len(provisioner.asked) == 8, 30.0)
        daemon.kill()
        killed = time.monotonic()
        assert len(cluster.storage.promised()) == 8
        assert cluster.places() == {}
        cluster.cordon(cluster.nodes, True)  # so that the next scheduler promises nothing anew

        daemon.start()

        wait_until("nothing is promised", lambda: not cluster.storage.promised(), LEFT_S - (time.monotonic() - killed))
        print(f"nothing promised {time.monotonic() - killed:.1f} s after the kill")
        provisioner.works.set()
        cluster.cordon(cluster.nodes, False)
        cluster.wait_running(8)
        cluster.judge(pods)


def test_promises_of_other_schedulers_are_left_alone(cluster: Cluster, daemon: Daemon) -> None:
    with Provisioner(cluster.storage) as provisioner:
        provisioner.works.clear()
        cluster.storage.make_claim("theirs", provisioner.storage_class)
        (pod,) = cluster.gangs.make_pods("theirs", Role("worker", 1, {"cpu": "1"}))
        pod["spec"]["schedulerName"] = "somebody-else"
        pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "theirs"}}]
        cluster.gangs.create_pods([pod])
        cluster.storage.patch_claim("theirs", {"metadata": {"annotations": {SELECTED_NODE: cluster.nodes[0]}}})

        daemon.kill()
        daemon.start()
        time.sleep(12.0)

        theirs: dict[str, Any] = cluster.storage.claims()["theirs"]
        assert annotations(theirs)[SELECTED_NODE] == cluster.nodes[0]


def test_the_next_leader_undoes_what_the_last_one_has_promised_within_half_a_minute(
    cluster: Cluster, control_plane: ControlPlane, installed: Installed
) -> None:
    candidates = Candidates(control_plane, installed)
    try:
        leader = candidates.start(15.0)
        wait_until("the first one leads", leader.leads, 20.0)
        candidates.start(15.0)
        with Provisioner(cluster.storage) as provisioner:
            provisioner.works.clear()
            cluster.create("orphaned", 4, provisioner.storage_class)
            wait_until("all volumes are asked for", lambda: len(provisioner.asked) == 4, 30.0)
            leader.kill()
            killed = time.monotonic()
            cluster.cordon(cluster.nodes, True)
            assert len(cluster.storage.promised()) == 4

            left = LEFT_S - (time.monotonic() - killed)
            wait_until("nothing is promised", lambda: not cluster.storage.promised(), left)
            print(f"nothing promised {time.monotonic() - killed:.1f} s after the kill of the leader")
    finally:
        candidates.stop()


def test_a_scheduler_that_is_killed_again_and_again_gives_no_volume_twice(cluster: Cluster, daemon: Daemon) -> None:
    kind = cluster.storage.make_class()
    for node in cluster.nodes:
        for _ in range(2):
            cluster.storage.make_volume(kind, node)
    with Provisioner(cluster.storage) as provisioner:
        provisioner.refuses = lambda name: len(provisioner.refused) < 3 and name.endswith("-1")
        pods = [pod for number in range(5) for pod in cluster.create(f"static-{number}", 4, kind)]
        pods += [pod for number in range(5) for pod in cluster.create(f"made-{number}", 4, provisioner.storage_class)]
        for enough in (4, 14, 24):
            wait_until("some claims are bound", lambda: len(cluster.storage.bound()) >= enough, 30.0, every=0.02)  # noqa: B023
            daemon.kill()
            print(f"killed with {len(cluster.storage.bound())} claims and {len(cluster.places())} pods bound")
            daemon.start()

        cluster.wait_running(40)
        cluster.judge(pods)
