"""Jobs and their pods, as short as a test needs them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Command, Job
from volcano_py.api.job_defaults import with_defaults
from volcano_py.controllers.job.members import Member, Members
from volcano_py.controllers.job.objects import JobPod
from volcano_py.kube.resource import VCJOBS

NOW: Final = datetime(2024, 1, 1, 12, tzinfo=UTC)
UID: Final = "uid-train"


def a_job_task(
    name: str = "worker", replicas: int = 2, template: Mapping[str, Any] | None = None, **fields: Any
) -> Any:
    """Return a task; its template has one container unless another template is given."""
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}
    return {"name": name, "replicas": replicas, "template": template or {"spec": {"containers": [container]}}, **fields}


def a_vcjob(
    *tasks: Any,
    phase: str = "",
    status: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Job:
    """Return a job as a user wrote it: by default, one task of two pods; keys are those of the wire."""
    metadata = {"name": "train", "namespace": "ns", "uid": UID, "resourceVersion": "1", "generation": 1}
    state = {"state": {"phase": phase}} if phase else {}
    body = {
        "metadata": {**metadata, "creationTimestamp": NOW, **(meta or {})},
        "spec": {"tasks": list(tasks) or [a_job_task()], **spec},
        "status": {**state, **(status or {})},
    }
    return msgspec.convert(body, Job)


def a_ready_job(*tasks: Any, **fields: Any) -> Job:
    """Return a job with its defaults."""
    return with_defaults(a_vcjob(*tasks, **fields))


def on(event: str, action: str, **fields: Any) -> Any:
    """Return a policy."""
    return {"event": event, "action": action, **fields}


def a_job_pod_body(
    name: str = "train-worker-0",
    phase: str = "Running",
    *,
    uid: str = "",
    version: int = 0,
    resource_version: str = "1",
    deleting: bool = False,
    killed: bool = False,
    exit_code: int | None = None,
    restarts: int = 0,
    ready: bool = True,
    partition: str | None = None,
    ended: datetime | None = None,
) -> dict[str, Any]:
    """Return a pod of the job `a_vcjob`, whose task and index are read from its name."""
    task, index = name.removeprefix("train-").rsplit("-", 1)
    annotations = {keys.TASK_SPEC: task, keys.JOB_VERSION: str(version)} | (
        {keys.OUT_OF_SYNC: "true"} if killed else {}
    )
    terminated = {"exitCode": exit_code or 0, "finishedAt": ended} if exit_code is not None or ended else None
    container = {"name": "main", "ready": ready, "restartCount": restarts, "state": {"terminated": terminated}}
    owner = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": "train", "uid": UID, "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or f"uid-{name}",
            "resourceVersion": resource_version,
            "creationTimestamp": NOW,
            "deletionTimestamp": NOW if deleting else None,
            "annotations": annotations,
            "labels": {keys.TASK_INDEX: index} | ({} if partition is None else {keys.PARTITION_ID: partition}),
            "ownerReferences": [owner],
        },
        "status": {"phase": phase, "containerStatuses": [container]},
    }


def a_job_pod(name: str = "train-worker-0", phase: str = "Running", **fields: Any) -> JobPod:
    """Return a pod as the controller reads it."""
    return msgspec.convert(a_job_pod_body(name, phase, **fields), JobPod)


def a_member(name: str = "train-worker-0", phase: str = "Running", **fields: Any) -> Member:
    """Return a pod as the controller keeps it."""
    return Member.of(a_job_pod(name, phase, **fields))


def members_of(job: Job, pods: Iterable[Member]) -> Members:
    """Return the pods of a job."""
    members = Members()
    members.expect((task.name, task.replicas) for task in job.spec.tasks)
    for pod in pods:
        members.put(pod)
    return members


def a_command(action: str, name: str = "c1", **target: Any) -> Command:
    """Return a request to act on the job `a_vcjob`."""
    aim = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": "train", "uid": UID, **target}
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": NOW}
    return msgspec.convert({"metadata": meta, "action": action, "target": aim}, Command)
