"""Events, written at a modest rate: a repeat raises the count of an event; when too many wait, new ones are dropped.

What a scheduler says about every pod and gang, again and again, has a write queue of its own. A thousand pods that wait
can fill it for a minute, and an event about an eviction or a mistake does not wait behind them.
"""

import asyncio
import itertools
import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from volcano_py.api import keys
from volcano_py.api.timestamp import wire_time
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import EVENTS
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

NAME: Final = "event"
SCHEDULING_NAME: Final = "scheduling event"
_OF_SCHEDULING: Final = frozenset({keys.EVENT_SCHEDULED, keys.EVENT_FAILED_SCHEDULING, keys.EVENT_UNSCHEDULABLE})
DEFAULT_OPTIONS: Final = WriteQueueOptions(rate_per_s=100, burst=100, workers=4, capacity=10_000)
_TIMEOUT_S: Final = 10.0
_REMEMBERED: Final = 4096  # events whose repeats are counted on them
_REPEATS_WITHIN_S: Final = 3300.0  # events live for an hour after their last repeat
_LONGEST: Final = 1024  # characters of a message that the API server accepts
_LONGEST_NAME: Final = 230  # of 253 characters, so that a number can follow
_API_VERSIONS: Final[Mapping[str, str]] = {
    "Job": f"{keys.BATCH_GROUP}/{keys.BATCH_VERSION}",
    "CronJob": f"{keys.BATCH_GROUP}/{keys.BATCH_VERSION}",
    "PodGroup": f"{keys.SCHEDULING_GROUP}/{keys.SCHEDULING_VERSION}",
    "Queue": f"{keys.SCHEDULING_GROUP}/{keys.SCHEDULING_VERSION}",
    "JobFlow": f"{keys.FLOW_GROUP}/{keys.FLOW_VERSION}",
    "JobTemplate": f"{keys.FLOW_GROUP}/{keys.FLOW_VERSION}",
    "Command": f"{keys.BUS_GROUP}/{keys.BUS_VERSION}",
    "Lease": "coordination.k8s.io/v1",
}
_CLUSTER_NAMESPACE: Final = "default"  # where events about objects without a namespace are kept


class _Happened(NamedTuple):
    """How often an event has happened while it waited, and when."""

    times: int
    first: datetime
    last: datetime

    def and_then(self, later: "_Happened") -> "_Happened":
        """Return both together."""
        return _Happened(self.times + later.times, self.first, later.last)


class _Written(NamedTuple):
    name: str
    times: int
    at: float


class _Event(msgspec.Struct):
    """An answer whose content is not needed."""


class EventRecorder:
    """Writes :class:`~volcano_py.model.decisions.RecordEvent` as core v1 events."""

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        *,
        component: str,
        clock: Clock,
        rng: random.Random,
        hold: Callable[[], bool] | None = None,
        options: WriteQueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._component = component
        self._clock = clock
        self._names = itertools.count()
        self._written: OrderedDict[RecordEvent, _Written] = OrderedDict()

        def queue(name: str) -> WriteQueue[RecordEvent, _Happened]:
            merge = _Happened.and_then
            outage = client.outage
            return WriteQueue(
                name, self._write, options, metrics, clock=clock, rng=rng, merge=merge, hold=hold, outage=outage
            )

        self._of_scheduling, self._others = queue(SCHEDULING_NAME), queue(NAME)

    @property
    def backlog(self) -> int:
        """How many events wait."""
        return self._of_scheduling.backlog + self._others.backlog

    def start(self, supervisor: Supervisor) -> None:
        """Start writing."""
        self._of_scheduling.start(supervisor)
        self._others.start(supervisor)

    def record(self, event: RecordEvent) -> None:
        """Take an event that happens now; if an equal one waits already, its count grows."""
        now = self._clock.now()
        queue = self._of_scheduling if event.reason in _OF_SCHEDULING else self._others
        if not queue.put(event, _Happened(1, now, now)):
            self._metrics.dropped_event()

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits; say whether all was written in time."""
        return all(await asyncio.gather(self._others.drained(timeout_s), self._of_scheduling.drained(timeout_s)))

    async def _write(self, event: RecordEvent, happened: _Happened) -> str:
        before = self._written.get(event)
        if before is not None and self._clock.monotonic() - before.at <= _REPEATS_WITHIN_S:
            if await self._raise_count(event, before, happened):
                return "written"
            self._written.pop(event, None)  # it may be forgotten already
        await self._create(event, happened)
        return "written"

    async def _raise_count(self, event: RecordEvent, before: _Written, happened: _Happened) -> bool:
        """Count a repeat on the existing event; return False if it is gone."""
        count = before.times + happened.times
        body = {"count": count, "lastTimestamp": wire_time(happened.last)}
        namespace = event.namespace or _CLUSTER_NAMESPACE
        try:
            await self._client.patch(EVENTS, before.name, body, _Event, namespace=namespace, timeout_s=_TIMEOUT_S)
        except errors.NotFound:
            return False
        self._remember(event, _Written(before.name, count, self._clock.monotonic()))
        return True

    async def _create(self, event: RecordEvent, happened: _Happened) -> None:
        body = self._body(event, happened)
        name = body["metadata"]["name"]
        path = EVENTS.collection(event.namespace or _CLUSTER_NAMESPACE)
        await self._client.post_bytes(path, msgspec.json.encode(body), timeout_s=_TIMEOUT_S)
        self._remember(event, _Written(name, happened.times, self._clock.monotonic()))

    def _remember(self, event: RecordEvent, written: _Written) -> None:
        self._written[event] = written
        self._written.move_to_end(event)
        if len(self._written) > _REMEMBERED:
            self._written.popitem(last=False)

    def _body(self, event: RecordEvent, happened: _Happened) -> dict[str, Any]:
        unique = int(self._clock.now().timestamp() * 1_000_000) * 1000 + next(self._names) % 1000
        namespace = event.namespace or _CLUSTER_NAMESPACE
        message = event.message if len(event.message) <= _LONGEST else f"{event.message[: _LONGEST - 3]}..."
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "name": f"{event.name[:_LONGEST_NAME]}.{unique:x}"},
            "involvedObject": {
                "apiVersion": _API_VERSIONS.get(event.kind, "v1"),
                "kind": event.kind,
                "namespace": event.namespace,
                "name": event.name,
                "uid": event.uid,
            },
            "type": event.type,
            "reason": event.reason,
            "message": message,
            "count": happened.times,
            "firstTimestamp": wire_time(happened.first),
            "lastTimestamp": wire_time(happened.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
        }
