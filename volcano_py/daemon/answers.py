"""Reports what became of binds and evictions: to the cache, on the pod, on the PodGroup and in the log."""

from typing import Final

from volcano_py.api import keys
from volcano_py.cache.cluster import ClusterCache
from volcano_py.daemon import announcements
from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.effects.outcomes import GangOutcome
from volcano_py.effects.pod_conditions import PodConditionWriter
from volcano_py.kube.outage import Outage
from volcano_py.metrics.effects import BindMetrics
from volcano_py.model.decisions import Bind, Evict, RecordEvent, SetPodCondition
from volcano_py.runtime.clock import Clock
from volcano_py.writing.events import EventRecorder
from volcano_py.writing.throttled_log import ThrottledLog, cause_of

_EVERY_S: Final = 10.0  # between two log lines of one cause


class BindAnswers:
    """The binder reports to it; every bind ends in exactly one of bound, failed, withdrawn and unknown."""

    def __init__(
        self,
        cache: ClusterCache,
        backpressure: BindBackpressure,
        conditions: PodConditionWriter,
        events: EventRecorder,
        metrics: BindMetrics,
        *,
        clock: Clock,
        outage: Outage,
    ) -> None:
        self._cache = cache
        self._backpressure = backpressure
        self._conditions = conditions
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self._failures = ThrottledLog("binds failed", clock, _EVERY_S, outage=outage)
        self._unclear = ThrottledLog(
            "outcome of a bind unknown; its pod is read again later", clock, _EVERY_S, outage=outage
        )

    def preparing(self, bind: Bind, missing: str) -> None:
        """Say on the pod what it waits for."""
        self._events.record(announcements.preparing(bind, missing))

    def prepared(self, bind: Bind, seconds: float) -> None:
        """Record how long the preparation took."""
        place = self._cache.store.task(bind.task.uid)
        if place is not None:
            self._metrics.prepared(self._clock.now().timestamp() - place.record.creation, seconds)

    def sending(self, bind: Bind) -> None:
        """Note that a request goes out."""
        self._cache.binds.sent(bind.task)

    def bound(self, bind: Bind) -> None:
        """Count a bind that the API server has."""
        self._backpressure.leave()
        self._cache.binds.acknowledged(bind.task)
        place = self._cache.store.task(bind.task.uid)
        if place is not None:
            self._metrics.bound_since_creation(self._clock.now().timestamp() - place.record.creation)
        self._events.record(announcements.scheduled(bind))

    def bind_failed(self, bind: Bind, why: str) -> None:
        """Let the pod wait again, and write the reason on it."""
        self._backpressure.leave()
        self._cache.binds.failed(bind.task, why)
        text = f"failed to bind to node {bind.node}: {why}"
        self._conditions.put(SetPodCondition(bind.task, keys.REASON_SCHEDULER_ERROR, text))

    def bind_withdrawn(self, bind: Bind, why: str) -> None:
        """Let the pod wait for another node; the next cycle decides about it."""
        self._backpressure.leave()
        self._cache.binds.withdrawn(bind.task, why)
        self._metrics.refused()

    def bind_unknown(self, bind: Bind) -> None:
        """Leave the bind in the ledger; when its deadline has passed, the pod is read again."""
        self._backpressure.leave()
        self._unclear.log(task=str(bind.task), node=bind.node)

    def gang_failed(self, outcome: GangOutcome) -> None:
        """Report a gang of which binds failed; the next cycle completes it or plans it again."""
        record = self._cache.store.job(outcome.job)
        event = announcements.gang_failed(outcome, record.uid if record is not None else "")
        if record is not None:
            self._events.record(event)
        bind, why = outcome.failed[0]
        count = len(outcome.failed)
        self._failures.log(cause_of(why, bind.task), count, job=str(outcome.job), binds=count, problem=event.message)


class EvictionAnswers:
    """The evictor reports to it; every eviction ends in exactly one of evicted, failed and unknown."""

    def __init__(self, cache: ClusterCache, events: EventRecorder, *, clock: Clock, outage: Outage) -> None:
        self._cache = cache
        self._events = events
        self._failures = ThrottledLog("evictions failed", clock, _EVERY_S, outage=outage)
        self._unclear = ThrottledLog(
            "outcome of an eviction unknown; its pod is read again later", clock, _EVERY_S, outage=outage
        )

    def evicting(self, evict: Evict) -> None:
        """Note that a request goes out."""
        self._cache.evictions.sent(evict.task)

    def evicted(self, evict: Evict) -> None:
        """Record an event on the pod and on its PodGroup."""
        self._cache.evictions.acknowledged(evict.task)
        self._events.record(announcements.evicted(evict))
        job = None if evict.job is None else self._cache.store.job(evict.job)
        if job is not None:
            event = self._cache.to_write(announcements.member_evicted(evict, job))
            if isinstance(event, RecordEvent):
                self._events.record(event)

    def eviction_failed(self, evict: Evict, why: str) -> None:
        """Let the pod stay; the next cycle makes a new plan for the beneficiary."""
        self._cache.evictions.failed(evict.task, why)
        cause = cause_of(why, evict.task)
        self._failures.log(cause, task=str(evict.task), node=evict.node, action=evict.action, problem=why)

    def eviction_unknown(self, evict: Evict) -> None:
        """Leave the eviction in the ledger; when its deadline has passed, the pod is read again."""
        self._unclear.log(task=str(evict.task), node=evict.node)
