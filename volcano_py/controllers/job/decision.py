"""Decides about a job: observed objects and the time in, status and writes out.

A look takes the first of these steps that is needed, and asks for another look.

1. A Command, or something that happened to a pod, asks for an action (`acting`): the status enters the phase of that
   action. Pods are killed after that, so a controller that ends in between goes on where it was.
2. The phase says what else to do: create what is missing (Pending, Running), kill what is left (Restarting, Aborting,
   Terminating, Completing), or clean up (Completed, Failed, Terminated, Aborted).
3. Counters that changed are written, at most once a second within a phase.
"""

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Job, JobStatus, Task
from volcano_py.api.quantity import QuantityError
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job import acting, blocked, bookkeeping, phases, pod_group, policies, volumes
from volcano_py.controllers.job import status as statuses
from volcano_py.controllers.job.delays import Delayed
from volcano_py.controllers.job.depends_on import by_name, may_start
from volcano_py.controllers.job.members import SUCCEEDED
from volcano_py.controllers.job.min_resources import ranked
from volcano_py.controllers.job.observed import JobPlan, Observed, Problem
from volcano_py.controllers.job.phases import Change
from volcano_py.controllers.writes import Delete, Patch, Write
from volcano_py.kube.resource import PODGROUPS, VCJOBS
from volcano_py.model.decisions import RecordEvent

COUNTERS_EVERY_S: Final = 1.0
"""Counters that change within a phase are written this often."""
PODS_AT_ONCE: Final = 500
"""Pods that one look creates; what happens meanwhile is seen at the next look."""

CREATED: Final = "Created"
PODS_CREATED: Final = "PodsCreated"
"""Reasons of the phase Pending while nothing is wrong."""
_PODS_FOLLOW: Final = "the PodGroup of the job is created; its pods follow when the queue has room"
_PODS_EXIST: Final = "the pods of the job are created; they wait for nodes"
FAILED_CREATE: Final = "FailedCreate"
EVENT_GROUP_PENDING: Final = "PodGroupPending"
_PROBLEM_EVENTS: Final = {
    "InvalidJob": "InvalidJob",
    "QueueNotFound": "QueueNotFound",
    "PluginError": "PluginError",
    "ClaimNotFound": "PVCError",
    "PriorityClassNotFound": "PriorityClassNotFound",
    "InvalidTemplate": "PodGroupError",
    blocked.FAILED_PODS: blocked.FAILED_PODS,
    blocked.DEPENDENCY_FAILED: blocked.DEPENDENCY_FAILED,
}
"""The reason of the event for each problem; the names are Volcano's where it has one."""
PROBLEMS: Final = frozenset({*_PROBLEM_EVENTS, FAILED_CREATE})
"""Reasons of a state that say why a job cannot proceed."""
_TOLD: Final = phases.AT_REST | {phases.RUNNING}
"""Phases whose beginning is an event on the job."""


def plan(seen: Observed, now: datetime) -> JobPlan:
    """Return what to do for a job now."""
    job = seen.job
    if job.metadata.deletion_timestamp is not None:
        return JobPlan(handled=len(seen.triggers), disarm=tuple(seen.delayed))
    if not job.status.state.phase:
        return _begin(job, now)
    if seen.answered:
        notes = {**job.status.controlled_resources, **seen.answered}
        return JobPlan(status=msgspec.structs.replace(job.status, controlled_resources=notes), again=True)
    if (commanded := acting.answer_command(seen, now)) is not None:
        return commanded
    answered, draft, handled = acting.answer(seen, now)
    if answered is not None:
        return answered
    phase = job.status.state.phase
    if phase in phases.ACTIVE:
        found = _active(seen, now, (*seen.delayed.values(), *draft.arm.values()))
    elif phase in phases.AT_REST:
        found = _at_rest(seen, now)
    else:
        found = _killing(seen, now)
    return dataclasses.replace(
        found,
        events=(*draft.events, *found.events),
        arm=tuple(draft.arm.values()),
        disarm=tuple(draft.disarm),
        handled=handled,
    )


