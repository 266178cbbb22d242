"""vc-controller-manager on a real API server: workloads need no PodGroup of their own, queues have states."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import Installed
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.controllers import Controllers
from tests.e2e.daemon import GANG_CONF, Daemon
from volcano_py.testing import a_group, a_pod, a_queue, manifest

SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
QUEUES = f"{SCHEDULING}/queues"
POOL = "e2e.volcano-py/pool"
MERGE = "application/merge-patch+json"


@pytest.fixture
def controllers(control_plane: ControlPlane, installed: Installed) -> Iterator[Controllers]:
    running = Controllers(control_plane, installed).start()
    yield running
    running.stop()
    assert not running.refused(), "manifests/rbac/controllers.yaml grants too little"


@pytest.fixture
def scheduler(control_plane: ControlPlane, installed: Installed) -> Iterator[Daemon]:
    daemon = Daemon(control_plane, installed, name=f"vc-scheduler-{secrets.token_hex(2)}").start()
    yield daemon
    if daemon.alive():
        daemon.stop()


def deployment(name: str, replicas: int, pool: str, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    labels = {"app": name}
    spec = manifest(a_pod(cpu="500m"), spec={"nodeSelector": {POOL: pool}})["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def job(name: str, pods: int, pool: str) -> dict[str, Any]:
    """Return a Job of Kubernetes whose pods are a gang of 500m each."""
    spec = manifest(a_pod(cpu="500m"), spec={"nodeSelector": {POOL: pool}, "restartPolicy": "Never"})["spec"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {"scheduling.volcano.sh/group-min-member": str(pods)}},
        "spec": {"parallelism": pods, "completions": pods, "template": {"spec": spec}},
    }


class Objects:
    """The objects of a test, in its namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._groups = f"{SCHEDULING}/namespaces/{namespace}/podgroups"
        self._deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
        self._jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
        self._stateful_sets = f"/apis/apps/v1/namespaces/{namespace}/statefulsets"

    def pods(self) -> list[dict[str, Any]]:
        return list(self._plane.request("GET", self._pods)["items"])

    def groups(self) -> list[dict[str, Any]]:
        return list(self._plane.request("GET", self._groups)["items"])

    def running(self) -> int:
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods())

    def create_deployment(self, body: dict[str, Any]) -> None:
        self._plane.request("POST", self._deployments, body)

    def scale(self, name: str, replicas: int) -> None:
        path = f"{self._deployments}/{name}"
        self._plane.request("PATCH", path, {"spec": {"replicas": replicas}}, content_type=MERGE)

    def create_stateful_set(self, body: dict[str, Any]) -> None:
        self._plane.request("POST", self._stateful_sets, {**body, "kind": "StatefulSet"})

    def scale_stateful_set(self, name: str, replicas: int) -> None:
        path = f"{self._stateful_sets}/{name}"
        self._plane.request("PATCH", path, {"spec": {"replicas": replicas}}, content_type=MERGE)

    def annotate_template(self, stateful_set: str, annotations: dict[str, str]) -> None:
        body = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
        self._plane.request("PATCH", f"{self._stateful_sets}/{stateful_set}", body, content_type=MERGE)

    def create_job(self, body: dict[str, Any]) -> None:
        self._plane.request("POST", self._jobs, body)

    def suspend_job(self, name: str, suspend: bool) -> None:
        self._plane.request("PATCH", f"{self._jobs}/{name}", {"spec": {"suspend": suspend}}, content_type=MERGE)

    def create_pod(self, body: dict[str, Any]) -> None:
        self._plane.request("POST", self._pods, body)

    def create_group(self, name: str, queue: str) -> None:
        self._plane.request("POST", self._groups, manifest(a_group(name, namespace="", queue=queue)))

    def delete_group(self, name: str) -> None:
        self._plane.request("DELETE", f"{self._groups}/{name}")


@pytest.fixture
def objects(control_plane: ControlPlane, namespace: str) -> Objects:
    return Objects(control_plane, namespace)


