"""The phases of a job as a table: what an action does in each phase, and where it leads.

            AbortJob      TerminateJob   CompleteJob    RestartJob, RestartTask, ...
    Pending, Running ──▶ Aborting   Terminating    Completing     Restarting ──▶ Pending, or Failed after maxRetry
                            │            │              │
                            ▼            ▼              ▼
                         Aborted     Terminated     Completed     Aborting, Aborted ── ResumeJob ──▶ Restarting

Running also becomes Completed or Failed by itself when its pods have ended, and Pending again when too few of them run.
Unlike in Volcano, a job that restarts can be aborted, terminated and completed, and a Pending job is Completed as soon
as minSuccess pods have succeeded.
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from volcano_py.api.batch import Job
from volcano_py.api.job_defaults import least_of
from volcano_py.controllers.job import policies

PENDING: Final = "Pending"
RUNNING: Final = "Running"
RESTARTING: Final = "Restarting"
ABORTING: Final = "Aborting"
ABORTED: Final = "Aborted"
COMPLETING: Final = "Completing"
COMPLETED: Final = "Completed"
TERMINATING: Final = "Terminating"
TERMINATED: Final = "Terminated"
FAILED: Final = "Failed"
GROUP_UNKNOWN: Final = "Unknown"
"""The phase of a PodGroup some of whose pods run and whose others cannot be scheduled."""

ACTIVE: Final = frozenset({"", PENDING, RUNNING})
"""Phases in which pods are created and policies act."""
KILLING: Final = {ABORTING: ABORTED, TERMINATING: TERMINATED, COMPLETING: COMPLETED}
"""Phases in which pods are killed, and the phase that follows when none is left."""
FINISHED: Final = frozenset({COMPLETED, FAILED, TERMINATED})
AT_REST: Final = FINISHED | {ABORTED}
"""Phases without pods that run."""


class Kill(Enum):
    """Which pods an action kills."""

    NOTHING = auto()
    ALL = auto()
    UNFINISHED = auto()
    """Pods that have not ended."""
    UNSUCCESSFUL = auto()
    """Pods that have not succeeded: pods that failed would stay in the way of the gang for good."""
    TARGET = auto()
    """The pods of one task or partition, or one pod."""


class Rule(NamedTuple):
    """What an action does in a phase."""

    kill: Kill
    phase: str
    """The phase that the job enters."""
    retry: bool = False
    """Whether the restart or resumption counts against maxRetry."""


_RESTART_ALL: Final = Rule(Kill.ALL, RESTARTING, retry=True)
_RESTART_TARGET: Final = Rule(Kill.TARGET, RESTARTING, retry=True)
_AGAIN_ALL: Final = Rule(Kill.ALL, RESTARTING)
_AGAIN_TARGET: Final = Rule(Kill.TARGET, RESTARTING)
_ABORT: Final = Rule(Kill.UNFINISHED, ABORTING)
_TERMINATE: Final = Rule(Kill.UNFINISHED, TERMINATING)
_COMPLETE: Final = Rule(Kill.UNFINISHED, COMPLETING)
_RESUME: Final = Rule(Kill.UNSUCCESSFUL, RESTARTING, retry=True)

_ENDINGS: Final = {
    policies.ABORT_JOB: _ABORT,
    policies.TERMINATE_JOB: _TERMINATE,
    policies.COMPLETE_JOB: _COMPLETE,
}
_ON_ACTIVE: Final = {
    **_ENDINGS,
    policies.RESTART_JOB: _RESTART_ALL,
    policies.RESTART_TASK: _RESTART_TARGET,
    policies.RESTART_POD: _RESTART_TARGET,
    policies.RESTART_PARTITION: _RESTART_TARGET,
}
TABLE: Final[Mapping[str, Mapping[str, Rule]]] = {
    PENDING: _ON_ACTIVE,
    RUNNING: _ON_ACTIVE,
    RESTARTING: {
        **_ENDINGS,
        policies.RESTART_JOB: _AGAIN_ALL,
        policies.RESTART_TASK: _AGAIN_TARGET,
        policies.RESTART_POD: _AGAIN_TARGET,
        policies.RESTART_PARTITION: _AGAIN_TARGET,
    },
    ABORTING: {policies.RESUME_JOB: _RESUME},
    ABORTED: {policies.RESUME_JOB: _RESUME},
    TERMINATING: {},
    COMPLETING: {},
    TERMINATED: {},
    COMPLETED: {},
    FAILED: {},
}
"""By phase and action. An action that is not listed changes nothing: the job goes on as its phase says."""

SUCCESSORS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({PENDING}),
    PENDING: frozenset({RUNNING, COMPLETED, RESTARTING, ABORTING, TERMINATING, COMPLETING}),
    RUNNING: frozenset({PENDING, COMPLETED, FAILED, RESTARTING, ABORTING, TERMINATING, COMPLETING}),
    RESTARTING: frozenset({PENDING, FAILED, ABORTING, TERMINATING, COMPLETING}),
    ABORTING: frozenset({ABORTED, RESTARTING}),
    ABORTED: frozenset({RESTARTING}),
    TERMINATING: frozenset({TERMINATED}),
    COMPLETING: frozenset({COMPLETED}),
    TERMINATED: frozenset(),
    COMPLETED: frozenset(),
    FAILED: frozenset(),
}
"""Every phase that may follow a phase."""


class Counts(NamedTuple):
    """The pods of a job; a pod that is being deleted counts as terminating and as nothing else."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0

    @property
    def alive(self) -> int:
        """Pods that have not ended."""
        return self.pending + self.running + self.unknown + self.terminating


