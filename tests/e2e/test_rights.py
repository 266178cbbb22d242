"""Rights that the other tests do not need, each used by a process that runs under its account.

`rights.py` compares the rights of manifests/ with those that were used in a whole run.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.controlplane.fixtures import MakeNodes
from tests.controlplane.install import MANIFESTS, NAMESPACE, Installed
from tests.controlplane.rest import ApiFailure
from tests.controlplane.rights import Right, granted
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.controllers import CONTROLLERS_ACCOUNT, SCHEDULER_ACCOUNT, Controllers
from tests.e2e.daemon import Daemon
from tests.e2e.faulty_proxy import Faults, FaultyProxy
from tests.e2e.gangs import Gangs, Role
from tests.e2e.rights import proved
from tests.e2e.vcjobs import task, vcjob
from volcano_py.testing import a_group, a_queue, a_shard, manifest

RBAC = "/apis/rbac.authorization.k8s.io/v1"
BATCH = "/apis/batch.volcano.sh/v1alpha1"
FLOW = "/apis/flow.volcano.sh/v1alpha1"
SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
SHARDS = "/apis/shard.volcano.sh/v1alpha1/nodeshards"
LWS_GROUP = "leaderworkerset.x-k8s.io"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
POOL = "e2e.volcano-py/pool"
ALONE = "--leader-elect=false"
LEADER = {"leaderworkerset.sigs.k8s.io/name": "lws", "leaderworkerset.sigs.k8s.io/worker-index": "0"}
PAUSE = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "10m"}}}


class Objects:
    """The objects of one test, in its namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace

    def path(self, plural: str, api: str = "/api/v1") -> str:
        return f"{api}/namespaces/{self.namespace}/{plural}"

    def create(self, plural: str, api: str, body: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = self.plane.request("POST", self.path(plural, api), body)
        return made

    def named(self, plural: str, api: str = "/api/v1") -> dict[str, dict[str, Any]]:
        items = self.plane.request("GET", self.path(plural, api))["items"]
        return {one["metadata"]["name"]: one for one in items}

    def group_of(self, pod: str) -> dict[str, Any] | None:
        """Return the PodGroup that the annotation of a pod names."""
        meta = self.named("pods")[pod]["metadata"]
        name = meta.get("annotations", {}).get("scheduling.k8s.io/group-name", "")
        return self.named("podgroups", SCHEDULING).get(name)


@pytest.fixture
def objects(control_plane: ControlPlane, namespace: str) -> Iterator[Objects]:
    yield Objects(control_plane, namespace)
    # A test here removes a definition. Until the controllers of Kubernetes know of that, custom objects may outlive
    # their namespace, and a cron job would go on.
    for plural, api in (("cronjobs", BATCH), ("jobflows", FLOW), ("jobs", BATCH), ("podgroups", SCHEDULING)):
        control_plane.request("DELETE", f"{api}/namespaces/{namespace}/{plural}")


@pytest.fixture
def start(control_plane: ControlPlane, installed: Installed) -> Iterator[Callable[..., Controllers]]:
    """Start controllers, with these flags and under this account; they are stopped at the end."""
    started: list[Controllers] = []

    def now(*flags: str, account: Installed | None = None) -> Controllers:
        started.append(Controllers(control_plane, account or installed, ALONE, *flags).start())
        return started[-1]

    yield now
    for one in started:
        one.stop()


def template(name: str, scheduler: str = "volcano", restart: str = "Always") -> dict[str, Any]:
    spec = {"schedulerName": scheduler, "restartPolicy": restart, "containers": [PAUSE]}
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def workload(kind: str, api_version: str, name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "annotations": {MIN_MEMBER: "7"}}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


# Owners of pods are read


MADE_BY_KUBERNETES = [
    pytest.param("daemonsets", "DaemonSet", "apps/v1", id="DaemonSet"),
    pytest.param("jobs", "Job", "batch/v1", id="Job"),
    pytest.param("replicationcontrollers", "ReplicationController", "v1", id="ReplicationController"),
]
ADOPTED = [
    pytest.param("replicasets", "ReplicaSet", id="ReplicaSet"),
    pytest.param("statefulsets", "StatefulSet", id="StatefulSet"),
]


@pytest.mark.parametrize(("plural", "kind", "version"), MADE_BY_KUBERNETES)
def test_a_pod_group_takes_over_the_annotations_of_an_owner_that_is_not_watched(
    objects: Objects, start: Callable[..., Controllers], make_nodes: MakeNodes, plural: str, kind: str, version: str
) -> None:
    make_nodes(1)  # for the pod of the DaemonSet
    spec: dict[str, Any] = {"template": template("own", restart="Never" if kind == "Job" else "Always")}
    if kind == "DaemonSet":
        spec["selector"] = {"matchLabels": {"app": "own"}}
    start()

    objects.create(plural, f"/apis/{version}" if "/" in version else "/api/v1", workload(kind, version, "own", **spec))

    pod = wait_until("there is a pod", lambda: next(iter(objects.named("pods")), ""), 20.0)
    group = wait_until("it has a PodGroup", lambda: objects.group_of(pod), 20.0)
    assert group["spec"]["minMember"] == 7


@pytest.mark.parametrize(("plural", "kind"), ADOPTED)
def test_a_pod_group_takes_over_the_annotations_of_an_owner_whose_template_names_another_scheduler(
    objects: Objects, start: Callable[..., Controllers], plural: str, kind: str
) -> None:
    """A webhook has given the pod to this scheduler, so the controllers do not watch its owner."""
    pod = {"apiVersion": "v1", "kind": "Pod", **template("own")}
    pod["metadata"]["name"] = "own-0"
    objects.create("pods", "/api/v1", pod)
    spec: dict[str, Any] = {"replicas": 1, "selector": {"matchLabels": {"app": "own"}}}
    if kind == "StatefulSet":
        spec["serviceName"] = "own"
    body = workload(kind, "apps/v1", "own", **spec, template=template("own", "somebody-else"))
    objects.create(plural, "/apis/apps/v1", body)
    wait_until("the pod is adopted", lambda: "ownerReferences" in objects.named("pods")["own-0"]["metadata"], 20.0)

    start()

    group = wait_until("the pod has a PodGroup", lambda: objects.group_of("own-0"), 20.0)
    assert group["spec"]["minMember"] == 7


@pytest.fixture
def leader_worker_sets(own_control_plane: ControlPlane) -> Iterator[str]:
    """The path of LeaderWorkerSets, whose definition is a short one of our own."""
    plane = own_control_plane
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "leaderworkersets", "singular": "leaderworkerset", "kind": "LeaderWorkerSet"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"leaderworkersets.{LWS_GROUP}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {
            "group": LWS_GROUP,
            "scope": "Namespaced",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": free}}],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api = f"/apis/{LWS_GROUP}/v1"

    def served() -> bool:
        try:
            return bool(plane.request("GET", f"{api}/leaderworkersets"))
        except ApiFailure:
            return False

    plane.request("POST", definitions, definition)
    wait_until("LeaderWorkerSets are served", served, 30.0)
    yield api
    plane.request("DELETE", f"{definitions}/leaderworkersets.{LWS_GROUP}")


def test_the_pod_group_of_a_leader_follows_its_leader_worker_set(
    objects: Objects, start: Callable[..., Controllers], leader_worker_sets: str
) -> None:
    groups = {"size": 3, "workerTemplate": {"spec": {"containers": [PAUSE]}}}
    objects.create(
        "leaderworkersets",
        leader_worker_sets,
        workload("LeaderWorkerSet", f"{LWS_GROUP}/v1", "lws", leaderWorkerTemplate=groups),
    )
    start()

    pod = {"apiVersion": "v1", "kind": "Pod", **template("lws")}
    pod["metadata"] = {"name": "lws-0", "labels": LEADER}
    objects.create("pods", "/api/v1", pod)

    group = wait_until("the leader has a PodGroup", lambda: objects.group_of("lws-0"), 20.0)
    assert group["spec"]["minMember"] == 7
    assert group["spec"]["minResources"]["cpu"] == "30m"


# What exists already, or is missing


def test_the_default_queue_comes_back_when_the_controllers_start(
    own_control_plane: ControlPlane, installed: Installed, start: Callable[..., Controllers]
) -> None:
    path = f"{SCHEDULING}/queues/default"

    def exists() -> bool:
        try:
            return bool(own_control_plane.request("GET", path))
        except ApiFailure:
            return False

    if exists():
        own_control_plane.request("DELETE", path)
        wait_until("the queue is gone", lambda: not exists(), 10.0)

    start()

    wait_until("the queue is there again", exists, 20.0)


def test_a_job_takes_the_pod_group_that_exists_already(
    control_plane: ControlPlane, objects: Objects, start: Callable[..., Controllers]
) -> None:
    """The watch has not shown the PodGroup when the controllers create it, so they read it."""
    queue = f"q-{secrets.token_hex(3)}"
    context = control_plane.ssl_context_without_certificate()
    with FaultyProxy(control_plane.server_url, context) as proxy:
        proxy.faults = Faults(silent="podgroups")
        running = start(f"--master={proxy.url}")
        job = objects.create("jobs", BATCH, vcjob("late", [task("worker", 1)], queue=queue))
        wait_until("the job waits for its queue", lambda: "status" in objects.named("jobs", BATCH)["late"], 20.0)
        meta = job["metadata"]
        owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": "late", "uid": meta["uid"], "controller": True}
        group = manifest(a_group(f"late-{meta['uid']}", namespace="", queue=queue))
        group["metadata"]["ownerReferences"] = [owner]
        group["status"] = {"phase": "Inqueue"}
        objects.create("podgroups", SCHEDULING, group)

        control_plane.request("POST", f"{SCHEDULING}/queues", manifest(a_queue(queue)))
        try:
            wait_until("the job has its pod", lambda: objects.named("pods"), 20.0)
        finally:
            running.stop()
            control_plane.request("DELETE", f"{SCHEDULING}/queues/{queue}")


# Shards


@pytest.fixture
def sharding(own_control_plane: ControlPlane, installed: Installed) -> Iterator[None]:
    """The rights of manifests/sharding."""
    folder = str(MANIFESTS / "sharding")
    own_control_plane.kubectl("apply", "-k", folder)
    yield
    own_control_plane.kubectl("delete", "-k", folder)


@pytest.mark.usefixtures("sharding")
def test_a_scheduler_places_pods_in_its_shard_and_says_which_nodes_it_uses(
    control_plane: ControlPlane, installed: Installed, namespace: str, make_nodes: MakeNodes
) -> None:
    pool = {POOL: secrets.token_hex(4)}
    own, other = make_nodes(2, cpu=8, labels=pool)
    shard = f"shard-{secrets.token_hex(3)}"
    control_plane.request("POST", SHARDS, manifest(a_shard(shard, [own])))
    flags = (ALONE, "--scheduler-sharding-mode=hard", f"--scheduler-sharding-name={shard}")
    daemon = Daemon(control_plane, installed, name=f"vc-scheduler-{secrets.token_hex(2)}", flags=flags)
    gangs = Gangs(control_plane.cluster, namespace, pool)
    try:
        daemon.start()
        gangs.create("sharded", 4, Role("worker", 4, {"cpu": "1"}))
        wait_until("the gang is bound", lambda: len(gangs.bound()) == 4, 20.0)

        def says() -> bool:
            status = control_plane.request("GET", f"{SHARDS}/{shard}").get("status", {})
            return bool(status.get("nodesInUse") == [own])

        wait_until("the shard says so", says, 20.0)
        assert {pod["spec"]["nodeName"] for pod in gangs.bound()} == {own}
        assert other not in str(control_plane.request("GET", f"{SHARDS}/{shard}")["status"]["nodesInUse"])
    finally:
        daemon.stop()
        control_plane.request("DELETE", f"{SHARDS}/{shard}")


# Rights that only admission checks


def checked_by_admission() -> list[Right]:
    """Return the rights on finalizers of owners; no request is ever made with them."""
    return sorted({grant.right for grant in granted() if grant.right.resource.endswith("/finalizers")})


class WeakAccount:
    """An account with the rights of the controllers, but without those that only admission checks."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._role = f"weak-{secrets.token_hex(3)}"
        self._all = plane.request("GET", f"{RBAC}/clusterroles/{CONTROLLERS_ACCOUNT}")["rules"]
        name = f"{CONTROLLERS_ACCOUNT}-weak"
        self.installed = Installed(namespace, f"{SCHEDULER_ACCOUNT}-weak")
        plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}})
        rules = [rule for rule in self._all if not any(each.endswith("/finalizers") for each in rule["resources"])]
        plane.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": self._role}, "rules": rules})
        account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        self._bindings = (f"{RBAC}/clusterrolebindings", f"{RBAC}/namespaces/{NAMESPACE}/rolebindings")
        roles = (("ClusterRole", self._role), ("Role", CONTROLLERS_ACCOUNT))
        for path, (kind, role) in zip(self._bindings, roles, strict=True):
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}
            body = {"metadata": {"name": self._role}, "roleRef": reference, "subjects": [account]}
            plane.request("POST", path, body)

    def grant_all(self) -> None:
        """Give it the rights that it lacks."""
        body = {"rules": self._all}
        path = f"{RBAC}/clusterroles/{self._role}"
        self._plane.request("PATCH", path, body, content_type="application/merge-patch+json")

    def remove(self) -> None:
        """Remove its role and the bindings."""
        for path in (*self._bindings, f"{RBAC}/clusterroles"):
            self._plane.request("DELETE", f"{path}/{self._role}")


@pytest.fixture
def weak(own_control_plane: ControlPlane, installed: Installed, namespace: str) -> Iterator[WeakAccount]:
    account = WeakAccount(own_control_plane, namespace)
    yield account
    account.remove()


def create_owners(objects: Objects) -> None:
    """Create a pod, a job, a cron job and a job flow."""
    spec = vcjob("", [task("worker", 1)])["spec"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template("bare")}
    pod["metadata"]["name"] = "bare"
    objects.create("pods", "/api/v1", pod)
    objects.create("jobs", BATCH, vcjob("plain", [task("worker", 1)]))
    cron = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    batch = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "cron"}}
    objects.create("cronjobs", BATCH, {**batch, "spec": cron})
    flow = {"apiVersion": "flow.volcano.sh/v1alpha1"}
    objects.create("jobtemplates", FLOW, {**flow, "kind": "JobTemplate", "metadata": {"name": "step"}, "spec": spec})
    steps = {"flows": [{"name": "step"}], "jobRetainPolicy": "retain"}
    objects.create("jobflows", FLOW, {**flow, "kind": "JobFlow", "metadata": {"name": "flow"}, "spec": steps})


def owners(objects: Objects) -> set[str]:
    """Return the resources of which an object owns another one, with a claim on its deletion."""
    found = [*objects.named("podgroups", SCHEDULING).values(), *objects.named("jobs", BATCH).values()]
    references = [each for one in found for each in one["metadata"].get("ownerReferences", ())]
    kinds = {(each["apiVersion"].rpartition("/")[0], each["kind"]) for each in references if each["blockOwnerDeletion"]}
    return {f"{kind.lower()}s.{group}" if group else f"{kind.lower()}s" for group, kind in kinds}


def test_no_owner_owns_anything_without_the_right_on_its_finalizers(
    objects: Objects, start: Callable[..., Controllers], weak: WeakAccount
) -> None:
    """API servers with the admission plugin OwnerReferencesPermissionEnforcement demand it; ours have it."""
    rights = checked_by_admission()
    wanted = {str(right).partition(" ")[2].removesuffix("/finalizers") for right in rights}
    create_owners(objects)
    controllers = start(account=weak.installed)
    refusals = ("pg-controller", "job-controller", "cronjob-controller", "jobflow-controller")

    def refused() -> bool:
        lines = [line for line in controllers.log().splitlines() if "you can't set finalizers on" in line]
        return all(any(f'"{name}"' in line for line in lines) for name in refusals)

    wait_until("each controller is refused", refused, 90.0)
    assert owners(objects) == set()

    weak.grant_all()

    wait_until("each owner owns something", lambda: owners(objects) == wanted, 60.0)
    for right in rights:
        proved(f"{NAMESPACE}/{CONTROLLERS_ACCOUNT}", right)
