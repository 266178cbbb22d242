"""Assumed binds: from the decision to the end of the bind.

A cycle decides on a snapshot, and the cluster changes meanwhile. A bind is refused if one of its conditions does not
hold any more:

- the pod exists and still waits,
- the node exists, is not closed or cordoned, and has the same labels and taints,
- the node has enough room,
- the claims of the pod and the volumes for them are still free,
- the PodGroup exists and asks for the same.

The binds of one job in one batch are accepted or refused together, because they bring the gang to its minimum. The next
cycle plans a refused gang again. The loss of a gang member outside the batch is no reason to refuse: it could just as
well be lost a moment later.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from volcano_py.cache.assumptions import Assumptions
from volcano_py.cache.bind_backoff import BindBackoff
from volcano_py.cache.changes import Change
from volcano_py.cache.pod_events import PodEvents
from volcano_py.cache.state import ClusterState, SnapshotToken
from volcano_py.cache.volume_promises import VolumePromises
from volcano_py.ledger.ledger import Ledger
from volcano_py.model.arrays import Floats
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.resources import EPSILON
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock
from volcano_py.snapshot.layout import IDLE, section

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Assumed:
    """An accepted bind: it is counted on its node and may be sent."""

    bind: Bind


@dataclass(frozen=True, slots=True)
class Refused:
    """A bind that must not be sent, and why."""

    bind: Bind
    reason: str


class Binds(Assumptions):
    """Assumes binds and ends them."""

    what = "bind"

    def __init__(
        self, state: ClusterState, ledger: Ledger, pods: PodEvents, clock: Clock, backoff: BindBackoff
    ) -> None:
        super().__init__(state, ledger, pods, clock)
        self._backoff = backoff
        self.promises = VolumePromises(state.store, ledger)
        """What the assumed binds promise to volume claims."""

    def assume(self, batch: tuple[Bind, ...], decided_at: SnapshotToken) -> list[Assumed | Refused]:
        """Count the binds of one batch on their nodes; return an answer for each, in the order of the batch."""
        self.promises.prune()
        by_job: dict[JobKey, list[Bind]] = {}
        for bind in batch:
            by_job.setdefault(bind.job, []).append(bind)
        if len(by_job) > 1 and self._assume_together(by_job, batch, decided_at):
            return [Assumed(bind) for bind in batch]
        reasons: dict[str, str] = {}  # by uid
        for job, binds in by_job.items():
            reasons.update(self._assume_job(job, binds, decided_at))
        if reasons:
            self._state.note(Change.BIND_FAILED)
            self._state.notify()
        return [Refused(bind, reasons[bind.task.uid]) if bind.task.uid in reasons else Assumed(bind) for bind in batch]

    def objection_to_sending(self, bind: Bind) -> str:
        """Return why an assumed bind must not be sent any more, "" if it may.

        A bind may wait for minutes before it is sent. If its node has changed meanwhile, the next cycle chooses again.
        """
        task = bind.task
        entry = self.ledger.get(task.uid)
        if entry is None or entry.node != bind.node:
            place = self._store.task(task.uid)
            if place is None:
                return f"pod {task} is gone"
            return f"pod {task} no longer waits: it is {place.status.label} on node {place.node or 'none'}"
        node = self._store.nodes.record(bind.node)
        if node is None:
            return f"node {bind.node} is gone"
        if node.closed:
            return f"node {bind.node} is closed: {node.closed}"
        if entry.revision is not None and self._state.node_revision(bind.node) > entry.revision:
            return f"node {bind.node} was changed after the decision"
        return ""

    def failed(self, task: TaskRef, why: str) -> None:
        """Let a task wait again and back off, because its bind failed; do nothing if the watch has ended it already."""
        entry = self.ledger.get(task.uid)
        if entry is not None and entry.job is not None:
            self._backoff.failed(entry.job, task.uid, entry.assumed_at, self._clock.monotonic())
        self._forget(task, why)

    def withdrawn(self, task: TaskRef, why: str) -> None:
        """Let a task wait again because its bind was not sent; do nothing if the watch has ended it already."""
        self._forget(task, why)

    def validate(self) -> None:
        """Raise AssertionError if the ledger and the store disagree about which pods are BINDING, and where."""
        self.ledger.validate()
        self.promises.validate()
        assumed = {entry.task.uid: entry.node for entry in self.ledger}
        columns = self._store.snapshot().tasks
        rows = zip(columns.records, columns.status, strict=False)
        binding = {record.uid for record, status in rows if record and status == TaskStatus.BINDING}
        if binding != set(assumed):
            raise AssertionError(f"the store has pods {sorted(binding)} as BINDING, the ledger has {sorted(assumed)}")
        for uid, node in assumed.items():
            place = self._store.task(uid)
            if place is None or place.node != node:
                raise AssertionError(f"the ledger has pod {uid} on node {node}, the store {place}")

    def _take_back(self, uid: str) -> None:
        self._pods.wait_again(uid)

    def _assume_together(
        self, by_job: Mapping[JobKey, list[Bind]], batch: tuple[Bind, ...], decided_at: SnapshotToken
    ) -> bool:
        """Assume the binds of several jobs if there is nothing against any of them; else assume none."""
        if any(bind.prepare for bind in batch):  # what is promised to one job may be an objection to the next
            return False
        return not any(self._reasons(*job, decided_at) for job in by_job.items()) and self._take_all(batch)

    def _assume_job(self, job: JobKey, binds: list[Bind], decided_at: SnapshotToken) -> dict[str, str]:
        """Assume all binds of one job, or none of them; return the reasons for refusing by uid."""
        reasons = self._reasons(job, binds, decided_at)
        if not reasons and not self._take_all(binds):  # one by one, to learn which one does not fit
            taken: list[Bind] = []
            for bind in binds:
                reason = self._take(bind)
                if reason:
                    reasons[bind.task.uid] = reason
                    break
                taken.append(bind)
            if reasons:
                for bind in reversed(taken):
                    self.ledger.forget(bind.task.uid)
                    self.promises.drop(bind.task.uid)
                    self._give_back(bind)
        if reasons:
            uid, first = next(iter(reasons.items()))
            name = next(bind.task for bind in binds if bind.task.uid == uid)
            for bind in binds:
                reasons.setdefault(bind.task.uid, f"refused together with its gang because of pod {name}: {first}")
        return reasons

    def _reasons(self, job: JobKey, binds: list[Bind], decided_at: SnapshotToken) -> dict[str, str]:
        revision = self._state.group_revision(job)
        if not revision:
            return {bind.task.uid: f"PodGroup {job} is gone" for bind in binds}
        if revision > decided_at:
            return {bind.task.uid: f"PodGroup {job} was changed after the decision" for bind in binds}
        found = ((bind, self._reason(bind, decided_at)) for bind in binds)
        return {bind.task.uid: reason for bind, reason in found if reason}

    def _reason(self, bind: Bind, decided_at: SnapshotToken) -> str:
        """Return which condition of a bind does not hold any more, "" if all hold."""
        task = bind.task
        place = self._store.task(task.uid)
        if place is None:
            return f"pod {task} is gone"
        if place.status is not TaskStatus.PENDING:
            on = f" on node {place.node}" if place.node else ""
            return f"pod {task} no longer waits: it is {place.status.label}{on}"
        if place.record.key != bind.job:
            return f"pod {task} has left PodGroup {bind.job}"
        node = self._store.nodes.record(bind.node)
        if node is None:
            return f"node {bind.node} is gone"
        if node.closed:
            return f"node {bind.node} is closed: {node.closed}"
        if self._state.node_revision(bind.node) > decided_at:
            return f"node {bind.node} was changed after the decision"
        return self.promises.objection(bind) if bind.prepare else ""

    def _take_all(self, binds: Sequence[Bind]) -> bool:
        """Put all tasks on their nodes if every node has room for them; else put none, and return False.

        The tasks are pending, as :meth:`_reasons` has checked. Checking all nodes at once costs as much as one node.
        """
        if len({bind.task.uid for bind in binds}) < len(binds):
            return False
        rows = [self._store.nodes.row(bind.node) for bind in binds]
        before = self._idle(rows)
        for bind in binds:
            place = self._store.task(bind.task.uid)
            if place is not None:
                self._state.move_task(place, TaskStatus.BINDING, bind.node)
        after = self._idle(rows)
        if ((after < before) & (after <= -EPSILON)).any():
            for bind in reversed(binds):
                self._give_back(bind)
            return False
        now, revision, generation = self._clock.monotonic(), self._state.revision, self._state.generation
        for bind in binds:
            self.ledger.assume(bind, generation(bind.job), now, revision)
            self.promises.add(bind)
        return True

    def _take(self, bind: Bind) -> str:
        """Put a task on its node; if it does not fit, leave it pending and return what the node lacks."""
        place = self._store.task(bind.task.uid)
        if place is None:
            return f"pod {bind.task} is gone"
        if place.status is not TaskStatus.PENDING:
            return f"pod {bind.task} is bound twice in one batch"
        row = self._store.nodes.row(bind.node)
        before = self._idle([row])
        self._state.move_task(place, TaskStatus.BINDING, bind.node)
        after = self._idle([row])
        lacking = np.flatnonzero((after < before) & (after <= -EPSILON))
        if lacking.size:
            self._give_back(bind)
            names = ", ".join(self._store.resources.names[resource] for resource in lacking)
            return f"node {bind.node} has too little room now: Insufficient {names}"
        generation, now = self._state.generation(bind.job), self._clock.monotonic()
        self.ledger.assume(bind, generation, now, self._state.revision)
        self.promises.add(bind)
        return ""

    def _idle(self, rows: list[int]) -> Floats:
        """Return what is idle on nodes, shape (n_resources, n_rows)."""
        nodes = self._store.nodes
        return section(nodes.block, IDLE, len(self._store.resources))[:, rows]

    def _give_back(self, bind: Bind) -> None:
        place = self._store.task(bind.task.uid)
        if place is not None:
            self._state.move_task(place, TaskStatus.PENDING, "")
