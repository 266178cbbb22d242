"""Writes status.allocated of queues, the resources of their pods, when it changes: one write per queue at a time."""

import random
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from volcano_py.api import keys
from volcano_py.effects.storage import is_older
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import QUEUES
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.model.resources import quantity_text
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_dedup import VersionOf
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

NAME: Final = "queue status"
DEFAULT_OPTIONS: Final = WriteQueueOptions(rate_per_s=20, burst=100, workers=2, capacity=10_000, delay_s=1.0)
"""The delay keeps these writes few: while pods are bound, the resources of a queue change with every cycle."""
_TIMEOUT_S: Final = 10.0
_ALWAYS: Final = (keys.CPU, keys.MEMORY)

Amounts = Mapping[str, float]


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Queue(msgspec.Struct):
    """What is needed of an answer."""

    metadata: _Metadata


class _Written(NamedTuple):
    """A write, and the version of the queue after it."""

    amounts: Amounts
    version: str


class QueueStatusWriter:
    """Writes the allocated resources of queues.

    ``shown`` returns what the watch shows of a queue, None for one that does not exist. Until it shows a write, that
    write says what the queue has: a watch that is late may show what was true before.
    """

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        shown: Callable[[str], Amounts | None],
        version_of: VersionOf,
        options: WriteQueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._shown = shown
        self._version_of = version_of
        self._written: dict[str, _Written] = {}  # what the watch has not shown yet
        self._wanted: Mapping[str, Amounts] = {}  # what the last cycle said, of every queue
        self._write_queue: WriteQueue[str, Amounts] = WriteQueue(
            NAME, self._write, options, metrics, clock=clock, rng=rng, outage=client.outage
        )

    def on_lost(self, callback: Callable[[str | None], None]) -> None:
        """Call ``callback`` as `WriteQueue.on_lost` does."""
        self._write_queue.on_lost(callback)

    def start(self, supervisor: Supervisor) -> None:
        """Start writing."""
        self._write_queue.start(supervisor)

    def put(self, queues: Mapping[str, Amounts]) -> None:
        """Take the allocated resources of every queue, without zeros; write those that the watch shows differently."""
        self._wanted = queues
        self._written = {name: written for name, written in self._written.items() if name in queues}
        for name, allocated in queues.items():
            self._compare(name, allocated)

    def compare(self, name: str) -> None:
        """Write what the last cycle said of a queue if the watch shows it differently by now.

        Another cycle may be a long time off: a watch that was late shows changes that wake none.
        """
        if (allocated := self._wanted.get(name)) is not None:
            self._compare(name, allocated)

    def _compare(self, name: str, allocated: Amounts) -> None:
        known = self._known(name)
        if allocated == known:
            self._write_queue.discard(name)
        elif known is not None:
            self._write_queue.put(name, allocated)

    def _known(self, name: str) -> Amounts | None:
        """Return what a queue has, as far as is known; None if it does not exist."""
        shown, written = self._shown(name), self._written.get(name)
        if shown is None or written is None:
            return shown
        if is_older(self._version_of(name), written.version):
            return written.amounts
        del self._written[name]
        return shown

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits; return whether all was written in time."""
        return await self._write_queue.drained(timeout_s)

    async def _write(self, name: str, _: Amounts) -> str:
        known, shown, allocated = self._known(name), self._shown(name), self._wanted.get(name)
        if known is None or shown is None or allocated is None:
            return "obsolete"
        if allocated == known:
            return "unchanged"  # the first attempt was under way when this became true again
        gone: dict[str, str | None] = dict.fromkeys((*known, *shown))
        now = {
            resource: quantity_text(resource, int(allocated.get(resource, 0))) for resource in (*_ALWAYS, *allocated)
        }
        body = {"status": {"allocated": {**gone, **now}}}
        found = await self._client.patch(QUEUES, name, body, _Queue, subresource="status", timeout_s=_TIMEOUT_S)
        self._written[name] = _Written(allocated, found.metadata.resource_version)
        wanted = self._wanted.get(name)
        if wanted is not None and wanted != allocated:  # the watch may have shown it already, so nobody else asks
            self._write_queue.put(name, wanted)
        return "written"
