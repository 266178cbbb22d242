"""What the server answers to the parts of kubectl that it does not serve, and to those it serves in its own way."""

from __future__ import annotations

import pytest

from tests.apiserver.support import Client, a_bare_pod
from volcano_py.apiserver.openapi import PROTOBUF_V2

POD = "/api/v1/namespaces/default/pods/a"


@pytest.mark.parametrize(
    "path",
    [
        f"{POD}/log",
        f"{POD}/exec",
        f"{POD}/attach",
        f"{POD}/portforward",
        f"{POD}/proxy/deep/path",
        "/api/v1/nodes/n/proxy",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_what_needs_containers_or_tokens_is_not_implemented_and_says_why(
    client: Client, method: str, path: str
) -> None:
    client.server.create(a_bare_pod())
    status, body = await client.request(method, path)
    assert (status, body["reason"], body["kind"]) == (501, "NotImplemented", "Status")
    assert "embedded API server" in body["message"]


async def test_the_old_openapi_is_published_empty(client: Client) -> None:
    status, body = await client.get("/openapi/v2")
    assert (status, body["swagger"], body["paths"]) == (200, "2.0", {})
    async with client.session.get(f"{client.server.url}/openapi/v2", headers={"Accept": PROTOBUF_V2}) as answer:
        assert (answer.content_type, await answer.read()) == (PROTOBUF_V2.replace("@", "."), b"")


async def test_patches_are_announced_with_validation_but_not_as_strategic(client: Client) -> None:
    _, body = await client.get("/openapi/v3/api/v1")
    patch = body["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in [item["name"] for item in patch["parameters"]]
    assert "application/strategic-merge-patch+json" not in patch["requestBody"]["content"]


async def test_objects_without_appliers_carry_no_owners(client: Client) -> None:
    _, made = await client.post("/api/v1/namespaces/default/pods", a_bare_pod())
    assert "managedFields" not in made["metadata"]


async def test_a_webhook_behind_a_service_fails_with_a_remedy(client: Client) -> None:
    hook = {
        "name": "x.example.com",
        "clientConfig": {"service": {"name": "s", "namespace": "n"}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"]}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    status, _ = await client.post(path, {"metadata": {"name": "hook"}, "webhooks": [hook]})
    assert status == 201
    status, body = await client.post("/api/v1/namespaces/default/pods", a_bare_pod())
    assert (status, body["reason"]) == (500, "InternalError")
    assert "resolves no services (n/s): give clientConfig.url" in body["message"]


async def test_conditions_in_cel_are_refused_with_a_remedy(client: Client) -> None:
    hook = {
        "name": "x.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "matchConditions": [{"name": "c", "expression": "true"}],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    status, body = await client.post(path, {"metadata": {"name": "hook"}, "webhooks": [hook]})
    assert status == 422
    assert "evaluates no CEL" in body["message"]
