"""Carries out decisions: assumes and sends binds and evictions, and puts everything else into its write queue."""

from collections.abc import Iterable
from typing import NamedTuple

import structlog

from volcano_py.api import keys
from volcano_py.cache.binds import Refused
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.evictions import Plan
from volcano_py.cache.state import SnapshotToken
from volcano_py.daemon import announcements
from volcano_py.daemon.metrics import DaemonMetrics
from volcano_py.daemon.writers import Writers
from volcano_py.effects.podgroup_status import BINDING_S, NEW_TEXT_S, SETTLES_S, STARTING_S, only_text_differs
from volcano_py.model.decisions import (
    Bind,
    Decision,
    Evict,
    LiftGate,
    Nominate,
    RecordEvent,
    SetPodCondition,
    SetPodGroupStatus,
)
from volcano_py.model.objects import JobKey, JobRecord
from volcano_py.model.statuses import ALLOCATED_STATUSES, TaskStatus
from volcano_py.runtime.clock import Clock
from volcano_py.writing.throttled_log import ThrottledLog

log = structlog.get_logger()


class Delivered(NamedTuple):
    """What became of a batch."""

    accepted: int
    """How many binds and evictions are carried out."""
    outdated: bool
    """Whether others were decided on an outdated state: another cycle is needed."""


