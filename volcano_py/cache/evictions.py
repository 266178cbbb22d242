"""From a plan to evict to assumed evictions, and from the API server's answers to their end.

A plan was made on a snapshot; the cluster has moved on. It is refused as a whole if what it rests on is gone: a victim
(or it is on its way out already), a member of a victim's gang that counted when the plan was made, what a victim's
PodGroup asks for, or the PodGroup or a pod that was to get the room. What became free instead the next cycle sees.

A pod whose eviction is assumed counts as terminating until the watch shows that it is, or the eviction has failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from volcano_py.api.types import Pod
from volcano_py.cache.changes import Change
from volcano_py.cache.pod_intake import PodIntake
from volcano_py.cache.state import ClusterState, SnapshotToken
from volcano_py.ledger.ledger import Entry, Ledger
from volcano_py.model.decisions import Evict, Nominate
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_HOLDING = (TaskStatus.BOUND, TaskStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class Plan:
    """Victims that were chosen together, and the pods that are to get their room."""

    evictions: Sequence[Evict]
    nominations: Sequence[Nominate] = ()


class Evictions:
    """Assumes evictions and ends them."""

    def __init__(self, state: ClusterState, ledger: Ledger, pods: PodIntake, clock: Clock) -> None:
        self._state = state
        self._store = state.store
        self._ledger = ledger
        self._pods = pods
        self._clock = clock

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
            self._ledger.assume(evict, generation, now)

    def refused(self) -> None:
        """Tell that a plan was refused: those who were to get its room wait for nothing."""
        self._state.note(Change.EVICTION_FAILED)
        self._state.notify()

    def sent(self, task: TaskRef) -> None:
        """Note that the request to delete a pod is on its way."""
        self._ledger.sent(task.uid, self._clock.monotonic())

    def deleted(self, task: TaskRef) -> None:
        """Note that the API server has taken the deletion; the task stays terminating until the watch shows it."""
        self._ledger.acknowledged(task.uid, self._clock.monotonic())

    def failed(self, task: TaskRef, why: str) -> None:
        """Let a pod stay because its eviction failed; nothing if the watch has meanwhile told better."""
        entry = self._ledger.forget(task.uid)
        if entry is not None:
            log.debug("eviction failed", task=str(task), uid=task.uid, node=entry.node, reason=why)
            self._pods.stay(task.uid)
            self._state.notify()

    def expired(self, now: float) -> list[Entry]:
        """Return the evictions that the watch should have confirmed by now; their pods are to be read again."""
        return self._ledger.expired(now)

    def resolve(self, task: TaskRef, pod: Pod | None) -> None:
        """Take a pod as it was read again (None: there is none of this name) as the truth about its eviction."""
        if pod is None or pod.metadata.uid != task.uid:
            self._pods.remove(task.uid)
        else:
            self._pods.apply(pod)
            if self._ledger.forget(task.uid) is not None:
                log.debug("eviction did not happen", task=str(task), uid=task.uid)
                self._pods.stay(task.uid)
        self._state.notify()

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
