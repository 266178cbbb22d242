"""The control plane for end-to-end tests works like a cluster and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.controlplane.certificates import write_secret
from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.nodes import create_nodes, node_object
from tests.controlplane.processes import ProcessEnded, living_members
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane, NotOurs, Options
from volcano_py.testing import a_pod, manifest

REPOSITORY = Path(__file__).resolve().parents[2]
BARE = Options(controller_manager=False, kwok=False)
RUN_THAT_DIES = """
import os, signal
from tests.e2e.control_plane import ControlPlane, Options
plane = ControlPlane(Options(controller_manager=False, kwok=False)).start()
print(plane.processes.folder, *plane.processes.running.values(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""

Phase = Callable[[], str]


def pod(name: str, command: str = "sleep 3600", restart: str = "Never", node: str = "") -> dict[str, Any]:
    containers = [{"name": "main", "image": "none", "command": ["sh", "-c", command]}]
    spec = {"restartPolicy": restart, "containers": containers}
    return manifest(a_pod(name, namespace="", scheduler="nobody", node=node), spec=spec)


def bind(plane: ControlPlane, namespace: str, name: str, node: str) -> None:
    plane.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/pods/{name}/binding",
        {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}},
    )


def phase_of(plane: ControlPlane, namespace: str, name: str) -> Phase:
    return lambda: str(plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")["status"]["phase"])


def wait_for_phase(phase: Phase, wanted: str) -> None:
    wait_until(f"phase {wanted}", lambda: phase() == wanted, 15, every=0.05)


def can_connect(url: str) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) == 0


@pytest.fixture
def starts_servers() -> None:
    """Skip a test that starts servers of its own if the run uses a borrowed cluster."""
    if os.environ.get("KUBECONFIG"):
        pytest.skip("starts its own API server, and with KUBECONFIG nothing is started")


@pytest.mark.usefixtures("starts_servers")
def test_it_starts_within_half_a_minute_and_leaves_nothing_behind() -> None:
    started = time.monotonic()
    plane = ControlPlane().start()
    took = time.monotonic() - started
    folder, url = plane.processes.folder, plane.url
    pids = [*plane.processes.running.values(), plane.processes.watchdog_pid]
    assert len(pids) == 5

    plane.stop()

    assert took < 30
    assert not folder.exists()
    assert not can_connect(url)
    assert [pid for pid in pids if living_members(pid)] == []


