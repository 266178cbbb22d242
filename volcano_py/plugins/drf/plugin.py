"""Drf: dominant resource fairness between the jobs of a queue.

share(job) = max over r of taken_r / total_r

over the resources that the cluster has (pods included), with taken = requests of the job's allocated and pipelined
tasks and total = allocatable resources of all nodes. The job of the lowest share goes first; the order is evaluated
again after each placement. (Volcano: plugins/drf, jobs only; its event handlers keep the sums that job columns hold
here.)

Victims in the preemptor's queue: let ls = share of the preemptor's job including the preemptor task, and rs = share of
the candidate's job without the candidate and without all candidates before it, including those that are not evicted.
The candidate may be evicted if ls < rs or the two differ by no more than 1e-6.

With ``enableNamespaceOrder`` (off by default) a queue is divided between its namespaces by weight (`namespaces`): the
namespace of the lowest share goes first, and job order applies within it.

With ``enableHierarchy`` queues are ordered by their paths in a tree (`tree`), which the queue annotations
volcano.sh/hierarchy and volcano.sh/hierarchy-weights define. A task of another queue may be evicted if the preemptor's
queue still goes before that queue once the preemptor task is added and the candidate removed; each candidate is checked
on its own. All other candidates are protected, whatever other tiers say. Otherwise, if gang's tier answers first, as in
the default configuration, two queues of elastic jobs would preempt each other without end (in Volcano they do).
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from volcano_py.framework.contract.extension_points import (
    JobOrder,
    NamespaceOrder,
    Preemptable,
    Preemptor,
    Purpose,
    QueueOrder,
    Reclaimable,
    VictimFilter,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.info import QueueInfo
from volcano_py.framework.state.queue_accounts import JobStamp
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Codes, Floats
from volcano_py.model.resources import EPSILON
from volcano_py.plugins.drf.namespaces import NamespaceShares
from volcano_py.plugins.drf.tree import ShareTree, dominant_share
from volcano_py.snapshot.columns import JobColumns

_SAME_SHARE: Final = 1e-6


class Drf(Plugin, JobOrder, QueueOrder, NamespaceOrder, Preemptable, Reclaimable, VictimFilter):
    """Order jobs by dominant share; victims belong to jobs of a greater share."""

    name = "drf"
    counts = frozenset({"preemptable", "protected"})
    about_queues = True
    hierarchical = frozenset({QueueOrder, Reclaimable, VictimFilter})

    def on_session_open(self, ssn: State) -> None:
        """Keep the totals of the shared resources, and build namespace shares and the tree if they are enabled."""
        self._jobs = ssn.jobs
        self._task_shapes = ssn.tasks.shape
        self._rows = np.flatnonzero(ssn.total >= EPSILON)
        self._total = ssn.total[self._rows]  # (n_shared,)
        if NamespaceOrder in self.asked:
            self._namespaces = NamespaceShares(ssn, self._rows, self._total)
        if self.hierarchy:
            self._stamp = JobStamp()
            ssn.accounts.track(self._stamp)
            self._seen = self._stamp.value
            self._tree = ShareTree(
                [queue.record for queue in ssn.queues.values()],
                np.where(ssn.jobs.rules.present, ssn.queue_of_job, -1),
                self._total,
                ssn.jobs.total[self._rows],
                ssn.jobs.taken[self._rows],
            )
            ssn.report.queue_problems.update(self._tree.problems)

    def job_order(self, jobs: JobColumns) -> Floats:
        """Return the dominant share of each job, shape (n_jobs,)."""
        return dominant_share(jobs.taken[self._rows], self._total)

    def namespace_order(self, queue: QueueInfo, namespaces: Sequence[str]) -> Floats:
        """Return the weighted shares of namespaces within a queue, shape (n_namespaces,)."""
        return self._namespaces.of(queue.row, namespaces)

    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        """Compare the paths of two queues in the tree."""
        return self._current_tree().compare(left.row, right.row)

    def _current_tree(self) -> ShareTree:
        stamp = self._stamp.value
        if stamp != self._seen:
            changed = self._stamp.changed_since(self._seen)
            self._tree.update(changed, self._jobs.rows_view(changed).taken[self._rows])
            self._seen = stamp
        return self._tree

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Allow evicting tasks of jobs whose share stays at least as great as the preemptor job's would become."""
        if preemptor.task is None:
            return None
        mine = self._jobs.taken[self._rows, preemptor.job.row, None]
        tasks = np.ones(1) if candidates.placed_before is None else candidates.placed_before + 1.0
        asked = dominant_share(mine + preemptor.task.request[self._rows, None] * tasks, self._total)
        held = self._jobs.taken[self._rows][:, candidates.jobs]
        requests = candidates.requests[self._rows]
        left = dominant_share(held - requests - candidates.by_job.total(requests), self._total)
        return np.asarray((asked < left) | (np.abs(asked - left) <= _SAME_SHARE))

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Allow evicting tasks if the preemptor's queue still goes before theirs after the exchange."""
        if preemptor.task is None:
            return None
        tree, more = self._current_tree(), preemptor.task.request[self._rows]
        tree.add(preemptor.job.row, more)
        kinds, which = np.unique(
            np.stack((candidates.jobs, candidates.queues, self._shapes(candidates))), axis=1, return_inverse=True
        )
        answers = np.zeros(kinds.shape[1], dtype=bool)
        first = np.zeros(kinds.shape[1], dtype=np.intp)
        first[which] = np.arange(len(candidates))
        # A Python loop over classes of candidates: tasks of one job and shape get the same answer.
        for kind, (job, queue, _) in enumerate(kinds.T.tolist()):
            if queue >= 0:
                less = candidates.requests[self._rows, first[kind]]
                answers[kind] = tree.compare_without(job, less, preemptor.queue.row, queue) < 0
        tree.add(preemptor.job.row, -more)
        return np.asarray(answers[which])

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return the candidates that another queue may not reclaim by the order of the tree."""
        if preemptor is None or preemptor.purpose is not Purpose.RECLAIM:
            return np.zeros(len(candidates), dtype=bool)
        victims = self.reclaimable(preemptor, candidates)
        return np.zeros(len(candidates), dtype=bool) if victims is None else ~victims

    def _shapes(self, candidates: VictimCandidates) -> Codes:
        return self._task_shapes[candidates.rows]

    def on_session_close(self, ssn: State) -> None:
        """Report the shares of all jobs with a share above 0."""
        shares = dominant_share(ssn.jobs.taken[self._rows], self._total)
        rows = ssn.jobs.present()
        rows = rows[shares[rows] > 0]
        # A Python loop over jobs that hold something: each is reported by name.
        keys = [ssn.jobs.record(row).key for row in rows.tolist()]
        ssn.report.job_shares.update(zip(keys, shares[rows].tolist(), strict=True))
