"""Evictions on a real API server: which pods are victims, for which preemptor, when, and which are protected."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator
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
from volcano_py.testing import a_budget, a_priority_class, manifest

__all__ = ["make_queue"]

POOL = "e2e.volcano-py/pool"
ONE_CORE = {"cpu": "1"}
CONF = """\
actions: "enqueue, allocate, {action}, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
PREEMPT, RECLAIM = CONF.format(action="preempt"), CONF.format(action="reclaim")
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
BUDGETS = "/apis/policy/v1/namespaces/{}/poddisruptionbudgets"
REPLICA_SETS = "/apis/apps/v1/namespaces/{}/replicasets"
Pod = dict[str, Any]


@pytest.fixture(scope="module")
def daemon(control_plane: ControlPlane, installed: Installed) -> Iterator[Daemon]:
    """One scheduler for all tests here; each test sets the configuration it needs."""
    name, flags = f"vc-scheduler-{secrets.token_hex(2)}", ("--leader-elect=false", "--schedule-period=200ms")
    daemon = Daemon(control_plane, installed, PREEMPT, name=name, flags=flags).start()
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
def pool() -> str:
    """A label value that keeps this test's pods on this test's nodes."""
    return secrets.token_hex(4)


@pytest.fixture
def gangs(control_plane: ControlPlane, namespace: str, pool: str) -> Gangs:
    """The gangs of this test."""
    return Gangs(control_plane.cluster, namespace, {POOL: pool})


@pytest.fixture
def add_nodes(make_nodes: MakeNodes, pool: str) -> Callable[..., list[str]]:
    """Add a number of nodes with a number of cores each for this test's pods."""
    return lambda count, cpu, **more: make_nodes(count, cpu=cpu, labels={POOL: pool}, **more)


def create(gangs: Gangs, name: str, minimum: int, tasks: int, priority_class: str = "", **spec: Any) -> None:
    """Create a gang of equal pods of one core; ``spec`` adds fields to the pods' spec."""
    group = {"priorityClassName": priority_class} if priority_class else {}
    gangs.create_groups({name: minimum}, **group)
    pods = gangs.make_pods(name, Role("w", tasks, ONE_CORE))
    for pod in pods:
        pod["metadata"]["labels"] = {"app": name}
        pod["spec"] |= {**group, **spec}
    gangs.create_pods(pods)


def fill(gangs: Gangs, name: str, minimum: int, tasks: int, **more: Any) -> None:
    """Create a gang that fills all nodes of the test."""
    create(gangs, name, minimum, tasks, **more)
    wait_until(f"{name} runs", lambda: sum(map(running, gangs.bound())) == tasks, 20.0)


def bound(gangs: Gangs) -> Counter[str]:
    """Count bound pods by gang, without terminating pods."""
    pods = (pod for pod in gangs.bound() if "deletionTimestamp" not in pod["metadata"])
    return Counter(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for pod in pods)


def stands_still(daemon: Daemon, gangs: Gangs) -> Counter[str]:
    """Let five more cycles pass, assert that they changed nothing, and return the number of bound pods per gang."""
    before = {pod["metadata"]["uid"] for pod in gangs.bound()}
    let_cycles_pass(daemon, gangs)
    assert {pod["metadata"]["uid"] for pod in gangs.bound()} == before
    return bound(gangs)


def plans(daemon: Daemon) -> int:
    """Return how many preemption plans have been carried out."""
    found = re.search(r'\nvolcano_eviction_transactions_total{action="preempt"} (\d+)', daemon.metrics())
    return int(found[1]) if found else 0


def conditions(pod: Pod) -> dict[str, Pod]:
    """Return the conditions of a pod by type."""
    return {condition["type"]: condition for condition in pod["status"].get("conditions", ())}


def named(gangs: Gangs, group: str) -> list[Pod]:
    """Return the pods of a gang."""
    return gangs.by_group().get(group, [])


