"""Capacity: queues have a guarantee, a deserved part and a ceiling, and lend what they do not use.

entitlements  see `entitlements`: what a queue keeps, should have, and may have at the most
tree          with ``enableHierarchy`` queues stand below their parents (`tree`); what a queue holds, asks for and has
              reserved counts for every queue above it, and jobs belong into leaves
share         max over r of taken_r / deserved_r, over resources of which it deserves any; 1 if it deserves nothing
order         the queue of higher priority first; then, of the two branches in which the queues' ways from the root
              part (without a tree the queues themselves), that of lower share, and one that deserves something before
              one that does not
allocatable   the queue is open and a leaf, and for it and every queue above: taken + request <= ceiling in what the
              task asks for, pods left aside, exactly
enqueue       likewise with min + taken + reserved - elastic <= ceiling in what minResources ask for (see
              `framework.reservations`)

(Volcano: plugins/capacity.) Differences: a queue that has no place in the tree, or jobs in a queue that is no leaf,
cost these jobs alone; in Volcano nothing at all is scheduled then. Branches are compared by their shares as they are
now; in Volcano as they were when the session opened, so that one branch takes all that the first session gives away.
A queue without a state counts as open. Quotas of resource claims (``deviceclass/...``) are not read yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_int
from volcano_py.framework import reservations
from volcano_py.framework.extension import Allocatable, JobEnqueueable, JobEnqueued, QueueOrder, Vote
from volcano_py.framework.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.memory import QueueReport
from volcano_py.framework.plugin import Plugin
from volcano_py.framework.queue_limits import room_for
from volcano_py.framework.queues import JobSums
from volcano_py.framework.session import Session
from volcano_py.model.rejections import Reason
from volcano_py.model.resource_lists import UNLIMITED
from volcano_py.model.resources import CPU_ROW, EPSILON, MEMORY_ROW, PODS_ROW, Floats
from volcano_py.model.shape import Field
from volcano_py.plugins.capacity.entitlements import in_a_tree, share, side_by_side
from volcano_py.plugins.capacity.tree import QueueTree

_LEVEL: Final = "ancestorReclaimLevel"
_CLAIMS: Final = ("capacity.DynamicResourceAllocationEnable", "capacity.DRAConsumableCapacityEnable")


@dataclass(frozen=True, slots=True)
class CapacityArgs:
    """The arguments that capacity takes."""

    ancestor_reclaim_level: int = 0  # how many queues above take part in the decision whom to take from


class Capacity(Plugin, QueueOrder, Allocatable, JobEnqueueable, JobEnqueued):
    """Guaranteed, deserved and greatest parts of queues."""

    name = "capacity"
    reads = frozenset({Field.REQUEST})
    arguments = frozenset({_LEVEL, *_CLAIMS})
    hierarchical = frozenset()

    def __init__(self, arguments: CapacityArgs | None = None) -> None:
        self._args = arguments or CapacityArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> CapacityArgs:
        """Read ``ancestorReclaimLevel`` (0); one below 0 counts as 0."""
        level = get_int(arguments, _LEVEL, 0, warn)
        if level < 0:
            warn(f"argument {_LEVEL} is {level}, which is below 0: it counts as 0")
        if any(arguments.get(key) for key in _CLAIMS):
            warn("quotas of resource claims do not exist here yet: deviceclass/... in queues has no effect")
        return CapacityArgs(max(0, level))

    def on_session_open(self, ssn: Session) -> None:
        """Find every queue's place, entitlements, and what it holds and asks for."""
        self._ssn = ssn
        self._queues = queues = ssn.track_queues()
        records = queues.records
        self._tree = tree = QueueTree.of(records) if self.hierarchy else QueueTree.flat(records)
        find = in_a_tree(records, ssn.resources, ssn.total, tree) if self.hierarchy else None
        self._due = find or side_by_side(records, ssn.resources, ssn.total)
        self._held = self._track(ssn)
        self._request = tree.rolled_up(queues.sums(ssn.jobs.allocated + ssn.jobs.pending))
        self._elastic = tree.rolled_up(queues.sums(reservations.elastic(ssn.jobs)))
        self._reserved = tree.rolled_up(queues.sums(reservations.reserved(ssn, whole=False)))
        self._gated = reservations.gated(ssn)
        # Plain numbers by queue: a few of them beat small arrays where one queue is asked at a time.
        self._ceiling: list[list[float]] = self._due.ceiling.T.tolist()
        self._deserved = [
            [(row, amount) for row, amount in enumerate(amounts) if amount >= EPSILON]
            for amounts in self._due.deserved.T.tolist()
        ]
        self._deserving = [any(row != PODS_ROW for row, _ in amounts) for amounts in self._deserved]
        self._leaf: list[bool] = tree.leaf.tolist()
        self._aside = self._set_aside(ssn)

    def _track(self, ssn: Session) -> Floats:
        """Return what queues and all below them hold, kept up to date, shape (n_resources, n_queues)."""
        if not self.hierarchy:
            return self._queues.taken
        chains = [np.array(chain, dtype=np.intp) for chain in self._tree.chains]
        nowhere = np.zeros(0, dtype=np.intp)
        sums = JobSums([chains[row] if row >= 0 else nowhere for row in self._queues.row_of_job], len(chains), ssn.jobs)
        ssn.track(sums)
        return sums.taken

    def _set_aside(self, ssn: Session) -> dict[int, Reason]:
        """Return why queues take no jobs at all, by row, and tell users of everything that is wrong with queues."""
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
                ssn.queue_limits[record.name] = aside[row]
            if problem:
                ssn.report.queue_problems[record.name] = problem
        return aside

    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        """Compare priorities, the higher first, then shares of the branches, the lower first."""
        if left.record.priority != right.record.priority:
            return right.record.priority - left.record.priority
        if self._leaf[left.row] != self._leaf[right.row]:
            return -1.0 if self._leaf[left.row] else 1.0
        one, other = left.row, right.row
        if self._leaf[one]:
            one, other = self._tree.branches(one, other)
        difference = self._share(one) - self._share(other)
        return difference or float(self._deserving[other]) - float(self._deserving[one])

    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        """Return how many tasks like this one fit below the ceilings of the queue and of all above it."""
        if queue.row in self._aside or not queue.record.open:
            return 0
        for row in self._tree.chains[queue.row]:
            if wanted:
                wanted = room_for(self._held[:, row].tolist(), task.asked, self._ceiling[row], wanted)
        return wanted

    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Permit a job that fits below the ceilings of its queue and of all above it, reject any other."""
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
            if over.any():
                return self._insufficient(row, above, over)
        return Vote.PERMIT

    def _insufficient(self, row: int, above: int, over: np.ndarray) -> Reason:
        names = ", ".join(f"insufficient {self._ssn.resources.names[resource]}" for resource in np.flatnonzero(over))
        text = f"queue resource quota insufficient: {names}"
        if above != row:
            text += f' in queue "{self._queues.records[above].name}" above'
        return Reason(self.name, "queue-quota", text)

    def job_enqueued(self, job: JobInfo) -> None:
        """Count what the job will take of its queue and of all above it."""
        row = self._queues.row_of_job[job.row]
        if job.record.min_resources is None or row < 0:
            return
        more = np.maximum(self._ssn.jobs.min_resources[:, job.row] - self._gated[:, job.row], 0.0)
        self._reserved[:, list(self._tree.chains[row])] += more[:, None]

    def on_session_close(self, ssn: Session) -> None:
        """Report what queues deserve and hold: all of a tree, without one those that have jobs."""
        names = ssn.resources.names
        told = range(len(self._queues)) if self.hierarchy else np.flatnonzero(self._queues.with_jobs()).tolist()
        due = self._due
        limits = [np.where(np.isinf(amounts), UNLIMITED, amounts) for amounts in (due.capability, due.ceiling)]
        for row in told:
            amounts = (self._held, self._request, due.deserved, self._reserved)
            allocated, request, deserved, inqueue = (
                dict(zip(names, columns[:, row].tolist(), strict=True)) for columns in amounts
            )
            # A scalar without limit is not shown as limited.
            capacity, real_capacity = (
                {
                    name: amount
                    for resource, (name, amount) in enumerate(zip(names, columns[:, row].tolist(), strict=True))
                    if amount < UNLIMITED or resource in (CPU_ROW, MEMORY_ROW)
                }
                for columns in limits
            )
            ssn.report.queues[self._queues.records[row].name] = QueueReport(
                weight=None,
                share=self._share(row),
                overused=self._share(row) > 1,
                allocated=allocated,
                request=request,
                deserved=deserved,
                inqueue=inqueue,
                capacity=capacity,
                real_capacity=real_capacity,
            )

    def _share(self, row: int) -> float:
        return share(self._held[:, row].tolist(), self._deserved[row])
