"""Contract: admission webhooks. Which are called, in which order, and what an answer does to the write."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from tests.contract.api import Answer, Api, a_config, unique
from tests.controlplane.certificates import Authority, write_secret

HOOKS = "/apis/admissionregistration.k8s.io/v1"
Answerer = Callable[[dict[str, Any]], dict[str, Any]]


def yes(request: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": True}


def patching(*operations: dict[str, Any]) -> Answerer:
    patch = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def refusing(**status: Any) -> Answerer:
    return lambda request: {"allowed": False, "status": status}


class Hooks:
    """A webhook server, and the configurations that point to it."""

    def __init__(self, api: Api, bundle: str) -> None:
        self.api = api
        self.bundle = bundle
        self.port = 0
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Answerer] = {}
        self.made: list[str] = []

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await request.read())
        name = request.path.strip("/")
        self.asked.append((name, review["request"]))
        answer = self.answers[name](review["request"])
        if "raw" in answer:
            return web.Response(status=answer.get("code", 200), text=answer["raw"])
        response = {"uid": review["request"]["uid"], **answer}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    async def configure(self, name: str, answer: Answerer, *, mutating: bool = False, **fields: Any) -> None:
        """Register a webhook on ConfigMaps of the test's namespace and wait until it is asked."""
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        hook = {
            "name": f"{name}.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/{name}", "caBundle": self.bundle},
            "rules": [{**rule, **fields.pop("rule", {})}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.api.namespace}},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            **fields,
        }
        plural = f"{'mutating' if mutating else 'validating'}webhookconfigurations"
        kind = f"{'Mutating' if mutating else 'Validating'}WebhookConfiguration"
        full = unique(name)
        self.answers[name] = answer
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": full}}
        await self.api.made(f"{HOOKS}/{plural}", {**body, "webhooks": [hook]})
        self.made.append(f"{HOOKS}/{plural}/{full}")

    async def settle(self) -> None:
        """Probe until every webhook has been called: a real server applies a configuration after a moment."""
        for _ in range(400):
            probe = a_config(unique("probe"), labels={"probe": "yes"})
            await self.api.post(self.api.path("configmaps"), probe)
            if {name for name, _ in self.asked} == set(self.answers):
                break
        else:
            raise AssertionError(f"never asked: {set(self.answers) - {name for name, _ in self.asked}}")
        self.asked.clear()