def _begin(job: Job, now: datetime) -> JobPlan:
    status = msgspec.structs.replace(
        job.status, min_available=job.spec.min_available, controlled_resources=bookkeeping.possessions(job)
    )
    change = Change(phases.PENDING, CREATED, _PODS_FOLLOW)
    return JobPlan(status=statuses.entered(job, status, change, now), again=True)


# Pending and Running


def _active(seen: Observed, now: datetime, delayed: Sequence[Delayed]) -> JobPlan:
    job, members = seen.job, seen.members
    if seen.problem is not None and seen.problem.reason == "InvalidJob":
        return _counters(seen, now, seen.problem)
    if seen.group is not None and pod_group.version_of(seen.group) is not None and not len(members):
        past = _group_of_past(seen)  # nobody knew of it when the job restarted; it must not keep its place in the queue
        if past:
            return JobPlan(writes=past, again=True)
    # Pods that are not needed go before the phase is looked at: they must not count for a smaller job.
    drop = _drop(seen)
    try:
        steps = _prepare(seen)
    except Problem as found:
        return drop or _counters(seen, now, found)
    if steps is not None:
        return _goes_on_without(seen, now) or steps
    if drop is not None:
        return drop
    notes = acting.evictions_to_note(job, members)
    if notes:
        status = msgspec.structs.replace(job.status, controlled_resources={**job.status.controlled_resources, **notes})
        return JobPlan(status=status, again=True)
    create = _missing(seen)
    problem = seen.problem
    if problem is not None and problem.reason == "PluginError":
        create = ()  # a pod without what the plugin adds would run as if nothing were missing
    if problem is not None and problem.reason == FAILED_CREATE and not create:
        problem = None  # the pod that could not be created is not needed any more
    counters = _counters(seen, now, problem or _blocked(seen, delayed))
    if counters.status is not None and _is_urgent(counters.status, job):
        return counters
    if seen.group is None or seen.group.status.phase in ("", keys.PHASE_PENDING):
        return _with_news(seen, counters)
    marked, keep = tuple(members.marked()), tuple(members.dismissed())
    if marked or create or keep:
        return JobPlan(kill=marked, create=create, keep=keep, again=True)
    return _with_news(seen, counters)


def _drop(seen: Observed) -> JobPlan | None:
    """Return the deletion of pods that are not needed, None if all are needed.

    The status stops counting them first. The controller may end after the deletion, and the job may grow before it
    starts again: pods that the status counts, that the job needs and that do not exist were evicted.
    """
    extra = tuple(seen.members.extra())
    if not extra:
        return None
    status = seen.job.status
    counts, by_task = acting.after_kill(seen.members, extra, status.controlled_resources)
    after = statuses.counted(status, counts, by_task.items())
    tasks = {member.task for member in extra}
    if statuses.pods_of(status, tasks) > statuses.pods_of(after, tasks):
        return JobPlan(status=after, again=True)
    return JobPlan(delete=extra, again=True)


def _blocked(seen: Observed, delayed: Sequence[Delayed]) -> Problem | None:
    """Return what the job waits for in vain, unless an action on a pod that failed waits for its time."""
    if any(one.request.event == policies.POD_FAILED for one in delayed):
        return None
    return blocked.problem(seen.job, seen.members, seen.group)


def _goes_on_without(seen: Observed, now: datetime) -> JobPlan | None:
    """Return the status of a job for which something could not be written, None if it is up to date.

    It says why, and follows the pods that there are: they may have started before the trouble, and they end.
    """
    if seen.problem is None or seen.problem.reason != FAILED_CREATE:
        return None
    found = _counters(seen, now, seen.problem)
    return found if found.status is not None else None


