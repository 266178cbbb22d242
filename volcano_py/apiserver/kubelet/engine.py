"""The kubelet stand-in itself: one task and one heap of timers for any number of nodes and pods."""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from volcano_py.apiserver.kubelet.ports import ClusterPort
from volcano_py.apiserver.kubelet.stages import Facts, Stage, StageError, load_stages, render, select
from volcano_py.apiserver.objects import Obj, timestamp
from volcano_py.apiserver.store import EventType

log = logging.getLogger(__name__)

_BATCH = 64  # stage effects in flight at once
_RETRY_S = 1.0
_ATTEMPTS = 5
_IDLE_S = 3600.0


@dataclass(slots=True)
class _Pending:
    """An object in a stage, waiting for its time."""

    stage: Stage
    obj: Obj
    ticket: int
    failures: int = 0


class Kubelet:
    """Stands in for every kubelet of a cluster; an async context manager, or `start` and `stop`.

    `delays` overrides the delay of stages by name, in seconds: `{"pod-run": 0}`.
    """

    def __init__(
        self,
        port: ClusterPort,
        stages: Sequence[Stage] | None = None,
        delays: Mapping[str, float] | None = None,
    ) -> None:
        self._port = port
        self._stages: dict[str, list[Stage]] = {}
        self.applied: dict[str, int] = {}
        """How often each stage took effect."""
        for stage in load_stages() if stages is None else stages:
            self._stages.setdefault(stage.resource, []).append(stage)
            self.applied[stage.name] = 0
        self._delays = dict(delays or {})
        unknown = set(self._delays) - set(self.applied)
        if unknown:
            raise StageError(f"delays: no stage is called {sorted(unknown)[0]}")
        self._pending: dict[tuple[str, str], _Pending] = {}
        self._heap: list[tuple[float, int, tuple[str, str]]] = []
        self._tickets = 0
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to follow the cluster and to act."""
        follow = self._port.follow(sorted(self._stages), self._observe)
        self._tasks = [
            asyncio.create_task(follow, name="kubelet-follow"),
            asyncio.create_task(self._run(), name="kubelet-timers"),
        ]
        for task in self._tasks:
            task.add_done_callback(_report_end)

    async def stop(self) -> None:
        """Stop, and wait until the tasks have ended."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def _observe(self, resource: str, event_type: EventType, obj: Obj) -> None:
        key = (resource, obj["metadata"]["uid"])
        if event_type == "DELETED":
            self._pending.pop(key, None)
            return
        try:
            stage = select(self._stages[resource], obj)
        except StageError:
            log.exception("kubelet: %s %s is left alone", resource, obj["metadata"]["name"])
            stage = None
        if stage is None:
            self._pending.pop(key, None)
            return
        pending = self._pending.get(key)
        if pending is not None and pending.stage is stage:
            pending.obj = obj  # the object is still in this stage, so its timer keeps running
            return
        self._schedule(key, _Pending(stage, obj, 0), self._delay(stage, obj))

    def _delay(self, stage: Stage, obj: Obj) -> float:
        if stage.name in self._delays:
            return self._delays[stage.name]
        return stage.delay.of(obj) or 0.0

    def _schedule(self, key: tuple[str, str], pending: _Pending, delay_s: float) -> None:
        self._tickets += 1
        pending.ticket = self._tickets
        self._pending[key] = pending
        due = asyncio.get_running_loop().time() + delay_s
        heapq.heappush(self._heap, (due, pending.ticket, key))
        if self._heap[0][1] == pending.ticket:
            self._wake.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = self._take_due(loop.time())
            if due:
                await asyncio.gather(*(self._apply(key, pending) for key, pending in due))
                await asyncio.sleep(0)
                continue
            wait_s = min(self._heap[0][0] - loop.time(), _IDLE_S) if self._heap else _IDLE_S
            self._wake.clear()
            try:
                async with asyncio.timeout(max(wait_s, 0.0)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _take_due(self, now: float) -> list[tuple[tuple[str, str], _Pending]]:
        due: list[tuple[tuple[str, str], _Pending]] = []
        while self._heap and len(due) < _BATCH and self._heap[0][0] <= now:
            _, ticket, key = heapq.heappop(self._heap)
            pending = self._pending.get(key)
            if pending is not None and pending.ticket == ticket:
                del self._pending[key]
                due.append((key, pending))
        return due

    async def _apply(self, key: tuple[str, str], pending: _Pending) -> None:
        stage, obj = pending.stage, pending.obj
        try:
            if stage.delete:
                await self._port.delete(stage.resource, obj)
            else:
                await self._port.patch_status(stage.resource, obj, render(stage.status, obj, self._facts(obj)))
            self.applied[stage.name] += 1
        except Exception:
            pending.failures += 1
            log.exception("kubelet: stage %s of %s failed", stage.name, obj["metadata"]["name"])
            if pending.failures < _ATTEMPTS and key not in self._pending:
                self._schedule(key, pending, _RETRY_S * pending.failures)

    def _facts(self, obj: Obj) -> Facts:
        """Addresses that depend only on the object's UID and its node's name, so they never change."""
        pod, node = hash_of(obj["metadata"]["uid"]), hash_of(str((obj.get("spec") or {}).get("nodeName")))
        pod_ip = f"10.{pod >> 16 & 127}.{pod >> 8 & 255}.{pod & 255}"
        return Facts(timestamp(), pod_ip, f"10.{128 + (node >> 16 & 127)}.{node >> 8 & 255}.{node & 255}")


def _report_end(task: asyncio.Task[None]) -> None:
    """Log a task that ends by itself, which is a bug, at once and not when the task is collected."""
    if not task.cancelled() and task.exception() is not None:
        log.error("kubelet: %s failed and stands still", task.get_name(), exc_info=task.exception())


def hash_of(text: str) -> int:
    """A small hash that is equal in every process."""
    value = 2166136261
    for byte in text.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value
