"""Drf: dominant resource fairness between the jobs of a queue.

share(job) = max over r of taken_r / total_r

over the resources of which the cluster has any (pods included), with taken = what the job's tasks hold or are promised
and total = what all nodes can give. The job of the lowest share goes first, asked anew after each of its placements.
(Volcano: plugins/drf, jobs only; its event handlers keep the same sums that job columns hold here.)

victims in the claimant's queue: with ls = share of the claimant's job with the task in question, and rs = share of the
candidate's job without it and without the candidates before it, those of them included that stay: where ls < rs, or the
two differ by no more than 1e-6.

A hierarchy of queues (``enableHierarchy``) does not exist here yet; a configuration that asks for it is told so.
"""

from typing import Final

import numpy as np

from volcano_py.framework.evictables import Evictables
from volcano_py.framework.extension import Claim, JobOrder, Preemptable
from volcano_py.framework.plugin import Plugin
from volcano_py.framework.session import Session
from volcano_py.model.resources import EPSILON, Bools, Floats
from volcano_py.snapshot.columns import JobColumns

_SAME_SHARE: Final = 1e-6


class Drf(Plugin, JobOrder, Preemptable):
    """Order jobs by dominant share, and take from those of a greater one."""

    name = "drf"

    def on_session_open(self, ssn: Session) -> None:
        """Lay out what there is to share."""
        self._jobs = ssn.jobs
        self._rows = np.flatnonzero(ssn.total >= EPSILON)
        self._total = ssn.total[self._rows]  # (n_shared,)

    def job_order(self, jobs: JobColumns) -> Floats:
        """Return the dominant share of each job, shape (n_jobs,)."""
        return dominant_share(jobs.taken[self._rows], self._total)

    def preemptable(self, claim: Claim, candidates: Evictables) -> Bools | None:
        """Let go tasks of jobs whose share stays at least as great as what the claimant's would become."""
        if claim.task is None:
            return None
        mine = self._jobs.taken[self._rows, claim.job.row] + claim.task.request[self._rows]
        asked = dominant_share(mine[:, None], self._total)[0]
        held = self._jobs.taken[self._rows][:, candidates.jobs]
        requests = candidates.requests[self._rows]
        left = dominant_share(held - requests - candidates.by_job.total(requests), self._total)
        return np.asarray((asked < left) | (np.abs(asked - left) <= _SAME_SHARE))

    def on_session_close(self, ssn: Session) -> None:
        """Report the shares of the jobs that hold something."""
        shares = dominant_share(ssn.jobs.taken[self._rows], self._total)
        rows = ssn.jobs.present()
        rows = rows[shares[rows] > 0]
        for row, share in zip(rows.tolist(), shares[rows].tolist(), strict=True):
            ssn.report.job_shares[ssn.jobs.record(row).key] = share


def dominant_share(taken: Floats, total: Floats) -> Floats:
    """Return the largest part of a resource that somebody holds, from (n_shared, n) of (n_shared,); shape (n,)."""
    share: Floats = (taken / total[:, None]).max(axis=0, initial=0.0)
    return share
