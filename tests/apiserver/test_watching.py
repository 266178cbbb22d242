"""Watches of a running server: slow clients, endings, bookmarks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from tests.apiserver.support import DEADLINE_S, Client, a_config, until
from volcano_py.apiserver import ApiServer, ApiServerOptions

CONFIGS = "/api/v1/configmaps"


async def _events(response: aiohttp.ClientResponse, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(DEADLINE_S):
        return [json.loads(await response.content.readline()) for _ in range(count)]


async def _watching(server: ApiServer, count: int, resource: str = "configmaps") -> None:
    await until(lambda: len(server.store.collection(resource).watchers) == count)


async def test_a_watcher_that_lags_too_far_is_cut_off_and_nobody_else() -> None:
    options = ApiServerOptions(watch_queue_limit=50)
    async with ApiServer(options) as server, aiohttp.ClientSession() as session:
        watch = {"watch": "true"}
        async with (
            session.get(server.url + CONFIGS, params=watch, read_bufsize=2**20) as quick,
            session.get(server.url + CONFIGS, params=watch, read_bufsize=1024) as slow,
        ):
            await _watching(server, 2)
            body = {"data": {"filler": "x" * 100_000}}
            read = 0
            async with asyncio.timeout(DEADLINE_S):
                while len(server.store.collection("configmaps").watchers) == 2:
                    server.create(a_config(f"c{read}") | body)
                    await _events(quick, 1)
                    read += 1
            with pytest.raises(aiohttp.ClientError):
                async with asyncio.timeout(DEADLINE_S):
                    await slow.content.read()
            server.create(a_config("last"))
            assert (await _events(quick, 1))[0]["object"]["metadata"]["name"] == "last"


async def test_a_watcher_leaves_the_store_when_its_client_disconnects(server: ApiServer, client: Client) -> None:
    async with client.watch(CONFIGS):
        await _watching(server, 1)
    await _watching(server, 0)


async def test_a_burst_is_delivered_whole_and_in_order(server: ApiServer, client: Client) -> None:
    async with client.watch(CONFIGS) as watch:
        await _watching(server, 1)
        for index in range(500):
            server.create(a_config(f"c{index:03}"))
        names = [event["object"]["metadata"]["name"] for event in await _events(watch, 500)]
    assert names == [f"c{index:03}" for index in range(500)]


async def test_bookmarks_come_at_intervals_even_if_nothing_changes() -> None:
    options = ApiServerOptions(bookmark_interval_s=0.02)
    async with ApiServer(options) as server, aiohttp.ClientSession() as session:
        watch = Client(session, server).watch("/api/v1/secrets", allowWatchBookmarks="true", resourceVersion="1")
        async with watch as response:
            idle = await _events(response, 2)
            server.create(a_config())
            [moved] = await _events(response, 1)
            while int(moved["object"]["metadata"]["resourceVersion"]) < server.store.rv:
                [moved] = await _events(response, 1)
    assert {event["type"] for event in (*idle, moved)} == {"BOOKMARK"}
    assert idle[0]["object"]["kind"] == "Secret"
    assert idle[0] == idle[1] != moved


async def test_a_watch_from_an_old_version_gets_an_error_in_its_stream_and_ends(
    server: ApiServer, client: Client
) -> None:
    version = server.store.rv
    server.create(a_config())
    server.faults.compact()
    async with client.watch(CONFIGS, resourceVersion=str(version)) as watch, asyncio.timeout(DEADLINE_S):
        lines = (await watch.content.read()).splitlines()
    assert watch.status == 200
    [event] = [json.loads(line) for line in lines]
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"].startswith(f"too old resource version: {version} (")


async def test_stopping_the_server_ends_its_watches() -> None:
    async with aiohttp.ClientSession() as session:
        async with ApiServer() as server:
            response = await Client(session, server).watch(CONFIGS)
            await _watching(server, 1)
        async with asyncio.timeout(DEADLINE_S):
            assert await response.content.read() == b""
        response.release()
