"""Two schedulers and one Lease on a real API server: the leader is killed, stopped, or loses the lease."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import Installed
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.daemon import Daemon
from tests.e2e.freezing_proxy import FreezingProxy
from tests.e2e.gangs import Gangs, Role, overfull

POOL = "e2e.volcano-py/pool"
DURATION_S = 3.0
RETRY_S = 0.25
GANGS = {f"gang-{number}": 20 for number in range(25)}
WORKER = Role("worker", 20, {"cpu": "1"})


class Candidates:
    """Candidates for leadership: schedulers that share a lease."""

    def __init__(self, plane: ControlPlane, installed: Installed) -> None:
        self._plane = plane
        self._installed = installed
        self.lease = f"e2e-{secrets.token_hex(3)}"
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{installed.namespace}/leases/{self.lease}"
        self._started: list[Daemon] = []

    def start(self, duration_s: float = DURATION_S, flags: Sequence[str] = ()) -> Daemon:
        """Start a scheduler; it becomes ready, whether it leads or not."""
        flags = (
            *flags,
            f"--leader-elect-resource-name={self.lease}",
            f"--leader-elect-resource-namespace={self._installed.namespace}",
            f"--leader-elect-lease-duration={duration_s:g}s",
            f"--leader-elect-renew-deadline={duration_s / 2:g}s",
            f"--leader-elect-retry-period={RETRY_S * 1000:g}ms",
        )
        name = f"vc-scheduler-{secrets.token_hex(2)}"
        daemon = Daemon(self._plane, self._installed, name=name, flags=flags)
        self._started.append(daemon)
        return daemon.start()

    def spec(self) -> dict[str, Any]:
        """Return the spec of the lease."""
        spec: dict[str, Any] = self._plane.request("GET", self._path)["spec"]
        return spec

    def give_to(self, holder: str) -> None:
        """Write another holder into the lease."""
        body = {"spec": {"holderIdentity": holder}}
        self._plane.request("PATCH", self._path, body, content_type="application/merge-patch+json")

    def stop(self) -> None:
        """Stop those that still run, and remove the lease."""
        for daemon in self._started:
            if daemon.alive():
                daemon.stop()
        self._plane.request("DELETE", self._path)


@pytest.fixture
def candidates(control_plane: ControlPlane, installed: Installed) -> Iterator[Candidates]:
    """Schedulers of this test, with a lease of its own."""
    candidates = Candidates(control_plane, installed)
    yield candidates
    candidates.stop()


@pytest.fixture
def pool() -> str:
    """A label value that keeps this test's pods on this test's nodes."""
    return secrets.token_hex(4)


@pytest.fixture
def gangs(control_plane: ControlPlane, namespace: str, pool: str) -> Gangs:
    """The gangs of this test."""
    return Gangs(control_plane.cluster, namespace, {POOL: pool})


def places(gangs: Gangs) -> dict[str, str]:
    """Return the nodes of bound pods by uid."""
    return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in gangs.bound()}


def test_after_a_leader_is_killed_the_standby_leads_within_the_lease_time_and_no_pod_is_bound_twice(
    control_plane: ControlPlane, candidates: Candidates, gangs: Gangs, make_nodes: MakeNodes, pool: str
) -> None:
    make_nodes(35, cpu=16, labels={POOL: pool})
    gangs.create_pods([pod for name in GANGS for pod in gangs.make_pods(name, WORKER)])
    leader = candidates.start()
    wait_until("the first leads", leader.leads, 10.0)
    standby = candidates.start()
    assert not standby.leads()
    with gangs.once_bound(40, leader.kill):
        gangs.create_groups(GANGS)

    killed = time.monotonic()
    before = places(gangs)
    assert len(before) < 500, "the leader was done before it could be killed"
    wait_until("the standby leads", standby.leads, 3 * DURATION_S, every=0.02)
    took_s = time.monotonic() - killed
    print(f"killed with {500 - len(before)} of 500 pods unbound; the standby leads {took_s:.2f} s later")
    wait_until("all 500 are bound", lambda: len(gangs.bound()) == 500, 30.0)

    assert took_s <= DURATION_S + 2.2 * RETRY_S + 2.0  # two seconds for a busy machine
    after = places(gangs)
    assert {uid: after[uid] for uid in before} == before
    assert 'resource="pods/binding",result="409"' not in standby.metrics()  # no pod got a second Binding
    assert overfull(control_plane.cluster) == []
    assert candidates.spec()["leaseTransitions"] == 1


def test_after_a_leader_dies_with_its_network_the_standby_leads_and_no_node_is_overcommitted(
    control_plane: ControlPlane, candidates: Candidates, gangs: Gangs, make_nodes: MakeNodes, pool: str
) -> None:
    """The fault that kills the leader also freezes the watches of the standby: they stay open, but deliver nothing."""
    nodes = make_nodes(4, cpu=4, labels={POOL: pool})
    endpoint = urlsplit(control_plane.server_url)
    with FreezingProxy(str(endpoint.hostname), int(endpoint.port or 443)) as proxy:
        by_proxy = f"--master=https://127.0.0.1:{proxy.port}"
        leader = candidates.start(flags=(by_proxy,))
        wait_until("the first leads", leader.leads, 10.0)
        standby = candidates.start(flags=(by_proxy,))
        gangs.create("before", 4, Role("worker", 4, {"cpu": "1"}))
        wait_until("the first gang is bound", lambda: len(gangs.bound()) == 4, 10.0)

        assert proxy.freeze() > 10
        leader.kill()
        killed = time.monotonic()
        used = Counter(pod["spec"]["nodeName"] for pod in gangs.bound())
        free = [node for node in nodes[:2] for _ in range(4 - used[node])]
        foreign = gangs.make_pods("foreign", Role("worker", len(free), {"cpu": "1"}))
        for pod, node in zip(foreign, free, strict=True):  # two nodes are full then, but the standby gets no event
            pod["spec"] |= {"schedulerName": "default-scheduler", "nodeName": node}
            pod["metadata"].pop("annotations")
        gangs.create_pods(foreign)
        gangs.create("after", 4, Role("worker", 4, {"cpu": "1"}))

        wait_until("the standby leads", standby.leads, 90.0)
        print(f"the standby leads {time.monotonic() - killed:.1f} s later")

        def bound_after() -> int:
            return sum(pod["metadata"]["name"].startswith("after-") for pod in gangs.bound())

        wait_until("the second gang is bound", lambda: bound_after() == 4, 60.0)
        standby.stop()

    assert time.monotonic() - killed < 90
    assert overfull(control_plane.cluster) == []


def test_a_leader_that_stops_releases_the_lease_and_the_next_begins_at_once(
    candidates: Candidates, gangs: Gangs, make_nodes: MakeNodes, pool: str
) -> None:
    make_nodes(1, cpu=8, labels={POOL: pool})
    leader = candidates.start(duration_s=60)
    wait_until("the first leads", leader.leads, 10.0)
    standby = candidates.start(duration_s=60)

    leader.stop()
    wait_until("the standby leads", standby.leads, 5.0)

    gangs.create("gang", 4, Role("worker", 4, {"cpu": "1"}))
    wait_until("the gang is bound", lambda: len(gangs.bound()) == 4, 10.0)


def test_a_leader_whose_lease_is_taken_ends_with_code_1_and_says_why(candidates: Candidates) -> None:
    leader = candidates.start()
    wait_until("it leads", leader.leads, 10.0)
    spec = candidates.spec()
    assert spec["leaseDurationSeconds"] == DURATION_S
    assert spec["renewTime"] >= spec["acquireTime"]

    candidates.give_to("a-go-volcano")

    assert leader.ended(10.0) == 1
    assert "is held by a-go-volcano now" in leader.log()
    assert candidates.spec()["holderIdentity"] == "a-go-volcano"
