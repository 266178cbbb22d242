"""What happens to the pods of a job, as requests that its policies answer.

A change of a pod becomes a `Trigger` at the moment it is seen. At its first look at a job, for instance after a
restart, the controller derives triggers from the present state (`present`, `missed`). So no trigger is lost with a
process. Pods that the controller kills itself give none.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from volcano_py.api.batch import Job, Task, TaskState
from volcano_py.controllers.job import bookkeeping, objects, phases, policies
from volcano_py.controllers.job.members import FAILED, PENDING, RUNNING, SUCCEEDED, Member, Members
from volcano_py.controllers.job.pods import partition_of
from volcano_py.controllers.job.policies import Request

COMPLETED: Final = "Completed"
"""A pod is gone that had succeeded. No policy can name this event: the controller notes it, and that is all."""


class Trigger(NamedTuple):
    """Something that happened to one pod of a job, or to its PodGroup."""

    event: str
    member: Member | None = None
    """The pod as it was; None for the PodGroup."""
    version: int | None = None
    """status.version of the job when the PodGroup was created, None if it does not say."""

    def request(self, job_uid: str) -> Request:
        """Return the request that policies answer."""
        member = self.member
        if member is None:
            return Request(event=self.event, job_uid=job_uid, version=self.version)
        return Request(
            event=self.event,
            job_uid=job_uid,
            task=member.task,
            pod=member.name,
            pod_uid=member.uid,
            partition=member.partition,
            exit_code=member.exit_code if self.event == policies.POD_FAILED else 0,
            version=member.version,
            retry=member.retry,
        )


def changed(members: Members, before: Member | None, after: Member, budget: int) -> list[str]:
    """Return the events of a pod that was added or changed; ``budget`` is the maxRetry of its task, -1 for no limit."""
    if after.killed or after.deleting:
        return []
    new = before is None or before.uid != after.uid
    was = "" if new or before is None else before.phase
    events = []
    if after.phase != was:
        if after.phase == FAILED:
            events.append(policies.POD_FAILED)
        elif after.phase == RUNNING:
            events.append(policies.POD_RUNNING)
        elif after.phase == PENDING:
            events.append(policies.POD_PENDING)
        elif after.phase == SUCCEEDED and is_complete(members, after.task):
            events.append(policies.TASK_COMPLETED)
    more = after.restarts > (0 if new or before is None else before.restarts)
    if more and 0 <= budget <= members.task(after.task).restarts + members.task(after.task).spent:
        events.append(policies.TASK_FAILED)
    return events


def present(members: Members, budgets: Mapping[str, int], notes: Mapping[str, str]) -> list[Trigger]:
    """Return the triggers of the present state of all pods.

    ``budgets`` is the maxRetry of each task. ``notes`` of the job say which restarts of a task, and which failures of
    pods, were answered already.
    """
    found: list[Trigger] = []
    told = {  # events of whole tasks
        (policies.TASK_FAILED, name)
        for name, task in members.tasks
        if task.restarts + task.spent <= bookkeeping.answered_restarts(notes, name)
    }
    for member in sorted(members, key=lambda one: one.name):
        for event in changed(members, None, member, budgets.get(member.task, -1)):
            if event == policies.POD_FAILED and notes.get(f"{bookkeeping.ANSWERED_POD}{member.name}") == member.uid:
                continue
            if event in (policies.TASK_COMPLETED, policies.TASK_FAILED):
                if (event, member.task) in told:
                    continue
                told.add((event, member.task))
            found.append(Trigger(event, member))
    return found


def removed(members: Members, last: Member) -> list[str]:
    """Return the events of a pod that is gone: it was evicted, unless the controller killed it or it was not needed.

    A pod that has done its work is not evicted: nodes are removed and old pods cleaned up while a job runs.
    """
    if last.killed or last.dropped or not 0 <= last.index < members.task(last.task).replicas:
        return []
    return [COMPLETED if last.completed else policies.POD_EVICTED]


def missed(job: Job, members: Members) -> list[Trigger]:
    """Return what happened to pods that stand in the status of a job and do not exist: evictions, and completions.

    These are pods that somebody was deleting when the controller ended, pods whose end waited for an answer then, and
    pods by which the counts of the status exceed the pods of their task. Of the latter, those with the lowest missing
    index count as evicted, unless all of them had succeeded. Pods that a restart kills are in no count.
    """
    found: dict[str, Trigger] = {}
    status = job.status
    for key, uid in status.controlled_resources.items():
        name = key.removeprefix(bookkeeping.EVICTING)
        if name == key or ((member := members.get(name)) is not None and member.uid == uid):
            continue
        last = vanished(job, *_task_and_index(job, name))
        if removed(members, last):
            found[name] = Trigger(policies.POD_EVICTED, last)
    for task in job.spec.tasks:
        state, there = status.task_status_count.get(task.name), members.task(task.name)
        killed = _killed_by_restart(job, task)
        if state is None:
            continue
        known = there.by_index.keys() | there.completed
        lost, missing = sum(state.phase.values()) - len(known - killed), sorted(there.missing - killed)
        succeeded = state.phase.get(SUCCEEDED, 0) - there.phases[SUCCEEDED]
        certain = _tells_indices(job, task, state, members) and succeeded == lost == len(missing)
        event = COMPLETED if certain else policies.POD_EVICTED
        for index in missing[: max(0, lost)]:
            name = objects.pod_name(job.metadata.name, task.name, index)
            found.setdefault(name, Trigger(event, vanished(job, task.name, index)))
    return [found[name] for name in sorted(found)]


def _tells_indices(job: Job, task: Task, state: TaskState, members: Members) -> bool:
    """Say whether the counts of a task tell which pods had succeeded: if not, all that vanished run again.

    That is so if the task was never scaled, all its pods were counted, and none of those that are there terminates.
    """
    names = members.task(task.name).by_index.values()
    leaves = any(member is not None and member.deleting for member in map(members.get, names))
    return job.metadata.generation <= 1 and sum(state.phase.values()) == task.replicas and not leaves


def _killed_by_restart(job: Job, task: Task) -> set[int]:
    """Return the indices of the pods of a task that a restart which is under way kills."""
    if job.status.state.phase != phases.RESTARTING:
        return set()
    every = set(range(task.replicas))
    size = task.partition_policy.partition_size if task.partition_policy is not None else 0
    found: set[int] = set()
    for key, value in job.status.controlled_resources.items():
        if key in (bookkeeping.RESTARTING_ALL, f"{bookkeeping.RESTARTING}task/{task.name}"):
            return every
        if key == f"{bookkeeping.RESTARTING}partition/{task.name}/{value}":
            found |= {index for index in every if str(partition_of(size, index)) == value}
        elif key.startswith(f"{bookkeeping.RESTARTING}pod/"):
            name, index = _task_and_index(job, key.removeprefix(f"{bookkeeping.RESTARTING}pod/"))
            found |= {index} if name == task.name else set()
    return found


def _task_and_index(job: Job, name: str) -> tuple[str, int]:
    task, _, index = name.removeprefix(f"{job.metadata.name}-").rpartition("-")
    number = objects.number(index)
    return task, objects.LOST if number is None else number


def vanished(job: Job, task: str, index: int) -> Member:
    """Return a pod that is gone, as far as the job says what it was."""
    spec = policies.task_of(job, task)
    policy = None if spec is None else spec.partition_policy
    return Member(
        name=objects.pod_name(job.metadata.name, task, index),
        uid="",
        version=job.status.version,
        task=task,
        index=index,
        phase=RUNNING,
        deleting=False,
        killed=False,
        ready=False,
        restarts=0,
        exit_code=0,
        partition="" if policy is None else str(partition_of(policy.partition_size, index)),
        reason="",
        created=None,
        ended=None,
        resource_version="",
    )


def is_complete(members: Members, name: str) -> bool:
    """Say whether all replicas of a task have succeeded; pods beyond the replicas do not count."""
    task = members.task(name)
    extra = (members.get(pod) for pod in task.extra)
    beyond = sum(pod is not None and pod.phase == SUCCEEDED for pod in extra)
    departing = sum(_has_done_its_work(members.get(pod), task.replicas) for pod in task.departing)
    return task.replicas > 0 and task.phases[SUCCEEDED] - beyond + departing >= task.replicas


def _has_done_its_work(pod: Member | None, replicas: int) -> bool:
    return pod is not None and 0 <= pod.index < replicas and not (pod.killed or pod.dropped)
