"""PodGroups of LeaderWorkerSets."""

from typing import Any

import msgspec
import pytest

from tests.controllers.managing import GROUPS, controllers, group, group_of, pod_spec, put_pod, put_workload
from tests.daemon.cluster import stays
from tests.effects.waiting import until
from volcano_py.api.meta import OwnerReference
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.podgroup import leader_worker
from volcano_py.controllers.podgroup.decision import GroupKey, group_key
from volcano_py.controllers.podgroup.leader_worker import LeaderWorkerSet
from volcano_py.kube.resource import LEADER_WORKER_SETS
from volcano_py.testing import a_pod, as_json

NAME = "leaderworkerset.sigs.k8s.io/name"
INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
SIZE = "leaderworkerset.sigs.k8s.io/size"
KEY = GroupKey("default", "uid-leader")
LEADER = OwnerReference(api_version="v1", kind="Pod", name="llm-0", uid="uid-leader", controller=True)


def a_template(cpu: str) -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"spec": {"schedulerName": "volcano", "containers": [container]}}


def a_set(startup: str = "LeaderCreated", annotations: Any = None, **template: Any) -> dict[str, Any]:
    return {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "llm", "namespace": "default", "annotations": annotations or {}},
        "spec": {
            "startupPolicy": startup,
            "leaderWorkerTemplate": {"size": 4, "workerTemplate": a_template("2"), **template},
        },
    }


def made(owner: dict[str, Any] | None, **annotations: str) -> dict[str, Any]:
    """Return the spec of the PodGroup of a group."""
    pod = a_pod("llm-0", cpu=1, annotations={SIZE: "3", **annotations})
    found = None if owner is None else msgspec.convert(owner, LeaderWorkerSet)
    body: Any = leader_worker.create(KEY, LEADER, pod, found).body
    (reference,) = body["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("Pod", "uid-leader", True)
    assert body["metadata"]["name"] == "podgroup-uid-leader"
    spec: dict[str, Any] = body["spec"]
    return spec


def test_a_group_is_a_gang_of_its_size_with_the_resources_of_leader_and_workers() -> None:
    spec = made(a_set(leaderTemplate=a_template("1")))

    assert spec["minMember"] == 4
    assert (spec["minResources"]["cpu"], spec["minResources"]["pods"]) == ("7", "4")


def test_a_leader_without_a_template_of_its_own_is_like_a_worker() -> None:
    assert made(a_set())["minResources"]["cpu"] == "8"


def test_a_leader_that_must_run_first_is_a_gang_of_its_own_within_the_resources_of_the_group() -> None:
    spec = made(a_set("LeaderReady"))

    assert (spec["minMember"], spec["minResources"]["pods"]) == (1, "4")


def test_the_size_on_the_pod_counts_if_the_set_cannot_be_read() -> None:
    spec = made(None)

    assert (spec["minMember"], spec["minResources"]["cpu"]) == (3, "3")


def test_the_queue_is_that_of_the_pod_else_that_of_the_set() -> None:
    key = "scheduling.volcano.sh/queue-name"
    owner = a_set(annotations={key: "of-the-set"})

    assert made(owner)["queue"] == "of-the-set"
    assert made(owner, **{key: "of-the-pod"})["queue"] == "of-the-pod"


def test_a_minimum_on_the_set_replaces_the_size() -> None:
    assert made(a_set(annotations={"scheduling.volcano.sh/group-min-member": "2"}))["minMember"] == 2


@pytest.mark.parametrize(
    ("labels", "uid"), [({NAME: "llm", INDEX: "0"}, "uid-default-p"), ({NAME: "llm", INDEX: "1"}, "uid-o")]
)
def test_a_leader_has_a_group_of_its_own_and_workers_go_by_their_owner(labels: dict[str, str], uid: str) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "uid-o", "controller": True}
    pod = msgspec.convert(as_json(a_pod("p"), metadata={"labels": labels, "ownerReferences": [owner]}), type(a_pod()))

    assert group_key(pod).uid == uid


