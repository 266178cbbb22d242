"""Contract: invalid requests, and discovery."""

from __future__ import annotations

import pytest

from tests.contract.api import JSON, MERGE, Api, a_bare_pod


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        pytest.param(b"{bad", "json parse error", id="bad-json"),
        pytest.param(b"", "json parse error", id="empty"),
        pytest.param(b"[]", "", id="list"),
        pytest.param(
            b'{"kind":"Node","apiVersion":"v1","metadata":{"name":"x"}}', "cannot be handled", id="wrong-kind"
        ),
        pytest.param(
            b'{"kind":"Pod","apiVersion":"v2","metadata":{"name":"x"}}', "cannot be handled", id="wrong-version"
        ),
        pytest.param(b'{"metadata":{"name":"x"},"spec":"text"}', "", id="spec-is-text"),
    ],
)
async def test_a_body_that_is_no_pod_is_a_bad_request(api: Api, body: bytes, hint: str) -> None:
    answer = await api.request("POST", api.path("pods"), body)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert hint in answer.message


async def test_an_unknown_content_type_is_unsupported(api: Api) -> None:
    answer = await api.request("POST", api.path("pods"), a_bare_pod(), "text/plain")
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize("content_type", [JSON, "application/foo"])
async def test_a_patch_needs_a_patch_content_type(api: Api, content_type: str) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.patch(api.path("pods", "a"), {}, content_type)
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


async def test_a_missing_object_is_not_found(api: Api) -> None:
    answer = await api.get(api.path("pods", "nobody"))
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == 'pods "nobody" not found'
    assert answer.body["details"] == {"name": "nobody", "kind": "pods"}


async def test_an_unknown_resource_is_not_found(api: Api) -> None:
    answer = await api.get(api.path("foos"))
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.message == "the server could not find the requested resource"


async def test_an_unknown_subresource_is_not_found(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    assert (await api.get(api.path("pods", "a", "nosuch"))).status == 404


@pytest.mark.parametrize("path", ["/apis/none.example.com/v1/bars", "/nonsense"])
async def test_an_unknown_path_is_a_plain_404(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.body) == (404, "404 page not found\n")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("PUT", "pods", id="put-collection"),
        pytest.param("PATCH", "pods", id="patch-collection"),
        pytest.param("POST", "pods/a", id="post-object"),
        pytest.param("DELETE", "pods/a/status", id="delete-status"),
        pytest.param("GET", "pods/a/binding", id="get-binding"),
    ],
)
async def test_a_verb_that_does_not_apply_is_not_allowed(api: Api, method: str, path: str) -> None:
    answer = await api.request(method, api.path(path), {}, MERGE if method == "PATCH" else JSON)
    assert (answer.status, answer.reason) == (405, "MethodNotAllowed")


async def test_namespaced_objects_cannot_be_created_without_a_namespace(api: Api) -> None:
    assert (await api.post("/api/v1/pods", a_bare_pod())).status == 405


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez"])
async def test_health_is_ok(api: Api, path: str) -> None:
    answer = await api.get(path)
    assert (answer.status, answer.body) == (200, "ok")


async def test_version_names_major_and_minor(api: Api) -> None:
    answer = await api.get("/version")
    assert (answer.status, answer.body["major"], answer.body["minor"]) == (200, "1", "36")


async def test_core_discovery_lists_pods_with_subresources(api: Api) -> None:
    answer = await api.get("/api/v1")
    assert (answer.body["kind"], answer.body["groupVersion"]) == ("APIResourceList", "v1")
    rows = {row["name"]: row for row in answer.body["resources"]}
    pods = rows["pods"]
    assert (pods["kind"], pods["singularName"], pods["namespaced"], pods["shortNames"]) == ("Pod", "pod", True, ["po"])
    assert {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"} == set(pods["verbs"])
    assert rows["pods/binding"]["verbs"] == ["create"]
    assert rows["pods/eviction"]["group"] == "policy"
    assert set(rows["pods/status"]["verbs"]) == {"get", "patch", "update"}


async def test_group_discovery_lists_groups_with_preferred_versions(api: Api) -> None:
    answer = await api.get("/apis")
    assert answer.body["kind"] == "APIGroupList"
    groups = {group["name"]: group for group in answer.body["groups"]}
    for name in ("apps", "batch", "policy", "scheduling.k8s.io", "coordination.k8s.io", "rbac.authorization.k8s.io"):
        assert groups[name]["preferredVersion"]["version"] == "v1"
    apps = await api.get("/apis/apps")
    assert (apps.body["kind"], apps.body["name"]) == ("APIGroup", "apps")
    resources = await api.get("/apis/apps/v1")
    assert {"deployments", "replicasets", "statefulsets"} <= {row["name"] for row in resources.body["resources"]}
    assert (await api.get("/api")).body["versions"] == ["v1"]
