"""Proportion: queues share the cluster by weight.

deserved     found in rounds from weight, request, capability and guarantee (`division`); request = what pending tasks
             and those that hold resources ask for
share        max over r of taken_r / deserved_r, over resources of which it deserves any; taken = held or promised
order        the queue of higher priority first, then that of lower share
overused     deserved <= taken in every resource, within 0.1: the queue gets nothing more in this session
allocatable  the queue is open, and taken + request <= deserved in what the task asks for, pods left aside, exactly;
             for a task that is not through the gate of its queue what those who are will take counts as taken
preemptive   the same, with all tasks in question
victims      of other queues: the first candidates of a queue, as long as it holds more than it deserves of anything
spared       when room is taken from other queues: whoever is no such victim, whatever other tiers say, and whoever's
             queue would be left with less than its guarantee; for a whole gang, jobs that go as wholes may leave their
             queue with less than it deserves, if it has more before
enqueue      the queue is open, and min + taken + reserved - elastic <= capability in what minResources ask for, pods
             left aside, exactly; reserved and elastic as in `framework.state.reservations`, capability = what
             guarantees of other queues leave, cut to the queue's own

Sums over a queue's jobs take every PodGroup of it, whatever its phase. (Volcano: plugins/proportion; differences:
division never ends short of a share, a queue without a state counts as open, a queue loses nothing that it deserves
where the answer of another tier comes first, nor to gangreclaim, which in Volcano asks nobody what queues deserve.)
"""

from collections.abc import Sequence

import numpy as np

