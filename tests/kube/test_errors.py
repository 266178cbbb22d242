"""Answers and broken connections become typed errors that say what to do."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from tests.kube.fake_api import WIDGETS, FakeApi, Widget, a_server, a_status
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials

PATH = "/api/v1/namespaces/ns/pods/p/binding"


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.ApiError),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Gone", errors.Gone),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
        (504, "Timeout", errors.Timeout),
    ],
)
def test_an_answer_becomes_the_error_of_its_status_and_reason(
    code: int, reason: str, kind: type[errors.ApiError]
) -> None:
    body = json.dumps(a_status(code, reason, "the server's words", details={"kind": "pods", "name": "p"})).encode()

    error = errors.from_answer("create", PATH, code, body, {})

    assert type(error) is kind
    assert (error.status, error.reason, error.server_message.startswith("the server's words")) == (code, reason, True)
    assert error.maybe_applied == (code >= 500)


@pytest.mark.parametrize(
    "details",
    [{}, {"details": {}}, {"details": {"kind": "pods"}}, {"details": {"kind": "teams.example.com", "name": "blue"}}],
    ids=["none", "empty", "kind", "another"],
)
def test_a_404_that_does_not_name_the_object_is_no_proof_that_it_is_gone(details: dict[str, Any]) -> None:
    body = json.dumps(a_status(404, "NotFound", "the server could not find the requested resource", **details)).encode()

    assert type(errors.from_answer("delete", PATH, 404, body, {})) is errors.NotServed
    assert type(errors.from_answer("delete", PATH, 404, b"404 page not found", {})) is errors.NotServed
    assert type(errors.from_answer("list", "/api/v1/namespaces/ns/pods", 404, body, {})) is errors.NotFound


def test_a_403_of_a_terminating_namespace_is_not_an_authorization_error() -> None:
    words = "unable to create new content in namespace ns because it is being terminated"
    cause = {"reason": "NamespaceTerminating", "message": "namespace ns is being terminated"}
    body = json.dumps(a_status(403, "Forbidden", words, details={"causes": [cause]})).encode()

    error = errors.from_answer("create", PATH, 403, body, {})

    assert type(error) is errors.NamespaceTerminating
    assert str(error) == f"create pods/binding ns/p: {words} (403 Forbidden)"


def test_the_message_names_verb_resource_object_and_the_servers_words() -> None:
    body = json.dumps(a_status(409, "Conflict", 'pod p is already assigned to node "n1"')).encode()

    error = errors.from_answer("create", PATH, 409, body, {})

    assert str(error) == 'create pods/binding ns/p: pod p is already assigned to node "n1" (409 Conflict)'


@pytest.mark.parametrize(
    ("headers", "details", "expected"),
    [
        ({"Retry-After": "3"}, {}, 3.0),
        ({}, {"retryAfterSeconds": 5}, 5.0),
        ({"Retry-After": "soon"}, {}, None),
        ({}, {}, None),
    ],
)
def test_how_long_to_wait_is_read_from_header_or_details(
    headers: dict[str, str], details: dict[str, int], expected: float | None
) -> None:
    body = json.dumps(a_status(429, "TooManyRequests", details=details)).encode()

    assert errors.from_answer("list", "/api/v1/pods", 429, body, headers).retry_after_s == expected


def test_a_body_that_is_no_status_is_quoted_shortly() -> None:
    error = errors.from_answer("get", "/api/v1/nodes/n", 502, b"<html>" + b"x" * 5000, {})

    assert isinstance(error, errors.ServerError)
    assert "<html>xxx" in str(error)
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    "words",
    [
        'pods "p" is forbidden: exceeded quota: rq, requested: pods=1, used: pods=1, limited: pods=1',
        'pods "p" is forbidden: violates PodSecurity "restricted:latest": hostNetwork != false',
        'admission webhook "validation.gatekeeper.sh" denied the request: label team is required',
        'admission webhook "w" denied the request: pods cannot use hostPath, and you can\'t ask for it',
        "pods \"p\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: root cannot run",
        'pods "p" is forbidden: pod with UID "" cannot be created in a cordoned namespace',
    ],
)
def test_rights_are_no_remedy_for_a_quota_or_a_policy(words: str) -> None:
    error = errors.from_answer("create", PATH, 403, json.dumps(a_status(403, "Forbidden", words)).encode(), {})

    assert str(error) == f"create pods/binding ns/p: {words} (403 Forbidden)"


@pytest.mark.parametrize(
    "words",
    [
        'pods is forbidden: User "u" cannot create resource "pods" in API group "" in the namespace "ns"',
        'pods "p" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set '
        "finalizers on",
    ],
)
def test_rights_are_the_remedy_if_a_right_is_missing(words: str) -> None:
    error = errors.from_answer("create", PATH, 403, json.dumps(a_status(403, "Forbidden", words)).encode(), {})

    assert "RBAC" in str(error)


@pytest.mark.parametrize(("code", "remedy"), [(401, "kubeconfig"), (403, "RBAC")])
def test_authentication_errors_name_the_remedy(code: int, remedy: str) -> None:
    body = json.dumps(a_status(code, "X", "no")).encode()

    assert remedy in str(errors.from_answer("list", "/api/v1/pods", code, body, {}))


async def test_a_server_that_is_not_there_is_named_and_nothing_was_applied() -> None:
    async with a_server(FakeApi().handle) as url:
        pass  # the port is free again
    async with ApiClient(Credentials(url)) as client:
        with pytest.raises(errors.ConnectionFailed, match=f"list .*: cannot connect to {url}") as caught:
            await client.list_bytes(WIDGETS, {})

    assert not caught.value.maybe_applied
    assert caught.value.__cause__ is not None


async def test_a_connection_cut_after_the_request_leaves_the_outcome_open(client: ApiClient, api: FakeApi) -> None:
    async def cut(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    api.answers.append(cut)
    with pytest.raises(errors.ConnectionFailed) as caught:
        await client.post_bytes(WIDGETS.item("a", "ns"), b"{}")

    assert caught.value.maybe_applied


async def test_no_answer_in_time_is_a_timeout_with_an_open_outcome(client: ApiClient, api: FakeApi) -> None:
    async def hang(_: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    api.answers.append(hang)
    with pytest.raises(errors.Timeout, match=r"no answer from http://127\.0\.0\.1:\d+ within 0\.5 s") as caught:
        await client.post_bytes(WIDGETS.item("a", "ns"), b"{}", timeout_s=0.5)

    assert caught.value.maybe_applied


async def test_an_answer_of_another_kind_is_an_unexpected_answer(client: ApiClient, api: FakeApi) -> None:
    async def nonsense(_: web.Request) -> web.Response:
        return web.Response(text="<html>welcome</html>")

    api.answers.append(nonsense)
    with pytest.raises(errors.UnexpectedAnswer, match=r"get widgets\.test\.example ns/a: the answer is not a Widget"):
        await client.get(WIDGETS, "a", Widget, namespace="ns")
