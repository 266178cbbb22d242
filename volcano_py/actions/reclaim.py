"""Take back what queues have lent: starving jobs evict tasks of other queues.

for each queue that is not overused, in order:
    for each starving job, in order: find nodes for its tasks, one after the other, as long as it starves and its queue
    may take room from others for the task (`Preemptive`); commit the plan if the job then has its minimum
    (`framework.evicting.plan`), otherwise abandon it

Victims are running, they are preemptable, their queues are reclaimable, and the plugins of `Reclaimable` allow their
eviction. (Volcano: actions/reclaim.)

Volcano tries nodes in the order in which its predicates happened to end. Here nodes are ordered by the queue that would
lose tasks there (`VictimQueueOrder`, else reverse queue order), then by score. So the queue that holds most for its
share loses first, wherever its tasks run. The argument ``predicateErrorCacheEnable`` has no effect.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from volcano_py.conf.arguments import Warn, get_bool
from volcano_py.framework.action import Action
from volcano_py.framework.contract.extension_points import Purpose
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.evicting.domain_plans import fill, scopes
from volcano_py.framework.evicting.futile import FutileJobs
from volcano_py.framework.evicting.plan import Plan
from volcano_py.framework.evicting.starving import StarvingJobs
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder, note_overused
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.statement import Cause
from volcano_py.model.arrays import Rows

_CACHE = "predicateErrorCacheEnable"


class Reclaim(Action):
    """The action."""

    arguments = frozenset({_CACHE})

    @classmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> "Reclaim":
        """Read the argument, so that a value of a wrong type causes a warning."""
        get_bool(arguments, _CACHE, True, warn)
        return cls()

    def __call__(self, ssn: Session) -> None:
        """Run the action."""
        starving = StarvingJobs(ssn.eviction)
        futile = FutileJobs(ssn.eviction, Purpose.RECLAIM, starving)
        if futile.all_now()[starving.rows].all():
            note_overused(ssn.state, ssn.hooks, starving.rows)
            return
        order = SchedulingOrder(ssn.state, ssn.hooks, starving.rows, skip_overused=True, futile=futile)
        # A Python loop over the starving jobs that are not futile.
        for queue, row in order:
            if ssn.eviction.must_stop():
                note_overused(ssn.state, ssn.hooks, starving.rows)
                break
            job = ssn.state.job(row)
            try:
                with ssn.nominated_room.open_to(job):
                    _plan(ssn, queue, job, starving.tasks(row))
            except PluginFailed as failure:
                ssn.state.report.failed(failure, f"nobody is evicted for PodGroup {job.key}")
        ssn.eviction.end_of_action()


def _plan(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
    all_candidates = ssn.eviction.all
    lent = all_candidates.only(ssn.eviction.lent_to(queue, all_candidates))
    message = f"evicted to make room for PodGroup {job.key} of queue {queue.name}"
    for scope in scopes(ssn.topology, ssn.eviction, queue, job, tasks, lent):
        plan = Plan(scope.eviction, Purpose.RECLAIM, queue, job, scope.candidates, place_gang=scope.place_gang)
        try:
            fill(plan, scope, tasks, partial(_preemptive, ssn, queue))
            done = plan.conclude(Cause("reclaim", message, job.key))
        except PluginFailed:
            plan.abandon()
            raise
        if done:
            return


def _preemptive(ssn: Session, queue: QueueInfo, shape_id: int, count: int) -> bool:
    return ssn.eviction.preemptive(queue, [(ssn.state.task_of(shape_id), count)])
