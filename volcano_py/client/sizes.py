"""How many pods a job has and needs, with the defaults of Volcano's webhook: jobs run without the webhook, too."""

from collections.abc import Mapping
from typing import Any

Obj = Mapping[str, Any]


def tasks_of(job: Obj) -> dict[str, Obj]:
    """Return the tasks of a job by name; a task without a name is `default` and its place."""
    tasks = (job.get("spec") or {}).get("tasks") or ()
    return {str(task.get("name") or f"default{place}"): task for place, task in enumerate(tasks)}


def replicas_of(task: Obj) -> int:
    """Return how many pods a task wants."""
    return int(task.get("replicas") or 0)


def least_of(task: Obj) -> int:
    """Return ``minAvailable`` of a task, or its default: its least partitions, else all replicas."""
    if task.get("minAvailable") is not None:
        return int(task["minAvailable"])
    partitions = task.get("partitionPolicy") or {}
    if partitions.get("minPartitions"):
        return int(partitions["minPartitions"]) * int(partitions.get("partitionSize") or 0)
    return replicas_of(task)


def minimum_of(job: Obj) -> int:
    """Return how many pods must run together; an explicit 0 counts as not set."""
    given = (job.get("spec") or {}).get("minAvailable") or (job.get("status") or {}).get("minAvailable")
    return int(given or sum(map(least_of, ((job.get("spec") or {}).get("tasks") or ()))))
