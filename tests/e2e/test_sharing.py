"""Users' cases on a real API server: packing, fair shares, best effort, jobs that are not enqueued."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import Installed
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.cycles import let_cycles_pass
from tests.e2e.daemon import Daemon
from tests.e2e.gangs import Gangs, Role, overfull
from tests.e2e.gangs import running as running_now
from tests.e2e.queue_objects import MakeQueue, make_queue
from volcano_py.conf.defaults import BUILT_IN_CONF

POOL = "e2e.volcano-py/pool"
WITHOUT_DRF = BUILT_IN_CONF.replace("  - name: drf\n", "")
WITHOUT_BACKFILL = BUILT_IN_CONF.replace(", backfill", "")
PACKING = (
    BUILT_IN_CONF
    + """\
  - name: binpack
    arguments:
      binpack.weight: 10
      binpack.cpu: 5
      binpack.memory: 1
"""
)
ONE_CORE = {"cpu": "1"}

__all__ = ["make_queue"]


@pytest.fixture(scope="module")
def daemon(control_plane: ControlPlane, installed: Installed) -> Iterator[Daemon]:
    """One scheduler for all tests here; each test sets the configuration it needs."""
    name, flags = f"vc-scheduler-{secrets.token_hex(2)}", ("--leader-elect=false", "--schedule-period=200ms")
    daemon = Daemon(control_plane, installed, BUILT_IN_CONF, name=name, flags=flags).start()
    yield daemon
    if daemon.alive():
        daemon.stop()


@pytest.fixture
def pool() -> str:
    """A label value that keeps this test's pods on this test's nodes."""
    return secrets.token_hex(4)


@pytest.fixture
def gangs(control_plane: ControlPlane, namespace: str, pool: str) -> Gangs:
    """The gangs of this test."""
    return Gangs(control_plane.cluster, namespace, {POOL: pool})


@pytest.fixture
def add_nodes(make_nodes: MakeNodes, pool: str) -> Callable[[int, int], list[str]]:
    """Add a number of nodes with a number of cores each for this test's pods."""
    return lambda count, cpu: make_nodes(count, cpu=cpu, labels={POOL: pool})


