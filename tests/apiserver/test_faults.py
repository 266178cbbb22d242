"""Faults, each as a client meets it."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from tests.apiserver.support import DEADLINE_S, Client, a_bare_pod, a_config, until
from volcano_py.apiserver import ApiServer, Fault

CONFIGS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (409, "Conflict"),
        (410, "Expired"),
        (429, "TooManyRequests"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
    ],
)
async def test_a_reply_fault_answers_without_carrying_the_request_out(
    server: ApiServer, client: Client, code: int, reason: str
) -> None:
    fault = server.faults.add(Fault("reply", verb="create", resource="configmaps", code=code, times=1))
    status, answer = await client.post(CONFIGS, a_config())
    assert (status, answer["kind"], answer["reason"], answer["code"]) == (code, "Status", reason, code)
    assert server.get("configmaps", "a", "default") is None
    assert (await client.post(CONFIGS, a_config()))[0] == 201
    assert fault.hits == 1


async def test_too_many_requests_says_when_to_come_back(server: ApiServer, client: Client) -> None:
    server.faults.add(Fault("reply", code=429, retry_after_s=7))
    async with client.session.get(server.url + CONFIGS) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "7")
        assert (await response.json())["details"]["retryAfterSeconds"] == 7


async def test_a_connection_dropped_before_the_request_changes_nothing(server: ApiServer, client: Client) -> None:
    server.faults.add(Fault("drop_before", verb="create", times=1))
    with pytest.raises(aiohttp.ClientError):
        await client.post(CONFIGS, a_config())
    assert server.get("configmaps", "a", "default") is None
    assert (await client.post(CONFIGS, a_config()))[0] == 201


async def test_a_connection_dropped_after_the_request_keeps_its_effect(server: ApiServer, client: Client) -> None:
    server.create(a_bare_pod())
    server.faults.add(Fault("drop_after", verb="create", resource="pods/binding", times=1))
    binding = {"metadata": {"name": "a"}, "target": {"name": "n"}}
    path = "/api/v1/namespaces/default/pods/a/binding"
    with pytest.raises(aiohttp.ClientError):
        await client.post(path, binding)
    pod = server.get("pods", "a", "default")
    assert pod is not None
    assert pod["spec"]["nodeName"] == "n"
    assert (await client.post(path, binding))[0] == 409


async def test_a_delay_holds_one_request_and_no_other(server: ApiServer, client: Client) -> None:
    server.faults.add(Fault("delay", name="slow", delay_s=30))
    server.faults.add(Fault("delay", name="late", delay_s=0.05))
    loop = asyncio.get_running_loop()
    start = loop.time()
    slow = asyncio.create_task(client.get(f"{CONFIGS}/slow"))
    await client.get(f"{CONFIGS}/quick")
    await client.get(f"{CONFIGS}/late")
    assert loop.time() - start >= 0.05
    assert not slow.done()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_a_new_watch_delivers_events_twice(server: ApiServer, client: Client) -> None:
    server.faults.add(Fault("duplicate_events", verb="watch", events=1))
    async with client.watch(CONFIGS) as watch:
        await until(lambda: bool(server.store.collection("configmaps").watchers))
        server.create(a_config("a"))
        server.create(a_config("b"))
        async with asyncio.timeout(DEADLINE_S):
            lines = [json.loads(await watch.content.readline()) for _ in range(3)]
    assert [line["object"]["metadata"]["name"] for line in lines] == ["a", "a", "b"]


async def test_a_running_watch_delivers_events_twice(server: ApiServer, client: Client) -> None:
    async with client.watch(CONFIGS) as watch:
        await until(lambda: bool(server.store.collection("configmaps").watchers))
        server.faults.duplicate_events("configmaps")
        server.create(a_config("a"))
        async with asyncio.timeout(DEADLINE_S):
            first, second = await watch.content.readline(), await watch.content.readline()
    assert first == second


async def test_a_new_watch_ends_at_once(server: ApiServer, client: Client) -> None:
    server.faults.add(Fault("disconnect", verb="watch", times=1))
    async with client.watch(CONFIGS, resourceVersion="1") as watch, asyncio.timeout(DEADLINE_S):
        assert await watch.content.read() == b""


async def test_running_watches_end_cleanly_abruptly_or_expired(server: ApiServer, client: Client) -> None:
    async def end(how: str) -> bytes:
        async with client.watch(CONFIGS) as watch:
            await until(lambda: bool(server.store.collection("configmaps").watchers))
            assert server.faults.disconnect_watches("config*", how) == 1  # type: ignore[arg-type]  # a table of texts
            async with asyncio.timeout(DEADLINE_S):
                return bytes(await watch.content.read())

    assert await end("clean") == b""
    assert json.loads(await end("expired"))["object"]["code"] == 410
    with pytest.raises(aiohttp.ClientError):
        await end("abrupt")


async def test_a_watch_refused_with_410_gets_the_error_in_its_stream(server: ApiServer, client: Client) -> None:
    server.faults.add(Fault("reply", verb="watch", code=410, times=1))
    async with client.watch(CONFIGS) as watch, asyncio.timeout(DEADLINE_S):
        assert (watch.status, json.loads(await watch.content.read())["type"]) == (200, "ERROR")


async def test_rules_are_narrowed_by_name_namespace_and_count(server: ApiServer, client: Client) -> None:
    fault = server.faults.add(Fault("reply", verb="get", namespace="default", name="x-*", skip=1, times=2, code=503))
    codes = [(await client.get(f"{CONFIGS}/{name}"))[0] for name in ("x-1", "y-1", "x-2", "x-3", "x-4")]
    assert codes == [404, 404, 503, 503, 404]
    assert fault.hits == 2


def _hits(fault: Fault) -> list[bool]:
    return [fault.decides("get", "pods", "default", str(index)) for index in range(200)]


def test_probability_is_repeatable_and_roughly_right() -> None:
    first, again, other = (_hits(Fault("reply", probability=0.3, seed=seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert 30 < sum(first) < 90


async def test_rules_can_be_lifted(server: ApiServer, client: Client) -> None:
    fault = server.faults.add(Fault("reply", code=500))
    server.faults.remove(fault)
    server.faults.add(Fault("reply", code=503))
    server.faults.clear()
    assert (await client.get(CONFIGS))[0] == 200


async def test_an_injected_object_is_stored_as_it_is(server: ApiServer, client: Client) -> None:
    pod = a_bare_pod("bad") | {"status": {"phase": "Odd"}}
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "not-a-quantity"}}
    server.faults.inject(pod)
    status, answer = await client.get("/api/v1/namespaces/default/pods/bad")
    assert (status, answer["spec"], answer["status"]) == (200, pod["spec"], pod["status"])
    assert answer["metadata"]["uid"]
    with pytest.raises(LookupError, match=r"example.com/v1, kind Thing"):
        server.faults.inject({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}})


async def test_an_injected_object_replaces_the_one_that_was_there(server: ApiServer) -> None:
    server.create(a_bare_pod())
    server.faults.inject(a_bare_pod() | {"spec": "nonsense"})
    pod = server.get("pods", "a", "default")
    assert pod is not None
    assert pod["spec"] == "nonsense"