@pytest.fixture
async def hooks(api: Api, tmp_path: Any) -> AsyncIterator[Hooks]:
    authority = Authority()
    pair = authority.server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(
        write_secret(tmp_path / "tls.crt", pair.certificate), write_secret(tmp_path / "tls.key", pair.key)
    )
    made = Hooks(api, base64.b64encode(_pem(authority)).decode())
    runner = web.ServerRunner(web.Server(made.handle, access_log=None), shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    for path in made.made:
        await api.delete(path)
    await runner.cleanup()


def _pem(authority: Authority) -> bytes:
    return authority.pem if isinstance(authority.pem, bytes) else str(authority.pem).encode()


async def create(api: Api, **fields: Any) -> Answer:
    return await api.post(api.path("configmaps"), {**a_config(), **fields})


async def test_a_refusal_names_the_webhook_and_its_reason(api: Api, hooks: Hooks) -> None:
    await hooks.configure("no", refusing(message="too many letters", code=403, reason="Forbidden"))
    await hooks.settle()
    answer = await create(api)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == 'admission webhook "no.example.com" denied the request: too many letters'
    assert (await api.get(api.path("configmaps", "a"))).status == 404


async def test_a_refusal_without_a_reason_is_a_bad_request(api: Api, hooks: Hooks) -> None:
    await hooks.configure("no", lambda request: {"allowed": False})
    await hooks.settle()
    answer = await create(api)
    assert answer.status == 400
    assert answer.message == 'admission webhook "no.example.com" denied the request without explanation'


async def test_a_patch_changes_what_is_stored(api: Api, hooks: Hooks) -> None:
    await hooks.configure("add", patching({"op": "add", "path": "/data/more", "value": "1"}), mutating=True)
    await hooks.settle()
    answer = await create(api)
    assert (answer.status, answer.body["data"]) == (201, {"key": "value", "more": "1"})
    assert (await api.get(api.path("configmaps", "a"))).body["data"] == {"key": "value", "more": "1"}


async def test_validating_webhooks_see_what_mutating_ones_made(api: Api, hooks: Hooks) -> None:
    await hooks.configure("add", patching({"op": "add", "path": "/data/more", "value": "1"}), mutating=True)
    await hooks.configure("look", yes)
    await hooks.settle()
    await create(api)
    assert [name for name, _ in hooks.asked] == ["add", "look"]
    assert hooks.asked[1][1]["object"]["data"] == {"key": "value", "more": "1"}


async def test_a_webhook_gets_a_complete_admission_review(api: Api, hooks: Hooks) -> None:
    await hooks.configure("look", yes)
    await hooks.settle()
    await create(api)
    ((_, request),) = hooks.asked
    assert request["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["operation"], request["namespace"], request["name"]) == ("CREATE", api.namespace, "a")
    assert (request["dryRun"], request["oldObject"]) == (False, None)
    assert request["object"]["kind"] == "ConfigMap"
    assert request["object"]["metadata"]["uid"]
    assert request["userInfo"]["username"]


async def test_an_update_shows_both_objects(api: Api, hooks: Hooks) -> None:
    await hooks.configure("look", yes, rule={"operations": ["CREATE", "UPDATE"]})
    await hooks.settle()
    await create(api)
    answer = await api.patch(api.path("configmaps", "a"), {"data": {"key": "new"}})
    request = hooks.asked[-1][1]
    assert (answer.status, request["operation"]) == (200, "UPDATE")
    assert (request["oldObject"]["data"], request["object"]["data"]) == ({"key": "value"}, {"key": "new"})


async def test_a_deletion_can_be_refused(api: Api, hooks: Hooks) -> None:
    await create(api)
    await hooks.configure("keep", refusing(message="not this one"), rule={"operations": ["DELETE", "CREATE"]})
    await hooks.settle()
    answer = await api.delete(api.path("configmaps", "a"))
    request = hooks.asked[-1][1]
    assert answer.message == 'admission webhook "keep.example.com" denied the request: not this one'
    assert (request["operation"], request["object"], request["oldObject"]["kind"]) == ("DELETE", None, "ConfigMap")
    assert (await api.get(api.path("configmaps", "a"))).status == 200


async def test_an_object_selector_narrows_what_is_asked_about(api: Api, hooks: Hooks) -> None:
    await hooks.configure("no", refusing(message="no"), objectSelector={"matchLabels": {"probe": "yes"}})
    await hooks.settle()
    assert (await create(api)).status == 201
    assert hooks.asked == []


@pytest.mark.parametrize(
    ("answer", "hint"),
    [
        pytest.param({"raw": "oops", "code": 500}, "", id="server-error"),
        pytest.param({"raw": "{}"}, "", id="no-review"),
        pytest.param({"uid": "other", "allowed": True}, "expected response.uid=", id="other-uid"),
    ],
)
async def test_a_webhook_that_fails_refuses_the_write(
    api: Api, hooks: Hooks, answer: dict[str, Any], hint: str
) -> None:
    await hooks.configure("broken", lambda request: answer)
    await hooks.settle()
    refused = await create(api)
    assert (refused.status, refused.reason) == (500, "InternalError")
    assert refused.message.startswith('Internal error occurred: failed calling webhook "broken.example.com": ')
    assert hint in refused.message


async def test_a_webhook_that_may_be_ignored_does_not(api: Api, hooks: Hooks) -> None:
    await hooks.configure("broken", lambda request: {"raw": "oops", "code": 500}, failurePolicy="Ignore")
    await hooks.settle()
    assert (await create(api)).status == 201


async def test_a_warning_reaches_the_client(api: Api, hooks: Hooks) -> None:
    await hooks.configure("warn", lambda request: {"allowed": True, "warnings": ["better not"]})
    await hooks.settle()
    assert (await create(api)).headers["Warning"] == '299 - "better not"'


async def test_a_warning_comes_with_a_refusal(api: Api, hooks: Hooks) -> None:
    await hooks.configure(
        "no", lambda request: {"allowed": False, "status": {"message": "no"}, "warnings": ["try another"]}
    )
    await hooks.settle()
    answer = await create(api)
    assert (answer.status, answer.headers["Warning"]) == (400, '299 - "try another"')


async def test_a_patch_that_breaks_the_object_is_refused_by_its_rules(api: Api, hooks: Hooks) -> None:
    await hooks.configure("bad", patching({"op": "add", "path": "/data/a~1b", "value": "1"}), mutating=True)
    await hooks.settle()
    answer = await create(api)
    assert (answer.status, answer.fields) == (422, ["data[a/b]"])


async def test_a_dry_run_is_announced(api: Api, hooks: Hooks) -> None:
    await hooks.configure("look", yes)
    await hooks.settle()
    answer = await api.post(api.path("configmaps"), a_config(), dryRun="All")
    # Controllers of a real cluster may create ConfigMaps in the namespace at the same time.
    assert (answer.status, True in [request["dryRun"] for _, request in hooks.asked]) == (201, True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("sideEffects", "Some", id="side-effects"),
        pytest.param("timeoutSeconds", 31, id="timeout"),
        pytest.param("failurePolicy", "Maybe", id="policy"),
        pytest.param("clientConfig", {"url": "http://127.0.0.1:1/x"}, id="plain-http"),
    ],
)
async def test_a_configuration_that_cannot_work_is_refused(api: Api, field: str, value: Any) -> None:
    hook = {
        "name": "x.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        field: value,
    }
    body = {"metadata": {"name": unique("bad")}, "webhooks": [hook]}
    answer = await api.post(f"{HOOKS}/validatingwebhookconfigurations", body)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.fields[0].startswith(f"webhooks[0].{field}")
