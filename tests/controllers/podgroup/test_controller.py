"""Pods get their PodGroups: the podgroup controller on an embedded API server."""

import pytest

from tests.controllers.managing import (
    GROUP_NAME,
    GROUPS,
    controllers,
    group,
    group_of,
    put_pod,
    put_workload,
)
from tests.daemon.cluster import comes_to_rest, event_reasons, stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.podgroup import controller
from volcano_py.kube.resource import PODS
from volcano_py.kube.resource import REPLICA_SETS as REPLICA_SET_RESOURCE
from volcano_py.testing import a_group, a_pod, manifest


async def scale(manager: ControllerManager, name: str, replicas: int) -> None:
    body = {"spec": {"replicas": replicas}}
    await manager.client.patch(REPLICA_SET_RESOURCE, name, body, dict, namespace="default")


def writes(server: ApiServer) -> int:
    return sum(count for (_, resource), count in server.requests.writes().items() if not resource.startswith("queues"))


async def test_a_bare_pod_gets_a_group_of_its_own(server: ApiServer) -> None:
    async with controllers(server.url):
        pod = put_pod(server, "p1")

        await until(lambda: group_of(server, "p1"))

        made = group(server, pod)
        assert made is not None
        assert group_of(server, "p1") == made["metadata"]["name"]
        assert made["spec"]["minMember"] == 1
        assert made["spec"]["queue"] == "default"
        assert made["spec"]["minResources"]["cpu"] == "500m"
        assert made["status"]["phase"] == "Pending"


COPIED = "podgroup-e83a32e1-84ae-465b-aa18-1050ed2a2d29"


