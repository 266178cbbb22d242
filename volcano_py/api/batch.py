"""The groups ``batch.volcano.sh`` (jobs, cron jobs), ``bus.volcano.sh`` (commands) and ``flow.volcano.sh`` (job flows).

A pod template is kept as it was sent: a pod is built from all of its fields, also from those that nobody here reads.
"""

from datetime import datetime
from typing import Any

import msgspec

from volcano_py.api.meta import ObjectMeta, OwnerReference, Wire
from volcano_py.api.scheduling import NetworkTopology

Template = dict[str, Any]
"""A pod template as it was sent: ``metadata`` and ``spec``."""


class LifecyclePolicy(Wire, frozen=True):
    """What to do on an event of a pod, task or job, or on an exit code."""

    action: str = ""
    event: str = ""
    events: list[str] = []
    exit_code: int | None = None
    timeout: str | None = None
    """A duration as in Go: how long to wait before acting."""


class PartitionPolicy(Wire, frozen=True):
    """How the pods of a task are divided into groups of equal size."""

    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: int = 0
    network_topology: NetworkTopology | None = None


class DependsOn(Wire, frozen=True):
    """The tasks that must be ready before the pods of a task are created."""

    name: list[str] = []
    iteration: str = ""
    """``any`` or ``all``; empty counts as ``all``."""


class Task(Wire, frozen=True):
    """A task of a job: pods with one template."""

    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    template: Template = {}
    policies: list[LifecyclePolicy] = []
    topology_policy: str = ""
    max_retry: int = 0
    """Restarts of its containers before the event TaskFailed; 0 counts as 3, -1 means no limit."""
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class Volume(Wire, frozen=True):
    """A claim that is mounted into every container of a job."""

    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: dict[str, Any] | None = None
    """The spec of the claim that is created; without it, the named claim must exist."""


class JobSpec(Wire, frozen=True):
    """A batch job: its tasks and what happens when they fail."""

    scheduler_name: str = ""
    min_available: int = 0
    volumes: list[Volume] = []
    tasks: list[Task] = []
    policies: list[LifecyclePolicy] = []
    plugins: dict[str, list[str] | None] = {}
    running_estimate: str | None = None
    queue: str = ""
    max_retry: int = 0
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    min_success: int | None = None
    network_topology: NetworkTopology | None = None


class JobState(Wire, frozen=True):
    """The phase of a job, and why it is in it."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class JobCondition(Wire, frozen=True):
    """A phase that a job was in, and since when."""

    status: str = ""
    """The phase."""
    last_transition_time: datetime | None = None


class TaskState(Wire, frozen=True):
    """The number of pods of a task by their phase."""

    phase: dict[str, int] = {}


class JobStatus(Wire, frozen=True):
    """Where a job stands."""

    state: JobState = JobState()
    min_available: int = 0
    task_status_count: dict[str, TaskState] = {}
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    """How often all pods of the job were killed."""
    retry_count: int = 0
    """How often the job was restarted or resumed."""
    running_duration: str = ""
    """A duration as in Go: from the creation of the job to its last change of phase."""
    controlled_resources: dict[str, str] = {}
    conditions: list[JobCondition] = []


class Job(Wire, frozen=True):
    """A Volcano job (vcjob)."""

    metadata: ObjectMeta
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CronJobSpec(Wire, frozen=True):
    """When jobs are created, and from what."""

    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    """How late a job may start; None for any delay."""
    concurrency_policy: str = ""
    """``Allow``, ``Forbid`` or ``Replace``; empty counts as ``Allow``."""
    suspend: bool | None = None
    job_template: dict[str, Any] = {}
    """``metadata`` and ``spec`` as they were sent: a job is built from all their fields."""
    successful_jobs_history_limit: int | None = None
    """Completed jobs that are kept; None for all."""
    failed_jobs_history_limit: int | None = None


class ObjectReference(Wire, frozen=True):
    """Which object is meant."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CronJobStatus(Wire, frozen=True):
    """Where a cron job stands."""

    active: list[ObjectReference] = []
    """Its jobs that are not finished."""
    last_schedule_time: datetime | None = None
    """The time for which the last job was created, not that of its creation."""
    last_successful_time: datetime | None = None


class CronJob(Wire, frozen=True):
    """A schedule that creates jobs."""

    metadata: ObjectMeta
    spec: CronJobSpec = CronJobSpec()
    status: CronJobStatus = CronJobStatus()


class Command(Wire, frozen=True):
    """A request to act on a job or queue; whoever carries it out deletes it."""

    metadata: ObjectMeta
    action: str = ""
    target: OwnerReference = msgspec.field(default_factory=OwnerReference)
    reason: str = ""
    message: str = ""
