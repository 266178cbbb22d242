"""Builds the pods of a job from the raw templates of its tasks: every field of a template arrives in the pod."""

from typing import Any, Final

from volcano_py.api import keys
from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job import objects
from volcano_py.controllers.job.volumes import Mount, mounts
from volcano_py.controllers.podgroup.names import COOLDOWN_TIME, PREEMPTABLE

_TRUE: Final = "true"


class PodFactory:
    """Builds the pods of one task; all that does not depend on the index is prepared once."""

    def __init__(self, job: Job, task: Task, *, forwarded: bool = False) -> None:
        meta, template = job.metadata, task.template
        self._job = job
        self._task = task
        self._size = 0 if task.partition_policy is None else task.partition_policy.partition_size
        given = template.get("metadata") or {}
        self._annotations = {**(given.get("annotations") or {}), **_annotations(job, task)}
        self._annotations.pop(keys.OUT_OF_SYNC, None)  # a template copied from a pod that was killed
        self._labels = {**(given.get("labels") or {}), **_labels(job, task)}
        if forwarded:
            self._annotations[keys.JOB_FORWARDING] = self._labels[keys.JOB_FORWARDING] = _TRUE
        self._given = {name: value for name, value in given.items() if name not in _OWN_METADATA}
        self._owners = [objects.owner_reference(meta.name, meta.uid)]
        self._spec = _spec(job, template.get("spec") or {})

    def pod(self, index: int) -> dict[str, Any]:
        """Return pod ``index`` of the task. Its top levels are new; what is below belongs to the template."""
        meta = self._job.metadata
        number = str(index)
        labels = {**self._labels, keys.TASK_INDEX: number}
        if self._task.partition_policy is not None:
            labels[keys.PARTITION_ID] = str(partition_of(self._size, index))
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **self._given,
                "name": objects.pod_name(meta.name, self._task.name, index),
                "namespace": meta.namespace,
                "labels": labels,
                "annotations": {**self._annotations, keys.TASK_INDEX: number},
                "ownerReferences": self._owners,
            },
            "spec": {**self._spec},
        }


_OWN_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations")


def partition_of(size: int, index: int) -> int:
    """Return the partition of a pod; 0 for a size or index that makes no sense."""
    return index // size if size > 0 and index > 0 else 0


def _annotations(job: Job, task: Task) -> dict[str, str]:
    meta, spec, status = job.metadata, job.spec, job.status
    found = {
        keys.TASK_SPEC: task.name,
        keys.GROUP_NAME: objects.group_name(meta.name, meta.uid),
        keys.JOB_NAME: meta.name,
        keys.JOB_QUEUE: spec.queue,
        keys.JOB_VERSION: str(status.version),
        keys.TEMPLATE_UID: f"{meta.name}-{task.name}",
        keys.JOB_RETRY_COUNT: str(status.retry_count),
    }
    if task.topology_policy:
        found[keys.NUMA_POLICY] = task.topology_policy
    copied = [PREEMPTABLE, COOLDOWN_TIME, keys.REVOCABLE_ZONE]
    copied.append(keys.JDB_MIN_AVAILABLE if keys.JDB_MIN_AVAILABLE in meta.annotations else keys.JDB_MAX_UNAVAILABLE)
    return {**found, **{name: meta.annotations[name] for name in copied if name in meta.annotations}}


def _labels(job: Job, task: Task) -> dict[str, str]:
    meta = job.metadata
    found = {
        keys.JOB_NAME: meta.name,
        keys.TASK_SPEC: task.name,
        keys.JOB_NAMESPACE: meta.namespace,
        keys.JOB_QUEUE: job.spec.queue,
    }
    return {**found, **{name: meta.labels[name] for name in (PREEMPTABLE, COOLDOWN_TIME) if name in meta.labels}}


def _spec(job: Job, given: dict[str, Any]) -> dict[str, Any]:
    spec = dict(given)
    if not spec.get("schedulerName"):
        spec["schedulerName"] = job.spec.scheduler_name
    if not spec.get("priorityClassName") and job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if mounted := mounts(job):
        claims = {mount.volume: mount.claim for mount in mounted}
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()]
        spec["volumes"] = [*(spec.get("volumes") or []), *volumes]
        spec["containers"] = [_mount(container, mounted) for container in spec.get("containers") or []]
    return spec


def _mount(container: dict[str, Any], mounted: list[Mount]) -> dict[str, Any]:
    added = [{"name": mount.volume, "mountPath": mount.path} for mount in mounted]
    return {**container, "volumeMounts": [*(container.get("volumeMounts") or []), *added]}
