"""Make room in a queue: jobs that starve have tasks of lesser jobs of the queue evicted, and lesser tasks of their own.

for each queue, in order:
    between jobs    for each starving job, in order: give its tasks nodes, one after the other, as long as it starves;
                    the plan counts if the job has its minimum then (`framework.plan`), else nothing of it does
    inside a job    for each starving job: give each task that still waits a node at the cost of the job's own tasks,
                    each by itself; the first that finds none ends the job

Victims run or are bound, agree to be evicted, and go only as far as the plugins of `Preemptable` let them. A task that
asks for nothing takes only from its like. Nodes are tried in order of their scores. (Volcano: actions/preempt.)

Arguments: ``enableTopologyAwarePreemption`` and its limits choose, in Volcano, a second search, node by node on copies,
that puts back victims. Here every plan is made on the columns, with all plugins, looks at every node and puts back whom
it can, so they change nothing; neither does ``predicateErrorCacheEnable``.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_bool, get_int
from volcano_py.framework.action import Action
from volcano_py.framework.evictables import Evictables
from volcano_py.framework.extension import Purpose
from volcano_py.framework.info import JobInfo, QueueInfo
from volcano_py.framework.plan import Plan, by_score
from volcano_py.framework.plugin import PluginFailed
from volcano_py.framework.session import Session
from volcano_py.framework.starving import starving_jobs
from volcano_py.framework.statement import Cause
from volcano_py.framework.turns import QueueTurns
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import Rows

_SWITCHES: Final = {"predicateErrorCacheEnable": True, "enableTopologyAwarePreemption": False}
_NUMBERS: Final = {
    "topologyAwarePreemptWorkerNum": 16,
    "minCandidateNodesPercentage": 10,
    "minCandidateNodesAbsolute": 1,
    "maxCandidateNodesAbsolute": 100,
}


class Preempt(Action):
    """The action."""

    arguments = frozenset({*_SWITCHES, *_NUMBERS})

    @classmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> "Preempt":
        """Read the arguments, so that one of the wrong type is warned about; none of them changes a plan."""
        for key, switch in _SWITCHES.items():
            get_bool(arguments, key, switch, warn)
        for key, number in _NUMBERS.items():
            get_int(arguments, key, number, warn)
        return cls()

    def __call__(self, ssn: Session) -> None:
        """Run the action."""
        starving = starving_jobs(ssn)
        order = list(QueueTurns(ssn, np.array(sorted(starving), dtype=np.intp), skip_overused=False))
        for name in dict.fromkeys(queue.name for queue, _ in order):
            queue, rows = ssn.queues[name], [row for other, row in order if other.name == name]
            for row in rows:
                _attempt(ssn, queue, ssn.job(row), starving[row], inside=False)
            for row in rows:
                _attempt(ssn, queue, ssn.job(row), starving[row], inside=True)
        ssn.victims.end_of_action()


def _attempt(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, *, inside: bool) -> None:
    try:
        with ssn.held_room.open_to(job):
            if inside:
                _inside_job(ssn, queue, job, tasks)
            else:
                _between_jobs(ssn, queue, job, tasks)
    except PluginFailed as failure:
        ssn.report.failures.append(f"{failure}; nobody is evicted for PodGroup {job.key}")


def _between_jobs(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
    everybody = ssn.victims.all
    others = (everybody.queues == queue.row) & (everybody.jobs != job.row)
    _plan(ssn, queue, job, tasks, everybody.only(others))


def _inside_job(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows) -> None:
    everybody = ssn.victims.all
    own = everybody.only(everybody.jobs == job.row)
    if not len(own):
        return
    # A Python loop over the job's tasks that still wait; it ends with the first that finds no node.
    for task in tasks[ssn.tasks.status[tasks] == TaskStatus.PENDING].tolist():
        if not _plan(ssn, queue, job, np.array([task]), own):
            return


def _plan(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, candidates: Evictables) -> int:
    plan = Plan(ssn, Purpose.PREEMPT, queue, job, candidates, by_score)
    try:
        plan.fill(tasks)
        return plan.conclude(Cause("preempt", f"evicted to make room for PodGroup {job.key}", job.key))
    except PluginFailed:
        plan.abandon()
        raise
