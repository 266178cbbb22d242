"""Contract: objects of CustomResourceDefinitions, with and without a status subresource."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.contract.api import JSON_PATCH, MERGE, STRATEGIC, Api
from tests.contract.conftest import Custom, defined


@pytest.fixture
async def things(request: pytest.FixtureRequest, api: Api) -> AsyncIterator[Custom]:
    """A custom resource with a status subresource, as Volcano's Queue; no test here changes its definition."""
    async with defined(request, api, "things", "Thing", status=True) as custom:
        yield custom


@pytest.fixture
async def plains(request: pytest.FixtureRequest, api: Api) -> AsyncIterator[Custom]:
    """A custom resource without a status subresource, as Volcano's PodGroup; no test here changes its definition."""
    async with defined(request, api, "plains", "Plain", status=False) as custom:
        yield custom


async def test_unknown_fields_are_pruned_and_defaults_filled_in(api: Api, things: Custom) -> None:
    spec = {"size": 1, "unknown": 2, "free": {"any": {"thing": 1}}, "capacity": {"cpu": 1, "memory": "1Gi"}}
    spec["parts"] = [{"name": "a", "unknown": 1}, {"name": "b", "count": 3}]
    answer = await api.made(things.v1, things.an_object(spec=spec, extra=1))
    assert answer.body["spec"] == {
        "size": 1,
        "queue": "default",
        "free": {"any": {"thing": 1}},
        "capacity": {"cpu": 1, "memory": "1Gi"},
        "parts": [{"name": "a", "count": 1}, {"name": "b", "count": 3}],
    }
    assert "extra" not in answer.body
    assert answer.meta["generation"] == 1


async def test_pruned_fields_are_warned_about(api: Api, things: Custom) -> None:
    answer = await api.made(things.v1, things.an_object(extra=1))
    assert answer.headers["Warning"] == '299 - "unknown field \\"extra\\""'


async def test_strict_validation_refuses_unknown_fields(api: Api, things: Custom) -> None:
    answer = await api.post(things.v1, things.an_object(extra=1), fieldValidation="Strict")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    kind = things.kind
    assert answer.message == (
        f'{kind} in version "v1" cannot be handled as a {kind}: strict decoding error: unknown field "extra"'
    )


async def test_unknown_fields_of_the_metadata_count_too(api: Api, things: Custom) -> None:
    obj = things.an_object()
    obj["metadata"]["spec"] = {"size": 1}

    strict = await api.post(things.v1, obj, fieldValidation="Strict")
    lenient = await api.made(things.v1, obj)

    assert strict.message.endswith('strict decoding error: unknown field "metadata.spec"')
    assert lenient.headers["Warning"] == '299 - "unknown field \\"metadata.spec\\""'
    assert "spec" not in lenient.meta


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({}, ["spec.size"], id="required"),
        pytest.param({"size": 0}, ["spec.size"], id="minimum"),
        pytest.param({"size": 10}, ["spec.size"], id="maximum"),
        pytest.param({"size": "x"}, ["spec.size"], id="type"),
        pytest.param({"size": 1, "queue": "other"}, ["spec.queue"], id="enum"),
        pytest.param({"size": 1, "code": "b"}, ["spec.code"], id="pattern"),
        pytest.param({"size": 1, "weight": 0}, ["spec.weight"], id="exclusive-minimum"),
        pytest.param({"size": 1, "parts": []}, ["spec.parts"], id="min-items"),
        pytest.param({"size": 1, "parts": [{}]}, ["spec.parts[0].name"], id="required-in-item"),
        pytest.param({"size": 1, "parts": [{"name": "toolong"}]}, ["spec.parts[0].name"], id="max-length"),
        pytest.param({"size": 1, "parts": [{"name": ""}]}, ["spec.parts[0].name"], id="min-length"),
        pytest.param({"size": 1, "parts": "text"}, ["spec.parts"], id="not-a-list"),
        pytest.param({"size": 10, "queue": "other"}, ["spec.queue", "spec.size"], id="two"),
    ],
)
async def test_the_schema_is_enforced(api: Api, things: Custom, spec: dict[str, Any], fields: list[str]) -> None:
    answer = await api.post(things.v1, things.an_object(spec=spec))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert sorted(field for field in answer.fields if field != "<nil>") == fields
    assert answer.body["details"]["kind"] == "Thing"


