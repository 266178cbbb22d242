"""Take back what queues have lent for whole gangs: jobs of other queues lose what is safe to lose, or everything.

for each starving job of a queue that is not overused, in order: if the queue may take room from others for all tasks of
the job that wait (`Preemptive`), one plan over bundles of the jobs of reclaimable queues (`framework.gang_plan`); it
counts if the job has its minimum then, else nothing of it does

Victims run, agree to be evicted, and their PodGroup does not refuse. (Volcano: actions/gangreclaim. Its domains are
HyperNodes; without network topology there is one, the cluster.)

Arguments: ``allowWholeBundle`` (true): jobs may be evicted as wholes. ``maxDomains`` (8) has no meaning while the
cluster is the only domain.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from volcano_py.conf.arguments import Warn, get_bool, get_int
from volcano_py.framework.action import Action
from volcano_py.framework.extension import Purpose
from volcano_py.framework.gang_plan import GangPlans
from volcano_py.framework.info import JobInfo, QueueInfo
from volcano_py.framework.plugin import PluginFailed
from volcano_py.framework.session import Session
from volcano_py.framework.starving import starving_jobs
from volcano_py.framework.statement import Cause
from volcano_py.framework.turns import QueueTurns
from volcano_py.snapshot.columns import Rows

_WHOLE, _DOMAINS = "allowWholeBundle", "maxDomains"


class GangReclaim(Action):
    """The action."""

    arguments = frozenset({_WHOLE, _DOMAINS})

    def __init__(self, *, allow_whole: bool = True) -> None:
        self._allow_whole = allow_whole

    @classmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> "GangReclaim":
        """Read the arguments."""
        get_int(arguments, _DOMAINS, 8, warn)
        return cls(allow_whole=get_bool(arguments, _WHOLE, True, warn))

    def __call__(self, ssn: Session) -> None:
        """Run the action."""
        starving = starving_jobs(ssn)
        for queue, row in QueueTurns(ssn, np.array(sorted(starving), dtype=np.intp), skip_overused=True):
            job = ssn.job(row)
            try:
                self._plan(ssn, queue, job, starving[row])
            except PluginFailed as failure:
                ssn.report.failures.append(f"{failure}; nobody is evicted for PodGroup {job.key}")
        ssn.victims.end_of_action()

    def _plan(self, ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
        asking = tasks[~ssn.victims.best_effort[ssn.tasks.shape[tasks]]]
        shapes, counts = np.unique(ssn.tasks.shape[asking], return_counts=True)
        wanted = [(ssn.task_of(shape), count) for shape, count in zip(shapes.tolist(), counts.tolist(), strict=True)]
        if not wanted or not ssn.victims.preemptive(queue, wanted):
            return
        everybody = ssn.victims.of_willing_jobs()
        lent = ssn.victims.lent_to(queue, everybody)
        plans = GangPlans(
            ssn,
            Purpose.RECLAIM,
            queue,
            job,
            everybody.only(lent),
            partial(_by_queue, queue),
            allow_whole=self._allow_whole,
        )
        message = f"evicted to make room for PodGroup {job.key} of queue {queue.name}"
        plans.make(asking, Cause("gangreclaim", message, job.key))


def _by_queue(claimant: QueueInfo, ssn: Session, rows: Rows) -> Rows:
    """Return the places of jobs (n,): those of the queue that loses first go first, shape (n,)."""
    return ssn.victims.queue_rank(claimant, ssn.queue_of_job[rows])
