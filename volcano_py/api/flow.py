"""The group ``flow.volcano.sh``: job flows, which run jobs one after the other, and the templates of these jobs.

The spec of a job template is kept as it was sent: a job gets all of its fields, also those that nobody here reads.
"""

from datetime import datetime
from typing import Any

import msgspec

from volcano_py.api.batch import TaskState
from volcano_py.api.meta import ObjectMeta, Wire


class HttpGetProbe(Wire, frozen=True):
    """A request that the pods of a task must answer."""

    task_name: str = ""
    path: str = ""
    port: int = 0


class TcpSocketProbe(Wire, frozen=True):
    """A port that the pods of a task must listen on."""

    task_name: str = ""
    port: int = 0


class TaskStatusProbe(Wire, frozen=True):
    """A phase that the pods of a task must be in."""

    task_name: str = ""
    phase: str = ""


class Probe(Wire, frozen=True):
    """What must hold of the targets of a step before it starts."""

    http_get_list: list[HttpGetProbe] = []
    tcp_socket_list: list[TcpSocketProbe] = []
    task_status_list: list[TaskStatusProbe] = []


class FlowDependsOn(Wire, frozen=True):
    """The steps that a step waits for."""

    targets: list[str] = []
    probe: Probe | None = None


class FlowPatch(Wire, frozen=True):
    """Changes to the spec of a job template."""

    job_spec: dict[str, Any] = {}


class FlowStep(Wire, frozen=True):
    """A step of a flow: the job template with its name, and what it waits for."""

    name: str = ""
    depends_on: FlowDependsOn | None = None
    patch: FlowPatch | None = None


class JobFlowSpec(Wire, frozen=True):
    """The steps of a flow."""

    flows: list[FlowStep] = []
    job_retain_policy: str = ""
    """``delete``: the jobs are deleted when the flow has succeeded; ``retain`` or empty: they stay."""


class RunningHistory(Wire, frozen=True):
    """A phase that a job was in."""

    start_timestamp: datetime | None = None
    end_timestamp: datetime | None = None
    state: str = ""


class FlowJobStatus(Wire, frozen=True):
    """What became of a job of a flow."""

    name: str = ""
    state: str = ""
    """The phase of the job."""
    start_timestamp: datetime | None = None
    end_timestamp: datetime | None = None
    restart_count: int = 0
    running_histories: list[RunningHistory] = []


class FlowCondition(Wire, frozen=True):
    """A job of a flow at a glance."""

    phase: str = ""
    create_time: datetime | None = None
    running_duration: str = ""
    task_status_count: dict[str, TaskState] = {}


class FlowState(Wire, frozen=True):
    """The phase of a flow."""

    phase: str = ""


class JobFlowStatus(Wire, frozen=True):
    """Where a flow stands: its jobs by phase, and each of them in detail."""

    pending_jobs: list[str] = []
    running_jobs: list[str] = []
    failed_jobs: list[str] = []
    completed_jobs: list[str] = []
    terminated_jobs: list[str] = []
    unknown_jobs: list[str] = msgspec.field(default_factory=list, name="unKnowJobs")
    job_status_list: list[FlowJobStatus] = []
    conditions: dict[str, FlowCondition] = {}
    """By the name of the job."""
    state: FlowState = FlowState()


class JobFlow(Wire, frozen=True):
    """A flow of jobs."""

    metadata: ObjectMeta
    spec: JobFlowSpec = JobFlowSpec()
    status: JobFlowStatus = JobFlowStatus()


class JobTemplateStatus(Wire, frozen=True):
    """The jobs that were created from a template."""

    job_depends_on_list: list[str] = []


class JobTemplate(Wire, frozen=True):
    """The spec of a job, kept for job flows."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: JobTemplateStatus = JobTemplateStatus()
