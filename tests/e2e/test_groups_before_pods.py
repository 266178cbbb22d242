"""PodGroups that exist before their pods, as Volcano's job controller makes them, on a real API server."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import Installed
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.daemon import GANG_CONF, Daemon
from tests.e2e.gangs import Gangs, Role, overfull
from tests.e2e.queue_objects import MakeQueue, make_queue

POOL = "e2e.volcano-py/pool"
GATE = "scheduling.volcano.sh/queue-allocation-gate"
FOREIGN_GATE = "example.com/data"
ONE_CORE = {"cpu": "1"}
PLAIN_FLAGS = ("--leader-elect=false", "--schedule-period=200ms")
GATE_FLAGS = (*PLAIN_FLAGS, "--feature-gates=SchedulingGatesQueueAdmission=true")

# The configuration that Volcano's own continuous integration uses.
CI_CONF = """\
actions: "{actions}"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: {share}
  - name: nodeorder
  - name: binpack
"""
CI_ACTIONS = "enqueue, allocate, backfill, reclaim, preempt"

__all__ = ["make_queue"]

StartDaemon = Callable[..., Daemon]


@pytest.fixture
def start_daemon(control_plane: ControlPlane, installed: Installed) -> Iterator[StartDaemon]:
    """Start a scheduler with a configuration and flags; it is stopped after the test."""
    started: list[Daemon] = []

    def start(conf: str, flags: tuple[str, ...] = PLAIN_FLAGS) -> Daemon:
        name = f"vc-scheduler-{secrets.token_hex(2)}"
        started.append(Daemon(control_plane, installed, conf, name=name, flags=flags).start())
        return started[-1]

    yield start
    for daemon in started:
        if daemon.alive():
            daemon.stop()


class Jobs:
    """Jobs whose pods are created once their PodGroup is enqueued."""

    def __init__(self, gangs: Gangs) -> None:
        self._gangs = gangs

    def phase(self, name: str) -> str:
        return str(self._gangs.group(name).get("status", {}).get("phase", ""))

    def run(self, name: str, tasks: int, *, queue: str = "default", minimum: int = 1, **spec: Any) -> None:
        """Create a PodGroup, wait until it is enqueued, and create its pods; ``spec`` adds fields to the pods."""
        minimums = {"cpu": str(minimum)}
        self._gangs.create_groups({name: minimum}, queue, minResources=minimums)
        wait_until(f"{name} is enqueued", lambda: self.phase(name) == "Inqueue", 10.0)
        self.create_pods(name, tasks, **spec)

    def create_pods(self, name: str, tasks: int, **spec: Any) -> None:
        pods = self._gangs.make_pods(name, Role("worker", tasks, ONE_CORE))
        for pod in pods:
            pod["spec"] |= spec
        self._gangs.create_pods(pods)

    def running(self) -> Counter[str]:
        """Return how many pods of each job run and are not terminating."""
        found = (
            pod["metadata"]
            for pod in self._gangs.pods()
            if pod["status"].get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
        )
        group = "scheduling.k8s.io/group-name"
        return Counter(meta["annotations"][group] for meta in found if group in meta.get("annotations", {}))


@pytest.fixture
def pool() -> str:
    """A label value that keeps this test's pods on this test's nodes."""
    return secrets.token_hex(4)


@pytest.fixture
def gangs(control_plane: ControlPlane, namespace: str, pool: str) -> Gangs:
    """The gangs of this test."""
    return Gangs(control_plane.cluster, namespace, {POOL: pool})


@pytest.fixture
def jobs(gangs: Gangs) -> Jobs:
    """The jobs of this test."""
    return Jobs(gangs)


# A configuration without `enqueue`


def test_without_the_enqueue_action_a_job_is_enqueued_and_runs(
    start_daemon: StartDaemon, jobs: Jobs, make_nodes: MakeNodes, pool: str
) -> None:
    start_daemon(GANG_CONF.replace("enqueue, ", ""))
    make_nodes(1, cpu=4, labels={POOL: pool})

    jobs.run("train", 4, minimum=4)

    wait_until("all four run", lambda: jobs.running() == {"train": 4}, 15.0)


def test_a_waiting_job_is_enqueued_once_the_enqueue_action_is_removed(
    start_daemon: StartDaemon, jobs: Jobs, gangs: Gangs, make_nodes: MakeNodes, pool: str
) -> None:
    daemon = start_daemon(CI_CONF.format(actions="enqueue, allocate, backfill", share="proportion"))
    make_nodes(1, cpu=4, labels={POOL: pool})
    gangs.create_groups({"large": 4}, minResources={"cpu": "100000"})
    reached = daemon.cycles()
    wait_until("cycles have passed", lambda: daemon.cycles() >= reached + 3, 10.0)
    assert jobs.phase("large") in ("", "Pending")

    daemon.take_conf(CI_CONF.format(actions="allocate, backfill", share="proportion"))

    wait_until("it is enqueued", lambda: jobs.phase("large") == "Inqueue", 10.0)
    jobs.create_pods("large", 4)
    wait_until("it runs", lambda: jobs.running() == {"large": 4}, 15.0)


# New jobs on a cluster of which queues can use only a part


@pytest.mark.parametrize("actions", [CI_ACTIONS, "enqueue, allocate, backfill, gangreclaim"], ids=["reclaim", "gang"])
@pytest.mark.parametrize("share", ["proportion", "capacity"])
def test_a_new_queue_gets_its_share_beside_pods_of_another_scheduler(
    start_daemon: StartDaemon,
    control_plane: ControlPlane,
    jobs: Jobs,
    gangs: Gangs,
    make_nodes: MakeNodes,
    make_queue: MakeQueue,
    pool: str,
    share: str,
    actions: str,
) -> None:
    start_daemon(CI_CONF.format(actions=actions, share=share))
    nodes = make_nodes(4, cpu=4, labels={POOL: pool})
    foreign = gangs.make_pods("foreign", Role("daemon", 4, ONE_CORE))
    for pod, node in zip(foreign, nodes, strict=True):
        pod["metadata"]["annotations"] = {}
        pod["spec"] |= {"schedulerName": "default-scheduler", "nodeName": node}
    gangs.create_pods(foreign)
    due = {} if share == "proportion" else {"deserved": {"cpu": "6"}}
    queues = [make_queue(1, **due) for _ in range(3)]
    for name, queue in zip(("one", "two"), queues, strict=False):
        jobs.run(name, 6, queue=queue)
    wait_until("the cluster is full", lambda: jobs.running() == {"one": 6, "two": 6}, 30.0)

    jobs.run("new", 1, queue=queues[2])

    wait_until("the new job runs", lambda: jobs.running()["new"] == 1, 30.0)
    assert sorted(jobs.running().values()) == [1, 5, 6]
    assert overfull(control_plane.cluster) == []


# Queue admission by scheduling gates


def gated(gangs: Gangs) -> dict[str, list[str]]:
    """Return the scheduling gates that pods still have."""
    found = {pod["metadata"]["name"]: pod["spec"].get("schedulingGates", []) for pod in gangs.pods()}
    return {name: [gate["name"] for gate in gates] for name, gates in found.items() if gates}


def test_a_gate_is_removed_once_the_queue_may_hold_the_pod_and_the_pod_counts_from_then_on(
    start_daemon: StartDaemon,
    jobs: Jobs,
    gangs: Gangs,
    make_nodes: MakeNodes,
    make_queue: MakeQueue,
    pool: str,
) -> None:
    start_daemon(CI_CONF.format(actions=CI_ACTIONS, share="capacity"), GATE_FLAGS)
    make_nodes(1, cpu=8, labels={POOL: pool})
    queue = make_queue(1, capability={"cpu": "3"})
    at_gate = {"schedulingGates": [{"name": GATE}]}

    nowhere = {"nodeSelector": {POOL: f"{pool}-b"}, **at_gate}
    jobs.run("stuck", 1, queue=queue, **nowhere)
    wait_until("the gate is removed before the pod has a node", lambda: not gated(gangs), 10.0)
    jobs.run("next", 3, queue=queue, **at_gate)
    wait_until("two more run", lambda: jobs.running() == {"next": 2}, 15.0)
    assert list(gated(gangs).values()) == [[GATE]], "the queue may hold three, one of which waits for a node"

    make_nodes(1, cpu=8, labels={POOL: f"{pool}-b"})
    wait_until("the first has its node", lambda: jobs.running() == {"stuck": 1, "next": 2}, 15.0)
    gangs.end([pod for pod in gangs.pods() if pod["metadata"]["name"].startswith("stuck")])
    wait_until("the last gate is removed", lambda: jobs.running() == {"next": 3}, 15.0)


def test_gates_of_others_are_respected(
    start_daemon: StartDaemon, control_plane: ControlPlane, jobs: Jobs, gangs: Gangs, make_nodes: MakeNodes, pool: str
) -> None:
    start_daemon(CI_CONF.format(actions=CI_ACTIONS, share="proportion"), GATE_FLAGS)
    make_nodes(1, cpu=8, labels={POOL: pool})
    jobs.run("both", 1, schedulingGates=[{"name": FOREIGN_GATE}, {"name": GATE}])
    jobs.run("one", 1, schedulingGates=[{"name": GATE}])
    wait_until("the pod of one gate runs", lambda: jobs.running() == {"one": 1}, 15.0)
    assert list(gated(gangs).values()) == [[FOREIGN_GATE, GATE]]

    control_plane.request(
        "PATCH",
        f"/api/v1/namespaces/{gangs.namespace}/pods/both-worker-0",
        {"spec": {"schedulingGates": [{"name": GATE}]}},
        content_type="application/merge-patch+json",
    )

    wait_until("then our gate is removed as well", lambda: jobs.running() == {"one": 1, "both": 1}, 15.0)


def test_without_the_feature_the_gate_stays(
    start_daemon: StartDaemon, jobs: Jobs, gangs: Gangs, make_nodes: MakeNodes, pool: str
) -> None:
    start_daemon(CI_CONF.format(actions=CI_ACTIONS, share="proportion"))
    make_nodes(1, cpu=8, labels={POOL: pool})

    jobs.run("train", 1, schedulingGates=[{"name": GATE}])

    def why() -> str:
        return str(gangs.condition("train", "Unschedulable").get("message", ""))

    wait_until("the PodGroup says how it would go", lambda: "SchedulingGatesQueueAdmission=true" in why(), 10.0)
    assert list(gated(gangs).values()) == [[GATE]]
