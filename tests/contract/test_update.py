"""Contract: PUT of objects and of their status."""

from __future__ import annotations

import copy
from typing import Any

from tests.contract.api import Api, a_bare_pod, a_config

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


async def _config(api: Api) -> Any:
    return (await api.made(api.path("configmaps"), a_config())).body


async def test_a_put_replaces_the_object_and_gives_it_a_new_version(api: Api) -> None:
    config = await _config(api)
    config["data"] = {"other": "1"}
    answer = await api.put(api.path("configmaps", "a"), config)
    assert (answer.status, answer.body["data"]) == (200, {"other": "1"})
    assert int(answer.version) > int(config["metadata"]["resourceVersion"])
    assert answer.meta["uid"] == config["metadata"]["uid"]


async def test_an_old_version_is_a_conflict(api: Api) -> None:
    config = await _config(api)
    await api.put(api.path("configmaps", "a"), {**config, "data": {"first": "1"}})
    answer = await api.put(api.path("configmaps", "a"), {**config, "data": {"second": "1"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == f'Operation cannot be fulfilled on configmaps "a": {MODIFIED}'
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_without_a_version_a_put_overwrites(api: Api) -> None:
    await _config(api)
    answer = await api.put(api.path("configmaps", "a"), a_config(data={"any": "1"}))
    assert (answer.status, answer.body["data"]) == (200, {"any": "1"})


async def test_a_wrong_uid_is_a_conflict(api: Api) -> None:
    await _config(api)
    answer = await api.put(api.path("configmaps", "a"), a_config(uid="wrong"))
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: wrong" in answer.message


async def test_fields_that_the_server_owns_survive_a_put(api: Api) -> None:
    pod = (await api.made(api.path("pods"), a_bare_pod())).body
    changed = copy.deepcopy(pod)
    changed["metadata"] |= {"uid": "", "creationTimestamp": None, "generation": 77, "resourceVersion": ""}
    changed["metadata"]["labels"] = {"x": "y"}
    answer = await api.put(api.path("pods", "a"), changed)
    assert (answer.status, answer.meta["labels"]) == (200, {"x": "y"})
    for field in ("uid", "creationTimestamp", "generation"):
        assert answer.meta[field] == pod["metadata"][field]


async def test_a_put_that_changes_nothing_makes_no_new_version(api: Api) -> None:
    config = await _config(api)
    answer = await api.put(api.path("configmaps", "a"), config)
    assert (answer.status, answer.version) == (200, config["metadata"]["resourceVersion"])


async def test_labels_left_out_of_a_put_are_gone(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config(labels={"x": "y"}, annotations={"a": "b"}))
    answer = await api.put(api.path("configmaps", "a"), a_config())
    assert "labels" not in answer.meta
    assert "annotations" not in answer.meta


async def test_a_put_of_a_missing_object_is_not_found(api: Api) -> None:
    answer = await api.put(api.path("configmaps", "nobody"), a_config("nobody"))
    assert (answer.status, answer.reason) == (404, "NotFound")


async def test_name_and_path_must_agree(api: Api) -> None:
    await _config(api)
    answer = await api.put(api.path("configmaps", "a"), a_config("b"))
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == "the name of the object (b) does not match the name on the URL (a)"


async def test_a_put_needs_a_name(api: Api) -> None:
    await _config(api)
    answer = await api.put(api.path("configmaps", "a"), {"metadata": {}})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_the_spec_of_a_pod_is_fixed(api: Api) -> None:
    pod = (await api.made(api.path("pods"), a_bare_pod())).body
    for field, value in (("nodeName", "n"), ("schedulerName", "other"), ("priority", 5)):
        changed = copy.deepcopy(pod)
        changed["spec"][field] = value
        answer = await api.put(api.path("pods", "a"), changed)
        assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["spec"])
        assert "pod updates may not change fields other than" in answer.message


async def test_the_image_of_a_pod_may_change_and_counts_as_a_generation(api: Api) -> None:
    pod = (await api.made(api.path("pods"), a_bare_pod())).body
    pod["spec"]["containers"][0]["image"] = "example.com/none:2"
    answer = await api.put(api.path("pods", "a"), pod)
    assert (answer.status, answer.meta["generation"]) == (200, 2)


async def test_labels_are_no_new_generation(api: Api) -> None:
    pod = (await api.made(api.path("pods"), a_bare_pod())).body
    pod["metadata"]["labels"] = {"x": "y"}
    assert (await api.put(api.path("pods", "a"), pod)).meta["generation"] == 1


async def test_a_put_of_the_object_leaves_the_status(api: Api) -> None:
    pod = (await api.made(api.path("pods"), a_bare_pod())).body
    pod["status"] = {"phase": "Running"}
    assert (await api.put(api.path("pods", "a"), pod)).body["status"]["phase"] == "Pending"


async def test_a_put_of_the_status_leaves_the_spec(api: Api) -> None:
    pod = (await api.made(api.path("pods"), a_bare_pod())).body
    pod["status"] |= {"phase": "Running", "reason": "Because"}
    pod["spec"]["schedulerName"] = "other"
    pod["metadata"]["labels"] = {"x": "y"}
    answer = await api.put(api.path("pods", "a", "status"), pod)
    assert answer.status == 200
    assert (answer.body["status"]["phase"], answer.body["status"]["reason"]) == ("Running", "Because")
    assert answer.body["spec"]["schedulerName"] == "default-scheduler"
    assert answer.meta["labels"] == {"x": "y"}
    assert answer.meta["generation"] == 1


async def test_a_status_of_an_old_version_is_a_conflict(api: Api) -> None:
    pod = (await api.made(api.path("pods"), a_bare_pod())).body
    await api.patch(api.path("pods", "a"), {"metadata": {"labels": {"x": "y"}}})
    answer = await api.put(api.path("pods", "a", "status"), pod)
    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_the_status_can_be_read_alone(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.get(api.path("pods", "a", "status"))
    assert (answer.status, answer.body["kind"], answer.body["status"]["phase"]) == (200, "Pod", "Pending")


async def test_a_lease_is_only_replaced_with_its_version(api: Api) -> None:
    path = api.path("leases", group_version="coordination.k8s.io/v1")
    lease = (await api.made(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})).body
    unversioned = await api.put(f"{path}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "you"}})
    assert (unversioned.status, unversioned.fields) == (422, ["metadata.resourceVersion"])
    lease["spec"]["holderIdentity"] = "you"
    assert (await api.put(f"{path}/l", lease)).status == 200
    assert (await api.put(f"{path}/l", lease)).status == 409
