"""Gang: all or nothing. A job is committed only when its minimum is met.

ready      ready tasks + pending best-effort tasks >= min_available, every role at its own minimum, and of each
           policy of sub-groups as many complete ones as it demands (minSubGroups)
pipelined  the same, with pipelined tasks counted too
valid      enough tasks exist that count or may later count
order      jobs that are not ready go first
starving   ready + pipelined tasks < min_available, or a role or sub-groups are below their minimum
victims    tasks of a job while it has more ready tasks than min_available, and their role more than its own minimum;
           for gangpreempt and gangreclaim: all

(Volcano looks at the total alone to find victims and starving jobs. So the only parameter server of a gang may be
evicted although a worker would do, and nobody is evicted to get it back.)

At the end of a session the plugin writes the gang's state into the conditions of the PodGroup. Unlike Volcano it sets
the opposite condition False. It also counts Binding tasks as placed, so a gang that has just been bound is not reported
as unschedulable. A gang whose minimum is met only with best-effort tasks that wait is bound in part and keeps its
phase, as in Volcano; but its conditions do not say that it is ready.
"""

from typing import Final

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.contract.extension_points import (
    JobOrder,
    JobPipelined,
    JobReady,
    JobStarving,
    JobValid,
    Preemptable,
    Preemptor,
    Reclaimable,
    UnifiedEvictable,
    Vote,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.roles import role_surplus
from volcano_py.framework.state.state import State
from volcano_py.framework.state.sub_groups import JobSubGroups
from volcano_py.model.arrays import Bools, Floats, Ints
from volcano_py.model.objects import GroupCondition, JobRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import READY_STATUSES, VALID_STATUSES, TaskStatus
from volcano_py.snapshot.columns import JobColumns

_READY: Final = list(READY_STATUSES)


_PROMISED: Final = (*READY_STATUSES, TaskStatus.PIPELINED)
_PROMISED_ROWS: Final = list(_PROMISED)
_PERMIT, _REJECT = Vote.PERMIT, Vote.REJECT


class Gang(Plugin, JobOrder, JobValid, JobReady, JobPipelined, JobStarving, Preemptable, Reclaimable, UnifiedEvictable):
    """Minimum sizes of jobs and of their roles."""

    name = "gang"
    counts = frozenset({"preemptable", "reclaimable", "unified_evictable"})

    def job_order(self, jobs: JobColumns) -> Floats:
        """Return 0 for jobs below their minimum and 1 for the others, shape (n_jobs,)."""
        return np.asarray(jobs.held >= jobs.min_available, dtype=float)

    def job_valid(self, job: JobInfo) -> Reason | None:
        """Refuse a job that has too few tasks, of a role or in total."""
        short = job.roles_short(VALID_STATUSES, best_effort=False)
        if short:
            text = ", ".join(f"{role}: valid {have}, min {need}" for role, have, need in short)
            return Reason(
                self.name, keys.REASON_NOT_ENOUGH_PODS_OF_TASK, f"Not enough valid pods of each task ({text})"
            )
        groups = self._groups(job)
        if groups is not None and (few := groups.invalid()):
            listed = ", ".join(f"{policy}: valid {have}, min {need}" for policy, have, need in few)
            text = f"Not enough valid sub-groups of each policy ({listed})"
            return Reason(self.name, keys.REASON_NOT_ENOUGH_TASKS, text)
        if job.valid_count < job.min_available:
            text = f"Not enough valid tasks for gang-scheduling, valid: {job.valid_count}, min: {job.min_available}"
            return Reason(self.name, keys.REASON_NOT_ENOUGH_TASKS, text)
        return None

    def surely_valid(self) -> Bools:
        """Return the jobs with enough tasks, of every role and in total, and without sub-groups, shape (n_jobs,)."""
        jobs = self._ssn.jobs
        found = (jobs.valid >= jobs.min_available) & ~self._ssn.jobs_short_of_roles(VALID_STATUSES, best_effort=False)
        found[jobs.rules.with_sub_groups] = False
        return np.asarray(found)

    def missing(self, job: JobInfo) -> int:
        """Return how many tasks the job lacks; 1 if only the minimum of some role is not met."""
        lacking = job.missing()
        if lacking == 0 and job.record.task_min_available and job.roles_short(READY_STATUSES, best_effort=True):
            lacking = 1
        if job.row not in self._with_groups:  # asked for every job, often
            return lacking
        groups = self._groups(job)
        return lacking if groups is None else max(lacking, groups.lacking())

    def job_pipelined(self, job: JobInfo) -> Vote:
        """Permit a job whose minimum is met with pipelined tasks counted, reject any other."""
        if not job.is_pipelined() or job.roles_short(_PROMISED, best_effort=True):
            return _REJECT
        groups = self._groups(job)
        return _PERMIT if groups is None or not groups.lacking(promised=True) else _REJECT

    def job_starving(self, job: JobInfo) -> bool:
        """Say whether ready and pipelined tasks, without pending best-effort ones, are fewer than the job needs."""
        if job.ready_count + job.count(TaskStatus.PIPELINED) < job.min_available:
            return True
        if job.roles_short(_PROMISED, best_effort=False):
            return True
        groups = self._groups(job)
        return groups is not None and groups.lacking(promised=True, best_effort=False) > 0

    def starving_jobs(self) -> Bools:
        """Return `job_starving` of all jobs, (n_jobs,)."""
        jobs = self._ssn.jobs
        found = np.asarray(jobs.counts[_PROMISED_ROWS].sum(axis=0) < jobs.min_available)
        found |= self._ssn.jobs_short_of_roles(_PROMISED, best_effort=False)
        for row in self._with_groups:  # a Python loop over the jobs with sub-groups
            found[row] = jobs.records[row] is not None and self.job_starving(self._ssn.job(row))
        return found

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting the tasks that jobs have above their minimum, the first candidates of a job first."""
        return self._surplus(candidates)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting the tasks that jobs have above their minimum, the first candidates of a job first."""
        return self._surplus(candidates)

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting all tasks: the gang actions themselves tell a job's surplus tasks from the others."""
        return np.ones(len(candidates), dtype=bool)

    def _surplus(self, candidates: VictimCandidates) -> Bools:
        jobs = self._ssn.jobs
        ready = jobs.counts[_READY].sum(axis=0)
        surplus = ready - jobs.min_available
        allowed = np.asarray(candidates.by_job.count() < surplus[candidates.jobs])
        # A Python loop over the jobs of candidates, for those with sub-groups.
        for row in np.intersect1d(candidates.jobs, jobs.rules.with_sub_groups).tolist():
            groups = self._ssn.sub_groups(row)
            if groups is None:
                continue
            # A Python loop over the groups of candidates: what a job can lose starts again with each.
            for number in np.unique(candidates.groups[candidates.jobs == row]).tolist():
                mine = np.flatnonzero((candidates.jobs == row) & (candidates.groups == number))
                allowed[mine] = groups.safe(candidates.rows[mine], int(surplus[row]))
        return self._beyond_roles(candidates, allowed, surplus)

    def _beyond_roles(self, candidates: VictimCandidates, allowed: Bools, surplus: Ints) -> Bools:
        """Return which of the allowed tasks (n,) their roles do not need either; ``surplus`` is that of each job."""
        rules = self._ssn.jobs.rules
        with_roles = np.zeros(len(surplus), dtype=bool)
        with_roles[rules.role_minimums.jobs] = True
        with_roles[rules.with_sub_groups] = False
        # A job that has no task to spare needs no look at its roles: most jobs with such minimums need all of theirs.
        asked = np.flatnonzero((with_roles & (surplus > 0))[candidates.jobs])
        if not len(asked):
            return allowed
        of_roles = candidates.at(asked)
        ssn, rows = self._ssn, of_roles.rows
        left = role_surplus(ssn.jobs, ssn.tasks, ssn.classes, rows, READY_STATUSES, best_effort=True)
        keys = of_roles.jobs.astype(np.intp) * len(ssn.tasks.role_names) + ssn.tasks.role[rows]
        spare = of_roles.by(keys).count() < left
        before = of_roles.by_job.total(spare.astype(float)[None])[0]
        allowed[asked] = spare & (before < surplus[of_roles.jobs])
        return allowed

    def on_session_open(self, ssn: State) -> None:
        """Keep the session."""
        self._ssn = ssn
        self._with_groups = frozenset(ssn.jobs.rules.with_sub_groups.tolist())

    def _groups(self, job: JobInfo) -> JobSubGroups | None:
        return self._ssn.sub_groups(job.row) if job.row in self._with_groups else None

    def on_session_close(self, ssn: State) -> None:
        """Write into the conditions of every PodGroup with tasks whether its gang is complete."""
        jobs = ssn.jobs
        with_tasks = jobs.counts.sum(axis=0) > 0
        short = _short(ssn, jobs.held, best_effort=True)
        ready = jobs.counts[_READY].sum(axis=0)
        # Without best-effort tasks that wait; where none waits, the answer is the same.
        without = short if np.array_equal(ready, jobs.held) else _short(ssn, ready, best_effort=False)
        # A Python loop over the jobs that differ from the last cycle.
        for row in np.flatnonzero(with_tasks & ssn.outcome.changed).tolist():
            record = jobs.records[row]
            if record is None:
                continue
            if short[row]:
                self._complain(ssn, ssn.job(row), keys.REASON_NOT_ENOUGH_RESOURCES)
            elif without[row]:
                self._complain(ssn, ssn.job(row), keys.REASON_BEST_EFFORT_WAITS)
            elif not _says_ready(record):
                ready = GroupCondition(
                    keys.CONDITION_SCHEDULED, True, keys.REASON_GANG_READY, "", ssn.memory.session_id
                )
                _set_condition(ssn, row, record, ready, keys.CONDITION_UNSCHEDULABLE)

    def _complain(self, ssn: State, job: JobInfo, reason: str) -> None:
        if _only_waiting(ssn, job):
            return
        schedulable = job.ready_count + ssn.outcome.attempts(ssn.rows_of_job(job.row))
        lacking = max(job.min_available - schedulable, 0)
        message = f"{lacking}/{job.n_tasks} tasks in gang unschedulable: {ssn.outcome.fit_error(job)}"
        unschedulable = GroupCondition(keys.CONDITION_UNSCHEDULABLE, True, reason, message, ssn.memory.session_id)
        _set_condition(ssn, job.row, job.record, unschedulable, keys.CONDITION_SCHEDULED)


def _short(ssn: State, held: Floats, *, best_effort: bool) -> Bools:
    """Return the jobs that hold too few tasks, of a role, of sub-groups or in total, (n_jobs,).

    Roles and sub-groups do not count for a job of which a task runs: else the loss of one pod would make its PodGroup
    Unknown, although the job holds its minimum (Volcano's IsReady looks at the minimum only). The sub-groups of jobs
    that do not differ from the last cycle are left out.
    """
    jobs, rows = ssn.jobs, ssn.jobs.rules.with_sub_groups
    begins = jobs.counts[TaskStatus.RUNNING] == 0
    of_roles = ssn.jobs_short_of_roles(READY_STATUSES, best_effort=best_effort)
    found: Bools = np.asarray((held < jobs.min_available) | (of_roles & begins))
    # A Python loop over the jobs with sub-groups that differ from the last cycle.
    for row in rows[ssn.outcome.changed[rows] & begins[rows] & ~found[rows]].tolist():
        groups = ssn.sub_groups(row)
        found[row] = groups is not None and groups.lacking(best_effort=best_effort) > 0
    return found


def _says_ready(record: JobRecord) -> bool:
    says = {condition.type: condition.status for condition in record.conditions}
    return bool(says.get(keys.CONDITION_SCHEDULED)) and not says.get(keys.CONDITION_UNSCHEDULABLE)


def _set_condition(ssn: State, row: int, record: JobRecord, now: GroupCondition, opposite: str) -> None:
    conditions = ssn.outcome.conditions.setdefault(row, [])
    conditions.append(now)
    conditions.extend(
        written._replace(status=False, transition_id=ssn.memory.session_id)
        for written in record.conditions
        if written.type == opposite and written.status
    )


def _only_waiting(ssn: State, job: JobInfo) -> bool:
    """Say whether the job lacks only tasks that are still terminating, so it is not reported as unschedulable."""
    if not job.count(TaskStatus.RELEASING) or job.count(TaskStatus.PENDING) or job.count(TaskStatus.PIPELINED):
        return False
    rows = ssn.rows_of_job(job.row)
    leaving = int(((ssn.tasks.status[rows] == TaskStatus.RELEASING) & (ssn.tasks.node[rows] >= 0)).sum())
    return leaving > 0 and job.scheduled_count + leaving >= job.min_available
