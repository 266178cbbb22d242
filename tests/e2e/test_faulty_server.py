"""An API server that refuses requests, loses answers and cuts watches; a pod replaced before its bind arrives."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator

import pytest

from tests.controlplane.install import Installed, install
from tests.controlplane.namespaces import create_namespace
from tests.controlplane.nodes import create_nodes, node_object
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane, Options
from tests.e2e.daemon import Daemon
from tests.e2e.faulty_proxy import Faults, FaultyProxy
from tests.e2e.gangs import Gangs, Role, overfull

POOL = "e2e.volcano-py/pool"
SIZE = 4
GANGS = {f"gang-{number}": SIZE for number in range(500)}
WORKER = Role("worker", SIZE, {"cpu": "1", "memory": "64Mi"})
StartDaemon = Callable[[], Daemon]


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """An API server for this module alone: no controller runs, and its thousands of pods need no cleanup."""
    with ControlPlane(Options(controller_manager=False, kwok=False)) as plane:
        install(plane.cluster)
        yield plane


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultyProxy]:
    """The proxy between the scheduler and the API server."""
    with FaultyProxy(plane.server_url, plane.ssl_context_without_certificate()) as proxy:
        yield proxy


@pytest.fixture
def start_daemon(plane: ControlPlane, proxy: FaultyProxy) -> Iterator[StartDaemon]:
    """Start a scheduler that reaches the API server through the proxy."""
    flags = ("--leader-elect=false", f"--master={proxy.url}")
    daemon = Daemon(plane, Installed(), name=f"vc-scheduler-{secrets.token_hex(2)}", flags=flags)
    yield daemon.start
    if daemon.alive():
        daemon.stop()


@pytest.fixture
def gangs(plane: ControlPlane) -> Gangs:
    """The gangs of this test, which run on its own nodes."""
    return Gangs(plane.cluster, create_namespace(plane.cluster, wait_for_account=False), {POOL: secrets.token_hex(4)})


def add_nodes(plane: ControlPlane, gangs: Gangs, count: int, cpu: int) -> None:
    """Add nodes for the pods of these gangs."""
    names = [f"node-{secrets.token_hex(3)}" for _ in range(count)]
    create_nodes(plane.cluster, [node_object(name, cpu=cpu, labels=gangs.selector, ready=True) for name in names])


def test_2000_pods_in_500_gangs_are_bound_whole_and_once_while_requests_and_watches_fail(
    plane: ControlPlane, proxy: FaultyProxy, start_daemon: StartDaemon, gangs: Gangs
) -> None:
    add_nodes(plane, gangs, 25, cpu=96)
    proxy.faults = Faults(too_many=0.15, lost_answers=0.02, watch_s=(0.2, 2.0))
    daemon = start_daemon()

    gangs.create_groups(GANGS)
    gangs.create_pods([pod for name in GANGS for pod in gangs.make_pods(name, WORKER)])
    created = time.monotonic()
    wait_until("all 2,000 are bound", lambda: len(proxy.bindings.get(201, ())) == 2000, 60.0)

    print(f"all bound {time.monotonic() - created:.1f} s after the last was created; {dict(proxy.done)}")
    assert len(gangs.bound()) == 2000
    assert {name: len(pods) for name, pods in gangs.by_group().items()} == GANGS
    assert overfull(plane.cluster) == []
    assert daemon.alive()
    assert min(proxy.done["too_many"], proxy.done["lost_answers"], proxy.done["cut_watches"]) >= 10
    assert set(proxy.bindings) == {201}  # no pod got a second Binding
    assert max(proxy.bindings[201].values()) == 1
    assert set(proxy.bindings[201]) == {pod["metadata"]["uid"] for pod in gangs.pods()}


@pytest.mark.parametrize(
    "faults",
    [Faults(garbage=True), Faults(code=404), Faults(code=403), Faults(code=401)],
    ids=["garbage", "404", "403", "401"],
)
def test_scheduling_recovers_from_ten_seconds_of_garbage_answers_under_load(
    plane: ControlPlane, proxy: FaultyProxy, start_daemon: StartDaemon, gangs: Gangs, faults: Faults
) -> None:
    add_nodes(plane, gangs, 10, cpu=96)
    proxy.faults = Faults(watch_s=(0.5, 1.5))  # so that every watch is cut
    daemon = start_daemon()
    made: dict[str, int] = {}

    def load(seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            name = f"gang-{len(made)}"
            made[name] = SIZE
            gangs.create(name, SIZE, WORKER)
            time.sleep(0.2)

    load(3.0)
    proxy.faults = faults
    load(10.0)
    assert daemon.alive()
    proxy.faults = Faults()
    over = time.monotonic()
    load(2.0)
    wait_until("all gangs are bound", lambda: len(gangs.bound()) == SIZE * len(made), 60.0)

    print(f"{len(made)} gangs bound {time.monotonic() - over:.1f} s after the end of it; {dict(proxy.done)}")
    assert overfull(plane.cluster) == []
    assert max(proxy.bindings[201].values()) == 1
    log = daemon.log()
    assert "going on without them" not in log  # no existing resource was taken for missing
    assert "Traceback" not in log


def test_a_pod_recreated_during_its_bind_is_bound_by_a_decision_of_its_own(
    plane: ControlPlane, proxy: FaultyProxy, start_daemon: StartDaemon, gangs: Gangs
) -> None:
    add_nodes(plane, gangs, 1, cpu=8)
    start_daemon()
    first = gangs.make_pods("train", WORKER)[0]
    name = first["metadata"]["name"]
    path = f"/api/v1/namespaces/{gangs.namespace}/pods/{name}"
    held = proxy.hold_binding(name)
    gangs.create("train", SIZE, WORKER)
    old = held.uid.result(10.0)

    plane.request("DELETE", f"{path}?gracePeriodSeconds=0")
    gangs.create_pods([first])
    new = plane.request("GET", path)["metadata"]["uid"]
    assert new != old
    held.release()

    wait_until("the whole gang is bound", lambda: len(gangs.bound()) == SIZE, 15.0)

    def answers(uid: str) -> dict[int, int]:
        return {code: counts[uid] for code, counts in proxy.bindings.items() if uid in counts}

    wait_until("both answers have passed the proxy", lambda: answers(new) and answers(old), 5.0)
    assert answers(old) == {409: 1}
    assert answers(new) == {201: 1}
    assert overfull(plane.cluster) == []
