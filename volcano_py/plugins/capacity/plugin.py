"""Capacity: queues have a guarantee, a deserved amount and a ceiling, and lend what they do not use.

entitlements  guarantee, deserved amount and ceiling of a queue, see `entitlements`
tree          with ``enableHierarchy`` queues form a tree (`model.queue_tree`). What a queue holds, requests and has
              reserved also counts for all its ancestors; only leaves take jobs.
share         max over r of taken_r / deserved_r, over the resources of which the queue deserves any; 1 if it deserves
              nothing
order         the queue of higher priority first. Then the two branches are compared where the queues' paths from the
              root diverge (without a tree, the queues themselves): the lower share first, and at equal shares the
              branch that deserves something.
allocatable   the queue is open and a leaf, and for it and every ancestor: taken + request <= ceiling in every requested
              resource except pods, compared exactly. For a task whose queue gate is not removed, tasks whose gate is
              removed count as taken.
enqueue       the same with min + taken + reserved - elastic <= ceiling in every resource that minResources request (see
              `framework.state.reservations`)
protected     in reclamation: every candidate that its queue may keep (`keeping`), whatever other tiers say

(Volcano: plugins/capacity.) Differences: if a queue is not in the tree, or a queue with jobs is not a leaf, only its
jobs are not scheduled; in Volcano no job is scheduled then. Branches are compared by their current shares; in Volcano
by their shares when the session opened, so one branch takes all that the first session allocates. A queue without a
state counts as open. A queue keeps what it deserves even if another tier answers first; otherwise two queues of elastic
jobs reclaim from each other without end. Quotas of resource claims (``deviceclass/...``) are not read yet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.api.keys import ROOT_QUEUE
from volcano_py.conf.arguments import Warn, get_int
from volcano_py.framework.contract.extension_points import (
    Allocatable,
    JobEnqueueable,
    JobEnqueued,
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
from volcano_py.framework.evicting.levelling import compared, given_and_gains, share_lists, who_may_go
from volcano_py.framework.state import reservations
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.queue_accounts import JobStamp, JobSums
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.queue_limits import (
    NO_NODE_HAS_ANY,
    capability,
    divisors,
    not_open,
    over_limit,
    room_for,
    shares,
    without_room,
)
from volcano_py.model.queue_tree import QueueTree
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import EPSILON, PODS_ROW
from volcano_py.model.shape import Field
from volcano_py.plugins.capacity.entitlements import in_a_tree, share, side_by_side
from volcano_py.plugins.capacity.keeping import Keeping, PreemptingQueue, Standing
from volcano_py.plugins.capacity.report import Amounts
from volcano_py.plugins.capacity.votes import Lent, Rules, takeable

_LEVEL: Final = "ancestorReclaimLevel"
_CLAIMS: Final = ("capacity.DynamicResourceAllocationEnable", "capacity.DRAConsumableCapacityEnable")


@dataclass(frozen=True, slots=True)
class CapacityArgs:
    """The arguments of the plugin."""

    ancestor_reclaim_level: int = 0  # number of ancestors that take part in reclamation


class Capacity(
    Plugin,
    QueueOrder,
    Allocatable,
    JobEnqueueable,
    JobEnqueued,
    Preemptive,
    Reclaimable,
    UnifiedEvictable,
    VictimFilter,
    VictimQueueOrder,
):
    """Guarantees, deserved amounts and ceilings of queues."""

    name = "capacity"
    counts = frozenset({"reclaimable", "protected", "unified_evictable"})
    about_queues = True
    reads = frozenset({Field.REQUEST})
    arguments = frozenset({_LEVEL, *_CLAIMS})
    hierarchical = frozenset()  # no extension point depends on a hierarchy

    def __init__(self, arguments: CapacityArgs | None = None) -> None:
        self._args = arguments or CapacityArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> CapacityArgs:
        """Read ``ancestorReclaimLevel`` (0); a level below 0 counts as 0."""
        level = get_int(arguments, _LEVEL, 0, warn)
        if level < 0:
            warn(f"argument {_LEVEL} is {level}, which is below 0: it counts as 0")
        if any(arguments.get(key) for key in _CLAIMS):
            warn("quotas of resource claims do not exist here yet: deviceclass/... in queues has no effect")
        return CapacityArgs(max(0, level))

    def on_session_open(self, ssn: State) -> None:
        """Compute every queue's place in the tree, its entitlements, and what it holds, requests and has reserved."""
        self._ssn = ssn
        self._queues = queues = ssn.accounts.track_queues()
        records = queues.records
        self._tree = tree = QueueTree.of(records) if self.hierarchy else QueueTree.flat(records)
        find = in_a_tree(records, ssn.resources, ssn.total, tree) if self.hierarchy else None
        self._due = find or side_by_side(records, ssn.resources, ssn.total)
        self._held = self._track(ssn)
        self._standing = Standing(tree, self._due, ssn.total, self._near)
        self._request = tree.rolled_up(queues.sums(ssn.jobs.allocated + ssn.jobs.pending))
        self._elastic = tree.rolled_up(queues.sums(reservations.elastic(ssn.jobs)))
        self._reserved = tree.rolled_up(queues.sums(reservations.reserved(ssn, whole=False)))
        self._gated = reservations.gated(ssn)
        # Lists by queue: for one queue at a time, plain numbers are faster than small arrays.
        self._ceiling: list[list[float]] = self._due.ceiling.T.tolist()
        self._deserved = [
            [(row, amount) for row, amount in enumerate(amounts) if amount >= EPSILON]
            for amounts in self._due.deserved.T.tolist()
        ]
        self._deserving = [any(row != PODS_ROW for row, _ in amounts) for amounts in self._deserved]
        self._divisor = divisors(self._due.deserved)
        self._ranks = -np.array([record.priority for record in records], dtype=float)
        self._undeserving = ~np.array(self._deserving, dtype=bool)
        self._stamp, self._seen = JobStamp(), -1
        if self.hierarchy:
            ssn.accounts.track(self._stamp)
        self._shares: list[float] = []
        self._partings: dict[tuple[int, int], tuple[int, int]] = {}  # pairs of queues -> where their paths diverge
        self._coming = (np.zeros(0), np.zeros(0))  # what `Coming.before` returned last, and the sums of branches
        self._leaf: list[bool] = tree.leaf.tolist()
        self._aside = self._set_aside(ssn)
        self._shut: Bools = np.array([not record.open for record in records], dtype=bool)
        self._shut[list(self._aside)] = True

    def _track(self, ssn: State) -> Floats:
        """Return what queues and all below them hold, an array that stays current, (n_resources, n_queues)."""
        if not self.hierarchy:
            return self._queues.taken
        chains = [np.array(chain, dtype=np.intp) for chain in self._tree.chains]
        nowhere = np.zeros(0, dtype=np.intp)
        sums = JobSums([chains[row] if row >= 0 else nowhere for row in self._queues.row_of_job], len(chains), ssn.jobs)
        ssn.accounts.track(sums)
        return sums.taken

    def _set_aside(self, ssn: State) -> dict[int, Reason]:
        """Return why queues take no jobs, by row, and report all problems of queues to users."""
        with_jobs = self._queues.with_jobs()
        aside: dict[int, Reason] = {}
        # A Python loop over queues: only those with a problem cost anything.
        for row, record in enumerate(self._queues.records):
            problem = self._tree.problems.get(row) or self._due.problems.get(row, "")
            if row in self._tree.problems:
                text = f'queue "{record.name}" takes no jobs: {problem}'
                aside[row] = Reason(self.name, "queue-aside", text)
            elif not self._leaf[row]:
                problem = "it has jobs, but there are queues below it: move the jobs to one of these"
                text = f'queue "{record.name}" takes no jobs: {problem}'
                aside[row] = Reason(self.name, "queue-not-leaf", text)
                problem = problem if with_jobs[row] else self._due.problems.get(row, "")
            if row in aside:
                ssn.outcome.queue_limits[record.name] = aside[row]
            if problem:
                ssn.report.queue_problems[record.name] = problem
        return aside

    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        """Compare priorities, the higher first, then the shares of the branches, the lower first."""
        if left.record.priority != right.record.priority:
            return right.record.priority - left.record.priority
        if self._leaf[left.row] != self._leaf[right.row]:
            return -1.0 if self._leaf[left.row] else 1.0
        one, other = left.row, right.row
        if self.hierarchy:
            one, other = self._branches(one, other) if self._leaf[one] else (one, other)
            found = self._current_shares()
            difference = found[one] - found[other]
        else:
            difference = self._share(one) - self._share(other)
        return difference or float(self._deserving[other]) - float(self._deserving[one])

    def _branches(self, left: int, right: int) -> tuple[int, int]:
        found = self._partings.get((left, right))
        if found is None:
            found = self._partings[left, right] = self._tree.branches(left, right)
        return found

    def _current_shares(self) -> list[float]:
        """Return the share of every queue, recomputed when what jobs hold has changed."""
        stamp = self._stamp.value
        if stamp != self._seen:
            self._seen = stamp
            self._shares = np.where(self._undeserving, 1.0, shares(self._held, self._divisor)).tolist()
        return self._shares

    def queue_keys(self) -> Sequence[Floats | Bools] | None:
        """Return minus the priority, the share, and whether the queue deserves nothing, each (n_queues,).

        Returns None in a tree: there the comparison depends on both queues, so no keys express it.
        """
        if self.hierarchy:
            return None
        share = np.where(self._undeserving, 1.0, shares(self._held, self._divisor))
        return self._ranks, share, self._undeserving

    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        """Return how many such tasks, at most ``wanted``, fit below the ceilings of the queue and its ancestors."""
        if queue.row in self._aside or not queue.record.open:
            return 0
        held = self._held_and_coming(task)
        for row in self._tree.chains[queue.row]:
            if wanted:
                wanted = room_for(held[:, row].tolist(), task.asked, self._ceiling[row], wanted)
        return wanted

    def full_queues(self, task: TaskInfo) -> Bools:
        """Return the queues that take no jobs, or have no room for one task below some ceiling, shape (n_queues,)."""
        full = without_room(self._held_and_coming(task), task.asked, self._due.ceiling)
        if self.hierarchy and full.any():  # a Python loop over queues
            full = np.array([full[list(chain)].any() for chain in self._tree.chains], dtype=bool)
        return full | self._shut

    def why_not_allocatable(self, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats) -> Reason | None:
        """Return which ceiling on the path to the root is exceeded, and what sets it."""
        if queue.row in self._aside:
            return self._aside[queue.row]
        if not queue.record.open:
            return not_open(self.name, queue.record)
        held = self._held_and_coming(task).copy()
        held[:, list(self._tree.chains[queue.row])] -= given[:, None]
        passed = {
            row: reservations.over_asked(held[:, row] + asked, self._due.ceiling[:, row], asked)
            for row in self._tree.chains[queue.row]
        }
        passed = {row: over for row, over in passed.items() if over}
        if not passed:
            return None
        # The queue whose own capability is exceeded, else the nearest queue whose ceiling is exceeded.
        row = next((row for row, over in passed.items() if self._own_limit(row, over[0])), next(iter(passed)))
        whose = "its" if row == queue.row else f'of queue "{self._queues.records[row].name}" above'
        limits = {}
        for resource in passed[row]:
            what = "capability" if self._own_limit(row, resource) else "part after the guarantees of others"
            source = f"allowed ({f'{whose} {what}' if row == queue.row else f'{what} {whose}'})"
            if self._ssn.total[resource] < EPSILON and not self._own_limit(row, resource):
                source = NO_NODE_HAS_ANY
            limits[resource] = (float(self._due.ceiling[resource, row]), source)
        nominated = self._ssn.coming.nominated()
        promised = None if nominated is None else self._with_branches(nominated)[:, row]
        return over_limit(self.name, queue.name, self._ssn.resources, asked, held[:, row], limits, promised)

    def _own_limit(self, row: int, resource: int) -> bool:
        """Say whether the ceiling of a queue is its own capability."""
        own = capability(self._queues.records[row], self._ssn.resources)[resource]
        return bool(own <= self._due.ceiling[resource, row])

    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Permit a job that fits below the ceilings of its queue and all ancestors, reject any other."""
        row = self._queues.row_of_job[job.row]
        if row in self._aside:
            return self._aside[row]
        if not self._queues.records[row].open:
            return Vote.REJECT
        if job.record.min_resources is None:
            return Vote.PERMIT
        asked = self._ssn.jobs.min_resources[:, job.row]
        for above in self._tree.chains[row]:
            need = asked + self._held[:, above] + self._reserved[:, above] - self._elastic[:, above]
            over = reservations.over_asked(need, self._due.ceiling[:, above], asked)
            if over:
                return self._insufficient(over, above if above != row else -1)
        return Vote.PERMIT

    def enqueueable_jobs(self, jobs: Rows) -> Votes:
        """Compare the minResources of all these jobs with the ceilings of their queues, then of those above, and so on.

        Jobs of a queue that takes none are asked about.
        """
        rows, asked = self._queues.rows_of_jobs(jobs), self._ssn.jobs.min_resources[:, jobs]
        answers: list[Vote | Reason] = [Vote.PERMIT]
        places = np.where(self._shut[rows], -1, 0)
        left = np.flatnonzero(places == 0)
        above, named = rows[left], np.full(len(left), -1)  # a job's own queue is not named
        while len(left):  # a Python loop over the levels of the tree
            need = asked[:, left] + self._held[:, above] + self._reserved[:, above] - self._elastic[:, above]
            which, over = reservations.all_over_asked(need, self._due.ceiling[:, above], asked[:, left])
            refused = np.array([bool(short) for short in over], dtype=bool)[which]
            alike, of_refused = np.unique(np.stack((which[refused], named[refused])), axis=1, return_inverse=True)
            places[left[refused]] = len(answers) + of_refused.reshape(-1)
            answers += [self._insufficient(over[place], queue) for place, queue in alike.T.tolist()]
            left, above = left[~refused], self._tree.parents[above[~refused]]
            left, above = left[above >= 0], above[above >= 0]
            named = above
        return Votes(places, answers)

    def _insufficient(self, over: list[int], above: int) -> Reason:
        """Return the reason why a queue has no room below its own ceiling, or below that of a queue above, if any."""
        names = ", ".join(f"insufficient {self._ssn.resources.names[resource]}" for resource in over)
        text = f"queue resource quota insufficient: {names}"
        if above >= 0:
            text += f' in queue "{self._queues.records[above].name}" above'
        return Reason(self.name, "queue-quota", text)

    def job_enqueued(self, job: JobInfo) -> None:
        """Reserve the job's minResources in its queue and all ancestors."""
        row = self._queues.row_of_job[job.row]
        if job.record.min_resources is None or row < 0:
            return
        more = np.maximum(self._ssn.jobs.min_resources[:, job.row] - self._gated[:, job.row], 0.0)
        self._reserved[:, list(self._tree.chains[row])] += more[:, None]

    # Reclaiming

    def preemptive(self, queue: QueueInfo, tasks: Sequence[tuple[TaskInfo, int]]) -> bool:
        """Say whether the queue, with these tasks, stays below its ceiling and is entitled to reclaim (`_entitled`)."""
        if queue.row in self._aside or not queue.record.open:
            return False
        asked = np.asarray(sum(task.request * count for task, count in tasks))
        held = self._held_and_coming(tasks[0][0] if tasks else None)
        if reservations.over_asked(held[:, queue.row] + asked, self._due.ceiling[:, queue.row], asked):
            return False
        return bool(self._entitled(held, queue.row, asked))

    def sated_queues(self, task: TaskInfo) -> Bools:
        """Return the queues that are above their ceiling with one more such task or not entitled to it, (n_queues,)."""
        held = self._held_and_coming(task)
        sated: Bools = without_room(held, task.asked, self._due.ceiling) | self._shut
        if not self.hierarchy:
            sated |= ~self._deserving_more(held, task.request)
        return sated

    def _deserving_more(self, held: Floats, asked: Floats) -> Bools:
        """Return what `_deserves` says of every queue, (n_queues,)."""
        after, deserved = held + asked[:, None], self._due.deserved
        within = (asked > 0)[:, None] & (after < deserved + EPSILON) & ((after >= EPSILON) | (deserved >= EPSILON))
        within[PODS_ROW] = False
        return np.asarray(within.any(axis=0))

    def _entitled(self, held: Floats, row: int, asked: Floats) -> dict[int, int]:
        """Return by whose deserved amount a queue may reclaim: its own or that of a near ancestor.

        Keys are the queue and its ancestors. The value is the nearest queue on the path up to the key, inclusive, that
        deserves what is requested. Keys without such a queue are left out.
        """
        near = (row, *self._near(row))
        found: dict[int, int] = {}
        nearest: int | None = None
        for above in self._tree.chains[row]:
            if nearest is None and above in near and self._deserves(held[:, above], above, asked):
                nearest = above
            if nearest is not None:
                found[above] = nearest
        return found

    def _deserves(self, held: Floats, row: int, asked: Floats) -> bool:
        """Say whether a queue that holds ``held`` (n_resources,) deserves some requested resource besides pods."""
        after, deserved = held + asked, self._due.deserved[:, row]
        within = (asked > 0) & (after < deserved + EPSILON) & ((after >= EPSILON) | (deserved >= EPSILON))
        within[PODS_ROW] = False
        return bool(within.any())

    def _near(self, row: int) -> tuple[int, ...]:
        """Return the ancestors of a queue that take part in reclamation, the nearest first."""
        if not self.hierarchy:
            return ()
        near = self._tree.chains[row][1 : 1 + self._args.ancestor_reclaim_level]
        return tuple(above for above in near if self._queues.records[above].name != ROOT_QUEUE)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting candidates of queues that hold more than they deserve (`votes`)."""
        return self._takeable(preemptor, candidates, None if preemptor.task is None else preemptor.task.request)

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting all candidates in preemption; in reclamation those of queues above their deserved amount.

        Ancestors and what the gang requests do not count here (Volcano).
        """
        if preemptor.purpose is Purpose.PREEMPT:
            return np.ones(len(candidates), dtype=bool)
        return self._takeable(preemptor, candidates, None)

    def _takeable(self, preemptor: Preemptor, candidates: VictimCandidates, request: Floats | None) -> Bools:
        if preemptor.queue.row in self._aside:
            return np.zeros(len(candidates), dtype=bool)
        rules = self._rules(preemptor, candidates, request)
        return takeable(rules, candidates, self._ssn.tasks.shape[candidates.rows]) & self._has_place(candidates)

    def _has_place(self, candidates: VictimCandidates) -> Bools:
        """Return the candidates whose queue is in the tree; other queues lose nothing, their entitlement is unknown."""
        return ~np.isin(candidates.queues, [-1, *self._tree.problems])

    def _rules(self, preemptor: Preemptor, candidates: VictimCandidates, request: Floats | None) -> Rules:
        """Return the rules for a preemptor with this request; if it is None, rule 1 and ancestors do not count."""
        if request is None:
            return Rules(self._held, self._due, {}, frozenset(), None)
        asked = request >= EPSILON
        asked[PODS_ROW] = False
        above, sheltered = self._above(preemptor.queue.row, request, set(candidates.queues.tolist()) - {-1})
        return Rules(self._held, self._due, above, sheltered, asked)

    def _above(
        self, preemptor: int, request: Floats, queues: set[int]
    ) -> tuple[dict[int, tuple[int, ...]], frozenset[int]]:
        """Return the ancestors of each queue that must pass too, and the queues without rule 3 (`votes`)."""
        if not self.hierarchy or not self._args.ancestor_reclaim_level:
            return {}, frozenset()
        near = self._near(preemptor)
        entitled = bool(((request >= EPSILON) & (self._due.deserved[:, preemptor] >= EPSILON)).any())
        # Python loops over the candidates' queues.
        ways = {queue: self._near(queue) for queue in queues}
        sheltered = frozenset() if entitled else frozenset(queue for queue, way in ways.items() if {*way} & {*near})
        above = {
            queue: tuple(row for level, row in enumerate(way) if near[level : level + 1] != (row,))
            for queue, way in ways.items()
        }
        return above, sheltered

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return the candidates that their queue may keep from another queue (`keeping`)."""
        if preemptor is None or preemptor.purpose is not Purpose.RECLAIM or not len(candidates):
            return np.zeros(len(candidates), dtype=bool)
        if preemptor.queue.row in self._aside:
            return np.ones(len(candidates), dtype=bool)
        given, gains = given_and_gains(preemptor, len(self._ssn.resources))
        held = self._held_and_coming(preemptor.task).copy()
        held[:, list(self._tree.chains[preemptor.queue.row])] -= given[:, None]
        row = preemptor.queue.row
        taking = PreemptingQueue(row, held, gains, self._entitled(held, row, gains))
        lent = Lent(self._rules(preemptor, candidates, gains), candidates)
        keeping = Keeping(self._standing, self._held, candidates, taking, lent)
        apart = np.zeros(len(candidates), dtype=np.intp) if self.hierarchy else candidates.queues
        goes = who_may_go(candidates, self._ssn.tasks.shape[candidates.rows], apart, keeping.may_go)
        return ~(goes & self._has_place(candidates))

    def _held_and_coming(self, task: TaskInfo | None) -> Floats:
        """Return what queues and all below them hold, plus what precedes a task, (n_resources, n_queues), to read."""
        coming = self._ssn.coming.before(task)
        return self._held if coming is None else self._held + self._with_branches(coming)

    def _with_branches(self, coming: Floats) -> Floats:
        """Return what `Coming` says of each queue, summed up for it and all below it, (n_resources, n_queues)."""
        if coming is not self._coming[0]:
            self._coming = coming, self._tree.rolled_up(coming)
        return self._coming[1]

    def victim_queue_order(self, left: QueueInfo, right: QueueInfo, preemptor: QueueInfo) -> float:
        """Compare two queues by `victim_queue_keys`."""
        return compared(self.victim_queue_keys(preemptor), left.row, right.row)

    def victim_queue_keys(self, preemptor: QueueInfo) -> Floats:
        """Return sort keys: queues above what they deserve, then nearest relatives of the preemptor's, then shares.

        Queues above what they deserve go by priority before that. Greater shares go first. In a tree the share of the
        branch where the queue's and the preemptor's paths diverge comes first, then the queue's own share.
        """
        above = (self._held > self._due.deserved) & self._due.deserved_named
        above[PODS_ROW] = False
        found = share_lists(self._held, self._due.measure)
        within = ~above.any(axis=0, keepdims=True)
        first, priorities = within.astype(float), np.where(within, 0.0, -self._ranks)
        if self.hierarchy:
            queues = range(len(self._queues))
            near = np.array([[self._tree.common(row, preemptor.row) for row in queues]], dtype=float)
            branches = [self._tree.branches(row, preemptor.row)[0] for row in queues]
            return np.concatenate((first, -near, priorities, -found[:, branches], -found))
        return np.concatenate((first, priorities, -found))

    def loses_first(self, preemptor: QueueInfo, candidates: VictimCandidates) -> Bools:
        """Return the candidates that request nothing that their queue deserves, shape (n,)."""
        deserved = self._due.deserved[:, candidates.queues] >= EPSILON
        return np.asarray(~((candidates.requests >= EPSILON) & deserved).any(axis=0))

    def on_session_close(self, ssn: State) -> None:
        """Report what queues deserve and hold; idle queues are included so that their metrics go to 0 and stay."""
        amounts = Amounts(self._held, self._request, self._reserved, self._due)
        reports = amounts.reports(ssn.resources.names, [self._share(row) for row in range(len(self._queues))])
        ssn.report.queues.update(zip((record.name for record in self._queues.records), reports, strict=True))

    def _share(self, row: int) -> float:
        return share(self._held[:, row].tolist(), self._deserved[row])
