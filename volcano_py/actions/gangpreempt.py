"""Make room in a queue for whole gangs: evict safe tasks of jobs of lower priority, or whole such jobs.

for each starving job, in scheduling order: make one plan over bundles of the queue's jobs of lower priority
(`framework.evicting.gang_plan`); commit it if the job then has its minimum, otherwise abandon it

Victims are running or bound, they are preemptable, and so is their PodGroup. (Volcano: actions/gangpreempt.)
"""

from functools import partial

import numpy as np

from volcano_py.framework.contract.extension_points import Purpose
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.domain_plans import make_for_gang
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.evicting.gang_plan import GangPlans
from volcano_py.framework.evicting.plan import PlaceGang
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
        all_candidates = ssn.eviction.of_preemptable_jobs()
        lower = (all_candidates.queues == queue.row) & (
            ssn.state.jobs.priority[all_candidates.jobs] < ssn.state.jobs.priority[job.row]
        )
        candidates = all_candidates.only(lower)
        cause = Cause("gangpreempt", f"evicted to make room for PodGroup {job.key}", job.key)

        def make(eviction: Eviction, victims: VictimCandidates, place_gang: PlaceGang | None) -> int:
            return GangPlans(
                eviction,
                Purpose.PREEMPT,
                queue,
                job,
                victims,
                partial(_last_first, ssn),
                allow_whole=self.allow_whole,
                place_gang=place_gang,
            ).make(tasks, cause)

        make_for_gang(ssn.topology, ssn.eviction, queue, job, tasks, candidates, self.most_domains, make)


def _last_first(ssn: Session, rows: Rows) -> Rows:
    """Return the places of tasks (n,) in the order of victims, shape (n,): the last job in job order comes first."""
    keys = ssn.hooks.orders.job_sort_keys(ssn.state.tasks.job[rows].astype(np.intp))
    place = {key: number for number, key in enumerate(sorted(set(keys), reverse=True))}
    return np.array([place[key] for key in keys], dtype=np.intp)
