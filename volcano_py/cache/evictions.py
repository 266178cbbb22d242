"""Assumed evictions: from the plan to the end of each eviction.

A cycle plans on a snapshot, and the cluster changes meanwhile. The whole plan is refused if one of its conditions does
not hold any more:

- every victim exists and is not terminating already,
- no victim is backing off because the API server has refused to evict it,
- the gangs of the victims have lost no other member, and their PodGroups ask for the same,
- the PodGroup and the pods that get the room exist, ask for the same and still wait.

A pod whose eviction is assumed counts as terminating until the watch shows that it terminates, or the eviction fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from volcano_py.cache.assumptions import Assumptions
from volcano_py.cache.changes import Change
from volcano_py.cache.eviction_backoff import EvictionBackoff
from volcano_py.cache.pod_events import PodEvents
from volcano_py.cache.state import ClusterState, SnapshotToken
from volcano_py.ledger.ledger import Ledger
from volcano_py.ledger.states import AssumedState
from volcano_py.model.decisions import Evict, Nominate
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_EVICTABLE = (TaskStatus.BOUND, TaskStatus.RUNNING)
_ENDED = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


@dataclass(frozen=True, slots=True)
class Plan:
    """Victims that were chosen together, and the nominations of the pods that get their room."""

    evictions: Sequence[Evict]
    nominations: Sequence[Nominate] = ()


class Evictions(Assumptions):
    """Assumes evictions and ends them."""

    what = "eviction"

    def __init__(
        self, state: ClusterState, ledger: Ledger, pods: PodEvents, clock: Clock, backoff: EvictionBackoff
    ) -> None:
        super().__init__(state, ledger, pods, clock)
        self._backoff = backoff

    def objection(self, plan: Plan, decided_at: SnapshotToken) -> str:
        """Return why a plan does not hold any more, "" if it does."""
        seen: set[str] = set()
        for evict in plan.evictions:
            if evict.task.uid in seen:
                return f"the plan evicts pod {evict.task} twice"
            seen.add(evict.task.uid)
            if why := self._objection(evict):
                return why
        for job in dict.fromkeys(evict.job for evict in plan.evictions):
            if job is not None and (why := self._weakened(job, decided_at)):
                return why
        for job in dict.fromkeys(evict.beneficiary for evict in plan.evictions):
            if job is not None and (why := self._changed(job, decided_at)):
                return f"beneficiary of the plan: {why}"
        for nomination in plan.nominations:
            place = self._store.task(nomination.task.uid)
            if nomination.node and (place is None or place.status is not TaskStatus.PENDING):
                return f"beneficiary of the plan: pod {nomination.task} no longer waits"
        return ""

    def backs_off(self, plan: Plan) -> bool:
        """Say whether the plan must wait because the API server has refused to evict one of its victims."""
        now = self._clock.monotonic()
        return any(self._backoff.lasts(evict.task.uid, now) for evict in plan.evictions)

    def objection_to_sending(self, evict: Evict) -> str:
        """Return why an eviction must not be sent now, "" if it may: it may have waited for long."""
        place = self._store.task(evict.task.uid)
        if place is not None and place.status in _ENDED:
            return f"pod {evict.task} has ended by itself"
        if evict.beneficiary is not None and not self._store.count(evict.beneficiary, TaskStatus.PENDING):
            return f"no pod of PodGroup {evict.beneficiary} waits any more"
        return ""

    def assume(self, evictions: Sequence[Evict]) -> None:
        """Count the victims of an accepted plan as terminating."""
        now = self._clock.monotonic()
        for evict in evictions:
            self._pods.count_as_releasing(evict.task.uid)
            generation = 0 if evict.job is None else self._state.generation(evict.job)
            self.ledger.assume(evict, generation, now)

    def acknowledged(self, task: TaskRef) -> None:
        """Note that the API server has taken the deletion."""
        self._backoff.end(task.uid)
        super().acknowledged(task)

    def failed(self, task: TaskRef, why: str) -> None:
        """Let the pod stay; if it was the API server that refused, no plan takes it for a while."""
        entry = self.ledger.get(task.uid)
        if entry is not None and entry.state is AssumedState.SENT:
            self._backoff.refused(task.uid, self._clock.monotonic())
        super().failed(task, why)

    def plan_refused(self) -> None:
        """Report that a plan was refused: its beneficiaries need another cycle."""
        self._state.note(Change.EVICTION_FAILED)
        self._state.notify()

    def validate(self) -> None:
        """Raise AssertionError if the ledger and the store disagree about which pods are being evicted."""
        self.ledger.validate()
        assumed = {entry.task.uid: entry.node for entry in self.ledger}
        if assumed.keys() != self._pods.counted_as_releasing():
            counted = sorted(self._pods.counted_as_releasing())
            raise AssertionError(f"the ledger evicts pods {sorted(assumed)}, the store counts {counted} as RELEASING")
        for uid, node in assumed.items():
            place = self._store.task(uid)
            if place is None or (place.status, place.node) != (TaskStatus.RELEASING, node):
                raise AssertionError(f"the eviction of pod {uid} from node {node} is assumed, the store has {place}")

    def _take_back(self, uid: str) -> None:
        self._pods.end_releasing(uid)

    def _objection(self, evict: Evict) -> str:
        task, job = evict.task, evict.job
        place = self._store.task(task.uid)
        if place is None:
            return f"pod {task} is gone"
        if place.status not in _EVICTABLE:
            return f"pod {task} cannot be evicted any more: it is {place.status.label}"
        if place.node != evict.node:
            return f"pod {task} is on node {place.node}, not on {evict.node}"
        if place.record.key != job:
            return f"pod {task} has left PodGroup {job}" if job is not None else f"pod {task} has joined a PodGroup"
        if self._backoff.lasts(task.uid, self._clock.monotonic()):  # without the time: equal texts are logged once
            return f"the last eviction of pod {task} failed, and it is too early to try again"
        return ""

    def _weakened(self, job: JobKey, decided_at: SnapshotToken) -> str:
        if self._state.group_revision(job) > decided_at:
            return f"PodGroup {job} was changed after the decision"
        if self._state.loss_revision(job) > decided_at:
            return f"PodGroup {job} has lost another pod after the decision"
        return ""

    def _changed(self, job: JobKey, decided_at: SnapshotToken) -> str:
        revision = self._state.group_revision(job)
        if not revision:
            return f"PodGroup {job} is gone"
        return f"PodGroup {job} was changed after the decision" if revision > decided_at else ""
