"""Make room in a queue: starving jobs evict tasks of other jobs of the queue, and then tasks of their own.

for each queue, in order:
    between jobs    for each starving job, in order: find nodes for its tasks, one after the other, as long as it
                    starves; commit the plan if the job then has its minimum, otherwise abandon it
                    (`framework.evicting.plan`)
    inside a job    for each job that starved at the start: find a node for each task that still waits by evicting tasks
                    of the same job and of lower priority, one plan per task; the first task that finds no node ends
                    the job

Victims are running or bound, they are preemptable, and the plugins of `Preemptable` allow their eviction. A best-effort
task preempts only best-effort tasks. Nodes are tried in order of their scores. (Volcano: actions/preempt. There, if the
plugin priority allows nobody and a later tier does, a task may evict another one of its job that has the same priority,
and that one does the same in turn, without end.)

With the argument ``enableTopologyAwarePreemption`` the nodes with the best scores are first compared by how much their
victims matter (`framework.evicting.pick_one_node`). The number of these nodes is ``minCandidateNodesPercentage`` (10)
of all nodes, at least ``minCandidateNodesAbsolute`` (1), at most ``maxCandidateNodesAbsolute`` (100). (Volcano begins
at a random node instead.) Then a node is left out if it is refused by a plugin that has enablePreemptable and
enabledAllocatable off, because such a plugin does not learn of evictions. ``topologyAwarePreemptWorkerNum`` and
``predicateErrorCacheEnable`` have no effect.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from volcano_py.conf.arguments import Warn, get_bool, get_int
from volcano_py.framework.action import Action
from volcano_py.framework.contract.extension_points import Purpose
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.domain_plans import fill, scopes
from volcano_py.framework.evicting.futile import FutileJobs
from volcano_py.framework.evicting.pick_one_node import CandidateNodeCount
from volcano_py.framework.evicting.plan import Plan
from volcano_py.framework.evicting.starving import StarvingJobs
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.statement import Cause
from volcano_py.model.arrays import Rows
from volcano_py.model.statuses import TaskStatus

_CACHE: Final = "predicateErrorCacheEnable"
_TOPOLOGY_AWARE: Final = "enableTopologyAwarePreemption"
_WORKERS: Final = "topologyAwarePreemptWorkerNum"
_CANDIDATES: Final = {
    "percentage": "minCandidateNodesPercentage",
    "at_least": "minCandidateNodesAbsolute",
    "at_most": "maxCandidateNodesAbsolute",
}


class _Search(NamedTuple):
    """How a `Plan` searches nodes."""

    blind: bool = False
    compared: int = 0


class Preempt(Action):
    """The action."""

    arguments = frozenset({_CACHE, _TOPOLOGY_AWARE, _WORKERS, *_CANDIDATES.values()})

    def __init__(self, topology_aware: CandidateNodeCount | None = None) -> None:
        """Take how many nodes topology-aware preemption compares, None for the usual search."""
        self._topology_aware = topology_aware

    @classmethod
    def configured(cls, arguments: Mapping[str, Any], warn: Warn) -> "Preempt":
        """Read the arguments, also those without effect, so that values of a wrong type cause a warning."""
        get_bool(arguments, _CACHE, True, warn)
        get_int(arguments, _WORKERS, 16, warn)
        defaults = CandidateNodeCount()._asdict()
        limits = {name: get_int(arguments, key, defaults[name], warn) for name, key in _CANDIDATES.items()}
        return cls(CandidateNodeCount(**limits) if get_bool(arguments, _TOPOLOGY_AWARE, False, warn) else None)

    def __call__(self, ssn: Session) -> None:
        """Run the action."""
        starving = StarvingJobs(ssn.eviction)
        futile = FutileJobs(ssn.eviction, Purpose.PREEMPT, starving)
        if (futile.all_now() & ~ssn.eviction.with_candidates)[starving.rows].all():
            return
        order = SchedulingOrder(ssn.state, ssn.hooks, starving.rows, skip_overused=False)
        search = _Search()
        if self._topology_aware is not None:
            search = _Search(ssn.eviction.blind_predicates, self._topology_aware.of(len(ssn.state.nodes)))
        # A Python loop over the queues; plans do not change their order.
        for queue, rows in list(order.by_queue()):
            if not _in_queue(ssn, queue, rows, starving, futile, search):
                break
        ssn.eviction.end_of_action()


def _in_queue(
    ssn: Session, queue: QueueInfo, rows: Rows, starving: StarvingJobs, futile: FutileJobs, search: _Search
) -> bool:
    """Make plans for the starving jobs of a queue (rows), in order; say whether all of them had their turn."""
    left = rows
    # Python loops over the starving jobs that are not futile at their turn, and over those with victims of their own.
    while len(left := futile.first_with_hope(left)):
        if ssn.eviction.must_stop():
            return False
        row, left = int(left[0]), left[1:]
        _attempt(ssn, queue, ssn.state.job(row), starving.tasks(row), search, inside=False)
    for row in rows[ssn.eviction.with_candidates[rows]].tolist():
        if ssn.eviction.must_stop():
            return False
        _attempt(ssn, queue, ssn.state.job(row), starving.tasks(row), search, inside=True)
    return True


def _attempt(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, search: _Search, *, inside: bool) -> None:
    try:
        with ssn.nominated_room.open_to(job):
            if inside:
                _inside_job(ssn, queue, job, tasks, search)
            else:
                _between_jobs(ssn, queue, job, tasks, search)
    except PluginFailed as failure:
        ssn.state.report.failed(failure, f"nobody is evicted for PodGroup {job.key}")


def _between_jobs(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, search: _Search) -> None:
    all_candidates = ssn.eviction.all
    others = (all_candidates.queues == queue.row) & (all_candidates.jobs != job.row)
    _plan(ssn, queue, job, tasks, all_candidates.only(others), search)


def _inside_job(ssn: Session, queue: QueueInfo, job: JobInfo, tasks: Rows, search: _Search) -> None:
    all_candidates = ssn.eviction.all
    own = all_candidates.only(all_candidates.jobs == job.row)
    if not len(own):
        return
    # A Python loop over the tasks of the job that still wait; it ends with the first that finds no node.
    for task in tasks[ssn.state.tasks.status[tasks] == TaskStatus.PENDING].tolist():
        lesser = own.only(own.priorities < ssn.state.tasks.priority[task])
        if ssn.eviction.must_stop() or not len(lesser):
            return
        if not _plan(ssn, queue, job, np.array([task]), lesser, search, starving_or_not=True):
            return


def _plan(
    ssn: Session,
    queue: QueueInfo,
    job: JobInfo,
    tasks: Rows,
    candidates: VictimCandidates,
    search: _Search,
    *,
    starving_or_not: bool = False,
) -> int:
    for scope in scopes(ssn.topology, ssn.eviction, queue, job, tasks, candidates):
        plan = Plan(
            scope.eviction,
            Purpose.PREEMPT,
            queue,
            job,
            scope.candidates,
            search.blind,
            search.compared,
            place_gang=scope.place_gang,
        )
        try:
            fill(plan, scope, tasks, starving_or_not=starving_or_not)
            done = plan.conclude(Cause("preempt", f"evicted to make room for PodGroup {job.key}", job.key))
        except PluginFailed:
            plan.abandon()
            raise
        if done:
            return done
    return 0
