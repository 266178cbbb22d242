"""Pods of jobs as the job controller reads them, and names of what belongs to a job."""

import contextlib
import re
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from volcano_py.api import keys
from volcano_py.api.meta import ObjectMeta, OwnerReference, Wire
from volcano_py.api.timestamp import wire_time
from volcano_py.kube.resource import VCJOBS

_NUMBER: Final = re.compile("[0-9]{1,10}")  # of 32 bits
LOST: Final = -1
"""The index of a pod that says none."""
KILLED: Final = "true"
NOT_NEEDED: Final = "not-needed"
"""Why the controller deletes a pod (annotation `keys.OUT_OF_SYNC`): Volcano knows the first. It is no eviction."""
LATE_S: Final = 30.0
"""A pod that has not gone so long after its grace period needs somebody's help."""


class Terminated(Wire, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    finished_at: datetime | None = None


class ContainerState(Wire, frozen=True):
    """The state of a container."""

    terminated: Terminated | None = None


class ContainerStatus(Wire, frozen=True):
    """A container of a pod."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()


class JobPodStatus(Wire, frozen=True):
    """Where a pod stands."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    container_statuses: list[ContainerStatus] = msgspec.field(default_factory=list)
    init_container_statuses: list[ContainerStatus] = msgspec.field(default_factory=list)


class JobPodSpec(Wire, frozen=True):
    """What the job controller reads of a pod's spec."""

    restart_policy: str = ""


class PodLabels(Wire, frozen=True):
    """The labels that are read; a struct of them costs a third of a dictionary of all."""

    index: str = msgspec.field(default="", name=keys.TASK_INDEX)
    partition: str = msgspec.field(default="", name=keys.PARTITION_ID)


class PodAnnotations(Wire, frozen=True):
    """The annotations that are read."""

    task: str = msgspec.field(default="", name=keys.TASK_SPEC)
    version: str = msgspec.field(default="", name=keys.JOB_VERSION)
    deleted: str = msgspec.field(default="", name=keys.OUT_OF_SYNC)
    retry: str = msgspec.field(default="", name=keys.JOB_RETRY_COUNT)


class JobPodMeta(Wire, frozen=True):
    """The metadata of a pod of a job."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: PodLabels = PodLabels()
    annotations: PodAnnotations = PodAnnotations()
    owner_references: list[OwnerReference] = msgspec.field(default_factory=list)


class JobPod(Wire, frozen=True):
    """A pod of a job."""

    metadata: JobPodMeta
    spec: JobPodSpec = JobPodSpec()
    status: JobPodStatus = JobPodStatus()


class JobKey(NamedTuple):
    """A job by namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def owner_of(meta: ObjectMeta | JobPodMeta) -> str:
    """Return the uid of the job that controls an object, "" if no job does."""
    for owner in meta.owner_references:
        if owner.controller and owner.kind == VCJOBS.kind and owner.api_version == VCJOBS.api_version:
            return owner.uid
    return ""


def is_of_predecessor(meta: ObjectMeta | JobPodMeta, job: ObjectMeta) -> bool:
    """Say whether an object belongs to an earlier job of this name, with which the garbage collector deletes it."""
    owner = owner_of(meta)
    return owner not in ("", job.uid) and any((one.uid, one.name) == (owner, job.name) for one in meta.owner_references)


def key_of(meta: ObjectMeta) -> str:
    """Return the key of a job: its namespace and uid, as `owner_key` has them."""
    return f"{meta.namespace}/{meta.uid}"


def owner_key(meta: ObjectMeta | JobPodMeta) -> str:
    """Return the key of the job that controls an object, "" if no job does.

    A job owns nothing in other namespaces. A copy of its pod there may still name it, and is not its pod.
    """
    owner = owner_of(meta)
    return f"{meta.namespace}/{owner}" if owner else ""


def owner_in(obj: dict[str, Any]) -> str:
    """Return the uid of the controlling owner of an object as plain JSON, "" if it has none."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((one.get("uid", "") for one in references if one.get("controller")), "")


def owner_reference(name: str, uid: str) -> dict[str, Any]:
    """Return the reference by which a job controls an object."""
    return {
        "apiVersion": VCJOBS.api_version,
        "kind": VCJOBS.kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_name(job: str, task: str, index: int) -> str:
    """Return the name of a pod of a job."""
    return f"{job}-{task}-{index}"


def group_name(job: str, uid: str) -> str:
    """Return the name of the PodGroup of a job."""
    return f"{job}-{uid}"


def number(text: str) -> int | None:
    """Return the number that a text says, None for a text of anything but at most ten plain digits.

    Anybody may write annotations, and ``int`` refuses or mistakes some of what `str.isdigit` accepts.
    """
    return int(text) if _NUMBER.fullmatch(text) else None


def index_of(meta: JobPodMeta) -> int:
    """Return the index of a pod in its task from its label; raise ValueError if it says none."""
    if not meta.labels.index:
        raise ValueError(f"pod {meta.namespace}/{meta.name} has no label {keys.TASK_INDEX}")
    return int(meta.labels.index)


def task_and_index(meta: JobPodMeta) -> tuple[str, int]:
    """Return the task of a pod and its index, LOST if it has none.

    They stand in an annotation and a label, and also in the name of the pod, in case somebody removes the others.
    """
    task = meta.annotations.task
    if task:
        with contextlib.suppress(ValueError):
            return task, index_of(meta)
    owner = next((one.name for one in meta.owner_references if one.controller), "")
    named, _, last = meta.name.removeprefix(f"{owner}-").rpartition("-")
    index = number(last)
    return task or named, LOST if index is None else index


def exit_code(pod: JobPod) -> int:
    """Return the exit code of a failed pod: that of its first container that failed, 0 if none says one."""
    ended = (status.state.terminated for status in pod.status.container_statuses)
    return next((one.exit_code for one in ended if one is not None and one.exit_code), 0)


def ended_at(pod: JobPod) -> datetime | None:
    """Return when the last container of a pod ended, None if no container says so."""
    ended = (status.state.terminated for status in pod.status.container_statuses)
    return max((one.finished_at for one in ended if one is not None and one.finished_at is not None), default=None)


def restarts(pod: JobPod) -> int:
    """Return how often the containers of a pod were restarted.

    A container that failed and is never restarted counts as one restart: it uses up the same budget.
    """
    status = pod.status
    count = sum(one.restart_count for one in (*status.init_container_statuses, *status.container_statuses))
    return count + (1 if status.phase == "Failed" else 0)


def is_ready(pod: JobPod) -> bool:
    """Say whether a pod lets dependent tasks start: it succeeded, or runs with all containers ready."""
    phase = pod.status.phase
    return phase == "Succeeded" or (phase == "Running" and all(one.ready for one in pod.status.container_statuses))


def is_older(meta: ObjectMeta, other: ObjectMeta) -> bool:
    """Say whether an object was created before another one; both say it in whole seconds."""
    created, since = meta.creation_timestamp, other.creation_timestamp
    return created is not None and since is not None and created < since


def terminates(meta: ObjectMeta | JobPodMeta, now: datetime) -> bool:
    """Say whether an object is being deleted and will soon be gone."""
    return meta.deletion_timestamp is not None and (now - meta.deletion_timestamp).total_seconds() < LATE_S


def will_go(meta: ObjectMeta | JobPodMeta, job: ObjectMeta, now: datetime) -> bool:
    """Say whether what has the name of something that a job needs will soon be gone without anybody's help."""
    return is_of_predecessor(meta, job) if meta.deletion_timestamp is None else terminates(meta, now)


def name_taken(meta: ObjectMeta | JobPodMeta, what: str = "a pod of that name", held_by: str = " and its node") -> str:
    """Return what to do about something that has the name of what a job needs, and does not go by itself."""
    if meta.deletion_timestamp is None:
        return f"{what} exists and belongs to somebody else: delete it, or give the job another name"
    since = wire_time(meta.deletion_timestamp)
    return f"{what} was to be gone at {since} and still terminates: look at its finalizers{held_by}"