def serve_leader_worker_sets(server: ApiServer) -> None:
    """Create a definition of LeaderWorkerSets that keeps every field."""
    resource = LEADER_WORKER_SETS
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": resource.kind, "listKind": f"{resource.kind}List", "plural": resource.plural}
    server.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": resource.label},
            "spec": {
                "group": resource.group,
                "scope": "Namespaced",
                "names": {**names, "singular": resource.kind.lower()},
                "versions": [version],
            },
        }
    )


def put_stateful_set(
    server: ApiServer, name: str, owner: dict[str, Any], scheduler: str = "volcano", label: str = "llm"
) -> dict[str, Any]:
    """Create a stateful set of a LeaderWorkerSet as its controller does."""
    labels = {NAME: label}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    reference |= {field: owner["metadata"][field] for field in ("name", "uid")}
    template = {"metadata": {"labels": labels}, "spec": {**pod_spec(), "schedulerName": scheduler}}
    return server.create(
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name, "namespace": "default", "labels": labels, "ownerReferences": [reference]},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
    )


def put_member(server: ApiServer, name: str, index: int, owner: dict[str, Any], **annotations: str) -> dict[str, Any]:
    labels = {NAME: "llm", INDEX: str(index)}
    return put_pod(server, name, owner, {SIZE: "2", **annotations}, labels)


@pytest.mark.parametrize("scheduler", ["volcano", "default-scheduler"], ids=["watched", "read"])
async def test_leader_and_workers_share_one_group(server: ApiServer, scheduler: str) -> None:
    serve_leader_worker_sets(server)
    async with controllers(server.url):
        owner = server.create(a_set(size=2))
        leaders = put_stateful_set(server, "llm", owner, scheduler)
        leader = put_member(server, "llm-0", 0, leaders)
        workers = put_stateful_set(server, "llm-0", leader, scheduler)
        put_member(server, "llm-0-1", 1, workers)

        await until(lambda: group_of(server, "llm-0") == group_of(server, "llm-0-1") != "")

        found = group(server, leader)
        assert found is not None
        assert found["spec"]["minMember"] == 2
        await stays(lambda: len(server.list(GROUPS)) == 1)


@pytest.mark.parametrize("name", ["llm", ""], ids=["named", "empty"])
async def test_pods_whose_stateful_set_alone_has_the_label_join_their_leader(server: ApiServer, name: str) -> None:
    """An empty name is none, and the pods are those of a stateful set like others."""
    serve_leader_worker_sets(server)
    async with controllers(server.url):
        leader = put_member(server, "llm-0", 0, server.create(a_set(size=2)))
        workers = put_stateful_set(server, "llm-0", leader, label=name)
        put_pod(server, "llm-0-1", workers)
        await until(lambda: group_of(server, "llm-0-1"))

    expected = leader if name else workers
    assert group_of(server, "llm-0-1") == f"podgroup-{expected['metadata']['uid']}"


async def test_a_set_that_makes_its_own_groups_gets_none_here(server: ApiServer) -> None:
    serve_leader_worker_sets(server)
    async with controllers(server.url):
        owner = server.create(a_set(size=2))
        leaders = put_stateful_set(server, "llm", owner)
        put_member(server, "llm-0", 0, leaders, **{"scheduling.k8s.io/group-name": "llm-0-abc"})

        await stays(lambda: server.list(GROUPS) == [])


async def test_pods_of_others_with_the_label_get_their_groups(server: ApiServer) -> None:
    label = {NAME: "serve"}
    async with controllers(server.url):
        put_pod(server, "copy-of-a-worker", labels={**label, INDEX: "1"})
        web = put_workload(server, "ReplicaSet", "web", 1)
        put_pod(server, "web-0", web, labels={"app": "web", **label})

        await until(lambda: group_of(server, "copy-of-a-worker") and group_of(server, "web-0"))
        assert group(server, web)
