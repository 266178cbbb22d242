"""A test changes, breaks and repairs the configuration while the scheduler runs on a real API server."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import Installed
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.daemon import GANG_CONF, NO_GANG_CONF, Daemon
from tests.e2e.gangs import Gangs, Role

POOL = "e2e.volcano-py/pool"


@pytest.fixture
def daemon(control_plane: ControlPlane, installed: Installed) -> Iterator[Daemon]:
    """A scheduler with the plugin gang."""
    daemon = Daemon(control_plane, installed, name=f"vc-scheduler-{secrets.token_hex(2)}").start()
    yield daemon
    if daemon.alive():
        daemon.stop()


def test_a_configuration_is_broken_and_repaired_while_the_scheduler_runs(
    control_plane: ControlPlane, daemon: Daemon, namespace: str, make_nodes: MakeNodes
) -> None:
    pool = secrets.token_hex(4)
    gangs = Gangs(control_plane.cluster, namespace, {POOL: pool})
    make_nodes(1, cpu=4, labels={POOL: pool})
    pid = daemon.pid()
    first = daemon.ask("/debug/conf")
    gangs.create("six", 6, Role("worker", 6, {"cpu": "1"}))

    def waiting() -> list[tuple[str, str]]:
        jobs = daemon.ask("/debug/jobs")["jobs"]
        return [(job["namespace"], job["name"]) for job in jobs if "Insufficient cpu" in job["message"]]

    assert wait_until("the PodGroup says why the gang waits", waiting, 10.0) == [(namespace, "six")]

    daemon.write_conf(GANG_CONF.replace("name: gang", "name: gnag"))
    error = wait_until("the broken configuration is refused", lambda: daemon.ask("/debug/conf")["lastError"], 5.0)
    assert 'unknown plugin "gnag"' in error["problem"]
    assert ".yaml:5: " in error["problem"]
    assert daemon.ask("/debug/conf")["hash"] == first["hash"]
    assert "\nvolcano_py_conf_refused 1.0" in daemon.metrics()
    assert gangs.bound() == []  # the gang rule still applies

    daemon.write_conf(NO_GANG_CONF)
    wait_until("the repaired configuration is used: four of six are bound", lambda: len(gangs.bound()) == 4, 10.0)
    shown = daemon.ask("/debug/conf")
    assert shown["lastError"] is None
    assert shown["hash"] != first["hash"]
    assert f'hash="{shown["hash"]}"' in daemon.metrics()
    assert daemon.pid() == pid
