"""Which action a job takes on an event: its policies, those of the task before those of the job.

The first rule that applies decides:

1. a request that names an action (a Command): that action
2. an internal event: SyncJob
3. a request of another job with this name: SyncJob
4. a pod of an earlier version of the job: SyncJob
5. the policies of the request's task in order, then those of the job in order
6. otherwise: SyncJob
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from volcano_py.api.batch import Job, LifecyclePolicy, Task
from volcano_py.api.duration import DurationError, parse_go_duration

# Events
ANY: Final = "*"
POD_FAILED: Final = "PodFailed"
POD_EVICTED: Final = "PodEvicted"
POD_PENDING: Final = "PodPending"
POD_RUNNING: Final = "PodRunning"
UNKNOWN: Final = "Unknown"
TASK_COMPLETED: Final = "TaskCompleted"
TASK_FAILED: Final = "TaskFailed"
OUT_OF_SYNC: Final = "OutOfSync"
COMMAND_ISSUED: Final = "CommandIssued"

# Actions
SYNC_JOB: Final = "SyncJob"
ENQUEUE_JOB: Final = "EnqueueJob"
ABORT_JOB: Final = "AbortJob"
RESTART_JOB: Final = "RestartJob"
RESTART_TASK: Final = "RestartTask"
RESTART_POD: Final = "RestartPod"
RESTART_PARTITION: Final = "RestartPartition"
TERMINATE_JOB: Final = "TerminateJob"
COMPLETE_JOB: Final = "CompleteJob"
RESUME_JOB: Final = "ResumeJob"

ACTIONS: Final = frozenset(
    (
        *(SYNC_JOB, ENQUEUE_JOB, ABORT_JOB, RESTART_JOB, RESTART_TASK, RESTART_POD, RESTART_PARTITION),
        *(TERMINATE_JOB, COMPLETE_JOB, RESUME_JOB),
    )
)
"""Every action on a job."""
_INTERNAL: Final = frozenset({OUT_OF_SYNC, COMMAND_ISSUED, POD_RUNNING})


class Request(NamedTuple):
    """Something that happened to a job."""

    event: str = ""
    action: str = ""
    """The action that a Command asks for."""
    job_uid: str = ""
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0
    version: int | None = None
    """The version of the job that the pod or PodGroup belongs to; None if the request concerns the job as it is."""
    retry: int | None = None
    """status.retryCount of the job when the pod was created, None if nobody knows."""


class Resolved(NamedTuple):
    """What to do about a request."""

    action: str
    delay_s: float = 0.0
    task: str = ""
    """The task whose policy decided, "" for a policy of the job."""
    policy: LifecyclePolicy | None = None


def resolve(job: Job, request: Request) -> Resolved:
    """Return the action for a request, and how long to wait before it."""
    if request.action:
        return Resolved(request.action)
    if request.event in _INTERNAL:
        return Resolved(SYNC_JOB)
    if request.job_uid and request.job_uid != job.metadata.uid:
        return Resolved(SYNC_JOB)
    if request.version is not None and request.version < job.status.version:
        return Resolved(SYNC_JOB)
    task = task_of(job, request.task)
    if task is not None and (found := _first(task.policies, request)) is not None:
        return Resolved(found.action, delay_of(found), task.name, found)
    if (found := _first(job.spec.policies, request)) is not None:
        return Resolved(found.action, delay_of(found), "", found)
    return Resolved(SYNC_JOB)


def task_of(job: Job, name: str) -> Task | None:
    """Return the task with this name, None if there is none."""
    return next((task for task in job.spec.tasks if name and task.name == name), None)


def answered_events(job: Job) -> frozenset[str]:
    """Return the events of pods that some policy of the job answers."""
    found: set[str] = set()
    for policy in (*job.spec.policies, *(policy for task in job.spec.tasks for policy in task.policies)):
        found |= {policy.event, *policy.events}
        if policy.exit_code is not None:
            found.add(POD_FAILED)
    if ANY in found:
        found |= {POD_FAILED, POD_EVICTED, POD_PENDING, TASK_COMPLETED, TASK_FAILED, UNKNOWN}
    return frozenset(found - {""})


def delay_of(policy: LifecyclePolicy) -> float:
    """Return the seconds to wait before the action of a policy; 0 if its timeout cannot be read or is negative."""
    if not policy.timeout:
        return 0.0
    try:
        return max(0.0, parse_go_duration(policy.timeout))
    except DurationError:
        return 0.0


def _first(policies: Iterable[LifecyclePolicy], request: Request) -> LifecyclePolicy | None:
    return next((policy for policy in policies if policy.action and _applies(policy, request)), None)


def _applies(policy: LifecyclePolicy, request: Request) -> bool:
    events = {policy.event, *policy.events}
    if request.event and (request.event in events or ANY in events):
        return request.event != POD_PENDING or bool(policy.timeout)
    return policy.exit_code is not None and request.exit_code != 0 and policy.exit_code == request.exit_code
