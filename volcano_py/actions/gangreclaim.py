"""Take back, for whole gangs, what queues have lent: evict safe tasks of jobs of other queues, or whole such jobs.

for each starving job of a queue that is not overused, in scheduling order: if the queue may take room from others for
the minimum of the job (`Preemptive`), make one plan over bundles of the jobs of reclaimable queues
(`framework.evicting.gang_plan`); commit it if the job then has its minimum, otherwise abandon it; each task beyond the
minimum is a plan of its own

Victims are running, they are preemptable, and so is their PodGroup. (Volcano: actions/gangreclaim. It makes room for
all waiting tasks, and so asks about all of them. There an elastic job that requests more than its queue deserves gets
nothing.)
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


class GangReclaim(GangAction):
    """The action."""

    skip_overused = True

    def plan(self, ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
        """Take from jobs of other queues, as far as the queue may hold more."""

        def may_preempt(rows: Rows) -> bool:
            shapes, counts = np.unique(ssn.state.tasks.shape[rows], return_counts=True)
            asked = [
                (ssn.state.task_of(shape), count) for shape, count in zip(shapes.tolist(), counts.tolist(), strict=True)
            ]
            return ssn.eviction.preemptive(queue, asked)

        all_candidates = ssn.eviction.of_preemptable_jobs()
        lent = all_candidates.only(ssn.eviction.lent_to(queue, all_candidates))
        message = f"evicted to make room for PodGroup {job.key} of queue {queue.name}"
        cause = Cause("gangreclaim", message, job.key)

        def make(eviction: Eviction, victims: VictimCandidates, place_gang: PlaceGang | None) -> int:
            return GangPlans(
                eviction,
                Purpose.RECLAIM,
                queue,
                job,
                victims,
                partial(ssn.eviction.ranks, queue),
                allow_whole=self.allow_whole,
                may_preempt=may_preempt,
                place_gang=place_gang,
            ).make(tasks, cause)

        make_for_gang(ssn.topology, ssn.eviction, queue, job, tasks, lent, self.most_domains, make)
