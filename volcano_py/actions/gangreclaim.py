"""Take back what queues have lent for whole gangs: jobs of other queues lose what is safe to lose, or everything.

for each starving job of a queue that is not overused, in order: if the queue may take room from others for the job's
minimum (`Preemptive`), one plan over bundles of the jobs of reclaimable queues (`framework.evicting.gang_plan`); it
counts if the job has its minimum then, else nothing of it does; each task beyond the minimum is a plan of its own

Victims run, agree to be evicted, and their PodGroup does not refuse. (Volcano: actions/gangreclaim. It makes room for
all tasks that wait, and so asks about all of them: an elastic job that asks for more than its queue deserves gets
nothing there.)
"""

from functools import partial

import numpy as np

from volcano_py.framework.contract.extension_points import Purpose
from volcano_py.framework.evicting.gang_plan import GangPlans
from volcano_py.framework.gang_action import GangAction
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.statement import Cause
from volcano_py.model.arrays import Rows


class GangReclaim(GangAction):
    """The action."""

    skip_overused = True

    def plan(self, ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
        """Take from jobs of other queues, as far as the queue may."""

        def may_preempt(rows: Rows) -> bool:
            shapes, counts = np.unique(ssn.state.tasks.shape[rows], return_counts=True)
            asked = [
                (ssn.state.task_of(shape), count) for shape, count in zip(shapes.tolist(), counts.tolist(), strict=True)
            ]
            return ssn.eviction.preemptive(queue, asked)

        everybody = ssn.eviction.of_willing_jobs()
        lent = everybody.only(ssn.eviction.lent_to(queue, everybody))
        ranks = partial(ssn.eviction.ranks, queue)
        plans = GangPlans(
            ssn.eviction,
            Purpose.RECLAIM,
            queue,
            job,
            lent,
            ranks,
            allow_whole=self.allow_whole,
            may_preempt=may_preempt,
        )
        message = f"evicted to make room for PodGroup {job.key} of queue {queue.name}"
        plans.make(tasks, Cause("gangreclaim", message, job.key))
