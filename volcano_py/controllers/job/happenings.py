"""What happens to the pods of a job, as requests that its policies answer.

A change of a pod becomes a `Trigger` at the moment it is seen. A pod that the controller sees for the first time, for
instance after a restart, gives the triggers of its present state. So no trigger is lost with a process. Pods that the
controller kills itself give none.
"""

from typing import NamedTuple

from volcano_py.controllers.job import policies
from volcano_py.controllers.job.members import FAILED, PENDING, RUNNING, SUCCEEDED, Member, Members, TaskMembers
from volcano_py.controllers.job.policies import Request


class Trigger(NamedTuple):
    """Something that happened to one pod of a job, or to its PodGroup."""

    event: str
    member: Member | None = None
    """The pod as it was; None for the PodGroup."""

    def request(self, job_uid: str) -> Request:
        """Return the request that policies answer."""
        member = self.member
        if member is None:
            return Request(event=self.event, job_uid=job_uid)
        return Request(
            event=self.event,
            job_uid=job_uid,
            task=member.task,
            pod=member.name,
            pod_uid=member.uid,
            partition=member.partition,
            exit_code=member.exit_code if self.event == policies.POD_FAILED else 0,
            version=member.version,
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
        elif after.phase == SUCCEEDED and is_complete(members.task(after.task)):
            events.append(policies.TASK_COMPLETED)
    more = after.restarts > (0 if new or before is None else before.restarts)
    if more and 0 <= budget <= members.task(after.task).restarts + members.task(after.task).spent:
        events.append(policies.TASK_FAILED)
    return events


def removed(members: Members, last: Member) -> list[str]:
    """Return the events of a pod that is gone: it was evicted, unless the controller killed it or it was not needed."""
    if last.killed or not 0 <= last.index < members.task(last.task).replicas:
        return []
    return [policies.POD_EVICTED]


def is_complete(task: TaskMembers) -> bool:
    """Say whether all replicas of a task have succeeded."""
    return task.replicas > 0 and task.phases[SUCCEEDED] >= task.replicas
