"""Everything that writes to the API server for a scheduler: binds, evictions, and the writes that may wait.

Binds with steps are prepared first. Binds that are being prepared hold nothing up.

Binds come first. Events, pod conditions and PodGroup statuses wait while binds are under way. They ask the same count
of binds that slows the cycle down (`effects.backpressure`), so no writer needs to know another one.
"""

import asyncio
from dataclasses import dataclass
from typing import Final, NamedTuple

from volcano_py.cache.cluster import ClusterCache
from volcano_py.daemon import announcements
from volcano_py.daemon.answers import BindAnswers, EvictionAnswers
from volcano_py.daemon.metrics import DaemonMetrics
from volcano_py.daemon.options import DaemonOptions
from volcano_py.daemon.storage import ShownStorage
from volcano_py.daemon.watches import Watches
from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.effects.binder import Binder
from volcano_py.effects.evictor import Evictor
from volcano_py.effects.nominations import NominationWriter
from volcano_py.effects.pod_conditions import PodConditionWriter
from volcano_py.effects.podgroup_status import PodGroupStatusWriter
from volcano_py.effects.preparer import Preparer
from volcano_py.effects.promising import Promising
from volcano_py.effects.queue_gates import GateLifter
from volcano_py.effects.queue_status import QueueStatusWriter
from volcano_py.effects.shard_status import ShardStatusWriter
from volcano_py.process.context import ProcessContext
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.events import EventRecorder

_TO_PREPARE: Final = 0.7
"""The part of the time for completing binds that preparations may take."""


class Flushed(NamedTuple):
    """Whether all statuses and all events were written in time."""

    statuses: bool
    events: bool


