"""Gangs with a hard topology make room in one domain, on a real API server: two racks of two nodes of two cores."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import Installed
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.cycles import let_cycles_pass
from tests.e2e.daemon import Daemon
from tests.e2e.gangs import Gangs, Role, overfull, running
from tests.e2e.queue_objects import MakeQueue, make_queue
from tests.e2e.racks import TOLERATIONS, Racks, hard
from volcano_py.testing import a_priority_class, manifest

__all__ = ["make_queue"]

CONF = """\
actions: "enqueue, allocate, {action}, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: network-topology-aware
"""
PREEMPT = pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
RECLAIM = pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@pytest.fixture(scope="module")
def daemon(control_plane: ControlPlane, installed: Installed) -> Iterator[Daemon]:
    """One scheduler for all tests here; each test sets the configuration that it needs."""
    name, flags = f"vc-scheduler-{secrets.token_hex(2)}", ("--leader-elect=false", "--schedule-period=200ms")
    daemon = Daemon(control_plane, installed, CONF.format(action="preempt"), name=name, flags=flags).start()
    yield daemon
    if daemon.alive():
        daemon.stop()


@pytest.fixture(scope="module")
def important(control_plane: ControlPlane) -> Iterator[str]:
    """A priority class above all pods without one."""
    name = f"important-{secrets.token_hex(3)}"
    control_plane.request("POST", CLASSES, manifest(a_priority_class(name, 1000)))
    yield name
    control_plane.request("DELETE", f"{CLASSES}/{name}")


@pytest.fixture
def racks(control_plane: ControlPlane, make_nodes: MakeNodes, daemon: Daemon) -> Iterator[Racks]:
    """A row of two racks, each with room for four pods of one core."""
    found = Racks(control_plane.cluster, make_nodes, 2)
    yield found
    found.remove()


@pytest.fixture
def gangs(control_plane: ControlPlane, namespace: str, racks: Racks) -> Gangs:
    """The gangs of this test."""
    return Gangs(control_plane.cluster, namespace, racks.selector)


def create(
    gangs: Gangs, name: str, minimum: int, tasks: int, cpu: str = "1", *, queue: str = "default", **spec: Any
) -> None:
    """Create a gang of equal pods that tolerate the taint; ``spec`` adds fields to its PodGroup."""
    gangs.create_groups({name: minimum}, queue, **spec)
    pods = gangs.make_pods(name, Role("w", tasks, {"cpu": cpu}))
    for pod in pods:
        pod["spec"]["tolerations"] = TOLERATIONS
        if "priorityClassName" in spec:
            pod["spec"]["priorityClassName"] = spec["priorityClassName"]
    gangs.create_pods(pods)


def fill(gangs: Gangs, queue: str = "default") -> None:
    """Create a gang that fills both racks and needs none of its pods."""
    create(gangs, "low", 0, 8, queue=queue)
    wait_until("low runs", lambda: sum(map(running, gangs.bound())) == 8, 20.0)


def there(gangs: Gangs, name: str) -> list[dict[str, Any]]:
    """Return the pods of a gang that have a node and do not terminate."""
    pods = gangs.by_group().get(name, ())
    return [pod for pod in pods if pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]]


def stands_still(daemon: Daemon, gangs: Gangs) -> Counter[str]:
    """Let five more cycles pass, assert that they changed nothing, and return the number of bound pods per gang."""
    before = {pod["metadata"]["uid"] for pod in gangs.bound()}
    let_cycles_pass(daemon, gangs)
    assert {pod["metadata"]["uid"] for pod in gangs.bound()} == before
    return Counter(name for name in gangs.by_group() for _ in there(gangs, name))


@PREEMPT
def test_a_gang_preempts_in_one_rack_alone(
    control_plane: ControlPlane, daemon: Daemon, gangs: Gangs, racks: Racks, important: str, action: str
) -> None:
    daemon.take_conf(CONF.format(action=action))
    fill(gangs)

    create(gangs, "high", 4, 4, priorityClassName=important, networkTopology=hard(1))
    wait_until("the whole gang is bound", lambda: len(there(gangs, "high")) == 4, 20.0)

    assert len(racks.racks(there(gangs, "high"))) == 1
    assert stands_still(daemon, gangs) == {"low": 4, "high": 4}
    assert overfull(control_plane.cluster) == []


@PREEMPT
def test_nobody_is_preempted_for_a_gang_that_its_domain_cannot_hold(
    daemon: Daemon, gangs: Gangs, racks: Racks, important: str, action: str
) -> None:
    """Three pods of 1.2 cores need three nodes: a rack has enough cores and too few nodes, and a row has both."""
    daemon.take_conf(CONF.format(action=action))
    fill(gangs)

    create(gangs, "rack", 3, 3, "1200m", priorityClassName=important, networkTopology=hard(1))
    wait_until("the PodGroup says why the gang waits", lambda: gangs.condition("rack", "Unschedulable"), 10.0)
    assert stands_still(daemon, gangs) == {"low": 8}

    create(gangs, "row", 3, 3, "1200m", priorityClassName=important, networkTopology=hard(2))
    wait_until("the whole gang is bound", lambda: len(there(gangs, "row")) == 3, 20.0)
    assert stands_still(daemon, gangs) == {"low": 2, "row": 3}


def test_each_sub_group_preempts_in_a_rack_of_its_own(
    daemon: Daemon, gangs: Gangs, racks: Racks, important: str
) -> None:
    """Sub-groups of three: a rack holds one of them and one more pod. The action preempt makes no such plans."""
    daemon.take_conf(CONF.format(action="gangpreempt"))
    fill(gangs)
    policy = {"name": "w", "matchLabelKeys": ["part"], "subGroupSize": 3, "minSubGroups": 2, "networkTopology": hard(1)}
    gangs.create_groups({"high": 6}, priorityClassName=important, subGroupPolicy=[policy])
    pods = gangs.make_pods("high", Role("w", 6, {"cpu": "1"}))
    for index, pod in enumerate(pods):
        pod["metadata"]["labels"] = {"part": str(index // 3)}
        pod["spec"] |= {"tolerations": TOLERATIONS, "priorityClassName": important}
    gangs.create_pods(pods)

    wait_until("the whole gang is bound", lambda: len(there(gangs, "high")) == 6, 20.0)

    parts = [[pod for pod in there(gangs, "high") if pod["metadata"]["labels"]["part"] == part] for part in "01"]
    assert [len(racks.racks(part)) for part in parts] == [1, 1]
    assert stands_still(daemon, gangs) == {"low": 2, "high": 6}


@RECLAIM
def test_a_queue_reclaims_its_share_in_one_rack(
    control_plane: ControlPlane, daemon: Daemon, gangs: Gangs, racks: Racks, make_queue: MakeQueue, action: str
) -> None:
    daemon.take_conf(CONF.format(action=action))
    first, second = make_queue(1), make_queue(1)
    fill(gangs, first)

    create(gangs, "wide", 3, 3, "1200m", queue=second, networkTopology=hard(1))
    wait_until("the PodGroup says why the gang waits", lambda: gangs.condition("wide", "Unschedulable"), 10.0)
    assert stands_still(daemon, gangs) == {"low": 8}

    create(gangs, "share", 4, 4, queue=second, networkTopology=hard(1))
    wait_until("the whole gang is bound", lambda: len(there(gangs, "share")) == 4, 20.0)

    assert len(racks.racks(there(gangs, "share"))) == 1
    assert stands_still(daemon, gangs) == {"low": 4, "share": 4}
    assert overfull(control_plane.cluster) == []
