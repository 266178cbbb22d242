"""What is wrong with a job although the schema of jobs admits it. Volcano's webhook refuses such jobs.

The controller works without a webhook, too. Such a job gets no pods, and its state says what to change.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from volcano_py.api.batch import Job, LifecyclePolicy
from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.controllers.job.depends_on import by_name, dependency_ready, is_any
from volcano_py.controllers.job.phases import replicas_of

MOST_PODS: Final = 200_000
"""Pods that a job may ask for; a cluster of Kubernetes has at most 150,000."""


def has_too_many_pods(job: Job) -> bool:
    """Say whether a job asks for so many pods that noting each of them would take all memory."""
    return replicas_of(job) > MOST_PODS


def flaw(job: Job) -> str:
    """Return why a job with defaults cannot get pods and what to do, "" if nothing is wrong with it."""
    return next(_flaws(job), "")


def _flaws(job: Job) -> Iterator[str]:
    if has_too_many_pods(job):
        yield f"the tasks ask for {replicas_of(job)} pods: a job has at most {MOST_PODS}; lower spec.tasks.replicas"
    for name, count in Counter(task.name for task in job.spec.tasks).items():
        if count > 1:
            yield f"{count} tasks are named {name}: create the job with a name of its own for each task"
    tasks = {task.name for task in job.spec.tasks}
    for task in job.spec.tasks:
        for name in task.depends_on.name if task.depends_on is not None else ():
            if name not in tasks:
                known = ", ".join(sorted(tasks))
                yield (
                    f"task {task.name} waits for {name}, which is no task of the job: create the job with one of its "
                    f"tasks in dependsOn ({known})"
                )
    if waiting := _waiting_for_ever(job):
        yield (
            f"dependsOn forms a circle, so the pods of task {', '.join(waiting)} can never start: "
            "create the job without the circle"
        )
    for policy, owner in _policies(job):
        if policy.timeout:
            try:
                parse_go_duration(policy.timeout)
            except DurationError as error:
                yield f"timeout of a policy of {owner}: {error}"


def _waiting_for_ever(job: Job) -> list[str]:
    """Return the tasks that cannot start even when all pods of the others are ready; too few replicas are no circle.

    Each dependency is looked at once: all controllers wait meanwhile.
    """
    tasks = by_name(job)
    missing: dict[str, int] = {}  # how many dependencies must still become ready
    waiting: dict[str, list[str]] = {}
    for name, task in tasks.items():
        names = () if task.depends_on is None else task.depends_on.name
        unmet = [other for other in names if not dependency_ready(tasks.get(other), 0)]
        missing[name] = int(len(unmet) == len(names)) if is_any(task) else len(unmet)
        for other in unmet:
            waiting.setdefault(other, []).append(name)
    startable = [name for name, count in missing.items() if not count]
    for name in startable:  # grows while it is read
        for other in waiting.get(name, ()):
            missing[other] -= 1
            if not missing[other]:
                startable.append(other)
    started = set(startable)
    return [name for name in tasks if name not in started]


def _policies(job: Job) -> Iterator[tuple[LifecyclePolicy, str]]:
    for policy in job.spec.policies:
        yield policy, "the job"
    for task in job.spec.tasks:
        for policy in task.policies:
            yield policy, f"task {task.name}"