@pytest.mark.usefixtures("scheduler", "controllers")
def test_a_deployment_runs_is_scaled_and_leaves_no_group_behind(objects: Objects, make_nodes: MakeNodes) -> None:
    pool = secrets.token_hex(4)
    make_nodes(2, cpu=2, labels={POOL: pool})
    objects.create_deployment(deployment("web", 3, pool, {"scheduling.volcano.sh/group-min-member": "2"}))

    wait_until("three pods run", lambda: objects.running() == 3, 20.0)
    (group,) = objects.groups()
    assert group["spec"]["minMember"] == 2
    assert group["spec"]["minResources"]["cpu"] == "1"
    assert group["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    wait_until("the group runs", lambda: objects.groups()[0]["status"]["phase"] == "Running", 10.0)

    objects.scale("web", 0)
    wait_until("the group is gone", lambda: not objects.groups(), 20.0)
    objects.scale("web", 4)
    wait_until("four pods run", lambda: objects.running() == 4, 20.0)


@pytest.mark.usefixtures("scheduler", "controllers")
def test_the_group_of_a_stateful_set_follows_its_template_and_is_made_again(
    control_plane: ControlPlane, objects: Objects, make_nodes: MakeNodes
) -> None:
    pool, queue = secrets.token_hex(4), f"q-{secrets.token_hex(4)}"
    make_nodes(2, cpu=2, labels={POOL: pool})
    control_plane.request("POST", QUEUES, manifest(a_queue(queue)))
    try:
        objects.create_stateful_set(deployment("db", 2, pool))
        wait_until("two pods run", lambda: objects.running() == 2, 30.0)
        (before,) = objects.groups()
        assert before["spec"]["queue"] == "default"

        objects.annotate_template("db", {"scheduling.volcano.sh/queue-name": queue, "volcano.sh/preemptable": "true"})
        wait_until("the group is in the queue", lambda: objects.groups()[0]["spec"]["queue"] == queue, 10.0)
        assert objects.groups()[0]["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
        wait_until("two pods run again", lambda: len(objects.pods()) == objects.running() == 2, 60.0)

        objects.delete_group(before["metadata"]["name"])
        wait_until(
            "the group is made again", lambda: [one["spec"]["queue"] for one in objects.groups()] == [queue], 30.0
        )
    finally:
        objects.scale_stateful_set("db", 0)
        wait_until("the group is gone", lambda: not objects.groups(), 30.0)
        control_plane.request("DELETE", f"{QUEUES}/{queue}")


@pytest.mark.usefixtures("controllers")
def test_a_suspended_job_keeps_no_other_job_from_being_enqueued(
    control_plane: ControlPlane, installed: Installed, objects: Objects, make_nodes: MakeNodes
) -> None:
    pool = secrets.token_hex(4)
    make_nodes(1, cpu=2, labels={POOL: pool})
    conf = GANG_CONF.replace("  - name: predicates\n", "  - name: overcommit\n  - name: predicates\n")
    daemon = Daemon(control_plane, installed, conf, name=f"vc-scheduler-{secrets.token_hex(2)}").start()
    try:
        objects.create_job(job("first", 4, pool))
        wait_until("the gang runs", lambda: objects.running() == 4, 20.0)
        objects.suspend_job("first", suspend=True)
        wait_until("its pods are gone", lambda: not objects.pods(), 20.0)
        wait_until(
            "its group waits for pods", lambda: [g["status"]["phase"] for g in objects.groups()] == ["Pending"], 10
        )

        objects.create_job(job("second", 4, pool))
        wait_until("another gang runs", lambda: objects.running() == 4, 20.0)
        objects.suspend_job("second", suspend=True)
        objects.suspend_job("first", suspend=False)
        wait_until("the first one runs again", lambda: objects.running() == len(objects.pods()) == 4, 30.0)
    finally:
        daemon.stop()


@pytest.mark.usefixtures("scheduler", "controllers")
def test_a_bare_pod_runs(objects: Objects, make_nodes: MakeNodes) -> None:
    pool = secrets.token_hex(4)
    make_nodes(1, labels={POOL: pool})
    objects.create_pod(manifest(a_pod("alone", namespace="", cpu="500m"), spec={"nodeSelector": {POOL: pool}}))

    wait_until("the pod runs", lambda: objects.running() == 1, 20.0)


def state(plane: ControlPlane, queue: str) -> str:
    try:
        return str(plane.request("GET", f"{QUEUES}/{queue}").get("status", {}).get("state", ""))
    except ApiFailure:
        return ""


def test_queues_are_opened_counted_and_closed_when_their_groups_are_gone(
    control_plane: ControlPlane, controllers: Controllers, objects: Objects
) -> None:
    wait_until(
        "root and default are open", lambda: {state(control_plane, q) for q in ("root", "default")} == {"Open"}, 10
    )
    name = f"e2e-{secrets.token_hex(3)}"
    control_plane.request("POST", QUEUES, manifest(a_queue(name)))
    try:
        wait_until("it is open", lambda: state(control_plane, name) == "Open", 10.0)
        objects.create_group("a", name)
        status = wait_until(
            "the group is counted",
            lambda: (s := control_plane.request("GET", f"{QUEUES}/{name}")["status"]).get("pending") == 1 and s,
            10.0,
        )
        assert status["state"] == "Open"
        assert f'volcano_queue_pod_group_pending_count{{queue_name="{name}"}} 1.0' in controllers.metrics()

        path = f"{QUEUES}/{name}/status"
        control_plane.request("PATCH", path, {"status": {"state": "Closed"}}, content_type=MERGE)
        wait_until("it is closing", lambda: state(control_plane, name) == "Closing", 10.0)
        objects.delete_group("a")
        wait_until("it is closed", lambda: state(control_plane, name) == "Closed", 10.0)
    finally:
        control_plane.request("DELETE", f"{QUEUES}/{name}")
