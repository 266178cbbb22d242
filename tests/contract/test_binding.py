"""Contract: binding and eviction of pods."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.contract.api import Api, a_bare_pod, a_binding

NODE = "contract-node"


def _eviction(name: str = "a", **options: Any) -> dict[str, Any]:
    eviction: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    if options:
        eviction["deleteOptions"] = options
    return eviction


async def test_a_binding_puts_the_pod_on_the_node(api: Api) -> None:
    made = await api.made(api.path("pods"), a_bare_pod())
    answer = await api.post(api.path("pods", "a", "binding"), a_binding("a", NODE, uid=made.meta["uid"]))
    assert answer.status == 201
    assert (answer.body["kind"], answer.body["status"], answer.body["code"]) == ("Status", "Success", 201)
    pod = await api.get(api.path("pods", "a"))
    assert pod.body["spec"]["nodeName"] == NODE
    [condition] = pod.body["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert condition["lastTransitionTime"]
    assert (pod.body["status"]["phase"], pod.meta["generation"]) == ("Pending", 1)


async def test_a_binding_is_one_event_of_a_watch(api: Api) -> None:
    made = await api.made(api.path("pods"), a_bare_pod())
    async with api.watch(api.path("pods"), resourceVersion=made.version) as watch:
        await api.made(api.path("pods", "a", "binding"), a_binding("a", NODE))
        await api.patch(api.path("pods", "a"), {"metadata": {"labels": {"after": "1"}}})
        events = [await watch.next() for _ in range(2)]
    assert events[0]["object"]["spec"]["nodeName"] == NODE
    assert events[1]["object"]["metadata"]["labels"] == {"after": "1"}


async def test_annotations_and_labels_of_a_binding_are_merged_into_the_pod(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod(labels={"own": "1"}))
    binding = a_binding("a", NODE, annotations={"note": "x"}, labels={"more": "2"})
    await api.made(api.path("pods", "a", "binding"), binding)
    pod = await api.get(api.path("pods", "a"))
    assert (pod.meta["annotations"], pod.meta["labels"]) == ({"note": "x"}, {"own": "1", "more": "2"})


async def test_a_binding_replaces_a_condition_that_said_unschedulable(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    await api.patch(api.path("pods", "a", "status"), {"status": {"conditions": [condition]}})
    await api.made(api.path("pods", "a", "binding"), a_binding("a", NODE))
    [condition] = (await api.get(api.path("pods", "a"))).body["status"]["conditions"]
    assert condition["status"] == "True"


@pytest.mark.parametrize("node", [NODE, "another-node"], ids=["same-node", "other-node"])
async def test_a_bound_pod_is_not_bound_again(api: Api, node: str) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    await api.made(api.path("pods", "a", "binding"), a_binding("a", NODE))
    answer = await api.post(api.path("pods", "a", "binding"), a_binding("a", node))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        f'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "{NODE}"'
    )


async def test_a_binding_for_another_uid_is_a_conflict(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.post(api.path("pods", "a", "binding"), a_binding("a", NODE, uid="of-the-pod-before"))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: of-the-pod-before" in answer.message
    assert "nodeName" not in (await api.get(api.path("pods", "a"))).body["spec"]


async def test_a_binding_for_another_version_is_a_conflict(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.post(api.path("pods", "a", "binding"), a_binding("a", NODE, resourceVersion="1"))
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_a_binding_of_a_missing_pod_is_not_found(api: Api) -> None:
    answer = await api.post(api.path("pods", "nobody", "binding"), a_binding("nobody", NODE))
    assert (answer.status, answer.reason) == (404, "NotFound")


async def test_a_terminating_pod_is_not_bound(api: Api) -> None:
    pod = a_bare_pod()
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    await api.made(api.path("pods"), pod)
    await api.delete(api.path("pods", "a"))
    answer = await api.post(api.path("pods", "a", "binding"), a_binding("a", NODE))
    await api.patch(api.path("pods", "a"), {"metadata": {"finalizers": None}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "pod a is being deleted, cannot be assigned to a host" in answer.message


async def test_a_gated_pod_is_not_bound(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod(schedulingGates=[{"name": "example.com/wait"}]))
    answer = await api.post(api.path("pods", "a", "binding"), a_binding("a", NODE))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "pod a has non-empty .spec.schedulingGates" in answer.message


async def test_a_binding_to_a_node_that_does_not_exist_is_accepted(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.post(api.path("pods", "a", "binding"), a_binding("a", "no-such-node-anywhere"))
    assert answer.status == 201


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ({"kind": "Node"}, "target.name: Required value"),
        ({"kind": "Foo", "name": "x"}, "target.kind: Unsupported value"),
    ],
    ids=["no-name", "no-node"],
)
async def test_a_binding_needs_a_node(api: Api, target: dict[str, str], hint: str) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": target}
    answer = await api.post(api.path("pods", "a", "binding"), binding)
    assert answer.status == 500
    assert hint in answer.message


async def test_names_of_path_and_binding_must_agree(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.post(api.path("pods", "a", "binding"), a_binding("b", NODE))
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_the_older_path_of_bindings_works(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    assert (await api.post(api.path("bindings"), a_binding("a", NODE))).status == 201
    assert (await api.get(api.path("pods", "a"))).body["spec"]["nodeName"] == NODE


async def test_of_many_bindings_of_one_pod_one_succeeds(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    path = api.path("pods", "a", "binding")
    answers = await asyncio.gather(*(api.post(path, a_binding("a", f"contract-{index}")) for index in range(8)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7


async def test_an_eviction_deletes_the_pod(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.post(api.path("pods", "a", "eviction"), _eviction())
    assert (answer.status, answer.body["status"]) == (201, "Success")
    assert (await api.get(api.path("pods", "a"))).status == 404
    assert (await api.post(api.path("pods", "a", "eviction"), _eviction())).status == 404


async def test_an_eviction_of_a_bound_pod_gives_it_its_grace(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    await api.made(api.path("pods", "a", "binding"), a_binding("a", NODE))
    assert (await api.post(api.path("pods", "a", "eviction"), _eviction(gracePeriodSeconds=9))).status == 201
    assert (await api.get(api.path("pods", "a"))).meta["deletionGracePeriodSeconds"] == 9


async def test_an_eviction_honours_preconditions(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.post(api.path("pods", "a", "eviction"), _eviction(preconditions={"uid": "other"}))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert (await api.get(api.path("pods", "a"))).status == 200


async def test_an_eviction_respects_a_disruption_budget(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod(labels={"app": "guarded"}))
    await api.made(api.path("pods", "a", "binding"), a_binding("a", NODE))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.patch(api.path("pods", "a", "status"), {"status": ready})
    budgets = api.path("poddisruptionbudgets", group_version="policy/v1")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}
    await api.made(budgets, {"metadata": {"name": "b"}, "spec": spec})
    answer = await api.post(api.path("pods", "a", "eviction"), _eviction())
    assert (answer.status, answer.reason) == (429, "TooManyRequests")
    assert answer.body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    assert answer.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert (await api.get(api.path("pods", "a"))).status == 200
