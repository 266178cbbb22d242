"""A job that Volcano's controllers ran before: failures that they have counted get no second answer.

A policy that they did not act on must not act at the take-over, long after the event: that would kill pods of a job
that runs. They read three things otherwise: only the exit code of the first container; no failed pods among the
restarts of a task; and the phase Unknown of a PodGroup only until all pods of the job were killed once.
"""

from collections.abc import Mapping

from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job import bookkeeping, delays, happenings, phases, policies
from volcano_py.controllers.job.bookkeeping import Notes
from volcano_py.controllers.job.members import FAILED, Members


def answered(job: Job, members: Members, group: PodGroup, budgets: Mapping[str, int]) -> Notes:
    """Return notes about what a status of Volcano has counted and a policy would answer.

    A policy that waits after a failure answers in time: Volcano keeps the timeouts that run in memory only.
    """
    if job.status.state.phase not in phases.ACTIVE:
        return {}
    found: Notes = {}
    for trigger in happenings.present(members, budgets, job.status.controlled_resources):
        member = trigger.member
        if member is None or len(found) >= delays.MOST_KEPT or not _has_counted(job, members, member.task):
            continue
        resolved = policies.resolve(job, trigger.request(job.metadata.uid))
        if resolved.action == policies.SYNC_JOB:
            continue
        if trigger.event == policies.POD_FAILED and not resolved.delay_s:
            found[f"{bookkeeping.ANSWERED_POD}{member.name}"] = member.uid
        elif trigger.event == policies.TASK_FAILED:
            task = members.task(member.task)
            found[f"{bookkeeping.TASK_FAILED}{member.task}"] = str(task.restarts + task.spent)
    if group.status.phase == phases.GROUP_UNKNOWN and job.status.version > 0:
        found[bookkeeping.ANSWERED_GROUP] = group.metadata.uid
    return found


def _has_counted(job: Job, members: Members, task: str) -> bool:
    """Say whether the status counts all failed pods of a task."""
    state = job.status.task_status_count.get(task)
    return (0 if state is None else state.phase.get(FAILED, 0)) >= members.task(task).phases[FAILED]
