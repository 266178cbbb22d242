"""Take back what queues have lent: jobs that starve have tasks of other queues evicted.

for each queue that is not overused, in order:
    for each starving job, in order: give its tasks nodes, one after the other, as long as it starves and its queue may
    take room from others for the task (`Preemptive`); the plan counts if the job has its minimum then
    (`framework.evicting.plan`), else nothing of it does

Victims run, agree to be evicted, belong to queues that are reclaimable, and go only as far as the plugins of
`Reclaimable` let them. (Volcano: actions/reclaim.)

Volcano tries nodes in the order in which its predicates happened to end. Here those come first from which the queue
would lose that is to lose first (`VictimQueueOrder`, else the last in queue order), then those of better scores: so the
queue that has most for its share loses first, wherever its tasks stand. The argument ``predicateErrorCacheEnable``
changes nothing.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from volcano_py.conf.arguments import Warn, get_bool
from volcano_py.framework.action import Action
from volcano_py.framework.contract.extension_points import Purpose
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.plan import Plan, by_score
from volcano_py.framework.evicting.starving import starving_jobs
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.statement import Cause
from volcano_py.model.arrays import Floats, Rows

_CACHE = "predicateErrorCacheEnable"


class Reclaim(Action):
    """The action."""

    arguments = frozenset({_CACHE})

    @classmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> "Reclaim":
        """Read the argument, so that a value of the wrong type is warned about."""
        get_bool(arguments, _CACHE, True, warn)
        return cls()

    def __call__(self, ssn: Session) -> None:
        """Run the action."""
        starving = starving_jobs(ssn.eviction)
        for queue, row in SchedulingOrder(
            ssn.state, ssn.hooks, np.array(sorted(starving), dtype=np.intp), skip_overused=True
        ):
            job = ssn.state.job(row)
            try:
                with ssn.nominated_room.open_to(job):
                    _plan(ssn, queue, job, starving[row])
            except PluginFailed as failure:
                ssn.state.report.failures.append(f"{failure}; nobody is evicted for PodGroup {job.key}")
        ssn.eviction.end_of_action()


def _plan(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
    everybody = ssn.eviction.all
    lent = everybody.only(ssn.eviction.lent_to(queue, everybody))
    plan = Plan(ssn.eviction, Purpose.RECLAIM, queue, job, lent, partial(_furthest_above_first, ssn, queue))
    try:
        plan.fill(tasks, lambda shape_id, count: ssn.eviction.preemptive(queue, [(ssn.state.task_of(shape_id), count)]))
        plan.conclude(Cause("reclaim", f"evicted to make room for PodGroup {job.key} of queue {queue.name}", job.key))
    except PluginFailed:
        plan.abandon()
        raise


def _furthest_above_first(ssn: Session, queue: QueueInfo, scores: Floats, candidates: VictimCandidates) -> Rows:
    """Return nodes by the first queue that would lose there, then by score."""
    nodes = by_score(ssn.placement, scores, candidates)
    ranks = ssn.eviction.ranks(queue, candidates.rows)
    first = np.full(len(scores), len(ssn.state.queues), dtype=np.intp)
    np.minimum.at(first, candidates.groups, ranks)
    return np.asarray(nodes[np.argsort(first[nodes], kind="stable")])
