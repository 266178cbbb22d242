"""The queue controller: watches queues and PodGroups, and carries out the writes of `decision.judge`."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

import structlog

from volcano_py.api import keys
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.controller import ControllerContext
from volcano_py.controllers.queue import decision
from volcano_py.controllers.queue.decision import CountedQueue
from volcano_py.controllers.view import View
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import QUEUES
from volcano_py.kube.workqueue import WorkQueue
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()


class QueueController:
    """Creates required queues, and writes the state of every queue and its number of PodGroups."""

    name: Final = "queue-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._writer = context.writer
        self._metrics = context.metrics
        self._options = options = context.options
        self._served = context.served
        self._queues: View[CountedQueue] = View()
        self._counts: dict[str, Counter[str]] = {}  # queue -> phase -> PodGroups
        self._children: dict[str, set[str]] = {}  # queue -> queues that name it as their parent
        self._states: dict[str, tuple[str, str]] = {}  # queue -> uid and last known state
        self._required = tuple(dict.fromkeys((keys.ROOT_QUEUE, options.default_queue)))
        self._queue: WorkQueue[str] = WorkQueue(
            self.name,
            self._reconcile,
            options.work_queue(options.queue_workers),
            clock=context.clock,
            rng=context.rng,
            refill=self._all,
            observe=context.metrics.turn,
        )
        self._queues.subscribe(self._queue_changed)
        context.groups.subscribe(self._group_changed)

    def watch(self, informers: Informers) -> None:
        """Add the informers of the objects that this controller needs in addition to PodGroups."""
        informers.add(QUEUES, CountedQueue, self._queues, optional=True)

    def start(self, supervisor: Supervisor) -> None:
        """Start to reconcile; until then, changes are only collected."""
        self._queue.start(supervisor)
        for name in self._required:
            self._queue.add(name)

    def backlog(self) -> int:
        """Return how many queues wait in the work queue or are being reconciled."""
        return self._queue.backlog

    # Changes

    def _queue_changed(self, name: str, before: CountedQueue | None, after: CountedQueue | None) -> None:
        if before is not None:
            self._children.get(before.spec.parent, set()).discard(name)
        if after is not None:
            self._children.setdefault(after.spec.parent, set()).add(name)
        elif name in self._states:
            del self._states[name]
            self._metrics.queue_gone(name)
        self._queue.add(name)
        if before is None or after is None or before.status.state != after.status.state:
            for child in sorted(self._children.get(name, ())):
                self._queue.add(child)

    def _group_changed(self, _: str, before: PodGroup | None, after: PodGroup | None) -> None:
        was, now = self._place(before), self._place(after)
        if was == now:
            return
        for place, step in ((was, -1), (now, 1)):
            if place is not None:
                queue, phase = place
                counts = self._counts.setdefault(queue, Counter())
                counts[phase] += step
                if not counts[phase]:
                    del counts[phase]
                    if not counts:
                        del self._counts[queue]
                self._queue.add_later(queue, self._options.count_after_s)

    def _place(self, group: PodGroup | None) -> tuple[str, str] | None:
        """Return the queue and the phase under which a PodGroup counts."""
        if group is None:
            return None
        phase = group.status.phase or keys.PHASE_PENDING
        return (
            group.spec.queue or self._options.default_queue,
            phase if phase in decision.PHASES else keys.PHASE_UNKNOWN,
        )

    def _all(self) -> Iterable[str]:
        return [*self._required, *self._queues.keys()]

    # Reconciling

    async def _reconcile(self, name: str) -> None:
        if not self._served(QUEUES):
            return
        queue = self._queues.get(name)
        if queue is None:
            if name in self._required and await self._writer.write(decision.missing(name)):
                log.info("queue created", queue=name)
            return
        counts = self._counts.get(name, Counter())
        uid, was = self._states.get(name, ("", None))
        parent = self._queues.get(queue.spec.parent) if queue.spec.parent else None
        missing = queue.spec.parent if parent is None and name != keys.ROOT_QUEUE else ""
        if missing and missing not in self._required:  # required queues are created in a moment
            log.warning(
                "the parent of a queue does not exist: create it or change spec.parent",
                queue=name,
                parent=queue.spec.parent,
            )
        verdict = decision.judge(queue, was if uid == queue.metadata.uid else None, parent, counts)
        for write in verdict.writes:
            await self._writer.write(write)
        if self._queues.get(name) is not None:
            self._states[name] = (queue.metadata.uid, verdict.state)
            self._metrics.queue(name, counts)
        if verdict.state != queue.status.state:
            log.info("queue changes its state", queue=name, before=queue.status.state, state=verdict.state)
