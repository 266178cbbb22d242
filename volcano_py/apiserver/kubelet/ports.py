"""How the kubelet stand-in sees and changes a cluster: in the server's own process, or over HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import aiohttp

from volcano_py.apiserver.deletion import DeleteOptions
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.objects import Obj, copy_value, decode, encode
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.store import Collection, Event, EventType
from volcano_py.apiserver.strategic import strategic_merge

log = logging.getLogger(__name__)

OnChange = Callable[[str, EventType, Obj], None]
"""Called with resource, kind of change and object. The object is read-only."""

_WATCH_S = 300
_REQUEST_S = 10.0
_BACKOFF_S = (0.1, 0.5, 1.0, 2.0, 5.0)
_LINE_LIMIT = 8 * 1024 * 1024


class ClusterPort(Protocol):
    """What the stand-in needs of a cluster. A write of an object that is gone or has changed is not an error."""

    async def follow(self, resources: Sequence[str], on_change: OnChange) -> None:
        """Report every existing object, then every change, until cancelled."""

    async def patch_status(self, resource: str, obj: Obj, status: Any) -> None:
        """Patch the status of an object (strategic merge)."""

    async def delete(self, resource: str, obj: Obj) -> None:
        """Delete an object with grace period 0, if its UID is still the same."""


class InProcessPort:
    """The registry of a server in this process: no HTTP, no encoding, and not counted among its requests."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def follow(self, resources: Sequence[str], on_change: OnChange) -> None:
        """Listen to the store."""
        wanted = frozenset(resources)

        def listen(collection: Collection, event: Event) -> None:
            if collection.name in wanted:
                on_change(collection.name, event.type, event.stored.obj)

        store = self._registry.store
        store.listeners.append(listen)
        try:
            for name in resources:
                for stored in store.collection(name).scan():
                    on_change(name, "ADDED", stored.obj)
            await asyncio.Event().wait()  # until cancelled: changes arrive through the listener
        finally:
            store.listeners.remove(listen)

    async def patch_status(self, resource: str, obj: Obj, status: Any) -> None:
        """Patch through the registry, as a request would."""
        kind = self._registry.resources.named(resource)
        meta = obj["metadata"]
        context = WriteContext(self._registry, version=kind.storage.name, subresource="status")
        patch = copy_value({"metadata": {"uid": meta["uid"]}, "status": status})
        try:
            self._registry.patch(
                kind,
                meta.get("namespace"),
                meta["name"],
                lambda current: strategic_merge(current, patch),
                context,
            )
        except StatusError as error:
            _tolerate(error)

    async def delete(self, resource: str, obj: Obj) -> None:
        """Delete through the registry, as a request would."""
        meta = obj["metadata"]
        options = DeleteOptions(grace_seconds=0, uid=meta["uid"])
        try:
            kind = self._registry.resources.named(resource)
            self._registry.delete(kind, meta.get("namespace"), meta["name"], options)
        except StatusError as error:
            _tolerate(error)


def _tolerate(error: StatusError) -> None:
    """Ignore errors that mean the object is gone or was replaced."""
    if error.code not in (404, 409, 422):
        raise error


class HttpPort:
    """Any API server by URL. The session's headers and TLS are the caller's."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url.rstrip("/")

    async def follow(self, resources: Sequence[str], on_change: OnChange) -> None:
        """List and watch each resource; resume after a break, list again when the version is too old."""
        async with asyncio.TaskGroup() as group:
            for resource in resources:
                group.create_task(self._follow_one(resource, on_change), name=f"kubelet-follow-{resource}")

    async def _follow_one(self, resource: str, on_change: OnChange) -> None:
        version, failures = "", 0
        known: dict[str, Obj] = {}
        while True:
            try:
                if not version:
                    version = await self._list(resource, known, on_change)
                version = await self._watch(resource, version, known, on_change)
                failures = 0
            except (aiohttp.ClientError, OSError, TimeoutError, json.JSONDecodeError) as error:
                pause = _BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)]
                failures += 1
                log.info("kubelet: %s: %s; trying again in %s s", resource, error, pause)
                await asyncio.sleep(pause)

    async def _list(self, resource: str, known: dict[str, Obj], on_change: OnChange) -> str:
        timeout = aiohttp.ClientTimeout(total=60)
        async with self._session.get(f"{self._url}/api/v1/{resource}", timeout=timeout) as response:
            response.raise_for_status()
            answer = decode(await response.read())
        current = {obj["metadata"]["uid"]: obj for obj in answer["items"]}
        for uid in known.keys() - current.keys():
            on_change(resource, "DELETED", known[uid])
        known.clear()
        known.update(current)
        for obj in answer["items"]:
            on_change(resource, "ADDED", obj)
        return str(answer["metadata"]["resourceVersion"])

    async def _watch(self, resource: str, version: str, known: dict[str, Obj], on_change: OnChange) -> str:
        """Follow one watch to its end; returns where to resume, or "" to list again."""
        params = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(_WATCH_S)}
        timeout = aiohttp.ClientTimeout(total=_WATCH_S + 30, sock_connect=_REQUEST_S)
        url = f"{self._url}/api/v1/{resource}"
        async with self._session.get(url, params=params, timeout=timeout, read_bufsize=_LINE_LIMIT) as response:
            if response.status == 410:
                return ""
            response.raise_for_status()
            async for line in response.content:
                event = decode(line)
                obj: Obj = event["object"]
                if event["type"] == "ERROR":
                    return ""
                version = obj["metadata"]["resourceVersion"]
                if event["type"] == "BOOKMARK":
                    continue
                if event["type"] == "DELETED":
                    known.pop(obj["metadata"]["uid"], None)
                else:
                    known[obj["metadata"]["uid"]] = obj
                on_change(resource, event["type"], obj)
        return version

    async def patch_status(self, resource: str, obj: Obj, status: Any) -> None:
        """PATCH the status subresource."""
        patch = {"metadata": {"uid": obj["metadata"]["uid"]}, "status": status}
        headers = {"Content-Type": "application/strategic-merge-patch+json"}
        await self._write("PATCH", f"{self._path(resource, obj)}/status", patch, headers)

    async def delete(self, resource: str, obj: Obj) -> None:
        """DELETE with grace 0 and the UID as precondition."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": obj["metadata"]["uid"]}}
        await self._write("DELETE", self._path(resource, obj), options, {"Content-Type": "application/json"})

    def _path(self, resource: str, obj: Obj) -> str:
        meta = obj["metadata"]
        namespace = f"namespaces/{meta['namespace']}/" if meta.get("namespace") else ""
        return f"{self._url}/api/v1/{namespace}{resource}/{meta['name']}"

    async def _write(self, method: str, url: str, body: Any, headers: dict[str, str]) -> None:
        timeout = aiohttp.ClientTimeout(total=_REQUEST_S)
        async with self._session.request(method, url, data=encode(body), headers=headers, timeout=timeout) as response:
            await response.read()
            if response.status not in (404, 409, 422):
                response.raise_for_status()
