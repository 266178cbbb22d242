"""minResources of a job's PodGroup: what its least number of pods uses, in the words of a quota (`quota_usage`).

Which pods these are depends on ``minAvailable`` of the job. If it is below the sum over its tasks, replicas are taken
task by task in order of priority. Otherwise each task gives its own minimum first; the rest are spare replicas, again
in order of priority.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from volcano_py.api.batch import Job, Task
from volcano_py.api.core import PodSpec
from volcano_py.api.job_defaults import least_of
from volcano_py.api.quantity import QuantityError
from volcano_py.controllers.quota_usage import Usage, quota_usage, usage_sum, usage_text


class Ranked(NamedTuple):
    """A task with the value of its priority class."""

    task: Task
    priority: int = 0


def ranked(job: Job, priorities: Mapping[str, int]) -> list[Ranked]:
    """Return the tasks by priority, highest first; a class that does not exist counts as 0."""
    tasks = [Ranked(task, priorities.get(_class_of(job, task), 0)) for task in job.spec.tasks]
    return sorted(tasks, key=lambda one: -one.priority)


def min_resources(job: Job, priorities: Mapping[str, int]) -> dict[str, str]:
    """Return the quantities by name; raise QuantityError naming the task and field that cannot be read."""
    tasks, wanted = ranked(job, priorities), job.spec.min_available
    if wanted < sum(least_of(one.task) for one in tasks):
        return _text(tasks, _by_priority(tasks, wanted))
    return filled(tasks, wanted)


def filled(tasks: Sequence[Ranked], wanted: int) -> dict[str, str]:
    """Return what ``wanted`` pods use: the minimum of each task first, then spare replicas in order."""
    tasks = sorted(tasks, key=lambda one: -one.priority)
    taken: list[int] = []
    left = wanted
    for one in tasks:
        taken.append(min(least_of(one.task), left))
        left -= taken[-1]
    for position, one in enumerate(tasks):
        more = min(one.task.replicas - taken[position], left)
        if more > 0:
            taken[position] += more
            left -= more
    return _text(tasks, taken)


def _by_priority(tasks: Sequence[Ranked], wanted: int) -> list[int]:
    taken: list[int] = []
    for one in tasks:
        taken.append(min(one.task.replicas, wanted))
        wanted -= taken[-1]
    return taken


def _text(tasks: Sequence[Ranked], taken: Sequence[int]) -> dict[str, str]:
    return usage_text(usage_sum((_usage(one.task), pods) for one, pods in zip(tasks, taken, strict=True) if pods))


def _usage(task: Task) -> Usage:
    try:
        return quota_usage(msgspec.convert(task.template.get("spec") or {}, PodSpec, strict=False))
    except (QuantityError, msgspec.ValidationError) as error:
        raise QuantityError(f"template of task {task.name}: {error}") from error


def _class_of(job: Job, task: Task) -> str:
    spec = task.template.get("spec") or {}
    return spec.get("priorityClassName") or job.spec.priority_class_name