async def test_a_copy_of_a_bare_pod_gets_a_group_when_that_of_the_first_pod_is_gone(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after ``kubectl replace --force`` with what ``kubectl get`` printed, or after a restored backup."""
    monkeypatch.setattr(controller, "_COPIES_S", 1.2)  # the age of a pod has whole seconds
    copied = COPIED
    server.create(manifest(a_group(copied)))
    async with controllers(server.url):
        pod = put_pod(server, "kept", annotations={"scheduling.k8s.io/group-name": copied})
        await stays(lambda: group_of(server, "kept") == copied)
        assert group(server, pod) is None

        lost = put_pod(server, "lost", annotations={"scheduling.k8s.io/group-name": f"{copied[:-1]}8"})
        await until(lambda: group(server, lost) is not None)

        await until(lambda: group_of(server, "lost") == (group(server, lost) or {})["metadata"]["name"])


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
async def test_restored_pods_that_a_workload_adopts_get_its_group_when_their_old_one_is_gone(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """As after a backup of Velero without PodGroups: the workload has a new uid, and its pods the old annotation."""
    monkeypatch.setattr(controller, "_COPIES_S", 1.2)
    there = f"{COPIED[:-1]}8"
    server.create(manifest(a_group(there)))
    web = put_workload(server, kind, "web", 3)
    async with controllers(server.url):
        put_pod(server, "web-0", web, annotations={GROUP_NAME: COPIED})
        put_pod(server, "web-1", web, annotations={GROUP_NAME: COPIED})
        put_pod(server, "web-2", web, annotations={GROUP_NAME: there})

        await until(lambda: all(group_of(server, f"web-{n}") == f"podgroup-{web['metadata']['uid']}" for n in (0, 1)))

        assert group(server, web) is not None
        await stays(lambda: group_of(server, "web-2") == there)


async def test_pods_keep_a_missing_group_that_their_template_names(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "_COPIES_S", 0.1)
    web = put_workload(server, "ReplicaSet", "web", 1)
    template = {"spec": {"template": {"metadata": {"annotations": {GROUP_NAME: COPIED}}}}}
    async with controllers(server.url) as manager:
        await manager.client.patch(REPLICA_SET_RESOURCE, "web", template, dict, namespace="default")
        put_pod(server, "web-0", web, annotations={GROUP_NAME: COPIED})

        await stays(lambda: group_of(server, "web-0") == COPIED, seconds=1.5)


async def test_pods_that_name_a_group_before_it_exists_keep_it(server: ApiServer) -> None:
    """A client may choose a name like those that are made here, for a gang of bare pods."""
    async with controllers(server.url):
        put_pod(server, "first", annotations={GROUP_NAME: COPIED})
        await stays(lambda: group_of(server, "first") == COPIED)
        server.create(manifest(a_group(COPIED)))

        await stays(lambda: group_of(server, "first") == COPIED)


async def test_several_pods_that_name_a_group_are_no_copies(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "_COPIES_S", 0.1)
    for name in ("one", "two"):
        put_pod(server, name, annotations={GROUP_NAME: COPIED})
    async with controllers(server.url) as manager:
        await stays(lambda: [group_of(server, name) for name in ("one", "two")] == [COPIED] * 2, seconds=1.5)

        await manager.client.delete(PODS, "one", namespace="default", grace_period_s=0)
        await until(lambda: group_of(server, "two") not in ("", COPIED))


async def test_pods_created_before_the_controller_get_their_groups(server: ApiServer) -> None:
    put_pod(server, "p1")

    async with controllers(server.url):
        await until(lambda: group_of(server, "p1"))


async def test_pods_of_one_workload_share_a_group_with_its_minimum(server: ApiServer) -> None:
    async with controllers(server.url):
        web = put_workload(server, "ReplicaSet", "web", 3, **{"scheduling.volcano.sh/group-min-member": "3"})
        for number in range(3):
            put_pod(server, f"web-{number}", web)

        await until(lambda: all(group_of(server, f"web-{number}") for number in range(3)))

        made = group(server, web)
        assert made is not None
        assert made["spec"]["minMember"] == 3
        assert len(server.list(GROUPS)) == 1


@pytest.mark.parametrize("kind", ["DaemonSet", "Job"])
async def test_the_minimum_of_owners_that_are_not_watched_is_read(server: ApiServer, kind: str) -> None:
    async with controllers(server.url):
        owner = put_workload(server, kind, "own", **{"scheduling.volcano.sh/group-min-member": "2"})
        put_pod(server, "own-0", owner)

        await until(lambda: group_of(server, "own-0"))

        assert (group(server, owner) or {})["spec"]["minMember"] == 2


async def test_annotations_of_owners_can_be_left_aside(server: ApiServer) -> None:
    async with controllers(server.url, inherit_owner_annotations=False):
        web = put_workload(server, "ReplicaSet", "web", 3, **{"scheduling.volcano.sh/group-min-member": "3"})
        put_pod(server, "web-0", web)

        await until(lambda: group_of(server, "web-0"))

        assert (group(server, web) or {})["spec"]["minMember"] == 1


async def test_each_pod_costs_one_write_and_each_group_one(server: ApiServer) -> None:
    web = put_workload(server, "ReplicaSet", "web", 20)
    async with controllers(server.url) as manager:
        await until(manager.ready.is_set)
        for number in range(20):
            put_pod(server, f"web-{number}", web)
        await until(lambda: all(group_of(server, f"web-{number}") for number in range(20)))

        backlog = ("volcano_py_controller_backlog", {"controller": "pg-controller"})
        await until(lambda: manager.registry.get_sample_value(*backlog) == 0)
        assert writes(server) == 21


async def test_pods_that_name_a_group_or_another_scheduler_are_left_alone(server: ApiServer) -> None:
    async with controllers(server.url):
        put_pod(server, "member", annotations={"scheduling.k8s.io/group-name": "mine"})
        server.create(manifest(a_pod("theirs", scheduler="default-scheduler")))
        put_pod(server, "last")
        await until(lambda: group_of(server, "last"))

        assert (group_of(server, "member"), group_of(server, "theirs")) == ("mine", "")
        assert len(server.list(GROUPS)) == 1


async def test_a_pod_that_changes_meanwhile_is_tried_again(server: ApiServer) -> None:
    async with controllers(server.url):
        server.faults.add(Fault("reply", verb="patch", resource="pods", times=2, code=409))
        put_pod(server, "p1")

        await until(lambda: group_of(server, "p1"))


async def test_a_failing_api_server_only_delays_the_work(server: ApiServer) -> None:
    async with controllers(server.url):
        server.faults.add(Fault("reply", verb="create", resource=GROUPS, times=2, code=500))
        pods = [put_pod(server, f"p{number}") for number in range(5)]

        await until(lambda: all(group_of(server, pod["metadata"]["name"]) for pod in pods))


async def test_a_group_that_is_refused_is_reported_at_once_and_made_when_nothing_is_wrong_any_more(
    server: ApiServer,
) -> None:
    async with controllers(server.url):
        refusal = server.faults.add(Fault("reply", verb="create", resource=GROUPS, times=None, code=403))
        put_pod(server, "p1")
        await until(lambda: "FailedPodGroup" in event_reasons(server, "Pod", "p1"))

        server.faults.remove(refusal)
        await until(lambda: group_of(server, "p1"))


async def test_a_pod_that_comes_later_is_told_of_the_refusal_at_once_too(server: ApiServer) -> None:
    async with controllers(server.url):
        server.faults.add(Fault("reply", verb="create", resource=GROUPS, times=None, code=403))
        web = put_workload(server, "ReplicaSet", "web", 2)
        put_pod(server, "web-0", web)
        await until(lambda: "FailedPodGroup" in event_reasons(server, "Pod", "web-0"))

        put_pod(server, "web-1", web)
        await until(lambda: "FailedPodGroup" in event_reasons(server, "Pod", "web-1"))


async def test_a_group_that_cannot_be_written_is_reported_on_its_pods(server: ApiServer) -> None:
    async with controllers(server.url, attempts=1):
        put_pod(server, "p1", annotations={"scheduling.volcano.sh/queue-name": "No Queue"})

        await until(lambda: "FailedPodGroup" in event_reasons(server, "Pod", "p1"))

        assert group_of(server, "p1") == ""


async def test_the_group_of_a_workload_is_deleted_at_zero_pods_and_created_again(server: ApiServer) -> None:
    async with controllers(server.url) as manager:
        web = put_workload(server, "ReplicaSet", "web", 2)
        put_pod(server, "web-0", web)
        await until(lambda: group_of(server, "web-0"))

        await scale(manager, "web", 0)
        await until(lambda: group(server, web) is None)
        await scale(manager, "web", 1)
        put_pod(server, "web-1", web)

        await until(lambda: group_of(server, "web-1"))
        assert group(server, web)


async def test_a_workload_whose_pods_are_refused_holds_no_room(server: ApiServer) -> None:
    async with controllers(server.url):
        web = put_workload(server, "ReplicaSet", "web", 2)

        await stays(lambda: group(server, web) is None, seconds=0.2)


async def test_the_group_follows_the_template_of_its_workload(server: ApiServer) -> None:
    async with controllers(server.url) as manager:
        web = put_workload(server, "ReplicaSet", "web", 2)
        put_pod(server, "web-0", web)
        await until(lambda: group_of(server, "web-0"))

        annotations = {"scheduling.volcano.sh/queue-name": "q2", "volcano.sh/preemptable": "true"}
        body = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
        await manager.client.patch(REPLICA_SET_RESOURCE, "web", body, dict, namespace="default")

        await until(lambda: (group(server, web) or {})["spec"]["queue"] == "q2")
        assert (group(server, web) or {})["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"


async def test_a_change_of_the_group_that_is_refused_holds_up_no_pods_and_is_reported(server: ApiServer) -> None:
    async with controllers(server.url, attempts=1) as manager:
        web = put_workload(server, "ReplicaSet", "web", 2)
        put_pod(server, "web-0", web)
        await until(lambda: group_of(server, "web-0"))
        wrong = {"scheduling.volcano.sh/queue-name": "No Queue"}
        body = {"spec": {"template": {"metadata": {"annotations": wrong}}}}
        await manager.client.patch(REPLICA_SET_RESOURCE, "web", body, dict, namespace="default")
        await until(lambda: "FailedPodGroup" in event_reasons(server, "ReplicaSet", "web"))

        put_pod(server, "web-1", web, annotations=wrong)

        await until(lambda: group_of(server, "web-1"))
        assert (group(server, web) or {})["spec"]["queue"] == "default"


async def count_pods(manager: ControllerManager, name: str, pods: int) -> None:
    """Write into the status of a workload how many pods it has, as its own controller does."""
    body = {"status": {"replicas": pods}}
    path = {"namespace": "default", "subresource": "status"}
    await manager.client.patch(REPLICA_SET_RESOURCE, name, body, dict, **path)


async def test_a_group_that_somebody_deletes_is_made_again_while_it_is_needed(server: ApiServer) -> None:
    async with controllers(server.url) as manager:
        web = put_workload(server, "ReplicaSet", "web", 2)
        put_pod(server, "web-0", web, labels={"app": "web"})
        await until(lambda: group_of(server, "web-0"))
        await count_pods(manager, "web", 1)
        before = group(server, web) or {}
        server.registry.delete(server.resources.named(GROUPS), "default", before["metadata"]["name"])

        await until(lambda: (group(server, web) or before)["metadata"]["uid"] != before["metadata"]["uid"])
        assert (group(server, web) or {})["spec"] == before["spec"]


async def test_pods_that_got_another_group_on_admission_leave_their_workload_without_one(server: ApiServer) -> None:
    async with controllers(server.url) as manager:
        web = put_workload(server, "ReplicaSet", "web", 2)
        put_pod(server, "web-0", web, labels={"app": "web"}, annotations={"scheduling.k8s.io/group-name": "all"})
        await count_pods(manager, "web", 1)

        await stays(lambda: group(server, web) is None, seconds=0.3)
        assert group_of(server, "web-0") == "all"


async def test_such_pods_are_not_listed_again_and_again(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("volcano_py.controllers.controller.REFILL_EVERY_S", 0.02)
    async with controllers(server.url, controllers=frozenset({"pg-controller"})) as manager:
        web = put_workload(server, "ReplicaSet", "web", 2)
        put_pod(server, "web-0", web, labels={"app": "web"}, annotations={"scheduling.k8s.io/group-name": "all"})
        await count_pods(manager, "web", 1)
        await comes_to_rest(lambda: server.requests.count("list", "pods"), 0.5)


async def test_without_pod_groups_nothing_is_tried_until_they_are_served() -> None:
    async with ApiServer() as bare, controllers(bare.url) as manager:
        put_pod(bare, "p1")
        await stays(lambda: not bare.requests.writes(), seconds=0.2)
        assert manager.not_ready() == []


async def test_an_owner_deleted_meanwhile_does_not_block_others(server: ApiServer) -> None:
    web = put_workload(server, "ReplicaSet", "web", 2)
    async with controllers(server.url) as manager:
        server.faults.add(Fault("delay", verb="create", resource=GROUPS, times=1, delay_s=0.2))
        put_pod(server, "web-0", web)
        put_pod(server, "web-1", web)
        await manager.client.delete(PODS, "web-0", namespace="default", grace_period_s=0)

        await until(lambda: group_of(server, "web-1"))


async def test_a_gang_of_a_stateful_set_that_makes_pods_one_by_one_is_reported(server: ApiServer) -> None:
    async with controllers(server.url):
        db = put_workload(server, "StatefulSet", "db", 3, **{"scheduling.volcano.sh/group-min-member": "3"})
        put_pod(server, "db-0", db)

        await until(lambda: "GangNeverComplete" in event_reasons(server, "StatefulSet", "db"))
