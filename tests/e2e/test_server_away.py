"""The API server away for a while is one warning per process and one line when it answers again."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.install import Installed, install
from tests.controlplane.namespaces import create_namespace
from tests.controlplane.nodes import create_nodes, node_object, wait_nodes_ready
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane, Options
from tests.e2e.controllers import Controllers
from tests.e2e.daemon import Daemon
from tests.e2e.vcjobs import container, vcjob
from tests.e2e.webhooks import Webhooks

ALONE = "--leader-elect=false"
AWAY_S = 20.0
BACK_S = 60.0  # a watch tries again after half a minute at most
AWAY, BACK = "the API server does not answer", "the API server answers again"
LOST = ("the lease is lost: the scheduler ends, and decisions that were not sent are dropped",)
N_JOBS = 30
Line = dict[str, Any]


def lines(log: str) -> list[Line]:
    """Return the lines of a log; each of them is one JSON object."""
    return [json.loads(line) for line in log.splitlines()]


class Processes:
    """All processes on a control plane of their own, at work."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.scheduler = Daemon(plane, Installed(), flags=(ALONE,))
        self.leader = Daemon(
            plane, Installed(), name="vc-scheduler-leader", flags=("--scheduler-name=other", "--leader-elect=true")
        )
        self.controllers = Controllers(plane, Installed(), ALONE)
        self.webhooks = Webhooks(plane, "--graceful-shutdown-time=2s")

    def start(self) -> None:
        self.webhooks.start().install()
        for one in (self.scheduler, self.leader, self.controllers):
            one.start()
        wait_until("the leader leads", self.leader.leads, 20.0)

    def logs(self) -> dict[str, list[Line]]:
        """Return what each process that goes on has logged."""
        named = {"scheduler": self.scheduler, "controllers": self.controllers, "webhooks": self.webhooks}
        return {name: lines(one.log()) for name, one in named.items()}


@pytest.fixture
def processes() -> Iterator[Processes]:
    with ControlPlane(Options(fast=True)) as plane:
        install(plane.cluster)
        nodes = [node_object(f"node-{index}", cpu=16, memory="64Gi") for index in range(8)]
        wait_nodes_ready(plane.cluster, create_nodes(plane.cluster, nodes), 60.0)
        made = Processes(plane)
        made.start()
        yield made


def long_job(name: str) -> dict[str, Any]:
    pods = {"spec": {"restartPolicy": "Never", "containers": [container("sleep 600")]}}
    return vcjob(name, [{"name": "worker", "replicas": 4, "template": pods}])


@pytest.mark.timeout(300)
def test_an_outage_amid_work_is_one_warning_and_one_summary_per_process(processes: Processes) -> None:
    plane = processes.plane
    namespace = create_namespace(plane.cluster, wait_for_account=True)
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"
    plane.cluster.create_all(path, [long_job(f"job-{secrets.token_hex(3)}") for _ in range(N_JOBS)])
    wait_until("some jobs run", lambda: '"phase": "Running"' in processes.controllers.log(), 30.0, every=0.02)
    before = {name: len(found) for name, found in processes.logs().items()}

    plane.kill_apiserver()
    time.sleep(AWAY_S)
    code = processes.leader.ended(10.0)
    plane.start_apiserver()

    def told() -> bool:
        return all(any(line["event"] == BACK for line in found) for found in processes.logs().values())

    wait_until("all processes say that it answers", told, BACK_S)
    pods = f"/api/v1/namespaces/{namespace}/pods?fieldSelector=status.phase=Running"
    wait_until("all jobs run", lambda: len(plane.request("GET", pods)["items"]) == 4 * N_JOBS, 60.0)
    for name, found in processes.logs().items():
        since = found[before[name] :]
        problems = [line for line in since if line["level"] in ("warning", "error")]
        assert [line["event"] for line in problems] == [AWAY], name
        (summary,) = (line for line in since if line["event"] == BACK)
        assert AWAY_S <= summary["away_s"] <= AWAY_S + BACK_S
        assert summary["failed_attempts"] >= 10
        print(f"{name}: away {summary['away_s']} s, withheld: {summary['withheld']}")

    last = lines(processes.leader.log())
    assert code == 1
    assert [line["event"] for line in last if line["level"] in ("warning", "error")] == [AWAY, *LOST]
    assert last[-1]["event"] in LOST
    assert "was not renewed within 10 s" in last[-1]["why"]
