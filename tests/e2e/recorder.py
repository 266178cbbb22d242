"""Every version of the objects of one collection, as a watch shows them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any, NamedTuple

import aiohttp

WATCH_S = 300
LINE_LIMIT = 8 * 1024 * 1024
PAUSE_S = 0.2
TOO_MANY_REQUESTS = 429

Obj = dict[str, Any]


class Seen(NamedTuple):
    """One event of a watch."""

    kind: str
    """ADDED, MODIFIED or DELETED."""
    obj: Obj
    at: float
    """When it arrived, in seconds of the monotonic clock."""


class VersionsLost(Exception):
    """The watch could not be resumed where it ended, so versions may be missing."""


class Recorder:
    """Records a collection; `run` works in an event loop, everything else may be called from any thread."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url
        self._lock = threading.Lock()
        self._by_uid: dict[str, list[Seen]] = {}
        self._uids: dict[str, list[str]] = {}
        self.listed = threading.Event()
        """Set when the recording has begun."""

    def history(self, uid: str) -> list[Seen]:
        """Return all versions of an object, oldest first."""
        with self._lock:
            return list(self._by_uid.get(uid, ()))

    def named(self, name: str) -> list[str]:
        """Return the UIDs of all objects that had this name, oldest first."""
        with self._lock:
            return list(self._uids.get(name, ()))

    def everything(self) -> list[list[Seen]]:
        """Return the histories of all objects, in the order in which these appeared."""
        with self._lock:
            return [list(history) for history in self._by_uid.values()]

    def alive(self) -> list[Obj]:
        """Return the last version of each object that exists."""
        return [history[-1].obj for history in self.everything() if history[-1].kind != "DELETED"]

    async def run(self) -> None:
        """Record until cancelled; raises VersionsLost."""
        listed = await self._list()
        for item in listed["items"]:
            self._note("ADDED", item)
        version = str(listed["metadata"]["resourceVersion"])
        self.listed.set()
        while True:
            try:
                version = await self._watch(version)
            except (aiohttp.ClientError, OSError, TimeoutError, json.JSONDecodeError):
                await asyncio.sleep(PAUSE_S)

    async def _list(self) -> Any:
        while True:
            async with self._session.get(self._url) as answer:
                if answer.status != TOO_MANY_REQUESTS:  # so a server answers that does not serve a new resource yet
                    answer.raise_for_status()
                    return await answer.json()
            await asyncio.sleep(PAUSE_S)

    async def _watch(self, version: str) -> str:
        params = {"watch": "true", "resourceVersion": version, "timeoutSeconds": str(WATCH_S)}
        timeout = aiohttp.ClientTimeout(total=WATCH_S + 30)
        async with self._session.get(self._url, params=params, timeout=timeout, read_bufsize=LINE_LIMIT) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise VersionsLost(f"{self._url}: {event['object'].get('message')}")
                version = event["object"]["metadata"]["resourceVersion"]
                self._note(event["type"], event["object"])
        return version

    def _note(self, kind: str, obj: Obj) -> None:
        meta = obj["metadata"]
        with self._lock:
            if meta["uid"] not in self._by_uid:
                self._uids.setdefault(meta["name"], []).append(meta["uid"])
            self._by_uid.setdefault(meta["uid"], []).append(Seen(kind, obj, time.monotonic()))
