"""After a kill of the scheduler or a restart of the API server, no pod is bound twice and every gang is completed."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.install import Installed, install
from tests.controlplane.namespaces import create_namespace
from tests.controlplane.nodes import create_nodes, node_object, wait_nodes_ready
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane, Options
from tests.e2e.daemon import Daemon
from tests.e2e.gangs import Gangs, Role, overfull

POOL = {"e2e.volcano-py/pool": "recovery"}
N_NODES = 50
IN_FLIGHT = 64  # the most requests that the scheduler has in flight
GANGS = {f"gang-{number}": 20 for number in range(25)}
WORKER = Role("worker", 20, {"cpu": "1", "memory": "1Gi"})
ACCOUNT = "system:serviceaccount:volcano-system:volcano-scheduler"


class Audit:
    """The API server's audit log of requests since the beginning of a test."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._start = log.stat().st_size if log.exists() else 0

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records."""
        with self.log.open() as lines:
            lines.seek(self._start)
            for line in lines:
                if line.endswith("\n"):
                    record: dict[str, Any] = json.loads(line)
                    yield record

    def binds(self, *codes: int) -> Counter[str]:
        """Return how many Bindings were answered with one of these codes, by pod uid."""
        answered: Counter[str] = Counter()
        for record in self.records():
            if (
                record.get("objectRef", {}).get("subresource") == "binding"
                and record["responseStatus"]["code"] in codes
            ):
                answered[record["requestObject"]["metadata"]["uid"]] += 1
        return answered

    def refused(self) -> set[tuple[str, str]]:
        """Return the scheduler's requests that were forbidden."""
        asked = (record for record in self.records() if record["user"]["username"] == ACCOUNT)
        return {(each["verb"], each["requestURI"]) for each in asked if each["responseStatus"]["code"] == 403}


@pytest.fixture
def audit(plane: ControlPlane) -> Audit:
    """The audit log, from the beginning of the test."""
    assert plane.audit_log is not None, "without pytest's cache (-p no:cacheprovider) API servers write no audit log"
    return Audit(plane.audit_log)


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane of this module's own, which it restarts."""
    with ControlPlane(Options(fast=True)) as plane:
        install(plane.cluster)
        names = create_nodes(
            plane.cluster, [node_object(f"node-{i}", cpu=16, memory="64Gi", labels=POOL) for i in range(N_NODES)]
        )
        wait_nodes_ready(plane.cluster, names, 60.0)
        yield plane


@pytest.fixture
def gangs(plane: ControlPlane) -> Iterator[Gangs]:
    """The gangs of one test; its pods are deleted afterwards, so that the nodes are empty again."""
    namespace = create_namespace(plane.cluster, wait_for_account=True)
    yield Gangs(plane.cluster, namespace, POOL)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    plane.request("DELETE", f"{pods}?gracePeriodSeconds=0")
    plane.kubectl("delete", "namespace", namespace, "--wait=false")
    wait_until("the pods are gone", lambda: not plane.request("GET", pods)["items"], 60.0)


def test_a_scheduler_killed_amid_500_binds_binds_none_twice_and_completes_every_gang(
    plane: ControlPlane, gangs: Gangs, audit: Audit
) -> None:
    gangs.create_pods([pod for name in GANGS for pod in gangs.make_pods(name, WORKER)])
    daemon = Daemon(plane, Installed(), name="vc-scheduler-killed").start()
    with gangs.once_bound(60, daemon.kill):
        gangs.create_groups(GANGS)
    left = 500 - len(gangs.bound())
    assert left > 0, "the scheduler was done before it could be killed"
    print(f"killed with {left} of 500 pods unbound")

    restarted = time.monotonic()
    daemon.start()
    wait_until("all 500 are bound", lambda: len(gangs.bound()) == 500, 30.0)
    print(f"all bound {time.monotonic() - restarted:.1f} s after the restart")

    assert overfull(plane.cluster) == []
    for name, pods in gangs.by_group().items():
        assert sum(bool(pod["spec"].get("nodeName")) for pod in pods) >= GANGS[name]
    uids = {pod["metadata"]["uid"] for pod in gangs.pods()}
    daemon.stop()
    # Requests in flight when the scheduler was killed may have been carried out without an answer.
    wait_until("the audit log is complete", lambda: len(uids - set(audit.binds(200, 201))) <= IN_FLIGHT, 10.0)
    assert max(audit.binds(200, 201).values()) == 1
    assert audit.binds(409) == {}  # no pod got a second Binding
    assert audit.refused() == set()


def test_the_scheduler_recovers_by_itself_when_the_api_server_is_restarted_under_load(
    plane: ControlPlane, gangs: Gangs, audit: Audit
) -> None:
    daemon = Daemon(plane, Installed(), name="vc-scheduler-patient").start()
    pid = daemon.pid()
    gangs.create_pods([pod for name in GANGS for pod in gangs.make_pods(name, WORKER)])
    gangs.create_groups(GANGS)
    wait_until("some are bound", lambda: len(gangs.bound()) >= 60, 20.0, every=0.01)

    print(f"restarted with {500 - len(gangs.bound())} of 500 pods unbound")
    plane.restart_apiserver()
    wait_until("all 500 are bound", lambda: len(gangs.bound()) == 500, 60.0)
    late = f"late-{secrets.token_hex(2)}"
    gangs.create(late, 4, Role("worker", 4, {"cpu": "1"}))
    wait_until("a gang made afterwards is bound", lambda: len(gangs.bound()) == 504, 20.0)

    assert daemon.pid() == pid
    assert daemon.ready()
    assert overfull(plane.cluster) == []
    daemon.stop()
    assert max(audit.binds(200, 201).values()) == 1