async def test_a_whole_number_may_be_written_with_a_fraction(api: Api, things: Custom) -> None:
    answer = await api.post(things.v1, things.an_object(spec={"size": 2.0}))
    assert (answer.status, answer.body["spec"]["size"]) == (201, 2)


async def test_null_counts_as_missing_unless_the_field_is_nullable(api: Api, things: Custom) -> None:
    answer = await api.made(things.v1, things.an_object(spec={"size": 1, "queue": None, "note": None}))
    assert answer.body["spec"] == {"size": 1, "queue": "default", "note": None}


async def test_neither_int_nor_string_is_invalid(api: Api, things: Custom) -> None:
    answer = await api.post(things.v1, things.an_object(spec={"size": 1, "capacity": {"cpu": 1.5}}))
    assert answer.status == 422
    assert "spec.capacity.cpu" in answer.fields


async def test_kind_and_api_version_are_required(api: Api, things: Custom) -> None:
    for left_out in ("kind", "apiVersion"):
        body = things.an_object()
        del body[left_out]
        answer = await api.post(things.v1, body)
        assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_another_kind_or_version_is_refused(api: Api, things: Custom) -> None:
    assert (await api.post(things.v1, things.an_object() | {"kind": "Other"})).status == 422
    for version in ("v2", "v9"):
        answer = await api.post(things.v1, things.an_object(version=version))
        assert (answer.status, answer.reason) == (400, "BadRequest")
        assert "does not match the expected API version" in answer.message


async def test_an_object_is_served_in_every_version(api: Api, things: Custom) -> None:
    await api.made(things.v1, things.an_object("a"))
    await api.made(things.v2, things.an_object("b", version="v2"))
    for path, version in ((things.v1, "v1"), (things.v2, "v2")):
        listed = await api.get(path)
        assert listed.names == ["a", "b"]
        assert {item["apiVersion"] for item in listed.body["items"]} == {f"{things.group}/{version}"}
        assert (await api.get(f"{path}/a")).body["apiVersion"] == f"{things.group}/{version}"


async def test_items_of_a_custom_list_name_their_type(api: Api, things: Custom) -> None:
    await api.made(things.v1, things.an_object())
    listed = await api.get(things.v1)
    assert listed.body["kind"] == "ThingList"
    assert listed.body["items"][0]["kind"] == "Thing"


async def test_a_put_needs_a_version_and_bumps_the_generation(api: Api, things: Custom) -> None:
    made = (await api.made(things.v1, things.an_object())).body
    unversioned = await api.put(f"{things.v1}/a", things.an_object(spec={"size": 2}))
    assert (unversioned.status, unversioned.fields) == (422, ["metadata.resourceVersion"])
    changed = await api.put(f"{things.v1}/a", made | {"spec": {"size": 2}})
    assert (changed.status, changed.meta["generation"]) == (200, 2)
    stale = await api.put(f"{things.v1}/a", made | {"spec": {"size": 3}})
    assert (stale.status, stale.reason) == (409, "Conflict")
    assert stale.message.startswith(f'Operation cannot be fulfilled on things.{things.group} "a": ')


async def test_with_a_status_subresource_the_object_and_its_status_are_written_apart(api: Api, things: Custom) -> None:
    made = await api.made(things.v1, things.an_object(status={"phase": "Early"}))
    assert "status" not in made.body
    path = f"{things.v1}/a"
    main = await api.patch(path, {"status": {"phase": "Main"}, "spec": {"size": 2}})
    assert "status" not in main.body
    patch = {"status": {"phase": "Open"}, "spec": {"size": 9}, "metadata": {"labels": {"x": "y"}}}
    status = await api.patch(f"{path}/status", patch)
    assert (status.status, status.body["status"]) == (200, {"phase": "Open"})
    assert status.body["spec"]["size"] == 2
    assert "labels" not in status.meta
    assert status.meta["generation"] == main.meta["generation"] == 2
    kept = await api.patch(path, {"spec": {"size": 3}})
    assert kept.body["status"] == {"phase": "Open"}