from volcano_py.framework.contract.extension_points import (
    Allocatable,
    JobEnqueueable,
    JobEnqueued,
    Overused,
    Preemptive,
    Preemptor,
    Purpose,
    QueueOrder,
    Reclaimable,
    UnifiedEvictable,
    VictimFilter,
    VictimQueueOrder,
    Vote,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.levelling import compared, given_and_gains, may_level, share_lists, who_may_go
from volcano_py.framework.state import reservations
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.memory import QueueReport
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.queue_limits import (
    capability,
    columns,
    divisors,
    not_open,
    over_limit,
    real_capability,
    room_for,
    share,
    shares,
)
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import EPSILON, PODS_ROW, format_amount
from volcano_py.model.shape import Field
from volcano_py.plugins.proportion.division import deserved


class Proportion(
    Plugin,
    QueueOrder,
    Overused,
    Allocatable,
    JobEnqueueable,
    JobEnqueued,
    Preemptive,
    Reclaimable,
    UnifiedEvictable,
    VictimFilter,
    VictimQueueOrder,
):
    """Weighted shares of queues."""

    name = "proportion"
    counts = frozenset({"reclaimable", "protected", "unified_evictable"})
    about_queues = True
    reads = frozenset({Field.REQUEST})

    def on_session_open(self, ssn: State) -> None:
        """Add up what queues ask for and hold, and divide the cluster."""
        self._ssn = ssn
        self._queues = queues = ssn.accounts.track_queues()
        limits = columns(queues.records, ssn.resources, capability)
        guarantee = columns(queues.records, ssn.resources, lambda record, resources: record.guarantee.vector(resources))
        weights = np.array([record.weight for record in queues.records], dtype=float)
        self._guarantee = guarantee
        self._capability = real_capability(ssn.total, guarantee, limits)
        self._request = queues.sums(ssn.jobs.allocated + ssn.jobs.pending)
        self._deserved = deserved(
            ssn.total, weights, self._request, self._capability, guarantee, wanting=queues.with_jobs()
        )
        self._due = np.where(ssn.total > 0, ssn.total, 0.0)[:, None] * weights
        self._divisor = divisors(self._deserved)
        self._ranks = -np.array([record.priority for record in queues.records], dtype=float)
        self._limits: list[list[float]] = self._deserved.T.tolist()  # by queue; a few plain numbers beat small arrays
        self._elastic = queues.sums(reservations.elastic(ssn.jobs))
        self._reserved = queues.sums(reservations.reserved(ssn, whole=False))
        self._gated = reservations.gated(ssn)

    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        """Compare priorities, the higher first, then shares, the lower first."""
        if left.record.priority != right.record.priority:
            return right.record.priority - left.record.priority
        return self._share(left.row) - self._share(right.row)

    def queue_keys(self) -> Sequence[Floats]:
        """Return minus the priority and the share of every queue, each (n_queues,)."""
        return self._ranks, shares(self._queues.taken, self._divisor)

    def overused(self, queue: QueueInfo) -> bool:
        """Say whether the queue holds what it deserves, of everything."""
        taken = self._queues.taken[:, queue.row].tolist()
        for limit, held in zip(self._limits[queue.row], taken, strict=True):  # noqa: SIM110 - asked for every turn
            if limit >= held + EPSILON:
                return False
        return True

    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        """Return how many tasks like this one fit into what the queue deserves."""
        if not queue.record.open:
            return 0
        taken = self._queues.taken[:, queue.row]
        if (others := self._ssn.coming.through_gates(task)) is not None:
            taken = taken + others[:, queue.row]
        return room_for(taken.tolist(), task.asked, self._limits[queue.row], wanted)

    def why_not_allocatable(self, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats) -> Reason | None:
        """Say of which resources the job asks for more than the queue deserves, and what sets that limit."""
        if not queue.record.open:
            return not_open(self.name, queue.record)
        row, due = queue.row, self._deserved[:, queue.row]
        taken = self._queues.taken[:, row] - given
        if (others := self._ssn.coming.through_gates(task)) is not None:
            taken = taken + others[:, row]
        own = capability(queue.record, self._ssn.resources)
        over = np.flatnonzero(reservations.over_asked(taken + asked, due, asked)).tolist()
        limits = {
            resource: (
                float(due[resource]),
                "allowed (its capability)" if own[resource] <= due[resource] else "deserved",
            )
            for resource in over
        }
        if not limits:
            return None
        return over_limit(self.name, queue.name, self._ssn.resources, asked, taken, limits)

    def why_overused(self, queue: QueueInfo) -> Reason:
        """Say what the queue deserves, of which it holds all."""
        names, due = self._ssn.resources.names, self._limits[queue.row]
        taken = self._queues.taken[:, queue.row].tolist()
        shown = ", ".join(
            f"{name} {format_amount(name, held)} of {format_amount(name, most)}"
            for row, (name, held, most) in enumerate(zip(names, taken, due, strict=True))
            if most >= EPSILON and row != PODS_ROW
        )
        text = (
            f'queue "{queue.name}" holds all that it deserves now ({shown or "it deserves nothing"}): its other tasks '
            "wait until it deserves more"
        )
        return Reason(self.name, "queue-overused", text)

    def preemptive(self, queue: QueueInfo, tasks: Sequence[tuple[TaskInfo, int]]) -> bool:
        """Say whether the queue deserves these tasks beside what it holds."""
        if not queue.record.open:
            return False
        asked = np.asarray(sum(task.request * count for task, count in tasks))
        after = self._held_and_coming(queue.row, tasks[0][0] if tasks else None) + asked
        return not reservations.over_asked(after, self._deserved[:, queue.row], asked).any()

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Let go candidates of queues that hold more than they deserve, as many as it takes to end that."""
        held = self._queues.taken[:, candidates.queues] - candidates.by_queue.total(candidates.requests)
        return np.asarray((held >= self._deserved[:, candidates.queues] + EPSILON).any(axis=0))

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> None:
        """Have no opinion; the plugin answers here so that its filter counts."""

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return whose queue would lose to another one what it may keep.

        It may keep what is guaranteed to it, and whatever the other queue may not take by
        `framework.evicting.levelling`, unless
        it holds more than it deserves of something that goes. A job that goes as a whole counts as one.
        """
        if preemptor is None or preemptor.purpose is not Purpose.RECLAIM or not len(candidates):
            return np.zeros(len(candidates), dtype=bool)
        queues = candidates.queues
        together, first = candidates.of_units(candidates.requests), candidates.first_of_unit
        due = self._due[:, queues]
        row = preemptor.queue.row
        given, gains = given_and_gains(preemptor, len(self._ssn.resources))
        before = self._held_and_coming(row, preemptor.task) - given
        after = before + gains
        mine = [np.broadcast_to(amounts[:, None], due.shape) for amounts in (before, after, self._due[:, row])]
        above = (together > 0) & ~self._beyond_in_pods(row, after)

        def agrees(going: Bools) -> Bools:
            held = self._queues.taken[:, queues] - candidates.by_queue.total(candidates.requests * going)[:, first]
            left = held - together
            short = ((left <= self._guarantee[:, queues] - EPSILON) & (together > 0)).any(axis=0)
            lent = ((held >= self._deserved[:, queues] + EPSILON) & above).any(axis=0)
            if (lent | short).all():
                return np.asarray(~short)
            return np.asarray(~short & (lent | may_level(left, due, *mine)))

        return ~who_may_go(candidates, self._ssn.tasks.shape[candidates.rows], queues, agrees)

    def _held_and_coming(self, row: int, task: TaskInfo | None) -> Floats:
        """Return what a queue holds or will hold before a task gets anything, shape (n_resources,)."""
        coming = self._ssn.coming.before(task)
        held: Floats = self._queues.taken[:, row]
        return held if coming is None else held + coming[:, row]

    def _beyond_in_pods(self, row: int, after: Floats) -> Bools:
        """Return (n_resources, 1): that a queue would hold more places for pods than it deserves."""
        beyond = np.zeros((len(after), 1), dtype=bool)
        beyond[PODS_ROW] = after[PODS_ROW] >= self._deserved[PODS_ROW, row] + EPSILON
        return beyond

    def victim_queue_order(self, left: QueueInfo, right: QueueInfo, preemptor: QueueInfo) -> float:
        """Compare two queues as `victim_queue_keys` does."""
        return compared(self.victim_queue_keys(preemptor), left.row, right.row)

    def victim_queue_keys(self, preemptor: QueueInfo) -> Floats:
        """Order queues: those that hold more than they deserve of something, then the greatest share."""
        taken = self._queues.taken
        within = (taken < self._deserved + EPSILON).all(axis=0, keepdims=True)
        return np.concatenate((within.astype(float), -share_lists(taken, self._due)))

    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Permit a job that fits into what its queue may have, reject any other."""
        row = self._queues.row_of_job[job.row]
        if not self._queues.records[row].open:
            return Vote.REJECT
        if job.record.min_resources is None:
            return Vote.PERMIT
        asked = self._ssn.jobs.min_resources[:, job.row]
        need = asked + self._queues.taken[:, row] + self._reserved[:, row] - self._elastic[:, row]
        over = reservations.over_asked(need, self._capability[:, row], asked)
        if not over.any():
            return Vote.PERMIT
        names = ", ".join(f"insufficient {self._ssn.resources.names[resource]}" for resource in np.flatnonzero(over))
        return Reason(self.name, "queue-quota", f"queue resource quota insufficient: {names}")

    def job_enqueued(self, job: JobInfo) -> None:
        """Count what the job will take of its queue."""
        if job.record.min_resources is None:
            return
        asked = self._ssn.jobs.min_resources[:, job.row]
        self._reserved[:, self._queues.row_of_job[job.row]] += np.maximum(asked - self._gated[:, job.row], 0.0)

    def on_session_close(self, ssn: State) -> None:
        """Report what queues deserve and hold, idle ones too: their series go to 0 and stay."""
        names = ssn.resources.names
        busy = self._queues.with_jobs().tolist()
        amounts = (self._queues.taken, self._request, self._deserved, self._reserved)
        by_queue: list[list[list[float]]] = [columns.T.tolist() for columns in amounts]
        # A Python loop over queues: reports go by name.
        for row, record in enumerate(self._queues.records):
            allocated, request, due, inqueue = (dict(zip(names, rows[row], strict=True)) for rows in by_queue)
            ssn.report.queues[record.name] = QueueReport(
                weight=record.weight,
                share=self._share(row),
                overused=busy[row] and self.overused(ssn.queues[record.name]),
                allocated=allocated,
                request=request,
                deserved=due,
                inqueue=inqueue,
            )

    def _share(self, row: int) -> float:
        taken = self._queues.taken[:, row].tolist()
        return share(taken, self._limits[row])
