"""A thin client for contract tests: it sends raw HTTP and JSON, and interprets nothing."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from volcano_py.testing import a_pod, manifest

JSON = "application/json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

DEADLINE_S = 20.0
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Answer:
    """An answer of the server."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def meta(self) -> Any:
        return self.body["metadata"]

    @property
    def reason(self) -> str | None:
        return self.body.get("reason") if isinstance(self.body, dict) else None

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def version(self) -> str:
        return str(self.meta["resourceVersion"])

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.body["items"]]

    @property
    def fields(self) -> list[str]:
        """The fields that a 422 names."""
        return [cause["field"] for cause in self.body["details"]["causes"]]


class Watch:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self._response = response

    async def next(self) -> dict[str, Any]:
        """The next event; fails if the stream ends or no event comes."""
        async with asyncio.timeout(DEADLINE_S):
            line = await self._response.content.readline()
        assert line, "the watch ended"
        event: dict[str, Any] = json.loads(line)
        return event

    async def take(self, count: int) -> list[tuple[str, str]]:
        """The next events as (type, name)."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]

    async def rest(self) -> list[dict[str, Any]]:
        """All events until the server ends the stream."""
        async with asyncio.timeout(DEADLINE_S):
            return [json.loads(line) async for line in self._response.content]


class Api:
    """One API server, and a namespace for one test."""

    def __init__(self, session: aiohttp.ClientSession, url: str, patience_s: float = DEADLINE_S) -> None:
        self.url = url
        self.namespace = ""
        self.patience_s = patience_s
        self._session = session

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        query: dict[str, str] | None = None,
        accept: str = JSON,
    ) -> Answer:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Accept": accept} | ({"Content-Type": content_type} if data is not None else {})
        timeout = aiohttp.ClientTimeout(total=DEADLINE_S)
        async with self._session.request(
            method, self.url + path, data=data, headers=headers, params=query, timeout=timeout
        ) as response:
            text = await response.text()
            parsed = json.loads(text) if response.content_type == JSON and text else text
            return Answer(response.status, parsed, dict(response.headers))

    async def get(self, path: str, **query: str) -> Answer:
        return await self.request("GET", path, query=query)

    async def get_as(self, path: str, accept: str) -> Answer:
        return await self.request("GET", path, accept=accept)

    async def post(self, path: str, body: Any, **query: str) -> Answer:
        return await self.request("POST", path, body, query=query)

    async def put(self, path: str, body: Any, **query: str) -> Answer:
        return await self.request("PUT", path, body, query=query)

    async def patch(self, path: str, body: Any, content_type: str = MERGE, **query: str) -> Answer:
        return await self.request("PATCH", path, body, content_type, query=query)

    async def delete(self, path: str, body: Any = None, **query: str) -> Answer:
        return await self.request("DELETE", path, body, query=query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Watch]:
        """Open a watch; returns once the server has begun to answer."""
        async with self.watch_as(path, JSON, **query) as watch:
            yield watch

    @asynccontextmanager
    async def watch_as(self, path: str, accept: str, **query: str) -> AsyncIterator[Watch]:
        """Open a watch that delivers the objects in another form."""
        params = {"watch": "true", "timeoutSeconds": "30", **query}
        timeout, headers = aiohttp.ClientTimeout(total=60), {"Accept": accept}
        async with self._session.get(self.url + path, params=params, timeout=timeout, headers=headers) as response:
            yield Watch(response)

    def path(self, resource: str, name: str = "", subresource: str = "", group_version: str = "v1") -> str:
        """Path of a resource in the test's namespace."""
        root = "/apis/" if "/" in group_version else "/api/"
        parts = [root + group_version, "namespaces", self.namespace, resource, name, subresource]
        return "/".join(part for part in parts if part)

    async def made(self, path: str, body: Any) -> Answer:
        """Create an object; fails if the server refuses it."""
        answer = await self.post(path, body)
        assert answer.status == 201, answer
        return answer

    async def until(self, path: str, holds: Callable[[Answer], bool], what: str) -> Answer:
        """Poll until an answer holds."""
        async with asyncio.timeout(self.patience_s):
            while True:
                answer = await self.get(path)
                if holds(answer):
                    return answer
                await asyncio.sleep(0.02)
        raise AssertionError(what)

    async def until_answered(self, path: str, body: Any, status: int) -> Answer:
        """POST until the answer has this status: a real server applies changed rules after a moment."""
        async with asyncio.timeout(self.patience_s):
            while True:
                answer = await self.post(path, body)
                if answer.status == status:
                    return answer
                await asyncio.sleep(0.05)

    async def until_gone(self, path: str) -> None:
        await self.until(path, lambda answer: answer.status == 404, f"{path} is gone")


def unique(prefix: str) -> str:
    """A name that no other test uses, for cluster-wide objects."""
    return f"{prefix}-{secrets.token_hex(4)}"


def a_bare_pod(name: str = "a", *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod of one container, of no scheduler, without requests and without a service account token."""
    containers = [{"name": "main", "image": "example.com/none:1"}]
    given = {"automountServiceAccountToken": False, "containers": containers, **spec}
    return manifest(a_pod(name, namespace="", scheduler="", labels=labels), spec=given)


def a_config(name: str = "a", data: dict[str, str] | None = None, **meta: Any) -> dict[str, Any]:
    """A ConfigMap, the simplest kind of object."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **meta},
        "data": data or {"key": "value"},
    }


def a_binding(name: str, node: str, **meta: Any) -> dict[str, Any]:
    """A Binding of a pod to a node."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **meta},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def owned_by(owner: Answer, *, block: bool = False) -> dict[str, Any]:
    """An owner reference to an object."""
    return {
        "apiVersion": owner.body["apiVersion"],
        "kind": owner.body["kind"],
        "name": owner.meta["name"],
        "uid": owner.meta["uid"],
        "blockOwnerDeletion": block,
    }


THING_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9},
                "queue": {"type": "string", "default": "default", "enum": ["default", "fast", "slow"]},
                "code": {"type": "string", "pattern": "^a+$"},
                "weight": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
                "parts": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string", "minLength": 1, "maxLength": 5},
                            "count": {"type": "integer", "default": 1},
                        },
                    },
                },
                "capacity": {
                    "type": "object",
                    "additionalProperties": {
                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                        "x-kubernetes-int-or-string": True,
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "note": {"type": "string", "nullable": True},
            },
        },
        "status": {"type": "object", "properties": {"phase": {"type": "string"}, "running": {"type": "integer"}}},
    },
}


def a_definition(plural: str, kind: str, group: str, *, status: bool, scope: str = "Namespaced") -> dict[str, Any]:
    """A CustomResourceDefinition with versions v1 (stored), v2 (served) and v0 (not served)."""
    versions: list[dict[str, Any]] = []
    for name in ("v1", "v2", "v0"):
        version: dict[str, Any] = {
            "name": name,
            "served": name != "v0",
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": THING_SCHEMA},
        }
        if status:
            version["subresources"] = {"status": {}}
        versions.append(version)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "shortNames": [f"{plural[:2]}x"]},
            "versions": versions,
        },
    }
