"""The defaults of a job, as Volcano's webhook ``/jobs/mutate`` sets them.

The job controller reads every job through them, so that jobs run without the webhook. An explicit ``minAvailable: 0``
or ``maxRetry: 0`` counts as unset, as there.
"""

from typing import Any, Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Job, Task

MAX_RETRY: Final = 3
_DNS_OF_HOST_NETWORK: Final = "ClusterFirstWithHostNet"
_IMPLIED: Final = {"tensorflow": ("svc",), "pytorch": ("svc",), "ray": ("svc",), "mpi": ("svc", "ssh")}
"""Plugins that need other plugins."""


def with_defaults(job: Job, scheduler_name: str = keys.SCHEDULER_NAME, queue: str = keys.DEFAULT_QUEUE) -> Job:
    """Return the job with every default filled in."""
    spec = job.spec
    tasks = [_task(index, task) for index, task in enumerate(spec.tasks)]
    plugins = dict(spec.plugins)
    for name in spec.plugins:
        for implied in _IMPLIED.get(name, ()):
            plugins.setdefault(implied, [])
    return msgspec.structs.replace(
        job,
        spec=msgspec.structs.replace(
            spec,
            queue=spec.queue or queue,
            scheduler_name=spec.scheduler_name or scheduler_name,
            max_retry=spec.max_retry or MAX_RETRY,
            min_available=spec.min_available or sum(task.min_available or 0 for task in tasks),
            tasks=tasks,
            plugins=plugins,
        ),
    )


def _task(index: int, task: Task) -> Task:
    return msgspec.structs.replace(
        task,
        name=task.name or f"default{index}",
        min_available=least_of(task) if task.min_available is None else task.min_available,
        max_retry=task.max_retry or MAX_RETRY,
        template=_template(task.template),
    )


def least_of(task: Task) -> int:
    """Return ``minAvailable`` of a task, or its default: its least partitions, else all replicas."""
    if task.min_available is not None:
        return task.min_available
    partitions = task.partition_policy
    if partitions is not None and partitions.min_partitions > 0:
        return partitions.min_partitions * partitions.partition_size
    return task.replicas


def _template(template: dict[str, Any]) -> dict[str, Any]:
    spec = template.get("spec")
    if isinstance(spec, dict) and spec.get("hostNetwork") and not spec.get("dnsPolicy"):
        return {**template, "spec": {**spec, "dnsPolicy": _DNS_OF_HOST_NETWORK}}
    return template