@dataclass(frozen=True, slots=True)
class Writers:
    """The writers of one scheduler."""

    backpressure: BindBackpressure
    preparer: Preparer
    binder: Binder
    evictor: Evictor
    events: EventRecorder
    conditions: PodConditionWriter
    groups: PodGroupStatusWriter
    nominations: NominationWriter
    gates: GateLifter
    queue_statuses: QueueStatusWriter
    shard_status: ShardStatusWriter | None
    """None if nodes are not divided among schedulers."""

    def start(self, supervisor: Supervisor) -> None:
        """Start all of them."""
        may_wait = (self.events, self.conditions, self.groups, self.queue_statuses, self.nominations, self.gates)
        for writer in (*may_wait, self.evictor, self.preparer, self.binder):
            writer.start(supervisor)
        if self.shard_status is not None:
            self.shard_status.start(supervisor)

    def under_way(self) -> dict[str, int]:
        """Return how many binds and evictions were decided and have not ended."""
        preparing = self.preparer.under_way
        return {"binds": self.backpressure.count, "preparing": preparing, "evictions": self.evictor.backlog}

    def holds(self, uid: str) -> bool:
        """Say whether a bind of this pod has still to be prepared, sent, answered or tried again."""
        return self.binder.holds(uid) or self.preparer.holds(uid)

    @property
    def busy(self) -> bool:
        """Whether a bind or an eviction may still take effect."""
        return self.preparer.busy or self.binder.busy or bool(self.evictor.backlog)

    async def completed(self, timeout_s: float) -> bool:
        """Wait for binds and evictions to end; say whether all did in time."""
        return all(await asyncio.gather(self._binds_completed(timeout_s), self.evictor.drained(timeout_s)))

    async def _binds_completed(self, timeout_s: float) -> bool:
        """Complete what is being prepared or undo it, and then send what is prepared."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        prepared = await self.preparer.drained(timeout_s * _TO_PREPARE)
        return await self.binder.drained(max(0.0, deadline - loop.time())) and prepared

    async def flushed(self, timeout_s: float) -> Flushed:
        """Write what may wait, as much as the time allows; the next scheduler writes the status of a shard."""
        writers = (self.groups, self.events, self.gates, self.nominations, self.queue_statuses)
        written = await asyncio.gather(*(writer.drained(timeout_s) for writer in writers))
        return Flushed(statuses=written[0], events=written[1])


@dataclass(frozen=True, slots=True)
class WriterBuilder:
    """Builds the writers of one scheduler, each after the parts that it needs."""

    context: ProcessContext
    options: DaemonOptions
    cache: ClusterCache
    watches: Watches
    metrics: DaemonMetrics

    def build(self) -> Writers:
        """Build all of them; nothing is started."""
        backpressure = BindBackpressure(self.options.bind_capacity)
        events = self._events(backpressure)
        conditions = self._conditions(backpressure, events)
        answers = BindAnswers(
            self.cache,
            backpressure,
            conditions,
            events,
            self.metrics.binds,
            clock=self.context.clock,
            outage=self.context.client.outage,
        )
        binder = self._binder(answers)
        writers = Writers(
            backpressure=backpressure,
            preparer=self._preparer(binder, answers, backpressure),
            binder=binder,
            evictor=self._evictor(events),
            events=events,
            conditions=conditions,
            groups=self._groups(backpressure),
            nominations=self._nominations(),
            gates=self._gates(),
            queue_statuses=self._queue_statuses(),
            shard_status=self._shard_status(),
        )
        for writer in (writers.conditions, writers.groups, writers.nominations, writers.gates, writers.queue_statuses):
            writer.on_lost(self.cache.write_lost)
        return writers

    def _events(self, backpressure: BindBackpressure) -> EventRecorder:
        return EventRecorder(
            self.context.client,
            self.metrics.write_queues,
            component=self.options.scheduler_name,
            clock=self.context.clock,
            rng=self.context.rng,
            hold=backpressure.under_way,
            options=self.options.events,
        )

    def _conditions(self, backpressure: BindBackpressure, events: EventRecorder) -> PodConditionWriter:
        return PodConditionWriter(
            self.context.client,
            self.metrics.write_queues,
            clock=self.context.clock,
            rng=self.context.rng,
            version_of=self.watches.pod_version,
            reason=self.watches.reason,
            hold=backpressure.under_way,
            on_news=lambda condition: events.record(announcements.waiting(condition.task, condition.message)),
            options=self.options.pod_conditions,
        )

    def _groups(self, backpressure: BindBackpressure) -> PodGroupStatusWriter:
        return PodGroupStatusWriter(
            self.context.client,
            self.metrics.write_queues,
            clock=self.context.clock,
            rng=self.context.rng,
            version_of=self.watches.group_version,
            shown=self.watches.group_without_conditions,
            hold=backpressure.under_way,
            options=self.options.group_statuses,
        )

    def _binder(self, answers: BindAnswers) -> Binder:
        return Binder(
            self.context.client,
            answers,
            self.metrics.binds,
            clock=self.context.clock,
            rng=self.context.rng,
            options=self.options.binder,
            objection=self.cache.binds.objection_to_sending,
        )

    def _preparer(self, binder: Binder, answers: BindAnswers, backpressure: BindBackpressure) -> Preparer:
        shown, options = ShownStorage(self.cache), self.options.preparer
        owner = self.options.scheduler_name
        preparer = Preparer(
            Promising(self.context.client, shown, owner=owner, timeout_s=options.timeout_s),
            binder.submit,
            answers,
            backpressure,
            self.metrics.preparing,
            clock=self.context.clock,
            rng=self.context.rng,
            objection=self.cache.binds.objection_to_sending,
            options=options,
        )
        shown.on_change(preparer.changed)
        return preparer

    def _evictor(self, events: EventRecorder) -> Evictor:
        return Evictor(
            self.context.client,
            EvictionAnswers(self.cache, events, clock=self.context.clock, outage=self.context.client.outage),
            self.metrics.evictions,
            scheduler_name=self.options.scheduler_name,
            clock=self.context.clock,
            rng=self.context.rng,
            objection=self.cache.evictions.objection_to_sending,
            options=self.options.evictor,
        )

    def _nominations(self) -> NominationWriter:
        return NominationWriter(
            self.context.client,
            self.metrics.write_queues,
            clock=self.context.clock,
            rng=self.context.rng,
            waits=self.watches.waits,
            still_counts=self.cache.nominations.still_counts,
            on_refused=self.cache.nominations.failed,
            on_written=self.cache.nominations.written,
            options=self.options.nominations,
        )

    def _gates(self) -> GateLifter:
        return GateLifter(
            self.context.client,
            self.metrics.write_queues,
            clock=self.context.clock,
            rng=self.context.rng,
            waits=self.watches.waits,
            options=self.options.queue_gates,
        )

    def _queue_statuses(self) -> QueueStatusWriter:
        return QueueStatusWriter(
            self.context.client,
            self.metrics.write_queues,
            clock=self.context.clock,
            rng=self.context.rng,
            shown=self.cache.queues.allocated.get,
            version_of=self.watches.queue_version,
            options=self.options.queue_statuses,
        )

    def _shard_status(self) -> ShardStatusWriter | None:
        if self.options.shard is None:
            return None
        name, facts = self.options.shard.name, self.cache.store.facts
        return ShardStatusWriter(
            self.context.client,
            self.metrics.write_queues,
            name,
            clock=self.context.clock,
            rng=self.context.rng,
            own=lambda: facts.node_shard(name),
            shard=lambda: facts.shard,
            options=self.options.shard_status,
        )
