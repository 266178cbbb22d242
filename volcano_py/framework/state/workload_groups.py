"""PodGroups of workloads: a controller of PodGroups has made them for pods that existed already.

The PodGroup of a vcjob may be enqueued before it has pods, because the pods are made when it is. No pod waits for the
phase of the PodGroup of a Deployment, a Job of Kubernetes or a bare pod. Without pods, such a PodGroup asks for
nothing: its Job is suspended, or has ended and its pods were removed. It is not enqueued until it has a pod, and gives
back the room that is reserved for it. (In Volcano, it keeps other jobs from being enqueued as long as it exists.)
"""

import numpy as np

from volcano_py.model.arrays import Rows
from volcano_py.model.statuses import PodGroupPhase, TaskStatus
from volcano_py.snapshot.columns import JobColumns


def without_pods(jobs: JobColumns, phase: PodGroupPhase) -> Rows:
    """Return the PodGroups of workloads in a phase all of whose pods have ended or are gone, shape (n,)."""
    alive = jobs.counts.sum(axis=0) - jobs.counts[TaskStatus.SUCCEEDED] - jobs.counts[TaskStatus.FAILED]
    rows = np.flatnonzero(jobs.rules.present & (jobs.phase == phase) & (alive == 0))
    # A Python loop over the jobs in this phase that have no pods.
    return np.array([row for row in rows.tolist() if jobs.record(row).follows_pods], dtype=np.intp)


def withdraw(jobs: JobColumns) -> None:
    """Let enqueued PodGroups of workloads without pods wait until they have one."""
    jobs.phase[without_pods(jobs, PodGroupPhase.INQUEUE)] = PodGroupPhase.PENDING
