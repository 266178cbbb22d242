"""Proportion: queues share the cluster by weight.

deserved     computed in rounds from weight, request, capability and guarantee (`division`); request = requests of
             pending and allocated tasks
share        max over r of taken_r / deserved_r, over the resources of which the queue deserves any; taken = requests
             of allocated and pipelined tasks
order        the queue of higher priority first, then the queue of lower share
overused     deserved <= taken in every resource, within 0.1: the queue gets nothing more in this session
allocatable  the queue is open, and taken + request <= deserved in every requested resource except pods, compared
             exactly. For a task whose queue gate is not removed, tasks whose gate is removed count as taken.
preemptive   the same, for all preempting tasks together
victims      of other queues: the first candidates of a queue, while it holds more than it deserves of some resource
protected    in reclamation: every candidate that is no such victim, whatever other tiers say; and every candidate whose
             eviction would leave its queue with less than its guarantee. For a gang, a job that is evicted as a whole
             may leave its queue with less than it deserves, if the queue had more before.
enqueue      the queue is open, and min + taken + reserved - elastic <= capability in every resource that minResources
             request, except pods, compared exactly. reserved and elastic: see `framework.state.reservations`;
             capability = what the guarantees of other queues leave, at most the queue's own.

Sums over a queue's jobs include all its PodGroups in any phase. (Volcano: plugins/proportion.)

Differences: the division never ends short of a share. A queue without a state counts as open. A queue keeps what it
deserves even if another tier answers first, and gangreclaim respects it, too; in Volcano gangreclaim asks no plugin
what queues deserve.
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
    Votes,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.levelling import compared, given_and_gains, may_level, share_lists, who_may_go
from volcano_py.framework.state import reservations
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.report import QueueReport
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.queue_limits import (
    NO_NODE_HAS_ANY,
    capabilities,
    capability,
    columns,
    divisors,
    not_open,
    over_limit,
    real_capability,
    room_for,
    share,
    shares,
    without_room,
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
        """Sum up what queues request and hold, and divide the cluster."""
        self._ssn = ssn
        self._queues = queues = ssn.accounts.track_queues()
        limits = capabilities(queues.records, ssn.resources)
        guarantee = columns([record.guarantee for record in queues.records], ssn.resources)
        weights = np.array([record.weight for record in queues.records], dtype=float)
        self._guarantee = guarantee
        self._capability = real_capability(ssn.total, guarantee, limits)
        self._request = queues.sums(ssn.jobs.allocated + ssn.jobs.pending)
        self._deserved = deserved(
            ssn.total, weights, self._request, self._capability, guarantee, wanting=queues.with_jobs()
        )
        self._due = np.where(ssn.total > 0, ssn.total, 0.0)[:, None] * weights
        self._divisor = divisors(self._deserved)
        self._shut: Bools = np.array([not record.open for record in queues.records], dtype=bool)
        self._ranks = -np.array([record.priority for record in queues.records], dtype=float)
        self._limits: list[list[float]] = self._deserved.T.tolist()  # by queue; for few values lists beat small arrays
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
        """Say whether the queue holds all that it deserves, of every resource."""
        taken = self._queues.taken[:, queue.row].tolist()
        for limit, held in zip(self._limits[queue.row], taken, strict=True):  # noqa: SIM110 - asked for every turn
            if limit >= held + EPSILON:
                return False
        return True

    def overused_queues(self) -> Bools:
        """Return the queues that hold all that they deserve, of every resource, (n_queues,)."""
        return np.asarray((self._deserved < self._queues.taken + EPSILON).all(axis=0))

    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        """Return how many tasks like this one, at most ``wanted``, fit into what the queue deserves."""
        if not queue.record.open:
            return 0
        taken = self._held_and_coming(task)[:, queue.row]
        return room_for(taken.tolist(), task.asked, self._limits[queue.row], wanted)

    def full_queues(self, task: TaskInfo) -> Bools:
        """Return the queues that are not open or have no room for one task below what they deserve, (n_queues,)."""
        return without_room(self._held_and_coming(task), task.asked, self._deserved) | self._shut

    def why_not_allocatable(self, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats) -> Reason | None:
        """Return which resources exceed what the queue deserves, and what sets that limit."""
        if not queue.record.open:
            return not_open(self.name, queue.record)
        row, due = queue.row, self._deserved[:, queue.row]
        taken = self._held_and_coming(task)[:, row] - given
        own = capability(queue.record, self._ssn.resources)
        over = reservations.over_asked(taken + asked, due, asked)
        limits = {resource: (float(due[resource]), self._source(resource, own, due)) for resource in over}
        if not limits:
            return None
        nominated = self._ssn.coming.nominated()
        promised = None if nominated is None else nominated[:, row]
        return over_limit(self.name, queue.name, self._ssn.resources, asked, taken, limits, promised)

    def _source(self, resource: int, own: Floats, due: Floats) -> str:
        if own[resource] <= due[resource]:
            return "allowed (its capability)"
        return "deserved" if self._ssn.total[resource] >= EPSILON else NO_NODE_HAS_ANY

    def why_overused(self, queue: QueueInfo) -> Reason:
        """Return the reason, with what the queue holds and deserves."""
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
        """Say whether the queue deserves these tasks in addition to what it holds."""
        if not queue.record.open:
            return False
        asked = np.asarray(sum(task.request * count for task, count in tasks))
        after = self._held_and_coming(tasks[0][0] if tasks else None)[:, queue.row] + asked
        return not reservations.over_asked(after, self._deserved[:, queue.row], asked)

    def sated_queues(self, task: TaskInfo) -> Bools:
        """Return the queues that are not open or do not deserve one more such task, (n_queues,)."""
        return self.full_queues(task)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting candidates of a queue while it holds more than it deserves."""
        held = self._queues.taken[:, candidates.queues] - candidates.by_queue.total(candidates.requests)
        return np.asarray((held >= self._deserved[:, candidates.queues] + EPSILON).any(axis=0))

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> None:
        """Do not vote; the plugin answers only so that its filter applies to these actions."""

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return the candidates whose queue may keep them from another queue.

        A queue keeps its guarantee. It also keeps what the other queue may not take by
        `framework.evicting.levelling`, unless it holds more than it deserves of a resource that the candidate
        requests. A job that is evicted as a whole counts as one candidate.
        """
        if preemptor is None or preemptor.purpose is not Purpose.RECLAIM or not len(candidates):
            return np.zeros(len(candidates), dtype=bool)
        queues = candidates.queues
        together, first = candidates.of_units(candidates.requests), candidates.first_of_unit
        due = self._due[:, queues]
        row = preemptor.queue.row
        given, gains = given_and_gains(preemptor, len(self._ssn.resources))
        before = self._held_and_coming(preemptor.task)[:, row] - given
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

    def _held_and_coming(self, task: TaskInfo | None) -> Floats:
        """Return what queues hold, plus what other tasks get before this one, (n_resources, n_queues), to read."""
        coming = self._ssn.coming.before(task)
        return self._queues.taken if coming is None else self._queues.taken + coming

    def _beyond_in_pods(self, row: int, after: Floats) -> Bools:
        """Return a mask (n_resources, 1) of pods, set if the queue would hold more pods than it deserves."""
        beyond = np.zeros((len(after), 1), dtype=bool)
        beyond[PODS_ROW] = after[PODS_ROW] >= self._deserved[PODS_ROW, row] + EPSILON
        return beyond

    def victim_queue_order(self, left: QueueInfo, right: QueueInfo, preemptor: QueueInfo) -> float:
        """Compare two queues by `victim_queue_keys`."""
        return compared(self.victim_queue_keys(preemptor), left.row, right.row)

    def victim_queue_keys(self, preemptor: QueueInfo) -> Floats:
        """Return sort keys: queues above what they deserve of some resource, by priority, then the greatest share."""
        taken = self._queues.taken
        within = (taken < self._deserved + EPSILON).all(axis=0, keepdims=True)
        priorities = np.where(within, 0.0, -self._ranks)
        return np.concatenate((within.astype(float), priorities, -share_lists(taken, self._due)))

    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Permit a job that fits into the capability of its queue, reject any other."""
        row = self._queues.row_of_job[job.row]
        if not self._queues.records[row].open:
            return Vote.REJECT
        if job.record.min_resources is None:
            return Vote.PERMIT
        asked = self._ssn.jobs.min_resources[:, job.row]
        need = asked + self._queues.taken[:, row] + self._reserved[:, row] - self._elastic[:, row]
        return self._answer(reservations.over_asked(need, self._capability[:, row], asked))

    def enqueueable_jobs(self, jobs: Rows) -> Votes:
        """Compare the minResources of all these jobs with the capability of their queues."""
        rows, asked = self._queues.rows_of_jobs(jobs), self._ssn.jobs.min_resources[:, jobs]
        need = asked + self._queues.taken[:, rows] + self._reserved[:, rows] - self._elastic[:, rows]
        places, over = reservations.all_over_asked(need, self._capability[:, rows], asked)
        places[self._shut[rows]] = len(over)
        return Votes(places, [*map(self._answer, over), Vote.REJECT])

    def _answer(self, over: list[int]) -> Vote | Reason:
        if not over:
            return Vote.PERMIT
        names = ", ".join(f"insufficient {self._ssn.resources.names[resource]}" for resource in over)
        return Reason(self.name, "queue-quota", f"queue resource quota insufficient: {names}")

    def job_enqueued(self, job: JobInfo) -> None:
        """Reserve the job's minResources in its queue."""
        if job.record.min_resources is None:
            return
        asked = self._ssn.jobs.min_resources[:, job.row]
        self._reserved[:, self._queues.row_of_job[job.row]] += np.maximum(asked - self._gated[:, job.row], 0.0)

    def on_session_close(self, ssn: State) -> None:
        """Report what queues deserve and hold; idle queues are included so that their metrics go to 0 and stay."""
        names = ssn.resources.names
        overused = (self._queues.with_jobs() & self.overused_queues()).tolist()
        share_of = shares(self._queues.taken, self._divisor).tolist()
        amounts = (self._queues.taken, self._request, self._deserved, self._reserved)
        by_queue: list[list[list[float]]] = [columns.T.tolist() for columns in amounts]
        # A Python loop over queues: there is one report per queue.
        for row, record in enumerate(self._queues.records):
            allocated, request, due, inqueue = (dict(zip(names, rows[row], strict=True)) for rows in by_queue)
            ssn.report.queues[record.name] = QueueReport(
                weight=record.weight,
                share=share_of[row],
                overused=overused[row],
                allocated=allocated,
                request=request,
                deserved=due,
                inqueue=inqueue,
            )

    def _share(self, row: int) -> float:
        taken = self._queues.taken[:, row].tolist()
        return share(taken, self._limits[row])
