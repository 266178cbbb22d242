"""Jobs that wait for pods which will never run again: pods that failed, and that no policy restarts.

Such a job stays as it is, as in Volcano. Its state says what it waits for, and what to do.
"""

from typing import Final

from volcano_py.api import keys
from volcano_py.api.batch import Job, Task
from volcano_py.api.job_defaults import least_of
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job.depends_on import by_name, may_start
from volcano_py.controllers.job.members import FAILED, Members
from volcano_py.controllers.job.observed import Problem
from volcano_py.controllers.job.phases import replicas_of

FAILED_PODS: Final = "BlockedByFailedPods"
DEPENDENCY_FAILED: Final = "DependencyFailed"


def problem(job: Job, members: Members, group: PodGroup | None) -> Problem | None:
    """Return what a job with defaults waits for in vain, None if there is nothing of that kind."""
    return _gang(job, members, group) or _dependency(job, members)


def _gang(job: Job, members: Members, group: PodGroup | None) -> Problem | None:
    """Return that pods wait for a gang that cannot be complete, once the scheduler has refused it."""
    counts = members.counts()
    if not (counts.failed and counts.pending) or group is None or not _is_refused(group):
        return None
    short = replicas_of(job) - counts.failed < job.spec.min_available
    roles = job.spec.min_available >= sum(least_of(task) for task in job.spec.tasks)
    if not short and not (roles and any(_lacks(members, task) for task in job.spec.tasks)):
        return None
    failed = sorted(member.name for member in members if member.phase == FAILED and not member.deleting)
    text = (
        f"the gang cannot be complete, and {_pods(counts.pending)} of it {'waits' if counts.pending == 1 else 'wait'}: "
        f"pod {failed[0]}"
        f"{f' and {len(failed) - 1} more' if failed[1:] else ''} failed, and no policy restarts it; delete it "
        f"(kubectl delete pod {failed[0]} -n {job.metadata.namespace}), and it runs again"
    )
    return Problem(FAILED_PODS, text)


def _is_refused(group: PodGroup) -> bool:
    return any(one.type == keys.CONDITION_UNSCHEDULABLE and one.status == "True" for one in group.status.conditions)


def _lacks(members: Members, task: Task) -> bool:
    return task.replicas - members.task(task.name).phases[FAILED] < least_of(task)


def _dependency(job: Job, members: Members) -> Problem | None:
    """Return that a task waits for another one whose pods have ended and were not enough."""
    if all(task.depends_on is None for task in job.spec.tasks):
        return None
    tasks = by_name(job)
    ready = {name: task.ready for name, task in members.tasks}
    hopeful = {name: there.replicas - there.phases[FAILED] for name, there in members.tasks}
    for task in job.spec.tasks:
        waits = task.depends_on is not None and members.task(task.name).missing
        if not waits or may_start(tasks, task, ready) or may_start(tasks, task, hopeful):
            continue
        for name in task.depends_on.name if task.depends_on is not None else ():
            needed = (tasks[name].min_available or 0) if name in tasks else 0
            if hopeful.get(name, 0) < needed:
                failed = members.task(name).phases[FAILED]
                text = (
                    f"task {task.name} waits for {_pods(needed)} of task {name}, and {_pods(failed)} of it failed: "
                    "delete the failed pods, and they run again; or delete the job and give it a policy for PodFailed"
                )
                return Problem(DEPENDENCY_FAILED, text)
    return None


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
