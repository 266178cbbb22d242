"""From a plan to evict to assumed evictions, and from the API server's answers to their end.

A plan was made on a snapshot; the cluster has moved on. It is refused as a whole if what it rests on is gone: a victim
(or it is on its way out already), a member of a victim's gang that counted when the plan was made, what a victim's
PodGroup asks for, or the PodGroup or a pod that was to get the room. What became free instead the next cycle sees.

A pod whose eviction is assumed counts as terminating until the watch shows that it is, or the eviction has failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from volcano_py.cache.assumptions import Assumptions
from volcano_py.cache.changes import Change
from volcano_py.cache.state import SnapshotToken
from volcano_py.model.decisions import Evict, Nominate
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus

log = structlog.get_logger()

_HOLDING = (TaskStatus.BOUND, TaskStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class Plan:
    """Victims that were chosen together, and the pods that are to get their room."""

    evictions: Sequence[Evict]
    nominations: Sequence[Nominate] = ()


class Evictions(Assumptions):
    """Assumes evictions and ends them."""

    what = "eviction"

    def objection(self, plan: Plan, decided_at: SnapshotToken) -> str:
        """Return why a plan does not hold any more, "" if it does."""
        seen: set[str] = set()
        for evict in plan.evictions:
            if evict.task.uid in seen:
                return f"pod {evict.task} is to be evicted twice by one plan"
            seen.add(evict.task.uid)
            if why := self._objection(evict):
                return why
        for job in dict.fromkeys(evict.job for evict in plan.evictions):
            if job is not None and (why := self._weakened(job, decided_at)):
                return why
        for job in dict.fromkeys(evict.beneficiary for evict in plan.evictions):
            if job is not None and (why := self._changed(job, decided_at)):
                return f"{why}, for which pods were to go"
        for nomination in plan.nominations:
            place = self._store.task(nomination.task.uid)
            if nomination.node and (place is None or place.status is not TaskStatus.PENDING):
                return f"pod {nomination.task}, for which pods were to go, waits no longer"
        return ""

    def assume(self, evictions: Sequence[Evict]) -> None:
        """Count victims of a plan without objection as terminating."""
        now = self._clock.monotonic()
        for evict in evictions:
            self._pods.go(evict.task.uid)
            generation = 0 if evict.job is None else self._state.generation(evict.job)
            self.ledger.assume(evict, generation, now)

    def plan_refused(self) -> None:
        """Report that a plan was refused: its beneficiaries need another cycle."""
        self._state.note(Change.EVICTION_FAILED)
        self._state.notify()

    def validate(self) -> None:
        """Raise AssertionError if the ledger and the store disagree about which pods are being evicted."""
        self.ledger.validate()
        going = {entry.task.uid: entry.node for entry in self.ledger}
        if going.keys() != self._pods.staying():
            counted = sorted(self._pods.staying())
            raise AssertionError(f"evictions are assumed of {sorted(going)}, counted so {counted}")
        for uid, node in going.items():
            place = self._store.task(uid)
            if place is None or (place.status, place.node) != (TaskStatus.RELEASING, node):
                raise AssertionError(f"the eviction of pod {uid} from node {node} is assumed, the store has {place}")

    def _take_back(self, uid: str) -> None:
        self._pods.stay(uid)

    def _objection(self, evict: Evict) -> str:
        task, job = evict.task, evict.job
        place = self._store.task(task.uid)
        if place is None:
            return f"pod {task} is gone"
        if place.status not in _HOLDING:
            return f"pod {task} is not to be evicted any more: it is {place.status.label}"
        if place.node != evict.node:
            return f"pod {task} is on node {place.node}, not on {evict.node}"
        if place.record.key != job:
            return f"pod {task} has left PodGroup {job}" if job is not None else f"pod {task} has joined a PodGroup"
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
