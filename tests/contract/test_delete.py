"""Contract: deletion, grace periods, finalizers, namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.api import Answer, Api, a_bare_pod, a_binding, a_config, unique

NODE = "contract-node"


async def _bound(api: Api, name: str = "a", **spec: Any) -> Answer:
    await api.made(api.path("pods"), a_bare_pod(name, **spec))
    await api.made(api.path("pods", name, "binding"), a_binding(name, NODE))
    return await api.get(api.path("pods", name))


async def test_most_kinds_are_gone_at_once_and_a_status_names_them(api: Api) -> None:
    made = await api.made(api.path("configmaps"), a_config())
    answer = await api.delete(api.path("configmaps", "a"))
    assert (answer.status, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert answer.body["details"] == {"name": "a", "kind": "configmaps", "uid": made.meta["uid"]}
    assert (await api.get(api.path("configmaps", "a"))).status == 404
    assert (await api.delete(api.path("configmaps", "a"))).status == 404


@pytest.mark.parametrize("name", ["default", "kube-public", "kube-system"])
async def test_a_namespace_of_the_system_cannot_be_deleted(api: Api, name: str) -> None:
    answer = await api.delete(f"/api/v1/namespaces/{name}")
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_a_pod_on_no_node_is_gone_at_once_and_returned(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.delete(api.path("pods", "a"))
    assert (answer.status, answer.body["kind"]) == (200, "Pod")
    assert (await api.get(api.path("pods", "a"))).status == 404


async def test_a_bound_pod_stays_for_its_grace_period(api: Api) -> None:
    await _bound(api)
    answer = await api.delete(api.path("pods", "a"))
    assert answer.meta["deletionGracePeriodSeconds"] == 30
    assert answer.meta["deletionTimestamp"] > answer.meta["creationTimestamp"]
    assert answer.meta["generation"] == 2
    assert (await api.get(api.path("pods", "a"))).meta["uid"] == answer.meta["uid"]


@pytest.mark.parametrize(
    ("spec", "options", "grace"),
    [
        pytest.param({"terminationGracePeriodSeconds": 7}, None, 7, id="of-the-spec"),
        pytest.param({}, {"gracePeriodSeconds": 5}, 5, id="of-the-request"),
        pytest.param({}, {"gracePeriodSeconds": -1}, 1, id="negative"),
    ],
)
async def test_the_grace_period_is_the_one_asked_for(api: Api, spec: Any, options: Any, grace: int) -> None:
    await _bound(api, **spec)
    answer = await api.delete(api.path("pods", "a"), options)
    assert answer.meta["deletionGracePeriodSeconds"] == grace


async def test_grace_zero_removes_a_bound_pod(api: Api) -> None:
    await _bound(api)
    await api.delete(api.path("pods", "a"))
    assert (await api.delete(api.path("pods", "a"), gracePeriodSeconds="0")).status == 200
    assert (await api.get(api.path("pods", "a"))).status == 404


async def test_a_second_deletion_can_shorten_but_not_lengthen(api: Api) -> None:
    await _bound(api)
    await api.delete(api.path("pods", "a"))
    shorter = await api.delete(api.path("pods", "a"), {"gracePeriodSeconds": 5})
    assert shorter.meta["deletionGracePeriodSeconds"] == 5
    longer = await api.delete(api.path("pods", "a"), {"gracePeriodSeconds": 50})
    assert longer.meta["deletionGracePeriodSeconds"] == 5


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_has_ended_needs_no_grace(api: Api, phase: str) -> None:
    await _bound(api)
    await api.patch(api.path("pods", "a", "status"), {"status": {"phase": phase}})
    await api.delete(api.path("pods", "a"))
    assert (await api.get(api.path("pods", "a"))).status == 404


@pytest.mark.parametrize(
    ("preconditions", "hint"),
    [
        ({"uid": "bad"}, "the UID in the precondition (bad) does not match the UID in record"),
        ({"resourceVersion": "1"}, "the ResourceVersion in the precondition (1) does not match"),
    ],
    ids=["uid", "version"],
)
async def test_a_failed_precondition_is_a_conflict(api: Api, preconditions: dict[str, str], hint: str) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.delete(api.path("pods", "a"), {"preconditions": preconditions})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert hint in answer.message
    assert (await api.get(api.path("pods", "a"))).status == 200


async def test_a_precondition_that_holds_lets_the_deletion_through(api: Api) -> None:
    made = await api.made(api.path("pods"), a_bare_pod())
    conditions = {"uid": made.meta["uid"], "resourceVersion": made.version}
    assert (await api.delete(api.path("pods", "a"), {"preconditions": conditions})).status == 200


async def test_a_finalizer_holds_the_object(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config(finalizers=["example.com/hold"]))
    answer = await api.delete(api.path("configmaps", "a"))
    assert (answer.status, answer.body["kind"]) == (200, "ConfigMap")
    assert answer.meta["deletionTimestamp"]
    assert answer.meta["deletionGracePeriodSeconds"] == 0
    again = await api.delete(api.path("configmaps", "a"))
    assert (again.status, again.version) == (200, answer.version)
    freed = await api.patch(api.path("configmaps", "a"), {"metadata": {"finalizers": None}})
    assert freed.status == 200
    assert (await api.get(api.path("configmaps", "a"))).status == 404


async def test_no_finalizer_is_added_to_a_terminating_object(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config(finalizers=["example.com/hold"]))
    await api.delete(api.path("configmaps", "a"))
    patch = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    answer = await api.patch(api.path("configmaps", "a"), patch)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert set(answer.fields) == {"metadata.finalizers"}
    await api.patch(api.path("configmaps", "a"), {"metadata": {"finalizers": None}})


async def test_a_finalizer_holds_a_pod_beyond_its_grace(api: Api) -> None:
    pod = a_bare_pod()
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    await api.made(api.path("pods"), pod)
    answer = await api.delete(api.path("pods", "a"), {"gracePeriodSeconds": 0})
    assert (answer.meta["deletionGracePeriodSeconds"], answer.meta["finalizers"]) == (0, ["example.com/hold"])
    await api.patch(api.path("pods", "a"), {"metadata": {"finalizers": None}})
    assert (await api.get(api.path("pods", "a"))).status == 404


async def test_a_finalizer_and_a_grace_period_both_hold(api: Api) -> None:
    pod = a_bare_pod()
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    await api.made(api.path("pods"), pod)
    await api.made(api.path("pods", "a", "binding"), a_binding("a", NODE))
    await api.delete(api.path("pods", "a"))
    await api.patch(api.path("pods", "a"), {"metadata": {"finalizers": None}})
    assert (await api.get(api.path("pods", "a"))).meta["deletionGracePeriodSeconds"] == 30


async def test_a_deletion_with_an_unknown_policy_is_invalid(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config())
    answer = await api.delete(api.path("configmaps", "a"), {"propagationPolicy": "Foo"})
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["propagationPolicy"])


async def test_a_deletion_with_a_broken_body_is_a_bad_request(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config())
    answer = await api.request("DELETE", api.path("configmaps", "a"), b"{bad")
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_dry_run_of_a_deletion_deletes_nothing(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config())
    assert (await api.delete(api.path("configmaps", "a"), dryRun="All")).status == 200
    assert (await api.get(api.path("configmaps", "a"))).status == 200


async def test_deleting_all_pods_marks_the_bound_and_removes_the_others(api: Api) -> None:
    await _bound(api, "bound")
    await api.made(api.path("pods"), a_bare_pod("free"))
    answer = await api.delete(api.path("pods"))
    assert (answer.status, answer.body["kind"], answer.names) == (200, "PodList", ["bound", "free"])
    left = await api.get(api.path("pods"))
    assert left.names == ["bound"]
    assert left.body["items"][0]["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_a_terminating_namespace_accepts_no_new_objects_and_is_then_removed(api: Api) -> None:
    name = unique("contract")
    path = f"/api/v1/namespaces/{name}"
    await api.made("/api/v1/namespaces", {"metadata": {"name": name}})
    await api.made(f"{path}/configmaps", a_config(finalizers=["example.com/hold"]))
    answer = await api.delete(path)
    assert (answer.status, answer.body["status"]["phase"]) == (200, "Terminating")
    assert answer.meta["deletionTimestamp"]
    refused = await api.post(f"{path}/configmaps", a_config("late"))
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await api.until(
        f"{path}/configmaps/a", lambda found: "deletionTimestamp" in found.meta, "the content is being deleted"
    )
    await api.patch(f"{path}/configmaps/a", {"metadata": {"finalizers": None}})
    await api.until_gone(path)