def test_a_gang_preempts_lower_priorities_for_all_its_pods_or_not_at_all(
    control_plane: ControlPlane, daemon: Daemon, gangs: Gangs, add_nodes: Callable[..., list[str]], important: str
) -> None:
    daemon.take_conf(PREEMPT)
    add_nodes(2, 2)
    fill(gangs, "low", 2, 4)

    create(gangs, "too-large", 3, 3, important)
    wait_until("the PodGroup says why the gang waits", lambda: gangs.condition("too-large", "Unschedulable"), 10.0)
    assert stands_still(daemon, gangs) == {"low": 4}

    before = plans(daemon)
    create(gangs, "fits", 2, 2, important)
    wait_until("the whole gang is bound", lambda: bound(gangs)["fits"] == 2, 15.0)

    assert stands_still(daemon, gangs) == {"low": 2, "fits": 2}
    assert overfull(control_plane.cluster) == []
    assert plans(daemon) == before + 1
    assert "\nvolcano_pod_preemption_victims 2.0" in daemon.metrics()


@pytest.fixture
def kept_terminating(control_plane: ControlPlane, gangs: Gangs) -> Iterator[Callable[[str], Callable[[], None]]]:
    """Keep a pod terminating, however fast the kubelet stand-in is, until the returned function is called."""
    path = f"/api/v1/namespaces/{gangs.namespace}/pods"
    held: list[str] = []

    def patch(name: str, finalizers: list[str]) -> None:
        body = {"metadata": {"finalizers": finalizers}}
        control_plane.request("PATCH", f"{path}/{name}", body, content_type="application/merge-patch+json")

    def let_go(name: str) -> None:
        if name in held:
            held.remove(name)
            patch(name, [])

    def hold(name: str) -> Callable[[], None]:
        patch(name, ["e2e.volcano-py/still-saving"])
        held.append(name)
        return lambda: let_go(name)

    yield hold
    while held:
        let_go(held[-1])


