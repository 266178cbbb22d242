"""Contract: server-side apply. Who owns a field, who may change it, and which fields an apply removes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.api import Answer, Api, a_bare_pod, a_config
from tests.contract.conftest import Custom

APPLY = "application/apply-patch+yaml"


async def apply(api: Api, path: str, config: Any, manager: str = "one", **query: str) -> Answer:
    return await api.patch(path, config, APPLY, fieldManager=manager, **query)


async def applied(api: Api, path: str, config: Any, manager: str = "one", **query: str) -> Answer:
    answer = await apply(api, path, config, manager, **query)
    assert answer.status in (200, 201), answer
    return answer


def owners(answer: Answer) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in answer.meta["managedFields"]}


async def test_apply_creates_what_is_missing(api: Api) -> None:
    answer = await apply(api, api.path("configmaps", "a"), a_config())
    assert (answer.status, answer.body["data"]) == (201, {"key": "value"})
    assert owners(answer) == {"one": {"f:data": {"f:key": {}}}}
    entry = answer.meta["managedFields"][0]
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("Apply", "v1", "FieldsV1")


async def test_the_same_configuration_again_changes_nothing(api: Api) -> None:
    path = api.path("configmaps", "a")
    first = await applied(api, path, a_config())
    again = await apply(api, path, a_config())
    assert (again.status, again.version) == (200, first.version)


async def test_a_configuration_may_be_yaml(api: Api) -> None:
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: 'yes'\n"
    answer = await apply(api, api.path("configmaps", "a"), body)
    assert (answer.status, answer.body["data"]) == (201, {"key": "yes"})


async def test_a_field_that_is_no_longer_applied_is_removed(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config(data={"a": "1", "b": "2"}))
    answer = await applied(api, path, a_config(data={"a": "1"}))
    assert answer.body["data"] == {"a": "1"}


async def test_removing_the_last_field_of_a_map_removes_the_map(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config(labels={"l": "1"}))
    answer = await applied(api, path, a_config())
    assert "labels" not in answer.meta


async def test_a_field_with_another_owner_stays(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config(data={"a": "1", "b": "2"}))
    await applied(api, path, a_config(data={"b": "2"}), "two")
    answer = await applied(api, path, a_config(data={"a": "1"}))
    assert answer.body["data"] == {"a": "1", "b": "2"}


async def test_changing_a_field_of_another_owner_is_a_conflict_that_names_the_owner(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config())
    answer = await apply(api, path, a_config(data={"key": "other"}), "two")
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "one": .data.key'
    assert answer.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.key"}
    ]


async def test_several_conflicts_are_listed_by_owner(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config(data={"a": "1", "b": "1"}))
    answer = await apply(api, path, a_config(data={"a": "2", "b": "2"}), "two")
    assert answer.message == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b'


async def test_force_takes_ownership_of_the_field(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config(data={"a": "1", "b": "1"}))
    answer = await applied(api, path, a_config(data={"a": "2"}), "two", force="true")
    assert answer.body["data"] == {"a": "2", "b": "1"}
    assert owners(answer) == {"one": {"f:data": {"f:b": {}}}, "two": {"f:data": {"f:a": {}}}}


async def test_an_update_takes_the_field_it_changes(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config(data={"a": "1", "b": "1"}))
    await api.patch(path, {"data": {"a": "2"}}, fieldManager="editor")
    answer = await apply(api, path, a_config(data={"a": "1", "b": "1"}))
    assert answer.status == 409
    assert answer.message == 'Apply failed with 1 conflict: conflict with "editor" using v1: .data.a'


async def test_an_update_without_a_manager_is_known_by_its_user_agent(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config())
    answer = await api.patch(path, {"data": {"a": "2"}})
    assert {entry["operation"] for entry in answer.meta["managedFields"]} == {"Apply", "Update"}
    assert any(name.startswith("Python") for name in owners(answer))


async def test_an_update_before_the_first_apply_owns_its_fields(api: Api) -> None:
    path = api.path("configmaps", "a")
    await api.post(api.path("configmaps"), a_config(), fieldManager="maker")
    answer = await apply(api, path, a_config(data={"key": "other"}))
    assert 'conflict with "maker" using v1: .data.key' in answer.message


async def test_applying_an_equal_value_is_no_conflict(api: Api) -> None:
    path = api.path("configmaps", "a")
    await api.made(api.path("configmaps"), a_config())
    assert (await apply(api, path, a_config())).status == 200


async def test_items_of_keyed_lists_are_owned_one_by_one(api: Api) -> None:
    path = api.path("pods", "a")
    await applied(api, path, a_bare_pod())
    toleration = {"conditions": [{"type": "mine", "status": "True"}]}
    status = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "status": toleration}
    answer = await applied(api, f"{path}/status", status, "two")
    key = 'k:{"type":"mine"}'
    fields = {"f:status": {"f:conditions": {key: {".": {}, "f:status": {}, "f:type": {}}}}}
    assert owners(answer)["two"] == fields
    one = owners(answer)["one"]["f:spec"]["f:containers"]
    assert one == {'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}}}


async def test_custom_resources_are_applied_by_their_schema(api: Api, things: Custom) -> None:
    path = f"{things.v1}/a"
    await applied(api, path, things.an_object(spec={"size": 1, "capacity": {"cpu": 1}}))
    answer = await applied(api, path, things.an_object(spec={"size": 1, "capacity": {"memory": 2}}), "two")
    assert answer.body["spec"]["capacity"] == {"cpu": 1, "memory": 2}
    assert owners(answer)["two"] == {"f:spec": {"f:capacity": {"f:memory": {}}, "f:size": {}}}
    refused = await apply(api, path, things.an_object(spec={"size": 2}), "two")
    assert refused.message == 'Apply failed with 1 conflict: conflict with "one": .spec.size'


async def test_a_finalizer_is_owned_on_its_own(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config(finalizers=["example.com/one"]))
    await applied(api, path, a_config(finalizers=["example.com/two"]), "two")
    answer = await applied(api, path, a_config())
    assert answer.meta["finalizers"] == ["example.com/two"]
    await api.patch(path, {"metadata": {"finalizers": None}})


async def test_owners_can_be_cleared(api: Api) -> None:
    path = api.path("configmaps", "a")
    await applied(api, path, a_config())
    answer = await api.patch(path, {"metadata": {"managedFields": [{}]}})
    assert (answer.status, "managedFields" in answer.meta) == (200, False)


async def test_a_dry_run_stores_nothing(api: Api) -> None:
    path = api.path("configmaps", "a")
    answer = await apply(api, path, a_config(), dryRun="All")
    assert (answer.status, answer.body["data"]) == (201, {"key": "value"})
    assert (await api.get(path)).status == 404


@pytest.mark.parametrize(
    ("query", "status", "hint"),
    [
        pytest.param({}, 422, "fieldManager: Required value: is required for apply patch", id="no-manager"),
    ],
)
async def test_an_apply_needs_a_manager(api: Api, query: dict[str, str], status: int, hint: str) -> None:
    answer = await api.patch(api.path("configmaps", "a"), a_config(), APPLY, **query)
    assert answer.status == status
    assert hint in answer.message


async def test_a_configuration_with_owners_is_refused(api: Api) -> None:
    config = a_config(managedFields=[{"manager": "x", "operation": "Apply", "apiVersion": "v1"}])
    answer = await apply(api, api.path("configmaps", "a"), config)
    assert (answer.status, answer.message) == (400, "metadata.managedFields must be nil")