def settled(daemon: Daemon, gangs: Gangs, done: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """Wait until the condition on the bound pods holds, let five more cycles pass, and return the bound pods."""
    wait_until("the bound pods are as expected", lambda: done(gangs.bound()), 20.0)
    let_cycles_pass(daemon, gangs)
    return gangs.bound()


def by_name(pods: list[dict[str, Any]]) -> Counter[str]:
    """Count pods by the part of their PodGroup's name before the first dash."""
    return Counter(pod["metadata"]["name"].split("-")[0] for pod in pods)


def by_node(pods: list[dict[str, Any]]) -> Counter[str]:
    """Count pods by node."""
    return Counter(pod["spec"]["nodeName"] for pod in pods)


@pytest.mark.parametrize(("pods", "expected"), [(16, [16]), (24, [4, 20])], ids=["one node is enough", "it is not"])
def test_small_pods_fill_one_node_before_the_next(
    daemon: Daemon, gangs: Gangs, make_nodes: MakeNodes, pool: str, pods: int, expected: list[int]
) -> None:
    daemon.take_conf(PACKING)
    make_nodes(2, cpu=4, memory="8Gi", labels={POOL: pool})
    gangs.create("small", pods, Role("worker", pods, {"cpu": "200m"}))

    wait_until("all are bound", lambda: len(gangs.bound()) == pods, 10.0)

    assert sorted(by_node(gangs.bound()).values()) == expected


@pytest.mark.parametrize("fair", [True, False], ids=["with drf", "without drf"])
def test_an_earlier_large_job_leaves_a_small_one_its_share_only_with_drf(
    control_plane: ControlPlane, daemon: Daemon, gangs: Gangs, add_nodes: Callable[[int, int], list[str]], fair: bool
) -> None:
    daemon.take_conf(BUILT_IN_CONF if fair else WITHOUT_DRF)
    gangs.create("large", 1, Role("worker", 300, ONE_CORE))  # without a node, both wait until the first node comes
    since = gangs.group("large")["metadata"]["creationTimestamp"]
    wait_until("another second has begun", lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > since, 5.0)
    gangs.create("small", 1, Role("worker", 60, ONE_CORE))
    assert gangs.group("small")["metadata"]["creationTimestamp"] > since
    add_nodes(5, 10)

    counts = by_name(settled(daemon, gangs, lambda bound: len(bound) == 50))

    assert abs(counts["large"] - counts["small"]) <= 1 if fair else counts["large"] >= 45
    assert overfull(control_plane.cluster) == []


def backlog(gangs: Gangs, jobs: Mapping[str, tuple[str, int]]) -> None:
    """Create named jobs in a queue, each of one pod with one core."""
    for stem, (queue, count) in jobs.items():
        names = [f"{stem}-{number}" for number in range(count)]
        gangs.create_groups(dict.fromkeys(names, 1), queue)
        gangs.create_pods([pod for name in names for pod in gangs.make_pods(name, Role("worker", 1, ONE_CORE))])


def test_two_backlogged_queues_end_within_one_pod_of_their_weights(
    daemon: Daemon, gangs: Gangs, add_nodes: Callable[[int, int], list[str]], make_queue: MakeQueue
) -> None:
    daemon.take_conf(BUILT_IN_CONF)
    backlog(gangs, {"three": (make_queue(3), 30), "one": (make_queue(1), 30)})
    add_nodes(4, 5)

    counts = by_name(settled(daemon, gangs, lambda bound: len(bound) >= 19))

    assert abs(counts["three"] - 15) <= 1
    assert abs(counts["one"] - 5) <= 1


def test_the_share_that_a_queue_does_not_request_or_may_not_hold_goes_to_the_others(
    daemon: Daemon, gangs: Gangs, add_nodes: Callable[[int, int], list[str]], make_queue: MakeQueue
) -> None:
    """Of 20 cores, one queue requests 2 and one is capped at 4; the rest is shared 1 : 1, whatever the weights."""
    daemon.take_conf(BUILT_IN_CONF)
    capped = make_queue(3, capability={"cpu": "4"})
    backlog(
        gangs,
        {
            "modest": (make_queue(3), 2),
            "capped": (capped, 12),
            "left": (make_queue(1), 12),
            "right": (make_queue(1), 12),
        },
    )
    add_nodes(4, 5)

    counts = by_name(settled(daemon, gangs, lambda bound: len(bound) == 20))

    assert counts == {"modest": 2, "capped": 4, "left": 7, "right": 7}

    def said() -> list[str]:
        conditions = (each for pod in gangs.pods() for each in pod["status"].get("conditions", ()))
        return [each["message"] for each in conditions if each["status"] == "False"]

    limit = f'queue "{capped}" may not hold more: 1 cpu asked, 4 held, 4 allowed (its capability)'
    wait_until("a pod says why it waits", lambda: limit in said(), 10.0)


def test_a_queue_alone_may_use_the_whole_cluster_and_passes_on_what_its_jobs_leave(
    daemon: Daemon, gangs: Gangs, add_nodes: Callable[[int, int], list[str]], make_queue: MakeQueue
) -> None:
    daemon.take_conf(BUILT_IN_CONF)
    backlog(gangs, {"first": (make_queue(1), 14)})
    add_nodes(2, 5)
    alone = settled(daemon, gangs, lambda bound: len(bound) == 10)
    assert by_name(alone) == {"first": 10}
    # One that ends before kwok has it Running would become Running afterwards.
    wait_until("they run", lambda: all(map(running_now, gangs.bound())), 10.0)

    backlog(gangs, {"second": (make_queue(1), 14)})
    gangs.end(alone[:5])

    def running(bound: list[dict[str, Any]]) -> Counter[str]:
        return by_name([pod for pod in bound if pod["status"].get("phase") != "Succeeded"])

    bound = settled(daemon, gangs, lambda bound: running(bound).total() == 10)
    assert running(bound) == {"first": 5, "second": 5}


def test_pods_that_ask_for_nothing_are_placed_by_backfill_and_not_by_allocate(
    daemon: Daemon, gangs: Gangs, add_nodes: Callable[[int, int], list[str]]
) -> None:
    daemon.take_conf(WITHOUT_BACKFILL)
    gangs.create("free", 2, Role("worker", 2, {}))
    gangs.create("paid", 2, Role("worker", 2, ONE_CORE))
    add_nodes(1, 4)
    assert by_name(settled(daemon, gangs, lambda bound: len(bound) >= 2)) == {"paid": 2}

    daemon.take_conf(BUILT_IN_CONF)

    assert by_name(settled(daemon, gangs, lambda bound: len(bound) == 4)) == {"paid": 2, "free": 2}


def test_a_job_whose_minimum_does_not_fit_gets_no_pods_and_blocks_nobody(
    daemon: Daemon, gangs: Gangs, add_nodes: Callable[[int, int], list[str]], own_control_plane: ControlPlane
) -> None:
    daemon.take_conf(BUILT_IN_CONF)
    add_nodes(1, 8)
    gangs.create_groups({"big": 4}, minResources={"cpu": "32"})
    gangs.create_groups({"small": 2}, minResources={"cpu": "2"})

    def phase(name: str) -> str:
        return str(gangs.group(name).get("status", {}).get("phase", ""))

    wait_until("the small one is enqueued before it has pods", lambda: phase("small") == "Inqueue", 10.0)
    # Like a job controller, the test creates pods only for an enqueued PodGroup.
    gangs.create_pods(gangs.make_pods("small", Role("worker", 2, ONE_CORE)))
    wait_until("the small one is bound", lambda: len(gangs.bound()) == 2, 10.0)

    wait_until("the big one is not enqueued", lambda: phase("big") == "Pending", 10.0)
    (job,) = daemon.ask(f"/debug/jobs?name=big&namespace={gangs.namespace}")["jobs"]
    assert job["message"].endswith("resource in cluster is overused: overused cpu"), job

    add_nodes(4, 8)
    wait_until("there is room, so it is enqueued", lambda: phase("big") == "Inqueue", 10.0)
