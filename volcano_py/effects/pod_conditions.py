"""Writes PodScheduled=False with the reason on pods that wait: after the binds, slowly, and only when it changes.

The first reason of a pod is what its user looks for. It has a write queue of its own, so that it does not wait behind
a hundred thousand reasons that only have a new text. That queue is faster, and binds delay each of its writes by five
seconds at most: there is one first reason per pod, but no bound on how often a text changes.
"""

import asyncio
import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.timestamp import wire_time
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.resource import PODS
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.model.decisions import SetPodCondition
from volcano_py.model.objects import TaskRef
from volcano_py.model.wording import without_numbers
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_dedup import VersionOf, WriteDedup
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

NAME: Final = "pod condition"
FIRST_NAME: Final = "first pod condition"


@dataclass(frozen=True, slots=True)
class PodConditionOptions(WriteQueueOptions):
    """How reasons are written."""

    only_unschedulable: bool = False
    """Whether a pod that would have room if its gang had is Unschedulable, too: autoscalers read no other reason."""


DEFAULT_OPTIONS: Final = PodConditionOptions(rate_per_s=50, burst=50, workers=4, capacity=200_000, delay_s=0.5)
_FIRST_FASTER: Final = 4
"""How many times as many first reasons may be written per second as changed ones."""
_FIRST_EACH_S: Final = 5.0
_TIMEOUT_S: Final = 10.0


@dataclass(slots=True)
class _Wanted:
    """A condition that waits for its write."""

    condition: SetPodCondition
    before: str | None = None
    """What the pod showed before a write that may have reached the server; None if there was none."""


def _newer(older: _Wanted, newer: _Wanted) -> _Wanted:
    if newer.before is None:
        newer.before = older.before
    return newer


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _Metadata


class PodConditionWriter:
    """Writes :class:`~volcano_py.model.decisions.SetPodCondition`.

    A condition waits half a second, so that a pod that is bound in the next cycle costs no write. ``reason`` returns
    what the watch shows on a waiting pod, "" for nothing, and None for a pod that does not wait. If the pod is bound or
    otherwise changed meanwhile, the write ends in a conflict; it is tried again as long as the pod waits. ``on_news``
    receives each condition that was written, unless only its numbers are new. ``options`` are those of reasons that
    change.
    """

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        version_of: VersionOf,
        reason: Callable[[TaskRef], str | None],
        hold: Callable[[], bool] | None = None,
        on_news: Callable[[SetPodCondition], None] = lambda _: None,
        options: PodConditionOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._reason = reason
        self._on_news = on_news
        self._only_unschedulable = options.only_unschedulable
        self._dedup: WriteDedup[str, None] = WriteDedup(version_of)

        def queue(name: str, how: WriteQueueOptions) -> WriteQueue[TaskRef, _Wanted]:
            outage = client.outage
            return WriteQueue(
                name, self._write, how, metrics, clock=clock, rng=rng, merge=_newer, hold=hold, outage=outage
            )

        # A pod is in one of them at most, so its reasons are written in the order in which they were decided.
        self._first = queue(FIRST_NAME, _for_first_reasons(options))
        self._changed = queue(NAME, options)

    @property
    def backlog(self) -> int:
        """How many pods wait for a write."""
        return self._first.backlog + self._changed.backlog

    def on_lost(self, callback: Callable[[TaskRef | None], None]) -> None:
        """Call ``callback`` as `WriteQueue.on_lost` does."""
        self._first.on_lost(callback)
        self._changed.on_lost(callback)

    def start(self, supervisor: Supervisor) -> None:
        """Start writing."""
        self._first.start(supervisor)
        self._changed.start(supervisor)

    def put(self, condition: SetPodCondition) -> None:
        """Take a condition; a later one for the same pod replaces it."""
        if self._only_unschedulable and condition.reason == keys.REASON_SCHEDULABLE:
            condition = msgspec.structs.replace(condition, reason=keys.REASON_UNSCHEDULABLE)
        task = condition.task
        if not self._dedup.repeats(task.uid, (condition.reason, condition.message), task):
            self._queue_of(task).put(task, _Wanted(condition))

    def discard(self, task: TaskRef) -> None:
        """Drop what waits for a pod: it has a node now."""
        self._first.discard(task)
        self._changed.discard(task)

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits; return whether all was written in time."""
        return all(await asyncio.gather(self._first.drained(timeout_s), self._changed.drained(timeout_s)))

    def _queue_of(self, task: TaskRef) -> WriteQueue[TaskRef, _Wanted]:
        if task in self._first:
            return self._first
        return self._changed if task in self._changed or self._reason(task) else self._first

    async def _write(self, task: TaskRef, wanted: _Wanted) -> str:
        if (before := self._reason(task)) is None:
            return "obsolete"
        if wanted.before is not None:
            before = wanted.before
        condition = wanted.condition
        content = (condition.reason, condition.message)
        if self._dedup.repeats(task.uid, content, task):
            return "unchanged"  # decided again while the first write was under way
        shown, version = self._dedup.shown(str(task)), self._dedup.version(task.uid, task)
        try:
            written = await self._client.patch(
                PODS,
                task.name,
                self._patch(condition, version),
                _Written,
                kind=PatchType.STRATEGIC,
                namespace=task.namespace,
                subresource="status",
                timeout_s=_TIMEOUT_S,
            )
        except errors.Invalid as error:
            if errors.is_of_another(error):
                return "obsolete"
            raise
        except (errors.Timeout, errors.ConnectionFailed, errors.ServerError):
            wanted.before = before
            raise
        self._dedup.remember(task.uid, task, content, None, shown, written.metadata.resource_version)
        if without_numbers(before) != without_numbers(condition.message):
            self._on_news(condition)
        return "written"

    def _patch(self, condition: SetPodCondition, version: str) -> dict[str, Any]:
        return {
            # Preconditions: not another pod of the same name, and not this one once it is bound.
            "metadata": {"uid": condition.task.uid, "resourceVersion": version},
            "status": {
                "conditions": [
                    {
                        "type": keys.CONDITION_POD_SCHEDULED,
                        "status": "False",
                        "reason": condition.reason,
                        "message": condition.message,
                        "lastTransitionTime": wire_time(self._clock.now()),
                    }
                ]
            },
        }


def _for_first_reasons(options: WriteQueueOptions) -> WriteQueueOptions:
    """Return how first reasons are written, where reasons that change are written like this."""
    return dataclasses.replace(
        options,
        rate_per_s=options.rate_per_s * _FIRST_FASTER,
        burst=options.burst * _FIRST_FASTER,
        workers=2 * options.workers,
        each_s=_FIRST_EACH_S,
    )
