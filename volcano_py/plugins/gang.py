"""Gang: all or nothing. A job is committed once its minimum is met, and not before.

ready      ready tasks + pending best-effort tasks >= min_available, and every role at its own minimum
pipelined  the same with promised (pipelined) tasks
valid      enough tasks exist that could ever count
order      jobs that are not ready before those that are

At the end of a session it says on the PodGroup how things stand. Unlike Volcano it sets the opposite condition False,
and it counts Binding tasks as placed, so that a gang that has just been bound does not complain.
"""

from dataclasses import dataclass

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.extension import JobOrder, JobPipelined, JobReady, JobValid, Vote
from volcano_py.framework.fit_error import job_fit_error
from volcano_py.framework.info import JobInfo
from volcano_py.framework.plugin import Plugin
from volcano_py.framework.session import Session
from volcano_py.model.objects import GroupCondition
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import Floats
from volcano_py.model.statuses import READY_STATUSES, VALID_STATUSES, TaskStatus
from volcano_py.snapshot.columns import JobColumns

@dataclass(frozen=True, slots=True)
class _Standing:
    condition: str
    reason: str
    message: str


class Gang(Plugin, JobOrder, JobValid, JobReady, JobPipelined):
    """Minimum sizes of jobs and of their roles."""

    name = "gang"

    def job_order(self, jobs: JobColumns) -> Floats:
        """Return 0 for jobs below their minimum and 1 for the others, shape (n_jobs,)."""
        return np.asarray(jobs.held >= jobs.min_available, dtype=float)

    def job_valid(self, job: JobInfo) -> Reason | None:
        """Refuse a job that has too few tasks, of a role or altogether."""
        short = job.roles_short(VALID_STATUSES, best_effort=False)
        if short:
            text = ", ".join(f"{role}: valid {have}, min {need}" for role, have, need in short)
            return Reason(
                self.name, keys.REASON_NOT_ENOUGH_PODS_OF_TASK, f"Not enough valid pods of each task ({text})"
            )
        if job.valid_count < job.min_available:
            text = f"Not enough valid tasks for gang-scheduling, valid: {job.valid_count}, min: {job.min_available}"
            return Reason(self.name, keys.REASON_NOT_ENOUGH_TASKS, text)
        return None

    def missing(self, job: JobInfo) -> int:
        """Return how many tasks the job lacks; 1 if only the minimum of a role is not met."""
        lacking = job.missing()
        if lacking == 0 and job.roles_short(READY_STATUSES, best_effort=True):
            return 1
        return lacking

    def job_pipelined(self, job: JobInfo) -> Vote:
        """Permit a job whose minimum is met once what it was promised is free, reject any other."""
        promised = (*READY_STATUSES, TaskStatus.PIPELINED)
        if job.is_pipelined() and not job.roles_short(promised, best_effort=True):
            return Vote.PERMIT
        return Vote.REJECT

    def on_session_close(self, ssn: Session) -> None:
        """Say on every PodGroup that has tasks whether its gang is complete."""
        with_tasks = np.flatnonzero(ssn.jobs.counts.sum(axis=0))
        # A Python loop over jobs, cheap for those that are ready: most differ from nothing that is already written.
        for row in with_tasks.tolist():
            if ssn.jobs.records[row] is not None:
                self._set_conditions(ssn, ssn.job(row))

    def _set_conditions(self, ssn: Session, job: JobInfo) -> None:
        if self.missing(job) == 0:
            now = GroupCondition(keys.CONDITION_SCHEDULED, True, keys.REASON_GANG_READY, "", ssn.id)
            opposite = keys.CONDITION_UNSCHEDULABLE
        elif _only_waiting(job):
            return
        else:
            schedulable = job.ready_count + ssn.attempts(ssn.pending.of(job.row))
            message = (
                f"{max(job.min_available - schedulable, 0)}/{job.n_tasks} tasks in gang unschedulable: "
                f"{job_fit_error(ssn, job)}"
            )
            now = GroupCondition(keys.CONDITION_UNSCHEDULABLE, True, keys.REASON_NOT_ENOUGH_RESOURCES, message, ssn.id)
            opposite = keys.CONDITION_SCHEDULED
        conditions = ssn.conditions.setdefault(job.row, [])
        conditions.append(now)
        for written in job.record.conditions:
            if written.type == opposite and written.status:
                conditions.append(written._replace(status=False, transition_id=ssn.id))


def _only_waiting(job: JobInfo) -> bool:
    """Say whether the job lacks only what is still terminating, so that there is nothing to complain about."""
    releasing = job.count(TaskStatus.RELEASING)
    nothing_open = job.count(TaskStatus.PENDING) + job.count(TaskStatus.PIPELINED) == 0
    return releasing > 0 and nothing_open and job.scheduled_count + releasing >= job.min_available