class Change(NamedTuple):
    """The next phase, and why."""

    phase: str
    reason: str
    message: str


def rule(phase: str, action: str) -> Rule | None:
    """Return what an action does in a phase, None if it changes nothing."""
    return TABLE.get(phase or PENDING, {}).get(action)


def next_phase(job: Job, counts: Counts, succeeded_by_task: Mapping[str, int]) -> Change | None:
    """Return the phase that a job enters by itself, None if it stays in its phase.

    ``succeeded_by_task`` has the tasks that have pods. The job is as Volcano's tables in `platform` 2.5 read it, with
    or without defaults.
    """
    phase = job.status.state.phase
    if phase in ("", PENDING):
        return _from_pending(job, counts)
    if phase == RUNNING:
        return _from_running(job, counts, succeeded_by_task)
    if phase == RESTARTING:
        return _from_restarting(job, counts)
    if phase in KILLING and counts.alive == 0:
        return Change(KILLING[phase], job.status.state.reason, job.status.state.message)
    return None


def replicas_of(job: Job) -> int:
    """Return the number of pods of a job."""
    return sum(task.replicas for task in job.spec.tasks)


def _enough_succeeded(job: Job, counts: Counts) -> Change | None:
    least = job.spec.min_success
    if least is None or counts.succeeded < least:
        return None
    return Change(COMPLETED, "MinSuccessReached", f"{counts.succeeded} pods succeeded; minSuccess is {least}")


def _from_pending(job: Job, counts: Counts) -> Change | None:
    started = counts.running + counts.succeeded + counts.failed
    if started < job.spec.min_available:
        return _enough_succeeded(job, counts)  # a lost pod may wait for room for ever, and nobody needs it any more
    text = f"{started} of {replicas_of(job)} pods have started; minAvailable is {job.spec.min_available}"
    return Change(RUNNING, "MinAvailableReached", text)


def _from_running(job: Job, counts: Counts, succeeded_by_task: Mapping[str, int]) -> Change | None:
    total, spec = replicas_of(job), job.spec
    if total == 0:
        return None
    if (enough := _enough_succeeded(job, counts)) is not None:
        return enough
    ended = counts.succeeded + counts.failed
    if ended == total:
        return _ended(job, counts, succeeded_by_task)
    if counts.pending > total - spec.min_available:
        text = f"{counts.pending} of {total} pods are pending again; minAvailable is {spec.min_available}"
        if total < spec.min_available:
            text = f"the tasks ask for {total} of {spec.min_available} pods: lower minAvailable, or add replicas"
        return Change(PENDING, "TooFewPodsRun", text)
    return None


def _ended(job: Job, counts: Counts, succeeded_by_task: Mapping[str, int]) -> Change:
    spec = job.spec
    if spec.min_available >= sum(least_of(task) for task in spec.tasks):
        for task in spec.tasks:
            succeeded = succeeded_by_task.get(task.name)
            if task.min_available is not None and succeeded is not None and succeeded < task.min_available:
                text = f"{succeeded} pods of task {task.name} succeeded; its minAvailable is {task.min_available}"
                return Change(FAILED, "TaskFailed", text)
    if spec.min_success is not None and counts.succeeded < spec.min_success:
        text = f"all pods have ended and {counts.succeeded} succeeded; minSuccess is {spec.min_success}"
        return Change(FAILED, "MinSuccessMissed", text)
    text = f"all pods have ended: {counts.succeeded} succeeded, {counts.failed} failed"
    if counts.succeeded >= spec.min_available:
        return Change(COMPLETED, "PodsSucceeded", text)
    return Change(FAILED, "PodsFailed", f"{text}; minAvailable is {spec.min_available}")


def _from_restarting(job: Job, counts: Counts) -> Change | None:
    status = job.status
    if status.retry_count >= job.spec.max_retry:
        counts_so_far = f"retryCount is {status.retry_count}, and maxRetry is {job.spec.max_retry}"
        text = f"not started again: {counts_so_far}; last: {status.state.message}"
        return Change(FAILED, "MaxRetryReached", text)
    if replicas_of(job) - counts.terminating >= status.min_available:
        return Change(PENDING, status.state.reason, status.state.message)
    return None