def test_a_victim_gets_its_grace_period_and_its_room_is_kept_for_the_preemptor(
    daemon: Daemon,
    gangs: Gangs,
    add_nodes: Callable[..., list[str]],
    important: str,
    kept_terminating: Callable[[str], Callable[[], None]],
) -> None:
    daemon.take_conf(PREEMPT)
    (node,) = add_nodes(1, 1)
    fill(gangs, "low", 0, 1, terminationGracePeriodSeconds=47)
    let_go = kept_terminating("low-w-0")
    graces: list[int] = []  # grace periods seen on the victim; the kubelet stand-in ends it a second later

    def terminating() -> bool:
        meta = named(gangs, "low")[0]["metadata"]
        if "deletionTimestamp" in meta:
            graces.append(meta["deletionGracePeriodSeconds"])
        return bool(graces)

    create(gangs, "high", 1, 1, important)
    wait_until("low is terminating", terminating, 10.0)
    wait_until("high is nominated", lambda: named(gangs, "high")[0]["status"].get("nominatedNodeName") == node, 5.0)
    owners = named(gangs, "high")[0]["metadata"]["managedFields"]
    named_by = [one["manager"] for one in owners if "f:nominatedNodeName" in one["fieldsV1"].get("f:status", {})]
    assert named_by == ["volcano-py"], "otherwise the scheduler would not withdraw what it has nominated"
    create(gangs, "rival", 1, 1, important)
    assert stands_still(daemon, gangs) == {}
    target = conditions(named(gangs, "low")[0])["DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "PreemptionByScheduler")
    assert graces[0] == 47

    let_go()
    wait_until("high is bound", lambda: bound(gangs)["high"] == 1, 15.0)

    assert stands_still(daemon, gangs) == {"high": 1}


def test_a_disruption_budget_limits_evictions_until_it_is_deleted(
    control_plane: ControlPlane, daemon: Daemon, gangs: Gangs, add_nodes: Callable[..., list[str]], important: str
) -> None:
    daemon.take_conf(PREEMPT)
    add_nodes(1, 2)
    fill(gangs, "low", 0, 2)
    budgets = BUDGETS.format(gangs.namespace)
    budget = manifest(a_budget("low", namespace="", labels={"app": "low"}), spec={"minAvailable": 1})
    control_plane.request("POST", budgets, budget)

    def allowed() -> int:
        return int(control_plane.request("GET", f"{budgets}/low").get("status", {}).get("disruptionsAllowed", -1))

    wait_until("the budget allows one disruption", lambda: allowed() == 1, 10.0)
    create(gangs, "two", 2, 2, important)
    wait_until("two says why it waits", lambda: gangs.condition("two", "Unschedulable"), 10.0)
    assert stands_still(daemon, gangs) == {"low": 2}

    create(gangs, "one", 1, 1, important)
    wait_until("one is bound", lambda: bound(gangs)["one"] == 1, 15.0)
    assert stands_still(daemon, gangs) == {"low": 1, "one": 1}

    control_plane.request("DELETE", f"{budgets}/low")
    create(gangs, "another", 1, 1, important)
    wait_until("another is bound", lambda: bound(gangs)["another"] == 1, 15.0)
    assert stands_still(daemon, gangs) == {"one": 1, "another": 1}


def test_a_queue_that_comes_later_gets_its_third_back(
    control_plane: ControlPlane,
    daemon: Daemon,
    gangs: Gangs,
    add_nodes: Callable[..., list[str]],
    make_queue: MakeQueue,
) -> None:
    """Two queues fill 15 cores, and their evicted pods are created again; then a third queue of equal weight comes."""
    daemon.take_conf(RECLAIM)
    for name in ("first", "second"):
        gangs.create_groups({name: 1}, make_queue(1))
        (pod,) = gangs.make_pods(name, Role("w", 1, ONE_CORE))
        template = {"metadata": {**pod["metadata"], "labels": {"app": name}}, "spec": pod["spec"]}
        template["spec"]["restartPolicy"] = "Always"
        del template["metadata"]["name"]
        spec = {"replicas": 12, "selector": {"matchLabels": {"app": name}}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}
        control_plane.request("POST", REPLICA_SETS.format(gangs.namespace), body)
    wait_until("both request more than half", lambda: len(gangs.pods()) == 24, 20.0)
    add_nodes(3, 5)
    wait_until("both together use nearly all cores", lambda: sum(map(running, gangs.bound())) >= 14, 20.0)

    names = [f"third-{number}" for number in range(12)]
    gangs.create_groups(dict.fromkeys(names, 1), make_queue(1))
    gangs.create_pods([pod for name in names for pod in gangs.make_pods(name, Role("w", 1, ONE_CORE))])

    def by_queue() -> Counter[str]:
        return Counter(name.split("-")[0] for name in bound(gangs).elements())

    def back() -> bool:
        waiting = [pod for pod in gangs.pods() if not pod["spec"].get("nodeName")]
        return len(waiting) == 36 - 15

    third = {"first": 5, "second": 5, "third": 5}
    wait_until("each has a third", lambda: by_queue() == third, 25.0)
    wait_until("the evicted pods are created again and wait", back, 10.0)
    stands_still(daemon, gangs)

    assert by_queue() == third
    assert overfull(control_plane.cluster) == []


def test_a_tenant_that_borrowed_gives_one_pod_back(
    daemon: Daemon, gangs: Gangs, add_nodes: Callable[..., list[str]], make_queue: MakeQueue
) -> None:
    """One node of 2 cores and 2 GiB: the first tenant uses both halves, the second requests both and gets one."""
    daemon.take_conf(RECLAIM)
    add_nodes(1, 2, memory="2Gi")
    half = Role("w", 2, {"cpu": "1", "memory": "1Gi"})
    gangs.create_groups({"first": 1}, make_queue(1))
    gangs.create_pods(gangs.make_pods("first", half))
    wait_until("the first tenant runs", lambda: sum(map(running, gangs.bound())) == 2, 20.0)

    gangs.create_groups({"second": 1}, make_queue(1))
    gangs.create_pods(gangs.make_pods("second", half))
    wait_until("the second has its half", lambda: bound(gangs)["second"] == 1, 20.0)

    assert stands_still(daemon, gangs) == {"first": 1, "second": 1}