def _prepare(seen: Observed) -> JobPlan | None:
    """Return the writes of what pods need, None if all of it is there; raise Problem if it cannot be made."""
    job = seen.job
    if seen.group is None:
        _check(seen)
    elif seen.queue is None and seen.group.status.phase in ("", keys.PHASE_PENDING):
        raise _no_queue(job)
    if seen.outdated:
        return JobPlan(ensure=tuple(seen.outdated), again=True)
    writes: list[Write] = []
    if seen.group is None:
        for write in (volumes.name_claims(job), _forward(seen)):
            if write is not None:
                return JobPlan(writes=(write,), again=True)
        if leaving := volumes.leaving_claim(job, seen.claims):
            raise Problem("ClaimNotFound", leaving)
        for claim in volumes.missing_claims(job, seen.claims):
            if isinstance(claim, str):
                raise Problem(
                    "ClaimNotFound",
                    f"PersistentVolumeClaim {job.metadata.namespace}/{claim} does not exist: create it; the job goes "
                    "on when it exists",
                )
            writes.append(claim)
    try:
        group = _group(seen)
    except QuantityError as error:
        raise Problem("InvalidTemplate", f"{error}; delete the job and create it with a valid quantity") from error
    if group is not None:
        writes.append(group)
    return JobPlan(writes=tuple(writes), again=True) if writes else None


def _forward(seen: Observed) -> Write | None:
    """Return the patch that marks a job whose queue forwards jobs to other clusters."""
    meta = seen.job.metadata
    if seen.queue is None or not seen.queue.spec.extend_clusters or keys.JOB_FORWARDING in meta.annotations:
        return None
    body = {"metadata": {"uid": meta.uid, "annotations": {keys.JOB_FORWARDING: "true"}}}
    return Patch(VCJOBS, meta.namespace, meta.name, body)


def _check(seen: Observed) -> None:
    """Raise Problem if something that the job names does not exist."""
    spec = seen.job.spec
    if seen.problem is not None and seen.problem.reason == "PluginError":
        raise seen.problem
    if seen.queue is None:
        raise _no_queue(seen.job)
    for name in dict.fromkeys((spec.priority_class_name, *(_class_of(task) for task in spec.tasks))):
        if name and name not in seen.priorities:
            raise Problem(
                "PriorityClassNotFound",
                f"PriorityClass {name} does not exist: create it; the job goes on when it exists",
            )


def _no_queue(job: Job) -> Problem:
    text = f"queue {job.spec.queue} does not exist: create it; the job goes on when it exists"
    return Problem("QueueNotFound", text)


def _class_of(task: Task) -> str:
    return (task.template.get("spec") or {}).get("priorityClassName") or ""


def _group(seen: Observed) -> Write | None:
    """Return the write that creates the PodGroup, or brings it up to the job."""
    job = pod_group.left_of(seen.job, seen.members.completed)
    waiting = _waiting(seen)
    if seen.group is None:
        return pod_group.create(job, seen.priorities, waiting)
    patch = pod_group.follow(job, seen.group, seen.priorities, waiting)
    # What the server does not keep differs for ever: writing it again would change nothing.
    return None if patch is not None and patch.body["spec"] and patch.body["spec"] == seen.unheeded else patch


def _waiting(seen: Observed) -> frozenset[str]:
    """Return the tasks without pods whose dependencies are not ready."""
    job, members = seen.job, seen.members
    dependent = [task for task in job.spec.tasks if task.depends_on is not None and task.depends_on.name]
    if not dependent:
        return frozenset()
    tasks, ready = by_name(job), {name: task.ready for name, task in members.tasks}
    return frozenset(
        task.name
        for task in dependent
        if not (members.task(task.name).by_index or members.task(task.name).completed)
        and not may_start(tasks, task, ready)
    )


