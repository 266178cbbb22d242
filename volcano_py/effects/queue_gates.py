"""Removes the scheduling gate of a queue from pods that the queue has room for."""

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec

from volcano_py.api import keys
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.resource import PODS
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.model.decisions import LiftGate
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

NAME: Final = "queue gate"
DEFAULT_OPTIONS: Final = WriteQueueOptions(rate_per_s=500, burst=500, workers=8, capacity=20_000)
_TIMEOUT_S: Final = 10.0


class _Pod(msgspec.Struct):
    """An answer whose content is not needed."""


class GateLifter:
    """Carries out :class:`~volcano_py.model.decisions.LiftGate`.

    ``waits`` says whether a pod still has no node when it is about to be written. The cycle decides again what cannot
    be carried out.
    """

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        waits: Callable[[TaskRef], bool],
        options: WriteQueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._waits = waits
        self._write_queue: WriteQueue[TaskRef, None] = WriteQueue(
            NAME, self._write, options, metrics, clock=clock, rng=rng, outage=client.outage
        )

    @property
    def backlog(self) -> int:
        """How many pods wait for a write."""
        return self._write_queue.backlog

    def on_lost(self, callback: Callable[[TaskRef | None], None]) -> None:
        """Call ``callback`` as `WriteQueue.on_lost` does."""
        self._write_queue.on_lost(callback)

    def start(self, supervisor: Supervisor) -> None:
        """Start writing."""
        self._write_queue.start(supervisor)

    def put(self, decision: LiftGate) -> None:
        """Take a decision."""
        self._write_queue.put(decision.task, None)

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits; return whether all was written in time."""
        return await self._write_queue.drained(timeout_s)

    async def _write(self, task: TaskRef, _: None) -> str:
        if not self._waits(task):
            return "obsolete"
        try:
            await self._client.patch(
                PODS,
                task.name,
                _patch(task),
                _Pod,
                kind=PatchType.STRATEGIC,
                namespace=task.namespace,
                timeout_s=_TIMEOUT_S,
            )
        except errors.Invalid as error:
            if errors.is_of_another(error):
                return "obsolete"  # it soon ceases to wait
            raise
        return "written"


def _patch(task: TaskRef) -> dict[str, Any]:
    """Return the patch that removes the gate; the annotation says later that the pod was admitted."""
    return {
        "metadata": {"uid": task.uid, "annotations": {keys.QUEUE_GATE: "true"}},  # the uid is a precondition
        "spec": {"schedulingGates": [{"$patch": "delete", "name": keys.QUEUE_GATE}]},
    }