async def test_a_put_of_the_status_keeps_everything_else(api: Api, things: Custom) -> None:
    made = (await api.made(things.v1, things.an_object())).body
    answer = await api.put(
        f"{things.v1}/a/status", made | {"spec": {"size": 9}, "status": {"phase": "P", "running": 2}}
    )
    assert (answer.body["status"], answer.body["spec"]["size"]) == ({"phase": "P", "running": 2}, 1)
    stale = await api.put(f"{things.v1}/a/status", made | {"status": {"phase": "Q"}})
    assert stale.status == 409


async def test_without_a_status_subresource_the_status_is_a_field_like_others(api: Api, plains: Custom) -> None:
    made = await api.made(plains.v1, plains.an_object(status={"phase": "Early", "unknown": 1}))
    assert made.body["status"] == {"phase": "Early"}
    path = f"{plains.v1}/a"
    assert (await api.patch(f"{path}/status", {"status": {"phase": "No"}})).status == 404
    answer = await api.patch(path, {"status": {"phase": "Running"}})
    assert (answer.body["status"], answer.meta["generation"]) == ({"phase": "Running"}, 2)


async def test_a_status_is_validated_too(api: Api, things: Custom) -> None:
    await api.made(things.v1, things.an_object())
    answer = await api.patch(f"{things.v1}/a/status", {"status": {"running": "many"}})
    assert (answer.status, answer.fields) == (422, ["status.running"])


async def test_custom_objects_take_merge_and_json_patches_only(api: Api, things: Custom) -> None:
    await api.made(things.v1, things.an_object())
    path = f"{things.v1}/a"
    assert (await api.patch(path, {"spec": {"size": 2}}, MERGE)).status == 200
    assert (await api.patch(path, [{"op": "replace", "path": "/spec/size", "value": 3}], JSON_PATCH)).status == 200
    answer = await api.patch(path, {"spec": {"size": 4}}, STRATEGIC)
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


async def test_custom_objects_are_watched_in_their_version(api: Api, things: Custom) -> None:
    since = (await api.get(things.v1)).version
    async with api.watch(things.v2, resourceVersion=since) as watch:
        await api.made(things.v1, things.an_object())
        event = await watch.next()
    assert (event["type"], event["object"]["apiVersion"]) == ("ADDED", f"{things.group}/v2")


async def test_a_deleted_custom_object_is_named_in_a_status(api: Api, things: Custom) -> None:
    made = await api.made(things.v1, things.an_object())
    answer = await api.delete(f"{things.v1}/a")
    details = {"name": "a", "group": things.group, "kind": "things", "uid": made.meta["uid"]}
    assert (answer.status, answer.body["details"]) == (200, details)
    missing = await api.get(f"{things.v1}/a")
    assert missing.message == f'things.{things.group} "a" not found'


async def test_custom_objects_own_and_are_owned(api: Api, things: Custom) -> None:
    owner = await api.made(things.v1, things.an_object("owner"))
    reference = {"apiVersion": f"{things.group}/v1", "kind": "Thing", "name": "owner", "uid": owner.meta["uid"]}
    child = things.an_object("child")
    child["metadata"]["ownerReferences"] = [reference]
    await api.made(things.v1, child)
    await api.made(api.path("configmaps"), {"metadata": {"name": "child", "ownerReferences": [reference]}})
    await api.delete(f"{things.v1}/owner")
    await api.until_gone(f"{things.v1}/child")
    await api.until_gone(api.path("configmaps", "child"))


async def test_only_names_select_custom_objects_by_field(api: Api, things: Custom) -> None:
    for name in ("a", "b"):
        await api.made(things.v1, things.an_object(name))
    assert (await api.get(things.v1, fieldSelector="metadata.name=b")).names == ["b"]
    assert (await api.get(things.v1, fieldSelector="spec.size=1")).status == 400