def _missing(seen: Observed) -> tuple[tuple[Task, tuple[int, ...]], ...]:
    """Return the next pods to create: tasks by priority, pods by index, without tasks that wait for others.

    Pods are created several at a time, and the scheduler starts a gang as soon as its minimum exists. So if a job has
    more pods than its minimum, those of lower priority follow when all of higher priority exist.
    """
    job, members = seen.job, seen.members
    if not any(members.task(task.name).missing for task in job.spec.tasks):
        return ()
    tasks, ready = by_name(job), {name: task.ready for name, task in members.tasks}
    found: list[tuple[Task, tuple[int, ...]]] = []
    left, elastic = PODS_AT_ONCE, job.spec.min_available < sum(task.replicas for task in job.spec.tasks)
    highest: int | None = None
    for one in ranked(job, seen.priorities):
        missing = members.task(one.task.name).missing
        if missing and left > 0 and may_start(tasks, one.task, ready):
            if elastic and highest not in (None, one.priority):
                break
            highest = one.priority
            indices = missing.first(left)
            found.append((one.task, indices))
            left -= len(indices)
    return tuple(found)


def _with_news(seen: Observed, found: JobPlan) -> JobPlan:
    """Add an event if the scheduler has a new reason why the PodGroup waits."""
    group = seen.group
    if group is None or (news := group_news(group)) is None or news[0] == seen.told:
        return found
    told = acting.event(seen.job, keys.EVENT_WARNING, EVENT_GROUP_PENDING, news[1])
    return dataclasses.replace(found, events=(*found.events, told), told=news[0])


def group_news(group: PodGroup) -> tuple[str, str] | None:
    """Return the newest reason why a PodGroup waits: what identifies it, and its text; None if there is none."""
    true = [one for one in group.status.conditions if one.status == "True"]
    newest = max(
        true, key=lambda one: one.last_transition_time.timestamp() if one.last_transition_time else 0.0, default=None
    )
    if newest is None or newest.type == keys.CONDITION_SCHEDULED:
        return None
    meta = group.metadata
    text = f"PodGroup {meta.namespace}:{meta.name} {newest.type.lower()}, reason: {newest.message}"
    return f"{newest.type}/{newest.reason}/{newest.message}", text


# Restarting, Aborting, Terminating, Completing


def _killing(seen: Observed, now: datetime) -> JobPlan:
    job, members = seen.job, seen.members
    status = job.status
    restarting = status.state.phase == phases.RESTARTING
    notes = status.controlled_resources
    whole = not restarting or bookkeeping.RESTARTING_ALL in notes
    if restarting:
        victims = bookkeeping.restart_victims(notes, members, status.version)
    else:
        victims = members.victims()
    writes = _group_of_past(seen) if whole else ()
    if victims or writes:
        return JobPlan(writes=writes, kill=tuple(victims), again=True)
    return _counters(seen, now)


def _group_of_past(seen: Observed) -> tuple[Write, ...]:
    """Return the deletion of a PodGroup that belongs to an earlier version of the job."""
    group = seen.group
    if group is None or (pod_group.version_of(group) or 0) >= seen.job.status.version:
        return ()
    meta = group.metadata
    return (Delete(PODGROUPS, meta.namespace, meta.name, meta.uid),)


# Completed, Failed, Terminated, Aborted


def _at_rest(seen: Observed, now: datetime) -> JobPlan:
    notes = seen.job.status.controlled_resources
    victims = tuple(seen.members.victims())
    writes: tuple[Write, ...] = ()
    if seen.group is not None:
        meta = seen.group.metadata
        writes = (Delete(PODGROUPS, meta.namespace, meta.name, meta.uid),)
    noted = any(key.startswith(bookkeeping.PLUGIN) for key in notes)
    remove = tuple(seen.objects) if noted and not seen.removed else ()
    if victims or writes or remove:
        return JobPlan(writes=writes, remove=remove, kill=victims, again=True)
    return _counters(seen, now)


# Counters


