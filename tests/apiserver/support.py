"""Shared parts of the embedded API server's tests: objects, a running server, polling."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import aiohttp

from volcano_py.apiserver import ApiServer
from volcano_py.testing import a_pod, manifest

DEADLINE_S = 30.0


def a_bare_pod(name: str = "a", namespace: str = "default", **spec: Any) -> dict[str, Any]:
    """A pod of one container, of no scheduler and without requests."""
    containers = [{"name": "main", "image": "none:1"}]
    return manifest(a_pod(name, namespace=namespace, scheduler=""), spec={"containers": containers, **spec})


def a_config(name: str = "a", namespace: str = "default", **meta: Any) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, **meta}}


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds, at most half a minute."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            if holds():
                return
            await asyncio.sleep(0.005)


class Client:
    """Requests to a server under test."""

    def __init__(self, session: aiohttp.ClientSession, server: ApiServer) -> None:
        self.session = session
        self.server = server

    async def request(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        async with (
            asyncio.timeout(DEADLINE_S),
            self.session.request(method, self.server.url + path, json=body, params=query) as response,
        ):
            return response.status, await response.json(content_type=None)

    async def get(self, path: str, **query: str) -> tuple[int, Any]:
        return await self.request("GET", path, **query)

    async def post(self, path: str, body: Any) -> tuple[int, Any]:
        return await self.request("POST", path, body)

    def watch(self, path: str, **query: str) -> Any:
        return self.session.get(self.server.url + path, params={"watch": "true", **query})
