"""Decisions on their way out: binds are assumed and sent, everything else goes into its lane."""

import structlog

from volcano_py.cache.binds import Refused
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.state import SnapshotToken
from volcano_py.effects.binder import Binder
from volcano_py.effects.conditions import PodConditionWriter
from volcano_py.effects.events import EventRecorder
from volcano_py.effects.gate import BindGate
from volcano_py.effects.podgroups import PodGroupStatusWriter
from volcano_py.metrics.effects import BindMetrics
from volcano_py.metrics.jobs import JobMetrics
from volcano_py.model.decisions import Bind, Decision, RecordEvent, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import JobKey, JobRecord
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()


class Dispatcher:
    """Takes batches from cycles, on the event loop, while the cycle still runs."""

    def __init__(
        self,
        cache: ClusterCache,
        gate: BindGate,
        binder: Binder,
        groups: PodGroupStatusWriter,
        conditions: PodConditionWriter,
        events: EventRecorder,
        metrics: BindMetrics,
        jobs: JobMetrics,
        *,
        clock: Clock,
    ) -> None:
        self._cache = cache
        self._gate = gate
        self._binder = binder
        self._groups = groups
        self._conditions = conditions
        self._events = events
        self._metrics = metrics
        self._jobs = jobs
        self._clock = clock

    def deliver(self, batch: tuple[Decision, ...], decided_at: SnapshotToken) -> bool:
        """Carry out a batch; False if some of it rests on a state that has passed, so that another cycle is needed."""
        binds = tuple(decision for decision in batch if isinstance(decision, Bind))
        up_to_date = not binds or self._bind(binds, decided_at)
        for decision in batch:
            match self._cache.to_write(decision):
                case SetPodGroupStatus() as status:
                    self._groups.put(status)
                case SetPodCondition() as condition:
                    self._conditions.put(condition)
                case RecordEvent() as event:
                    self._events.record(event)
        return up_to_date

    def _bind(self, binds: tuple[Bind, ...], decided_at: SnapshotToken) -> bool:
        now = self._clock.now().timestamp()
        accepted: list[Bind] = []
        placed: dict[JobKey, JobRecord] = {}
        for answer in self._cache.assume(binds, decided_at):
            bind = answer.bind
            if isinstance(answer, Refused):
                self._metrics.refused()
                self._gate.leave()
                log.debug("bind refused", task=str(bind.task), node=bind.node, reason=answer.reason)
                continue
            accepted.append(bind)
            self._conditions.discard(bind.task)
            place, job = self._cache.store.task(bind.task.uid), self._cache.store.job(bind.job)
            if place is not None and job is not None:
                self._metrics.assumed(now - place.record.creation, now - job.creation)
                placed[job.key] = job
        self._binder.submit(accepted)
        for key, job in placed.items():
            self._jobs.placed(key, job.queue, job.creation, now)
        return len(accepted) == len(binds)
