"""The kubelet stand-in for jobs: it runs what containers say, on a real API server."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.install import Installed
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.job_cluster import JobCluster
from tests.e2e.vcjobs import container, template
from volcano_py.testing import a_pod, manifest

Obj = dict[str, Any]


class Pods:
    """Pods that are bound by their creator."""

    def __init__(self, cluster: JobCluster, node: str) -> None:
        self._cluster = cluster
        self._node = node
        self._path = f"/api/v1/namespaces/{cluster.namespace}/pods"

    def create(self, script: str, **more: Any) -> Pod:
        made = template(script, **more)
        name = f"p-{secrets.token_hex(3)}"
        metadata = {"annotations": made["metadata"]["annotations"]}
        body = manifest(a_pod(name, namespace=""), metadata=metadata)
        body["spec"] = {**made["spec"], "nodeName": self._node}
        answer = self._cluster.plane.request("POST", self._path, body)
        return Pod(self._cluster, f"{self._path}/{name}", answer["metadata"]["uid"])


class Pod:
    """One pod."""

    def __init__(self, cluster: JobCluster, path: str, uid: str) -> None:
        self._cluster = cluster
        self.path = path
        self.name = path.rpartition("/")[2]
        self._uid = uid

    def statuses(self) -> list[Obj]:
        return [seen.obj["status"] for seen in self._cluster.records["pods"].history(self._uid)]

    def phases(self) -> list[str]:
        found = [status["phase"] for status in self.statuses()]
        return [phase for index, phase in enumerate(found) if phase not in found[:index]]

    def first(self) -> Obj:
        status = self.statuses()[-1]
        container_: Obj = status["containerStatuses"][0]
        return container_

    def wait(self, what: str, phase: str, restarts: int = 0) -> None:
        wait_until(
            what,
            lambda: self.statuses()[-1]["phase"] == phase and self.first()["restartCount"] >= restarts,
            20.0,
            tolerate=(IndexError, KeyError),
        )

    def gone(self) -> bool:
        history = self._cluster.records["pods"].history(self._uid)
        return bool(history) and history[-1].kind == "DELETED"

    def delete(self) -> None:
        self._cluster.plane.request("DELETE", self.path)


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane, installed: Installed) -> Iterator[JobCluster]:
    found = JobCluster(control_plane, installed, controllers=False, recorded=("pods",))
    found.start()
    yield found
    assert not found.stop()


@pytest.fixture(scope="module")
def pods(cluster: JobCluster) -> Pods:
    names, _ = cluster.own_nodes(1)
    return Pods(cluster, names[0])


def test_a_container_that_ends_well_ends_its_pod(pods: Pods) -> None:
    pod = pods.create("sleep 0.2; exit 0")
    pod.wait("it succeeds", "Succeeded")
    assert pod.phases() == ["Pending", "Running", "Succeeded"]
    assert pod.first()["state"]["terminated"]["exitCode"] == 0


def test_a_container_that_ends_badly_fails_its_pod_with_its_code(pods: Pods) -> None:
    pod = pods.create("sleep 0.2; exit 3")
    pod.wait("it fails", "Failed")
    assert pod.first()["state"]["terminated"]["exitCode"] == 3


def test_a_container_is_restarted_on_failure_until_it_succeeds(pods: Pods) -> None:
    pod = pods.create("[ $RESTARTS -lt 2 ] && exit 1; exit 0", restart="OnFailure")
    pod.wait("it succeeds", "Succeeded", restarts=2)
    assert pod.phases() == ["Pending", "Running", "Succeeded"]
    assert pod.first()["restartCount"] == 2


def test_a_container_with_restart_policy_always_is_restarted_after_a_success(pods: Pods) -> None:
    pod = pods.create("[ $RESTARTS -lt 2 ] && exit 0; sleep infinity", restart="Always")
    pod.wait("it runs again", "Running", restarts=2)
    assert pod.phases() == ["Pending", "Running"]
    assert pod.first()["lastState"]["terminated"]["exitCode"] == 0


def test_a_pod_fails_when_one_of_its_containers_fails_and_all_have_ended(pods: Pods) -> None:
    pod = pods.create("", containers=[container("exit 7", "bad"), container("sleep 0.5; exit 0", "good")])
    pod.wait("it fails", "Failed")
    codes = [each["state"]["terminated"]["exitCode"] for each in pod.statuses()[-1]["containerStatuses"]]
    assert codes == [7, 0]


def test_a_pod_is_pending_while_an_init_container_runs(pods: Pods, cluster: JobCluster) -> None:
    pod = pods.create("sleep infinity", init="await go")
    wait_until("the init container runs", lambda: any("initContainerStatuses" in each for each in pod.statuses()), 20.0)
    assert pod.phases() == ["Pending"]
    cluster.say(pod.name, "go")
    pod.wait("it runs", "Running")


def test_a_pod_fails_with_its_init_container(pods: Pods) -> None:
    pod = pods.create("sleep infinity", init="exit 5")
    wait_until("it fails", lambda: pod.phases()[-1:] == ["Failed"], 20.0)
    assert pod.phases() == ["Pending", "Failed"]


def test_a_pod_waits_for_the_config_map_that_it_refers_to(pods: Pods, cluster: JobCluster) -> None:
    name = f"c-{secrets.token_hex(3)}"
    variable = {"name": "CODE", "valueFrom": {"configMapKeyRef": {"name": name, "key": "code"}}}
    pod = pods.create("", containers=[container("exit $CODE", env=[variable])])
    wait_until("it is bound", lambda: pod.statuses(), 20.0)
    with pytest.raises(ApiFailure):
        cluster.plane.request("GET", f"/api/v1/namespaces/{cluster.namespace}/configmaps/{name}")
    body = {"metadata": {"name": name}, "data": {"code": "9"}}
    cluster.plane.request("POST", f"/api/v1/namespaces/{cluster.namespace}/configmaps", body)
    pod.wait("it fails", "Failed")
    assert pod.first()["state"]["terminated"]["exitCode"] == 9


def test_a_pod_that_is_told_to_go_says_that_it_was_stopped_and_is_removed(pods: Pods) -> None:
    pod = pods.create("sleep infinity", annotations={"kubelet.volcano-py/stop-after": "1"})
    pod.wait("it runs", "Running")
    pod.delete()
    wait_until("it is gone", pod.gone, 20.0)
    assert pod.statuses()[-1]["phase"] == "Failed"
    assert pod.first()["state"]["terminated"]["exitCode"] == 143


def test_a_silent_pod_is_removed_without_a_report(pods: Pods) -> None:
    pod = pods.create("sleep infinity", annotations={"kubelet.volcano-py/silent": ""})
    pod.wait("it runs", "Running")
    pod.delete()
    wait_until("it is gone", pod.gone, 20.0)
    assert pod.statuses()[-1]["phase"] == "Running"


def test_a_container_becomes_ready_later_than_it_runs(pods: Pods) -> None:
    pod = pods.create("sleep infinity", annotations={"kubelet.volcano-py/ready-after": "1"})
    pod.wait("it runs", "Running")
    assert not pod.first()["ready"]
    wait_until("it is ready", lambda: pod.first()["ready"], 20.0)
