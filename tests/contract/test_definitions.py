"""Contract: CustomResourceDefinitions themselves."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.api import CRDS, Api, a_definition, unique
from tests.contract.conftest import Custom


async def test_a_definition_is_established_with_its_names_accepted(api: Api, things: Custom) -> None:
    answer = await api.get(things.definition)
    conditions = {item["type"]: item["status"] for item in answer.body["status"]["conditions"]}
    assert (conditions["Established"], conditions["NamesAccepted"]) == ("True", "True")
    assert answer.body["status"]["acceptedNames"]["plural"] == "things"
    assert answer.body["status"]["storedVersions"] == ["v1"]
    assert answer.body["spec"]["names"]["listKind"] == "ThingList"
    assert answer.body["spec"]["conversion"] == {"strategy": "None"}


async def test_a_definition_shows_in_discovery(api: Api, things: Custom, plains: Custom) -> None:
    group = await api.get(f"/apis/{things.group}")
    assert [version["version"] for version in group.body["versions"]] == ["v2", "v1"]
    assert group.body["preferredVersion"]["version"] == "v2"
    resources = await api.get(f"/apis/{things.group}/v1")
    rows = {row["name"]: row for row in resources.body["resources"]}
    assert (rows["things"]["kind"], rows["things"]["singularName"]) == ("Thing", "thing")
    assert rows["things"]["shortNames"] == ["thx"]
    assert "things/status" in rows
    without = await api.get(f"/apis/{plains.group}/v1")
    assert [row["name"] for row in without.body["resources"]] == ["plains"]


async def test_a_version_that_is_not_served_is_not_found(api: Api, things: Custom) -> None:
    for version in ("v0", "v3"):
        answer = await api.get(f"/apis/{things.group}/{version}/namespaces/{api.namespace}/things")
        assert answer.status == 404


def _changed(**changes: Any) -> dict[str, Any]:
    definition = a_definition("bads", "Bad", f"{unique('g')}.example.com", status=False)
    for path, value in changes.items():
        target: Any = definition
        *parents, last = path.split("__")
        for part in parents:
            target = target[int(part) if part.isdecimal() else part]
        target[last] = value
    return definition


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        pytest.param({"metadata__name": "other"}, "metadata.name", id="name"),
        pytest.param({"spec__scope": "World"}, "spec.scope", id="scope"),
        pytest.param({"spec__versions__1__storage": True}, "spec.versions", id="two-storage-versions"),
        pytest.param({"spec__versions__0__schema": {}}, "spec.versions[0].schema.openAPIV3Schema", id="no-schema"),
    ],
)
async def test_a_definition_that_cannot_be_served_is_invalid(api: Api, changes: dict[str, Any], field: str) -> None:
    answer = await api.post(CRDS, _changed(**changes))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert field in answer.fields


async def test_the_scope_of_a_definition_is_fixed(api: Api, things: Custom) -> None:
    answer = await api.patch(things.definition, {"spec": {"scope": "Cluster"}})
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["spec.scope"])


async def test_a_cluster_wide_definition_has_no_namespaces(api: Api) -> None:
    group = f"{unique('g')}.example.com"
    await api.made(CRDS, a_definition("globes", "Globe", group, status=False, scope="Cluster"))
    path = f"/apis/{group}/v1/globes"
    await api.until(path, lambda answer: answer.status == 200, "it is served")
    made = await api.made(
        path, {"apiVersion": f"{group}/v1", "kind": "Globe", "metadata": {"name": "a"}, "spec": {"size": 1}}
    )
    assert "namespace" not in made.meta
    assert (await api.get(f"/apis/{group}/v1/namespaces/{api.namespace}/globes")).status == 404
    await api.delete(f"{CRDS}/globes.{group}")


async def test_a_changed_schema_counts_for_the_next_write(api: Api, things: Custom) -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/maximum"
    await api.patch(things.definition, [{"op": "replace", "path": path, "value": 99}], "application/json-patch+json")
    await api.until_answered(things.v1, things.an_object(spec={"size": 50}), 201)


async def test_deleting_a_definition_deletes_its_objects_and_ends_the_service(api: Api, things: Custom) -> None:
    held = things.an_object()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.made(things.v1, held)
    answer = await api.delete(things.definition)
    assert (answer.status, answer.body["kind"]) == (200, "CustomResourceDefinition")
    assert answer.meta["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    await api.until(f"{things.v1}/a", lambda found: "deletionTimestamp" in found.meta, "the object is being deleted")
    assert (await api.get(things.definition)).status == 200
    refused = await api.post(things.v1, things.an_object("b"))
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert '"b" is forbidden: create not allowed while custom resource definition is terminating' in refused.message
    await api.patch(f"{things.v1}/a", {"metadata": {"finalizers": None}})
    await api.until_gone(things.definition)
    await api.until_gone(things.v1)


async def test_a_watch_learns_that_its_object_went_with_a_definition_that_is_back(api: Api, things: Custom) -> None:
    """By the deletion of the object, or by 410: both servers may do either."""
    await api.made(things.v1, things.an_object())
    version = (await api.get(things.v1)).meta["resourceVersion"]
    await api.delete(things.definition)
    await api.until_gone(things.definition)
    await api.until_gone(things.v1)
    await api.made(CRDS, a_definition("things", "Thing", things.group, status=True))
    await api.until(things.v1, lambda answer: answer.status == 200, "the definition is served again")
    async with api.watch(things.v1, resourceVersion=version) as watch:
        event = await watch.next()
    assert event["type"] == "DELETED" or event["object"].get("code") == 410, event
