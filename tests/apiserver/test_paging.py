"""Pages whose past has been forgotten."""

from __future__ import annotations

import base64

from tests.apiserver.support import Client, a_config
from volcano_py.apiserver import ApiServer

CONFIGS = "/api/v1/namespaces/default/configmaps"


async def test_an_expired_continue_token_comes_with_a_token_for_the_rest(server: ApiServer, client: Client) -> None:
    for name in "abcd":
        server.create(a_config(name))
    _, first = await client.get(CONFIGS, limit="2")
    server.registry.delete(server.resources.named("configmaps"), "default", "c")
    server.create(a_config("bb"))
    server.faults.compact()
    status, expired = await client.get(CONFIGS, limit="2", **{"continue": first["metadata"]["continue"]})
    assert (status, expired["code"], expired["reason"]) == (410, 410, "Expired")
    assert expired["message"].startswith("The provided continue parameter is too old")
    status, rest = await client.get(CONFIGS, **{"continue": expired["metadata"]["continue"]})
    assert status == 200
    assert [item["metadata"]["name"] for item in rest["items"]] == ["bb", "d"]


async def test_an_exact_version_that_is_forgotten_has_expired(server: ApiServer, client: Client) -> None:
    server.create(a_config())
    version = str(server.store.rv)
    server.create(a_config("b"))
    server.faults.compact()
    status, answer = await client.get(CONFIGS, resourceVersion=version, resourceVersionMatch="Exact")
    assert (status, answer["reason"]) == (410, "Expired")
    assert answer["message"] == "The resourceVersion for the provided list is too old."


async def test_a_token_made_elsewhere_with_a_future_version_is_refused(server: ApiServer, client: Client) -> None:
    token = base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":999999,"start":"/a\\u0000"}').decode().rstrip("=")
    status, _ = await client.get(CONFIGS, **{"continue": token})
    assert status == 504