class Dispatcher:
    """Takes batches of decisions on the event loop, while the cycle that makes them still runs."""

    def __init__(self, cache: ClusterCache, writers: Writers, metrics: DaemonMetrics, *, clock: Clock) -> None:
        self._cache = cache
        self._writers = writers
        self._metrics = metrics
        self._clock = clock
        self._evicting = ThrottledLog("evicting", clock, level="info")
        self._refused_plans = ThrottledLog("plan to evict refused", clock, level="info")

    def deliver(self, batch: tuple[Decision, ...], decided_at: SnapshotToken) -> Delivered:
        """Carry out a batch, and say how much of it.

        A batch with evictions is one plan. Its victims, its nominations and its binds are carried out together or not
        at all. If a plan waits because its evictions were refused before, a cycle at once would make the same plan.
        """
        binds = tuple(decision for decision in batch if isinstance(decision, Bind))
        plans = _plans(batch)
        objections = [self._cache.evictions.objection(plan, decided_at) for plan in plans]
        too_many = sum(len(plan.evictions) for plan in plans) > self._writers.evictor.room
        if too_many:
            objections = ["too many evictions are on their way" for _ in plans]
        if any(objections) and binds:
            self._refuse_binds(binds, next(filter(None, objections)))
            binds = ()
        accepted = self._bind(binds, decided_at) if binds else 0
        bound = accepted == len(binds)
        for plan, objection in zip(plans, objections, strict=True):
            why = objection or ("" if bound else "binds of the same plan were refused")
            self._refuse(plan, why) if why else self._evict(plan)
            accepted += 0 if why else len(plan.evictions)
        if not plans:
            self._nominate(decision for decision in batch if isinstance(decision, Nominate))
        self._write(batch)
        outdated = any(
            objection and not self._cache.evictions.backs_off(plan)
            for plan, objection in zip(plans, objections, strict=True)
        )
        outdated = not too_many and (outdated or not bound)  # if too many: evictions that end cause the next cycle
        return Delivered(accepted, outdated)

    def _write(self, batch: tuple[Decision, ...]) -> None:
        for decision in batch:
            match self._cache.to_write(decision):
                case SetPodGroupStatus() as status:
                    self._writers.groups.put(status, self._patience(status))
                case SetPodCondition() as condition:
                    self._writers.conditions.put(condition)
                case RecordEvent() as event:
                    self._writers.events.record(event)
                case LiftGate() as gate:
                    self._writers.gates.put(gate)

    # Evictions

    def _refuse(self, plan: Plan, why: str) -> None:
        self._metrics.evictions.refused(len(plan.evictions))
        action = plan.evictions[0].action
        self._refused_plans.log(f"{action}: {why}", action=action, victims=len(plan.evictions), reason=why)
        self._cache.evictions.plan_refused()

    def _evict(self, plan: Plan) -> None:
        evictions = plan.evictions
        self._cache.evictions.assume(evictions)
        self._nominate(plan.nominations)
        self._writers.evictor.submit(evictions)
        action, beneficiary = evictions[0].action, evictions[0].beneficiary
        self._metrics.evictions.planned(action, len(evictions))
        self._evicting.log(action, action=action, victims=len(evictions), beneficiary=str(beneficiary or ""))
        job = None if beneficiary is None else self._cache.store.job(beneficiary)
        if job is not None:
            event = self._cache.to_write(announcements.evicting(job, evictions))
            if isinstance(event, RecordEvent):
                self._writers.events.record(event)

    def _nominate(self, nominations: Iterable[Nominate]) -> None:
        for nomination in nominations:
            if self._cache.nominations.assume(nomination):
                self._writers.nominations.put(nomination)

    # Binds

    def _refuse_binds(self, binds: tuple[Bind, ...], why: str) -> None:
        for bind in binds:
            self._metrics.binds.refused()
            self._writers.backpressure.leave()
            log.debug("bind refused", task=str(bind.task), node=bind.node, reason=why)

    def _patience(self, status: SetPodGroupStatus) -> float:
        """Return how long a status may wait, in seconds.

        The status of a gang that is enqueued does not wait: the controller that creates its pods needs it. While pods
        of the gang are being bound, or start, another status follows soon, so this one may wait longer. A status in
        which only a text is new waits longest.
        """
        count, job = self._cache.store.count, self._cache.store.job(status.job)
        if job is not None and only_text_differs(job, status):
            return NEW_TEXT_S
        if status.phase == keys.PHASE_INQUEUE:
            return BINDING_S if count(status.job, *ALLOCATED_STATUSES) else 0.0
        if count(status.job, TaskStatus.BINDING):
            return BINDING_S
        starts = status.phase == keys.PHASE_RUNNING and count(status.job, TaskStatus.BOUND)
        return STARTING_S if starts else SETTLES_S

    def _bind(self, binds: tuple[Bind, ...], decided_at: SnapshotToken) -> int:
        """Send what is accepted of these binds, and return how many these are."""
        now = self._clock.now().timestamp()
        accepted: list[Bind] = []
        placed: dict[JobKey, JobRecord] = {}
        prepared_together = {bind.job for bind in binds if bind.prepare}  # all pods of a gang wait for its claims
        for answer in self._cache.binds.assume(binds, decided_at):
            bind = answer.bind
            if isinstance(answer, Refused):
                self._metrics.binds.refused()
                self._writers.backpressure.leave()
                log.debug("bind refused", task=str(bind.task), node=bind.node, reason=answer.reason)
                continue
            accepted.append(bind)
            self._writers.conditions.discard(bind.task)
            self._writers.nominations.discard(bind.task)
            place, job = self._cache.store.task(bind.task.uid), self._cache.store.job(bind.job)
            if place is not None and job is not None:
                age = now - place.record.creation
                self._metrics.binds.assumed(age, now - job.creation)
                if bind.job not in prepared_together:
                    self._metrics.binds.prepared(age, 0.0)
                placed[job.key] = job
        self._writers.preparer.submit(accepted)
        for key, job in placed.items():
            self._metrics.jobs.placed(key, job.queue, job.creation, now)
        return len(accepted)


def _plans(batch: tuple[Decision, ...]) -> list[Plan]:
    """Return the plans of a batch: one for all victims with a beneficiary, one for each victim without."""
    evictions = [decision for decision in batch if isinstance(decision, Evict)]
    alone = [Plan((evict,)) for evict in evictions if evict.beneficiary is None]
    together = tuple(evict for evict in evictions if evict.beneficiary is not None)
    if not together:
        return alone
    return [Plan(together, tuple(decision for decision in batch if isinstance(decision, Nominate))), *alone]
