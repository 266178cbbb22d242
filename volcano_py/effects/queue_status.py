"""Writes status.allocated of queues, the resources of their pods, when it changes: one write per queue at a time."""

import random
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from volcano_py.api import keys
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import QUEUES
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.model.resources import quantity_text
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

NAME: Final = "queue status"
DEFAULT_OPTIONS: Final = WriteQueueOptions(rate_per_s=20, burst=100, workers=2, capacity=10_000, delay_s=1.0)
"""The delay keeps these writes few: while pods are bound, the resources of a queue change with every cycle."""
_TIMEOUT_S: Final = 10.0
_ALWAYS: Final = (keys.CPU, keys.MEMORY)

Amounts = Mapping[str, float]


class _Queue(msgspec.Struct):
    """An answer whose content is not needed."""


class QueueStatusWriter:
    """Writes the allocated resources of queues.

    ``shown`` returns what the watch shows of a queue, None for one that does not exist.
    """

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        shown: Callable[[str], Amounts | None],
        options: WriteQueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._shown = shown
        self._written: dict[str, Amounts] = {}  # what the watch has not shown yet
        self._write_queue: WriteQueue[str, Amounts] = WriteQueue(
            NAME, self._write, options, metrics, clock=clock, rng=rng, outage=client.outage
        )

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` for each value that will not be written."""
        self._write_queue.on_lost(callback)

    def start(self, supervisor: Supervisor) -> None:
        """Start writing."""
        self._write_queue.start(supervisor)

    def put(self, queues: Mapping[str, Amounts]) -> None:
        """Take the allocated resources of every queue, without zeros; write those that the watch shows differently."""
        self._written = {name: allocated for name, allocated in self._written.items() if name in queues}
        for name, allocated in queues.items():
            shown = self._shown(name)
            if allocated == shown:
                self._written.pop(name, None)
                self._write_queue.discard(name)
            elif shown is not None and allocated != self._written.get(name):
                self._write_queue.put(name, allocated)

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits; return whether all was written in time."""
        return await self._write_queue.drained(timeout_s)

    async def _write(self, name: str, allocated: Amounts) -> str:
        shown = self._shown(name)
        if shown is None:
            return "obsolete"
        if allocated == self._written.get(name):
            return "unchanged"  # decided again while the first write was under way
        before = self._written.get(name, shown)
        gone: dict[str, str | None] = dict.fromkeys((*before, *shown))
        now = {
            resource: quantity_text(resource, int(allocated.get(resource, 0))) for resource in (*_ALWAYS, *allocated)
        }
        body = {"status": {"allocated": {**gone, **now}}}
        await self._client.patch(QUEUES, name, body, _Queue, subresource="status", timeout_s=_TIMEOUT_S)
        self._written[name] = allocated
        return "written"
