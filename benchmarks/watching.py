"""An independent watch as the common clock: it notes when each pod is first seen with a node."""

import asyncio
import time
from typing import Any

import msgspec

from volcano_py.api.meta import ObjectMeta
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event, Quarantined
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import PODS
from volcano_py.runtime.supervisor import Supervisor

LIMIT_S = 300.0
_SYNC_S = 120.0


class _Bound(msgspec.Struct, frozen=True):
    node_name: str = msgspec.field(default="", name="nodeName")


class _Seen(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Bound = _Bound()


class BindWatch:
    """Notes when each pod of a namespace is first seen with a node."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._informers = Informers(client)
        self._informers.add(PODS, _Seen, self, namespace=namespace)
        self._supervisor = Supervisor()
        self._seen: dict[str, float] = {}
        self._changed = asyncio.Event()

    def on_events(self, events: list[Event[_Seen]]) -> None:
        """Note pods that have a node now."""
        now = time.monotonic()
        for event in events:
            if event.object is not None and event.object.spec.node_name:
                self._seen.setdefault(event.uid, now)
        self._changed.set()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Raise an error: an unreadable pod is a bug of the benchmark."""
        raise RuntimeError(entry.message)

    def on_release(self, entry: Quarantined) -> None:
        """Nothing is ever in quarantine."""

    async def __aenter__(self) -> "BindWatch":
        await self._supervisor.__aenter__()
        self._informers.start(self._supervisor)
        await self._informers.synced(_SYNC_S)
        return self

    async def __aexit__(self, *details: Any) -> None:
        await self._supervisor.stop(5)
        await self._supervisor.__aexit__(*details)

    async def until(self, count: int, limit_s: float = LIMIT_S) -> list[float]:
        """Wait until ``count`` pods have a node; return the times, first to last."""
        async with asyncio.timeout(limit_s):
            while len(self._seen) < count:
                self._changed.clear()
                await self._changed.wait()
        return sorted(self._seen.values())
