"""Contract: merge patch, JSON patch, strategic merge patch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.api import JSON_PATCH, MERGE, STRATEGIC, Answer, Api, a_bare_pod, a_config


async def _patched(api: Api, patch: Any, content_type: str = MERGE) -> Answer:
    return await api.patch(api.path("configmaps", "a"), patch, content_type)


async def test_a_merge_patch_sets_and_removes(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config(data={"keep": "1", "drop": "2"}, labels={"l": "1"}))
    answer = await _patched(api, {"data": {"drop": None, "new": "3"}, "metadata": {"labels": {"m": "2"}}})
    assert (answer.status, answer.body["data"]) == (200, {"keep": "1", "new": "3"})
    assert answer.meta["labels"] == {"l": "1", "m": "2"}


async def test_a_merge_patch_replaces_lists(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    for kind in ("One", "Two"):
        patch = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        answer = await api.patch(api.path("pods", "a", "status"), patch)
        assert [item["type"] for item in answer.body["status"]["conditions"]] == [kind]


async def test_a_patch_that_changes_nothing_makes_no_new_version(api: Api) -> None:
    made = await api.made(api.path("configmaps"), a_config(data={"k": "v"}))
    for patch in ({}, {"data": {"k": "v"}}, {"metadata": {"labels": None}}):
        assert (await _patched(api, patch)).version == made.version


async def test_a_patch_may_demand_a_version(api: Api) -> None:
    made = await api.made(api.path("configmaps"), a_config())
    good = await _patched(api, {"metadata": {"resourceVersion": made.version}, "data": {"a": "1"}})
    assert good.status == 200
    stale = await _patched(api, {"metadata": {"resourceVersion": made.version}, "data": {"a": "2"}})
    assert (stale.status, stale.reason) == (409, "Conflict")


async def test_a_patch_may_not_change_the_uid(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config())
    answer = await _patched(api, {"metadata": {"uid": "other"}})
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert set(answer.fields) == {"metadata.uid"}


@pytest.mark.parametrize("meta", [{"name": "other"}, {"namespace": "other"}], ids=["name", "namespace"])
async def test_a_patch_may_not_move_the_object(api: Api, meta: dict[str, str]) -> None:
    await api.made(api.path("configmaps"), a_config())
    answer = await _patched(api, {"metadata": meta})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_patch_of_a_missing_object_is_not_found(api: Api) -> None:
    answer = await _patched(api, {"data": {"a": "1"}})
    assert (answer.status, answer.reason) == (404, "NotFound")


@pytest.mark.parametrize("body", [b"[", b"[1]", b'"text"'], ids=["broken", "list", "text"])
async def test_a_merge_patch_must_be_an_object(api: Api, body: bytes) -> None:
    await api.made(api.path("configmaps"), a_config())
    answer = await _patched(api, body)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_patch_of_the_object_leaves_the_status_unchanged_and_vice_versa(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    main = await api.patch(api.path("pods", "a"), {"status": {"phase": "Running"}})
    assert main.body["status"]["phase"] == "Pending"
    status = await api.patch(api.path("pods", "a", "status"), {"status": {"phase": "Running"}, "spec": {"priority": 9}})
    assert (status.body["status"]["phase"], status.body["spec"]["priority"]) == ("Running", 0)


async def test_a_patch_may_not_change_the_spec_of_a_pod(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.patch(api.path("pods", "a"), {"spec": {"schedulerName": "other"}})
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["spec"])


async def test_a_json_patch_adds_replaces_moves_copies_and_removes(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config(data={"a": "1", "b": "2"}, annotations={"c/d": "3"}))
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/new", "value": "4"},
        {"op": "replace", "path": "/data/a", "value": "5"},
        {"op": "move", "from": "/data/b", "path": "/data/moved"},
        {"op": "copy", "from": "/metadata/annotations/c~1d", "path": "/data/copied"},
        {"op": "remove", "path": "/metadata/annotations/c~1d"},
        {"op": "replace", "path": "/data/late", "value": "6"},
        {"op": "test", "path": "/data/none", "value": None},
    ]
    answer = await _patched(api, operations, JSON_PATCH)
    assert (answer.status, answer.body["data"]) == (
        200,
        {"a": "5", "new": "4", "moved": "2", "copied": "3", "late": "6"},
    )
    assert "annotations" not in answer.meta


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/data/key", "value": "other"}, id="failed-test"),
        pytest.param({"op": "remove", "path": "/data/none"}, id="remove-nothing"),
        pytest.param({"op": "replace", "path": "/none/key", "value": "1"}, id="replace-below-nothing"),
        pytest.param({"op": "move", "from": "/data/none", "path": "/data/x"}, id="move-nothing"),
        pytest.param({"op": "add", "path": "/metadata/finalizers/-", "value": "a/b"}, id="add-to-nothing"),
        pytest.param({"op": "zap", "path": "/data"}, id="unknown-operation"),
    ],
)
async def test_a_json_patch_that_does_not_apply_is_invalid(api: Api, operation: dict[str, str]) -> None:
    await api.made(api.path("configmaps"), a_config())
    answer = await _patched(api, [operation], JSON_PATCH)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert (await api.get(api.path("configmaps", "a"))).body["data"] == {"key": "value"}


async def test_a_json_patch_must_be_a_list(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config())
    answer = await _patched(api, {"op": "remove", "path": "/data"}, JSON_PATCH)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_strategic_patch_merges_containers_by_name(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    patch = {"spec": {"containers": [{"name": "main", "image": "example.com/none:2"}]}}
    answer = await api.patch(api.path("pods", "a"), patch, STRATEGIC)
    [container] = answer.body["spec"]["containers"]
    assert (container["name"], container["image"]) == ("main", "example.com/none:2")
    assert "terminationMessagePath" in container


async def test_a_strategic_patch_merges_conditions_by_type(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    path = api.path("pods", "a", "status")

    async def patch(*conditions: dict[str, str]) -> list[tuple[str, str]]:
        answer = await api.patch(path, {"status": {"conditions": list(conditions)}}, STRATEGIC)
        assert answer.status == 200
        return [(item["type"], item["status"]) for item in answer.body["status"]["conditions"]]

    await patch({"type": "Ready", "status": "False"})
    assert await patch({"type": "Other", "status": "True"}) == [("Other", "True"), ("Ready", "False")]
    assert await patch({"type": "Ready", "status": "True"}) == [("Other", "True"), ("Ready", "True")]
    assert await patch({"type": "Other", "$patch": "delete"}) == [("Ready", "True")]


async def test_a_strategic_patch_replaces_what_has_no_key(api: Api) -> None:
    node = f"node-{api.namespace}"
    await api.made("/api/v1/nodes", {"metadata": {"name": node}, "spec": {"podCIDRs": ["10.0.0.0/24"]}})
    for key in ("one", "two"):
        taint = {"key": f"example.com/{key}", "effect": "PreferNoSchedule"}
        answer = await api.patch(f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}}, STRATEGIC)
        own = [item["key"] for item in answer.body["spec"]["taints"] if item["key"].startswith("example.com")]
        assert own == [f"example.com/{key}"]
    await api.delete(f"/api/v1/nodes/{node}")


async def test_a_strategic_patch_adds_and_removes_finalizers_one_by_one(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config(finalizers=["example.com/a"]))
    added = await _patched(api, {"metadata": {"finalizers": ["example.com/b"]}}, STRATEGIC)
    assert set(added.meta["finalizers"]) == {"example.com/a", "example.com/b"}
    removal = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}}
    removed = await _patched(api, removal, STRATEGIC)
    assert not removed.meta.get("finalizers")


async def test_a_strategic_patch_may_replace_a_map(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config(data={"a": "1", "b": "2"}))
    answer = await _patched(api, {"data": {"$patch": "replace", "c": "3"}}, STRATEGIC)
    assert answer.body["data"] == {"c": "3"}


async def test_a_strategic_patch_without_the_merge_key_is_refused(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.patch(api.path("pods", "a"), {"spec": {"containers": [{"image": "x"}]}}, STRATEGIC)
    assert answer.status == 500
    assert "does not contain declared merge key: name" in answer.message


async def test_a_dry_run_of_a_patch_changes_nothing(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config())
    answer = await api.patch(api.path("configmaps", "a"), {"data": {"x": "1"}}, dryRun="All")
    assert answer.body["data"] == {"key": "value", "x": "1"}
    assert (await api.get(api.path("configmaps", "a"))).body["data"] == {"key": "value"}
