"""Writes PodScheduled=False with the reason on pods that wait: after the binds, slowly, and only when it changes."""

import random
from collections.abc import Callable
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
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_dedup import VersionOf, WriteDedup
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

NAME: Final = "pod condition"
DEFAULT_OPTIONS: Final = WriteQueueOptions(rate_per_s=50, burst=50, workers=4, capacity=200_000, delay_s=0.5)
_TIMEOUT_S: Final = 10.0


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _Metadata


class PodConditionWriter:
    """Writes :class:`~volcano_py.model.decisions.SetPodCondition`.

    A condition waits half a second, so that a pod that is bound in the next cycle costs no write. ``waits`` says
    whether a pod still has no node when it is about to be written. If the pod is bound or otherwise changed meanwhile,
    the write ends in a conflict; it is tried again as long as the pod waits.
    """

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        version_of: VersionOf,
        waits: Callable[[TaskRef], bool],
        hold: Callable[[], bool] | None = None,
        on_written: Callable[[SetPodCondition], None] = lambda _: None,
        options: WriteQueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._clock = clock
        self._waits = waits
        self._on_written = on_written
        self._dedup: WriteDedup[str, None] = WriteDedup(version_of)
        self._write_queue: WriteQueue[TaskRef, SetPodCondition] = WriteQueue(
            NAME, self._write, options, metrics, clock=clock, rng=rng, hold=hold, outage=client.outage
        )

    @property
    def backlog(self) -> int:
        """How many pods wait for a write."""
        return self._write_queue.backlog

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` for each value that will not be written."""
        self._write_queue.on_lost(callback)

    def start(self, supervisor: Supervisor) -> None:
        """Start writing."""
        self._write_queue.start(supervisor)

    def put(self, condition: SetPodCondition) -> None:
        """Take a condition; a later one for the same pod replaces it."""
        task = condition.task
        if not self._dedup.repeats(task.uid, (condition.reason, condition.message), task):
            self._write_queue.put(task, condition)

    def discard(self, task: TaskRef) -> None:
        """Drop what waits for a pod: it has a node now."""
        self._write_queue.discard(task)

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits; return whether all was written in time."""
        return await self._write_queue.drained(timeout_s)

    async def _write(self, task: TaskRef, condition: SetPodCondition) -> str:
        if not self._waits(task):
            return "obsolete"
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
        self._dedup.remember(task.uid, content, None, shown, written.metadata.resource_version)
        self._on_written(condition)
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