def _counters(seen: Observed, now: datetime, problem: Problem | None = None) -> JobPlan:
    """Return the status with the present numbers, and the next phase if the job enters one by itself."""
    job = seen.job
    status = _counted(seen, problem)
    members = seen.members
    succeeded = {name: task.phases[SUCCEEDED] for name, task in members.tasks if any(task.phases.values())}
    current = msgspec.structs.replace(job, status=status)
    change = phases.next_phase(current, members.counts(), succeeded)
    if change is not None:
        if job.status.state.phase == phases.RESTARTING:
            notes = bookkeeping.without(status.controlled_resources, bookkeeping.RESTARTING)
            if change.phase == phases.PENDING:
                notes |= bookkeeping.possessions(job)  # noted before they are created again
            status = msgspec.structs.replace(status, controlled_resources=notes)
        if change.phase in phases.FINISHED:
            status = _leftovers_terminate(seen, status)
        told = (_story(job, change),) if change.phase in _TOLD else ()
        return JobPlan(status=statuses.entered(job, status, change, now), events=told, again=True)
    if status == job.status:
        return JobPlan()
    wait_s = COUNTERS_EVERY_S - seen.written_ago_s
    if wait_s > 0 and not _is_urgent(status, job):
        return JobPlan(look_again_s=wait_s)
    troubles = () if problem is None or status.state == job.status.state else _troubles(job, problem)
    return JobPlan(status=status, events=troubles, again=True)


def _is_urgent(status: JobStatus, job: Job) -> bool:
    """Say whether a status must be written at once. That pods are created is not: most of them run soon."""
    return status.state != job.status.state and status.state.reason not in (CREATED, PODS_CREATED)


def _troubles(job: Job, problem: Problem) -> tuple[RecordEvent, ...]:
    """Return the event that a job cannot proceed; that of a pod was recorded when its creation failed."""
    reason = _PROBLEM_EVENTS.get(problem.reason)
    return () if reason is None else (acting.event(job, keys.EVENT_WARNING, reason, problem.message),)


def _story(job: Job, change: Change) -> RecordEvent:
    """Return the event that a job has started or ended: its events alone tell what became of it."""
    kind = keys.EVENT_WARNING if change.phase == phases.FAILED else keys.EVENT_NORMAL
    return acting.event(job, kind, change.phase, change.message)


def _counted(seen: Observed, problem: Problem | None) -> JobStatus:
    job, members = seen.job, seen.members
    phases_by_task = ((name, task.phases) for name, task in members.tasks)
    status = statuses.counted(job.status, members.counts(), phases_by_task)
    state, notes = status.state, status.controlled_resources
    if problem is not None:
        state = acting.same_state(state, problem.reason, problem.message)
    elif state.phase == phases.PENDING and state.reason in {CREATED, PODS_CREATED, *PROBLEMS}:
        created = len(members) > 0 and not any(members.task(task.name).missing for task in job.spec.tasks)
        state = acting.same_state(state, PODS_CREATED if created else CREATED, _PODS_EXIST if created else _PODS_FOLLOW)
    elif state.reason in PROBLEMS:
        state = acting.same_state(state, "", "")
    if state.phase in phases.AT_REST:
        if seen.removed:
            notes = bookkeeping.without(notes, bookkeeping.PLUGIN)
        if state.phase in phases.FINISHED:
            status = statuses.kept(job.status, status)
    elif state.phase in phases.ACTIVE:
        group = seen.group
        unknown = group.metadata.uid if group is not None and group.status.phase == phases.GROUP_UNKNOWN else ""
        notes = {**bookkeeping.of_present(notes, members, unknown), **bookkeeping.possessions(job)}
    return msgspec.structs.replace(
        status, state=state, controlled_resources=notes, min_available=job.spec.min_available
    )


def _leftovers_terminate(seen: Observed, status: JobStatus) -> JobStatus:
    """Return the status of a job that has finished while pods still run: these are killed now."""
    victims = tuple(seen.members.victims())
    counts, by_task = acting.after_kill(seen.members, victims, status.controlled_resources)
    return statuses.counted(status, counts, by_task.items())
