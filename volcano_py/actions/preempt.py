"""Make room in a queue: jobs that starve have tasks of lesser jobs of the queue evicted, and lesser tasks of their own.

for each queue, in order:
    between jobs    for each starving job, in order: give its tasks nodes, one after the other, as long as it starves;
                    the plan counts if the job has its minimum then (`framework.plan`), else nothing of it does
    inside a job    for each job that starved at first: give each task that still waits a node at the cost of the job's
                    own tasks, each by itself; the first that finds none ends the job

Victims run or are bound, agree to be evicted, and go only as far as the plugins of `Preemptable` let them. A task that
asks for nothing takes only from its like. Nodes are tried in order of their scores. (Volcano: actions/preempt.)

Arguments: ``enableTopologyAwarePreemption`` and its limits choose, in Volcano, a second search, node by node on copies,
that puts back victims. Here every plan is made on the columns, looks at every node and puts back whom it can, so the
limits change nothing; neither does ``predicateErrorCacheEnable``. One thing it does here as there: nodes are left out
that a plugin refuses which is told of no eviction, because its enablePreemptable and enabledAllocatable are off.
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

_CACHE: Final = "predicateErrorCacheEnable"
_TOPOLOGY_AWARE: Final = "enableTopologyAwarePreemption"
_NUMBERS: Final = {
    "topologyAwarePreemptWorkerNum": 16,
    "minCandidateNodesPercentage": 10,
    "minCandidateNodesAbsolute": 1,
    "maxCandidateNodesAbsolute": 100,
}


class Preempt(Action):
    """The action."""

    arguments = frozenset({_CACHE, _TOPOLOGY_AWARE, *_NUMBERS})

    def __init__(self, *, topology_aware: bool = False) -> None:
        """Take whether plugins that are told of no eviction are believed before it."""
        self._topology_aware = topology_aware

    @classmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> "Preempt":
        """Read the arguments, also those that change nothing, so that one of the wrong type is warned about."""
        get_bool(arguments, _CACHE, True, warn)
        for key, number in _NUMBERS.items():
            get_int(arguments, key, number, warn)
        return cls(topology_aware=get_bool(arguments, _TOPOLOGY_AWARE, False, warn))

    def __call__(self, ssn: Session) -> None:
        """Run the action."""
        starving = starving_jobs(ssn)
        order = list(QueueTurns(ssn, np.array(sorted(starving), dtype=np.intp), skip_overused=False))
        blind = self._topology_aware and ssn.victims.blind_predicates
        for name in dict.fromkeys(queue.name for queue, _ in order):
            queue, rows = ssn.queues[name], [row for other, row in order if other.name == name]
            for row in rows:
                _attempt(ssn, queue, ssn.job(row), starving[row], blind, inside=False)
            for row in rows:
                _attempt(ssn, queue, ssn.job(row), starving[row], blind, inside=True)
        ssn.victims.end_of_action()


def _attempt(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, blind: bool, *, inside: bool) -> None:
    try:
        with ssn.held_room.open_to(job):
            if inside:
                _inside_job(ssn, queue, job, tasks, blind)
            else:
                _between_jobs(ssn, queue, job, tasks, blind)
    except PluginFailed as failure:
        ssn.report.failures.append(f"{failure}; nobody is evicted for PodGroup {job.key}")


def _between_jobs(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, blind: bool) -> None:
    everybody = ssn.victims.all
    others = (everybody.queues == queue.row) & (everybody.jobs != job.row)
    _plan(ssn, queue, job, tasks, everybody.only(others), blind)


def _inside_job(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, blind: bool) -> None:
    everybody = ssn.victims.all
    own = everybody.only(everybody.jobs == job.row)
    if not len(own):
        return
    # A Python loop over the job's tasks that still wait; it ends with the first that finds no node.
    for task in tasks[ssn.tasks.status[tasks] == TaskStatus.PENDING].tolist():
        if not _plan(ssn, queue, job, np.array([task]), own, blind, starving_or_not=True):
            return


def _plan(
    ssn: Session,
    queue: QueueInfo,
    job: JobInfo,
    tasks: Rows,
    candidates: Evictables,
    blind: bool,
    *,
    starving_or_not: bool = False,
) -> int:
    plan = Plan(ssn, Purpose.PREEMPT, queue, job, candidates, by_score, blind)
    try:
        plan.fill(tasks, starving_or_not=starving_or_not)
        return plan.conclude(Cause("preempt", f"evicted to make room for PodGroup {job.key}", job.key))
    except PluginFailed:
        plan.abandon()
        raise
