"""Make room in a queue for whole gangs: jobs of lower priority lose what is safe to lose, or everything.

for each starving job, in order: one plan over bundles of the queue's jobs of lower priority (`framework.gang_plan`); it
counts if the job has its minimum then, else nothing of it does

Victims run or are bound, agree to be evicted, and their PodGroup does not refuse. (Volcano: actions/gangpreempt. Its
domains are HyperNodes; without network topology there is one, the cluster.)

Arguments: ``allowWholeBundle`` (true): jobs may be evicted as wholes. ``maxDomains`` (8) has no meaning while the
cluster is the only domain.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from volcano_py.conf.arguments import Warn, get_bool, get_int
from volcano_py.framework.action import Action
from volcano_py.framework.extension import Purpose
from volcano_py.framework.gang_plan import GangPlans
from volcano_py.framework.info import JobInfo, QueueInfo
from volcano_py.framework.ordering import job_sort_keys
from volcano_py.framework.plugin import PluginFailed
from volcano_py.framework.session import Session
from volcano_py.framework.starving import starving_jobs
from volcano_py.framework.statement import Cause
from volcano_py.framework.turns import QueueTurns
from volcano_py.snapshot.columns import Rows

_WHOLE, _DOMAINS = "allowWholeBundle", "maxDomains"


class GangPreempt(Action):
    """The action."""

    arguments = frozenset({_WHOLE, _DOMAINS})

    def __init__(self, *, allow_whole: bool = True) -> None:
        self._allow_whole = allow_whole

    @classmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> "GangPreempt":
        """Read the arguments."""
        get_int(arguments, _DOMAINS, 8, warn)
        return cls(allow_whole=get_bool(arguments, _WHOLE, True, warn))

    def __call__(self, ssn: Session) -> None:
        """Run the action."""
        starving = starving_jobs(ssn)
        for queue, row in QueueTurns(ssn, np.array(sorted(starving), dtype=np.intp), skip_overused=False):
            job = ssn.job(row)
            try:
                self._plan(ssn, queue, job, starving[row])
            except PluginFailed as failure:
                ssn.report.failures.append(f"{failure}; nobody is evicted for PodGroup {job.key}")
        ssn.victims.end_of_action()

    def _plan(self, ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
        everybody = ssn.victims.of_willing_jobs()
        lesser = (everybody.queues == queue.row) & (ssn.jobs.priority[everybody.jobs] < ssn.jobs.priority[job.row])
        plans = GangPlans(
            ssn, Purpose.PREEMPT, queue, job, everybody.only(lesser), _last_first, allow_whole=self._allow_whole
        )
        asking = tasks[~ssn.victims.best_effort[ssn.tasks.shape[tasks]]]
        if len(asking):
            plans.make(asking, Cause("gangpreempt", f"evicted to make room for PodGroup {job.key}", job.key))


def _last_first(ssn: Session, rows: Rows) -> Rows:
    """Return the places of jobs (n,): the one that goes last in job order loses first, shape (n,)."""
    keys = job_sort_keys(ssn, rows)
    place = {key: number for number, key in enumerate(sorted(set(keys), reverse=True))}
    return np.array([place[key] for key in keys], dtype=np.intp)
