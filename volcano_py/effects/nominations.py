"""Writes status.nominatedNodeName of pods that wait for victims to leave, so that the next scheduler knows it, too."""

import random
from collections.abc import Callable
from typing import Final

import msgspec

from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.resource import PODS
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.model.decisions import Nominate
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

NAME: Final = "nomination"
DEFAULT_OPTIONS: Final = WriteQueueOptions(rate_per_s=100, burst=200, workers=4, capacity=20_000)
_TIMEOUT_S: Final = 10.0


class _Pod(msgspec.Struct):
    """An answer whose content is not needed."""


class NominationWriter:
    """Writes :class:`~volcano_py.model.decisions.Nominate`.

    When a pod is about to be written, ``waits`` says whether it still has no node, and ``still_counts`` whether this
    nomination of it still counts. ``on_refused`` is called with pods on which nothing can be written, and
    ``on_written`` with pods on which a nomination was written. A nomination that finds no place in the queue is not
    refused: victims may have died for it, so its room is kept, and the caller puts it again.
    """

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        waits: Callable[[TaskRef], bool],
        still_counts: Callable[[TaskRef, str], bool] = lambda _, __: True,
        on_refused: Callable[[TaskRef], None],
        on_written: Callable[[TaskRef], None] = lambda _: None,
        options: WriteQueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._waits = waits
        self._still_counts = still_counts
        self._on_refused = on_refused
        self._on_written = on_written
        self._write_queue: WriteQueue[TaskRef, str] = WriteQueue(
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

    def put(self, nomination: Nominate) -> None:
        """Take a nomination; a later one for the same pod replaces it."""
        self._write_queue.put(nomination.task, nomination.node)

    def holds(self, task: TaskRef) -> bool:
        """Say whether the nomination of a pod has still to be written, or to be answered."""
        return task in self._write_queue

    def discard(self, task: TaskRef) -> None:
        """Drop what waits for a pod: it has a node now."""
        self._write_queue.discard(task)

    async def drained(self, timeout_s: float) -> bool:
        """Write what waits; return whether all was written in time."""
        return await self._write_queue.drained(timeout_s)

    async def _write(self, task: TaskRef, node: str) -> str:
        if not (self._waits(task) and self._still_counts(task, node)):
            return "obsolete"
        body = {
            "metadata": {"uid": task.uid},  # a precondition
            "status": {"nominatedNodeName": node or None},
        }
        try:
            await self._client.patch(
                PODS,
                task.name,
                body,
                _Pod,
                kind=PatchType.STRATEGIC,
                namespace=task.namespace,
                subresource="status",
                timeout_s=_TIMEOUT_S,
            )
        except (errors.NotFound, errors.Conflict, errors.Invalid) as error:
            self._on_refused(task)
            if isinstance(error, errors.Conflict) or errors.is_of_another(error):
                return "obsolete"  # replaced by a pod with another uid
            raise  # so that it backs off
        self._on_written(task)
        return "written"
