"""Make room in a queue for whole gangs: jobs of lower priority lose what is safe to lose, or everything.

for each starving job, in order: one plan over bundles of the queue's jobs of lower priority
(`framework.evicting.gang_plan`); it counts if the job has its minimum then, else nothing of it does

Victims run or are bound, agree to be evicted, and their PodGroup does not refuse. (Volcano: actions/gangpreempt.)
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


class GangPreempt(GangAction):
    """The action."""

    skip_overused = False

    def plan(self, ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
        """Take from jobs of the queue of lower priority."""
        everybody = ssn.eviction.of_willing_jobs()
        lesser = (everybody.queues == queue.row) & (
            ssn.state.jobs.priority[everybody.jobs] < ssn.state.jobs.priority[job.row]
        )
        candidates = everybody.only(lesser)
        plans = GangPlans(
            ssn.eviction,
            Purpose.PREEMPT,
            queue,
            job,
            candidates,
            partial(_last_first, ssn),
            allow_whole=self.allow_whole,
        )
        plans.make(tasks, Cause("gangpreempt", f"evicted to make room for PodGroup {job.key}", job.key))


def _last_first(ssn: Session, rows: Rows) -> Rows:
    """Return the places of tasks (n,): the job that goes last in job order loses first, shape (n,)."""
    keys = ssn.hooks.orders.job_sort_keys(ssn.state.tasks.job[rows].astype(np.intp))
    place = {key: number for number, key in enumerate(sorted(set(keys), reverse=True))}
    return np.array([place[key] for key in keys], dtype=np.intp)
