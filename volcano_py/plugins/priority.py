"""Priority: jobs of higher priority go first, and within a job tasks of higher priority.

job order     -priority of the PodGroup's PriorityClass
task order    -priority of the pod, or of its annotation
starving      some task of the job is neither ready nor pipelined
victims       in the preemptor's queue: tasks of jobs of lower priority; in its own job: tasks of lower priority
gang victims  in preemption: tasks of jobs of lower priority; in reclamation: all
protected     in preemption: tasks of jobs of higher priority, and in its own job tasks of higher priority, unless
              plugins of an earlier tier vote, too: then the configuration wants them to decide

(Volcano protects nobody: if this plugin's tier allows no victim, a later tier decides alone. With drf there, a job of
low priority evicts one of high priority, and the latter takes its room back, without end.)
"""

from typing import Final

import numpy as np

from volcano_py.framework.contract.extension_points import (
    JobOrder,
    JobStarving,
    Preemptable,
    Preemptor,
    Purpose,
    TaskOrder,
    UnifiedEvictable,
    VictimFilter,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.statuses import READY_STATUSES, TaskStatus
from volcano_py.snapshot.columns import JobColumns, TaskColumns

_PROMISED: Final = [*READY_STATUSES, TaskStatus.PIPELINED]


class Priority(Plugin, JobOrder, TaskOrder, JobStarving, Preemptable, UnifiedEvictable, VictimFilter):
    """Order by priority; victims have lower priority than their preemptor."""

    name = "priority"
    counts = frozenset({"preemptable", "protected", "unified_evictable"})
    first_say = True

    def on_session_open(self, ssn: State) -> None:
        """Keep the session."""
        self._ssn = ssn

    def job_order(self, jobs: JobColumns) -> Floats:
        """Return minus the priority of each job, shape (n_jobs,)."""
        return -jobs.priority.astype(float)

    def task_order(self, tasks: TaskColumns) -> Floats:
        """Return minus the priority of each task, shape (n_tasks,)."""
        return -tasks.priority.astype(float)

    def job_starving(self, job: JobInfo) -> bool:
        """Say whether some task of the job is neither ready nor pipelined."""
        return job.ready_count + job.count(TaskStatus.PIPELINED) < job.n_tasks

    def starving_jobs(self) -> Bools:
        """Return `job_starving` of all jobs, (n_jobs,)."""
        counts = self._ssn.jobs.counts
        return np.asarray(counts[_PROMISED].sum(axis=0) < counts.sum(axis=0))

    def safe_from(self, candidates: VictimCandidates) -> Floats:
        """Return the priorities of the candidates' jobs, shape (n,)."""
        return self._ssn.jobs.priority[candidates.jobs].astype(float)

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks of jobs of lower priority, and in the preemptor's own job tasks of lower priority."""
        own = candidates.jobs == preemptor.job.row
        lesser = self._ssn.jobs.priority[candidates.jobs] < preemptor.job.record.priority
        return np.where(own, candidates.priorities < preemptor.priority, lesser)

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks of jobs of lower priority; in reclamation, all tasks."""
        if preemptor.purpose is Purpose.RECLAIM:
            return np.ones(len(candidates), dtype=bool)
        return np.asarray(self._ssn.jobs.priority[candidates.jobs] < preemptor.job.record.priority)

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return, in preemption, the tasks of jobs of higher priority, and in the preemptor's own job higher tasks."""
        if preemptor is None or preemptor.purpose is Purpose.RECLAIM:
            return np.zeros(len(candidates), dtype=bool)
        own = (candidates.jobs == preemptor.job.row) & (preemptor.task is not None)
        greater = self._ssn.jobs.priority[candidates.jobs] > preemptor.job.record.priority
        return np.where(own, candidates.priorities > preemptor.priority, greater)
