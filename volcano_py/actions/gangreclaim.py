"""Take back what queues have lent for whole gangs: jobs of other queues lose what is safe to lose, or everything.

for each starving job of a queue that is not overused, in order: if the queue may take room from others for all tasks of
the job that wait (`Preemptive`), one plan over bundles of the jobs of reclaimable queues (`framework.gang_plan`); it
counts if the job has its minimum then, else nothing of it does

Victims run, agree to be evicted, and their PodGroup does not refuse. (Volcano: actions/gangreclaim.)
"""

from functools import partial

import numpy as np

from volcano_py.framework.extension import Purpose
from volcano_py.framework.gang_action import GangAction
from volcano_py.framework.gang_plan import GangPlans
from volcano_py.framework.info import JobInfo, QueueInfo
from volcano_py.framework.session import Session
from volcano_py.framework.statement import Cause
from volcano_py.snapshot.columns import Rows


class GangReclaim(GangAction):
    """The action."""

    skip_overused = True

    def plan(self, ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
        """Take from jobs of other queues, if the queue may for all of the tasks."""
        shapes, counts = np.unique(ssn.tasks.shape[tasks], return_counts=True)
        wanted = [(ssn.task_of(shape), count) for shape, count in zip(shapes.tolist(), counts.tolist(), strict=True)]
        if not ssn.victims.preemptive(queue, wanted):
            return
        everybody = ssn.victims.of_willing_jobs()
        lent = everybody.only(ssn.victims.lent_to(queue, everybody))
        ranks = partial(_by_queue, queue)
        plans = GangPlans(ssn, Purpose.RECLAIM, queue, job, lent, ranks, allow_whole=self.allow_whole)
        message = f"evicted to make room for PodGroup {job.key} of queue {queue.name}"
        plans.make(tasks, Cause("gangreclaim", message, job.key))


def _by_queue(claimant: QueueInfo, ssn: Session, rows: Rows) -> Rows:
    """Return the places of jobs (n,): those of the queue that loses first go first, shape (n,)."""
    return ssn.victims.queue_rank(claimant, ssn.queue_of_job[rows])
