"""A gang on a real API server: it waits as a whole, its PodGroup says why, and it is bound once there is room."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import Installed
from tests.controlplane.waiting import NotInTime, wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.daemon import GANG_CONF, NO_GANG_CONF, Daemon
from tests.e2e.gangs import Gangs, Role, overfull, running

POOL = "e2e.volcano-py/pool"
PS = Role("ps", 2, {"cpu": "1", "memory": "1Gi"})
WORKER = Role("worker", 4, {"cpu": "2", "memory": "2Gi"})
JOBS = [f"train-{number}" for number in range(5)]
StartDaemon = Callable[..., Daemon]


@pytest.fixture
def pool() -> str:
    """A label value that keeps this test's pods on this test's nodes."""
    return secrets.token_hex(4)


@pytest.fixture
def gangs(control_plane: ControlPlane, installed: Installed, namespace: str, pool: str) -> Gangs:
    """The gangs of this test."""
    return Gangs(control_plane.cluster, namespace, {POOL: pool})


@pytest.fixture
def start_daemon(control_plane: ControlPlane, installed: Installed) -> Iterator[StartDaemon]:
    """Start a scheduler; it is stopped after the test."""
    started: list[Daemon] = []

    def start(conf: str = GANG_CONF) -> Daemon:
        daemon = Daemon(control_plane, installed, conf, name=f"vc-scheduler-{secrets.token_hex(2)}")
        started.append(daemon)
        return daemon.start()

    yield start
    for daemon in started:
        if daemon.alive():
            daemon.stop()


def test_a_gang_of_six_with_room_for_five_waits_says_why_and_is_bound_when_a_node_comes(
    gangs: Gangs, make_nodes: MakeNodes, start_daemon: StartDaemon, pool: str
) -> None:
    make_nodes(5, cpu=2, labels={POOL: pool})
    start_daemon()
    gangs.create("six", 6, Role("worker", 6, {"cpu": "2"}))

    why = wait_until("the PodGroup says why", lambda: gangs.condition("six", "Unschedulable"), 10.0)
    assert "1/6 tasks in gang unschedulable" in why["message"]
    assert "Insufficient cpu" in why["message"]
    assert "6 minAvailable" in why["message"]

    def reasons() -> list[str]:
        conditions = [c for pod in gangs.pods() for c in pod["status"].get("conditions", [])]
        return [c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]

    said = wait_until("a pod says why", lambda: [text for text in reasons() if "Insufficient cpu" in text], 10.0)
    assert any("nodes are unavailable" in text for text in said)
    assert gangs.bound() == []

    added = time.monotonic()
    make_nodes(1, cpu=2, labels={POOL: pool})  # returns once the node is Ready and untainted
    usable = time.monotonic()
    wait_until("all six are bound", lambda: len(gangs.bound()) == 6, 2.0, every=0.05)
    bound = time.monotonic()
    assert bound - added <= 2.0
    print(f"all six bound {bound - added:.2f} s after the node was added, {bound - usable:.2f} s after it was Ready")
    ready = wait_until("the PodGroup has the condition Scheduled", lambda: gangs.condition("six", "Scheduled"), 5.0)
    assert ready["status"] == "True"
    wait_until("Unschedulable is False", lambda: gangs.condition("six", "Unschedulable")["status"] == "False", 5.0)


def _submit(gangs: Gangs, between: Callable[[int], None] = lambda created: None) -> None:
    """Create five jobs as five controllers would: groups first, then the pods of all jobs in alternation."""
    gangs.create_groups(dict.fromkeys(JOBS, 6))
    members = [gangs.make_pods(name, PS, WORKER) for name in JOBS]
    for number, together in enumerate(zip(*members, strict=True), 1):
        gangs.create_pods(together)
        between(number * len(JOBS))


def _play(gangs: Gangs, run_time_s: float, limit_s: float) -> list[str]:
    """End every job some time after all its pods have begun to run; return the jobs that ended, in order."""
    whole: dict[str, float] = {}
    ended: list[str] = []

    def step() -> bool:
        now = time.monotonic()
        for name, pods in gangs.by_group().items():
            whole_now = name not in ended and len(pods) == 6 and all(running(pod) for pod in pods)
            if whole_now and now - whole.setdefault(name, now) >= run_time_s:
                gangs.end(pods)
                ended.append(name)
        return len(ended) == len(JOBS)

    try:
        wait_until("all jobs have ended", step, limit_s)
    except NotInTime:
        return ended
    return ended


def test_five_jobs_with_room_for_one_and_a_half_all_end_and_none_is_placed_in_part(
    control_plane: ControlPlane, gangs: Gangs, make_nodes: MakeNodes, start_daemon: StartDaemon, pool: str
) -> None:
    make_nodes(4, cpu=4, labels={POOL: pool})
    start_daemon()
    started = time.monotonic()
    _submit(gangs)

    ended = _play(gangs, run_time_s=1.0, limit_s=60.0)

    assert sorted(ended) == JOBS
    print(f"five jobs ended after {time.monotonic() - started:.1f} s")
    assert overfull(control_plane.cluster) == []


def test_without_the_gang_plugin_the_same_jobs_block_each_other(
    gangs: Gangs, make_nodes: MakeNodes, start_daemon: StartDaemon, pool: str
) -> None:
    make_nodes(4, cpu=4, labels={POOL: pool})
    start_daemon(NO_GANG_CONF)

    def until_bound(created: int) -> None:
        """Controllers are slower than the scheduler: created pods that fit are bound before the next pods come."""
        with contextlib.suppress(NotInTime):
            wait_until("they are bound", lambda: len(gangs.bound()) == created, 2.0)

    _submit(gangs, until_bound)

    ended = _play(gangs, run_time_s=1.0, limit_s=12.0)

    held = {name: sum(bool(pod["spec"].get("nodeName")) for pod in pods) for name, pods in gangs.by_group().items()}
    stuck = [name for name in JOBS if name not in ended and 0 < held[name] < 6]
    print(f"ended: {ended}; pods held: {held}")
    assert len(ended) < len(JOBS)
    assert len(stuck) >= 2