@pytest.mark.usefixtures("starts_servers")
def test_nothing_outlives_a_test_run_that_is_killed() -> None:
    died = subprocess.run(
        [sys.executable, "-c", RUN_THAT_DIES], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    folder, *pids = died.stdout.split()

    wait_until("the servers to be gone", lambda: not any(living_members(int(pid)) for pid in pids), 10, every=0.02)
    wait_until(f"{folder} to be gone", lambda: not Path(folder).exists(), 10, every=0.02)


@pytest.mark.usefixtures("starts_servers")
def test_a_server_that_does_not_start_is_reported_with_the_end_of_its_log() -> None:
    plane = ControlPlane(Options(apiserver_args=("--no-such-flag",)))

    with pytest.raises(
        ProcessEnded, match=r"kube-apiserver ended by itself(.|\n)*unknown flag: --no-such-flag"
    ) as failed:
        plane.start()

    folder = Path(str(failed.value).partition("the end of ")[2].partition("/kube-apiserver.log")[0])
    assert folder.name.startswith("volcano-py-e2e-")
    assert not folder.exists()


@pytest.mark.usefixtures("starts_servers")
def test_without_controllers_a_node_is_ready_at_once_and_pods_are_accepted() -> None:
    with ControlPlane(BARE) as plane:
        create_nodes(plane.cluster, [node_object("n", ready=True)])
        plane.request("POST", "/api/v1/namespaces/default/pods", pod("p"))
        bind(plane, "default", "p", "n")

        assert plane.request("GET", "/api/v1/nodes/n")["spec"] == {}
        assert plane.request("GET", "/api/v1/namespaces/default/pods/p")["spec"]["nodeName"] == "n"


def test_kubectl_lists_a_node_that_kwok_made_ready(control_plane: ControlPlane, make_nodes: MakeNodes) -> None:
    (name,) = make_nodes(1, cpu=8, labels={"zone": "a"}, extended={"nvidia.com/gpu": 4})

    node = control_plane.request("GET", f"/api/v1/nodes/{name}")
    shown = control_plane.kubectl("get", "node", name, "-L", "zone", "--no-headers").stdout.split()

    assert (shown[0], shown[1], shown[-1]) == (name, "Ready", "a")
    assert node["status"]["allocatable"] == {"cpu": "8", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "4"}
    assert "taints" not in node["spec"]


def test_a_pod_bound_by_hand_runs_completes_and_is_removed(
    control_plane: ControlPlane, make_nodes: MakeNodes, namespace: str
) -> None:
    (node,) = make_nodes(1)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    phase = phase_of(control_plane, namespace, "worker")
    control_plane.request("POST", pods, pod("worker", "sleep 1"))
    assert phase() == "Pending"

    bind(control_plane, namespace, "worker", node)
    assert phase() == "Pending"
    wait_for_phase(phase, "Running")
    wait_for_phase(phase, "Succeeded")
    control_plane.request("DELETE", f"{pods}/worker")

    wait_until("the pod to be gone", lambda: not control_plane.request("GET", pods)["items"], 15, every=0.05)


def test_a_pod_that_exits_with_an_error_fails_with_its_code(
    control_plane: ControlPlane, make_nodes: MakeNodes, namespace: str
) -> None:
    (node,) = make_nodes(1)
    control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod("bad", "sleep 0.1; exit 3", node=node))

    wait_for_phase(phase_of(control_plane, namespace, "bad"), "Failed")

    status = control_plane.request("GET", f"/api/v1/namespaces/{namespace}/pods/bad")["status"]
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_a_running_pod_terminates_for_a_second_after_its_deletion(
    control_plane: ControlPlane, make_nodes: MakeNodes, namespace: str
) -> None:
    (node,) = make_nodes(1)
    path = f"/api/v1/namespaces/{namespace}/pods/stays"
    control_plane.request("POST", path.removesuffix("/stays"), pod("stays", restart="Always", node=node))
    wait_for_phase(phase_of(control_plane, namespace, "stays"), "Running")

    pods = f"/api/v1/namespaces/{namespace}/pods"
    deleted = time.monotonic()
    answer = control_plane.request("DELETE", path)

    assert "deletionTimestamp" in answer["metadata"]
    wait_until("the pod is gone", lambda: not control_plane.request("GET", pods)["items"], 10.0)
    assert time.monotonic() - deleted > 0.9


def test_the_api_server_restarts_on_its_port_with_its_data(own_control_plane: ControlPlane, namespace: str) -> None:
    url, pid = own_control_plane.url, own_control_plane.processes.pid("kube-apiserver")

    own_control_plane.restart_apiserver()

    assert own_control_plane.url == url
    assert own_control_plane.processes.pid("kube-apiserver") != pid
    assert own_control_plane.request("GET", f"/api/v1/namespaces/{namespace}")["status"]["phase"] == "Active"


def test_a_killed_api_server_stays_down_until_it_is_started(own_control_plane: ControlPlane, namespace: str) -> None:
    own_control_plane.kill_apiserver()
    assert not can_connect(own_control_plane.url)

    own_control_plane.start_apiserver()

    assert own_control_plane.request("GET", f"/api/v1/namespaces/{namespace}")["metadata"]["name"] == namespace


def test_a_borrowed_cluster_is_used_and_left_running(control_plane: ControlPlane, tmp_path: Path) -> None:
    kubeconfig = write_secret(tmp_path / "config", control_plane.kubeconfig.read_bytes())
    theirs = ControlPlane.borrow(kubeconfig)
    try:
        accounts = theirs.request("GET", "/api/v1/namespaces/default/serviceaccounts")["items"]
        with pytest.raises(NotOurs, match="was not started by this run"):
            theirs.restart_apiserver()
    finally:
        theirs.stop()

    assert [account["metadata"]["name"] for account in accounts] == ["default"]
    assert control_plane.request("GET", "/readyz") == "ok"
