"""Carries out actions on a job: Commands, policies that answer what happened, and delayed actions whose time has come.

An action changes the status first: phase, version, retryCount and the notes about what a restart kills. The pods are
killed after that is written.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Command, Job, JobState
from volcano_py.controllers.job import bookkeeping, delays, happenings, objects, phases, policies, reasons
from volcano_py.controllers.job import status as statuses
from volcano_py.controllers.job.bookkeeping import Notes
from volcano_py.controllers.job.delays import Delayed
from volcano_py.controllers.job.happenings import Trigger
from volcano_py.controllers.job.members import ENDED, PENDING, SUCCEEDED, Member, Members
from volcano_py.controllers.job.observed import JobPlan, Observed
from volcano_py.controllers.job.phases import Change, Counts, Kill, Rule
from volcano_py.controllers.job.pods import partition_of
from volcano_py.controllers.job.policies import Request, Resolved
from volcano_py.controllers.writes import Delete
from volcano_py.kube.resource import COMMANDS, VCJOBS
from volcano_py.model.decisions import RecordEvent

EVENT_ACTION: Final = "ExecuteAction"
EVENT_COMMAND: Final = "CommandIssued"
_KILLED: Final = {Kill.ALL: bookkeeping.EVERYTHING, Kill.UNSUCCESSFUL: bookkeeping.UNSUCCESSFUL}
_TARGETED: Final = frozenset({policies.RESTART_TASK, policies.RESTART_POD, policies.RESTART_PARTITION})


def event(job: Job, kind: str, reason: str, message: str) -> RecordEvent:
    """Return an event on a job."""
    meta = job.metadata
    return RecordEvent(VCJOBS.kind, meta.namespace, meta.name, meta.uid, kind, reason, message)


@dataclass(slots=True)
class Draft:
    """The status of a job while one look answers several requests."""

    job: Job
    notes: Notes
    victims: dict[str, Member] = field(default_factory=dict)
    events: list[RecordEvent] = field(default_factory=list)
    arm: dict[str, Delayed] = field(default_factory=dict)
    """Delayed actions by key; thousands of pods may be pending at once."""
    disarm: dict[str, None] = field(default_factory=dict)
    """Keys of delayed actions, in order."""
    done: dict[str, set[int]] = field(default_factory=dict)
    """Indices of tasks whose pods have succeeded and are gone, as far as the notes do not say so yet."""
    change: Change | None = None
    """The phase that is entered."""
    acted: bool = False

    def void(self, keys: Iterable[str]) -> None:
        """Disarm delayed actions, also those that were armed by this draft."""
        for key in sorted(set(keys)):
            self.arm.pop(key, None)
            self.disarm[key] = None
            self.notes.pop(f"{delays.PREFIX}{key}", None)

    def note_done(self) -> None:
        """Note which pods have succeeded and are gone, all at once: there may be thousands."""
        done, self.done = self.done, {}
        kept = bookkeeping.without(self.notes, bookkeeping.COMPLETED)
        for task in self.job.spec.tasks if done or len(kept) < len(self.notes) else ():
            found = bookkeeping.completed(self.notes, task.name, task.replicas) | done.get(task.name, set())
            kept |= bookkeeping.completion(task.name, found)
        self.notes = kept

    @property
    def phase(self) -> str:
        """The phase as it will be."""
        return self.change.phase if self.change is not None else self.job.status.state.phase


def answer_command(seen: Observed, now: datetime) -> JobPlan | None:
    """Return what the oldest Command leads to, None if there is none."""
    if not seen.commands:
        return None
    command, job = seen.commands[0], seen.job
    meta = command.metadata
    delete = Delete(COMMANDS, meta.namespace, meta.name, meta.uid)
    if job.status.controlled_resources.get(bookkeeping.COMMAND) == meta.uid:
        return JobPlan(writes=(delete,), again=True)
    who = f"Command {meta.namespace}/{meta.name}"
    if (refusal := _refusal(command)) is not None:
        told = event(job, keys.EVENT_WARNING, EVENT_COMMAND, f"{who} is dropped: {refusal}")
        return JobPlan(events=(told,), writes=(delete,), again=True)
    action, phase = command.action, job.status.state.phase
    rule = phases.rule(phase, action)
    if rule is None:
        text = f"{who}: {action} changes nothing in phase {phase}"
        told = event(job, keys.EVENT_NORMAL, EVENT_COMMAND, text)
        return JobPlan(events=(told,), writes=(delete,), again=True)
    draft = Draft(job, dict(job.status.controlled_resources))
    draft.events.append(event(job, keys.EVENT_NORMAL, EVENT_COMMAND, f"{who} asks for {action}"))
    why = f"{who} asked for {action}" + (f": {command.message}" if command.message else "")
    _apply(seen, draft, rule, Resolved(action), Request(event=policies.COMMAND_ISSUED), why)
    if action == policies.RESUME_JOB:
        _answer_completions(seen, draft, now)
    draft.notes[bookkeeping.COMMAND] = meta.uid
    return _plan(seen, draft, now, writes=(delete,))


def answer(seen: Observed, now: datetime) -> tuple[JobPlan | None, Draft, int]:
    """Answer what happened, and delayed actions that are due, in order.

    Returns the plan if one of them asks for an action, what was armed and disarmed otherwise, and how many triggers
    are answered. A second phase is entered at the next look, so that every phase is written.
    """
    job = seen.job
    draft = Draft(job, dict(job.status.controlled_resources))
    for one in seen.due:
        resolved = Resolved(one.action, 0.0, one.task)
        if _still(seen, one):
            waited = policies.resolve(job, one.request).delay_s > 0
            why = reasons.why(seen, one.request, resolved) + (", after its timeout" if waited else "")
            if not _take(seen, draft, resolved, one.request, why):
                break
        draft.void((one.key,))
    handled = 0
    for trigger in seen.triggers:
        if trigger.event == happenings.COMPLETED and trigger.member is not None:
            _keep(draft, trigger.member)
        elif not _answer_one(seen, draft, trigger.request(job.metadata.uid), now):
            break
        handled += 1
    draft.note_done()
    if draft.acted:
        draft.notes.update(_evictions_to_answer(seen, draft, handled))
    if draft.acted or draft.notes != job.status.controlled_resources:
        return _plan(seen, draft, now, handled=handled), draft, handled
    return None, draft, handled


def _answer_completions(seen: Observed, draft: Draft, now: datetime) -> None:
    """Let policies end a job that is resumed if their task has completed: it was suspended before they did.

    The pods of such a task do not run again, so nothing else would tell of it.
    """
    job = draft.job
    for task in job.spec.tasks:
        if not happenings.is_complete(seen.members, task.name):
            continue
        last = seen.members.get(objects.pod_name(job.metadata.name, task.name, task.replicas - 1))
        last = last or happenings.vanished(job, task.name, task.replicas - 1)
        request = Trigger(policies.TASK_COMPLETED, last).request(job.metadata.uid)
        request = request._replace(version=job.status.version)
        resolved = policies.resolve(job, request)
        if resolved.action in (policies.COMPLETE_JOB, policies.TERMINATE_JOB):
            _arm(seen, draft, request, resolved, now)


def _keep(draft: Draft, member: Member) -> None:
    """Note that a pod has done its work and is gone, unless a restart kills it or the job has finished."""
    if draft.phase in phases.FINISHED or bookkeeping.is_victim(draft.notes, draft.job.status.version, member):
        return
    draft.done.setdefault(member.task, set()).add(member.index)


def _answer_one(seen: Observed, draft: Draft, request: Request, now: datetime) -> bool:
    """Answer one request; return False if it must wait for the next look."""
    _disarm_void(seen, draft, request)
    resolved = policies.resolve(seen.job, request)
    if resolved.action == policies.SYNC_JOB or draft.phase in phases.AT_REST:
        _forget_eviction(draft, request)
        return True
    if resolved.policy is not None and resolved.delay_s > 0:
        if phases.rule(draft.phase, resolved.action) is not None and _has_target(resolved.action, request):
            _arm(seen, draft, request, resolved, now)
        _forget_eviction(draft, request)
        return True
    if not _take(seen, draft, resolved, request, reasons.why(seen, request, resolved)):
        return False
    _forget_eviction(draft, request)
    return True


def _take(seen: Observed, draft: Draft, resolved: Resolved, request: Request, why: str) -> bool:
    """Apply an action to the draft; return False if it enters a second phase, which must wait for the next look."""
    rule = phases.rule(draft.phase, resolved.action)
    if rule is None or not _has_target(resolved.action, request):
        return True
    if draft.change is not None and rule.phase != draft.phase:
        return False
    if draft.change is not None and request.version is not None and _whole(draft):
        return True  # the whole job restarts already
    _apply(seen, draft, rule, resolved, request, why)
    return True


def _has_target(action: str, request: Request) -> bool:
    """Say whether a request names what an action restarts; the whole job needs no name."""
    if action not in _TARGETED:
        return True
    return bool(request.partition if action == policies.RESTART_PARTITION else request.task)


def _whole(draft: Draft) -> bool:
    return bookkeeping.RESTARTING_ALL in draft.notes


def _apply(seen: Observed, draft: Draft, rule: Rule, resolved: Resolved, request: Request, why: str) -> None:
    job = draft.job
    status = job.status
    retries = status.retry_count + _is_retry(draft, rule, request)
    last = retries >= job.spec.max_retry  # then the job fails, and pods that ended stay
    if draft.done:  # else the notes, of which there may be thousands, would be read for each pod that restarts
        draft.note_done()
    if rule.kill is Kill.TARGET:
        victims = [] if last else _kill_a_part(seen, draft, rule, resolved.action, request)
        version = status.version
    else:
        victims = _kill_all(seen, draft, rule, last=last)
        version = status.version + 1
    if request.event == policies.TASK_FAILED:
        task = seen.members.task(request.task)
        draft.notes[f"{bookkeeping.TASK_FAILED}{request.task}"] = str(task.restarts + task.spent)
    draft.victims.update((member.name, member) for member in victims)
    draft.job = msgspec.structs.replace(
        job, status=msgspec.structs.replace(status, version=version, retry_count=retries)
    )
    if rule.phase != draft.phase:
        draft.change = Change(rule.phase, request.event, why)
    draft.events.append(
        event(job, keys.EVENT_NORMAL, EVENT_ACTION, f"Start to execute action {resolved.action}: {why}")
    )
    draft.acted = True


def _is_retry(draft: Draft, rule: Rule, request: Request) -> bool:
    """Say whether a restart or resumption counts against maxRetry.

    Evicted pods that were there at the last retry have not been retried since: what evicts them is the same drain, and
    not a job that fails again and again. So each retry allows at most one such eviction of each pod.
    """
    if rule.kill is Kill.TARGET and request.event == policies.POD_EVICTED and request.retry is not None:
        return rule.retry and request.retry >= draft.job.status.retry_count
    return rule.retry


def _kill_a_part(seen: Observed, draft: Draft, rule: Rule, action: str, request: Request) -> list[Member]:
    """Note that a part of the job restarts, and return the pods that are killed for that."""
    victims, notes = _target(seen.members, action, request)
    status = draft.job.status
    if (request.event, action) == (policies.TASK_FAILED, policies.RESTART_TASK):
        draft.notes.pop(f"{bookkeeping.SPENT}{request.task}", None)  # this answers it: the task has its budget again
    else:
        written = status.controlled_resources
        _spend(draft, [one for one in victims if not bookkeeping.is_victim(written, status.version, one)])
    draft.notes.update(notes)
    _run_again(draft, action, request)
    armed = (*seen.delayed.values(), *draft.arm.values())
    draft.void(one.key for one in armed if _aims_at(one, action, request))
    return victims


def _kill_all(seen: Observed, draft: Draft, rule: Rule, *, last: bool) -> list[Member]:
    """Note that the whole job restarts or ends, and return the pods that are killed for that."""
    killed = bookkeeping.UNFINISHED if last else _KILLED.get(rule.kill, bookkeeping.UNFINISHED)
    draft.victims.clear()  # of a part that would have restarted, too, pods that ended may be left alone now
    draft.notes = bookkeeping.of_past(draft.notes)
    if killed == bookkeeping.EVERYTHING:
        draft.notes = bookkeeping.without(draft.notes, bookkeeping.COMPLETED)
    if rule.phase == phases.RESTARTING:
        draft.notes[bookkeeping.RESTARTING_ALL] = killed
    draft.void((*seen.delayed, *draft.arm))
    return seen.members.victims(ended=bookkeeping.KILLED_ENDED.get(killed, frozenset()))


def _target(members: Members, action: str, request: Request) -> tuple[list[Member], Notes]:
    """Return the pods that a restart of a part of the job kills, and the note about it."""
    if action == policies.RESTART_TASK:
        return members.victims(ended=ENDED, task=request.task), bookkeeping.restart_of_task(request.task)
    if action == policies.RESTART_PARTITION:
        found = [one for one in members.victims(ended=ENDED, task=request.task) if one.partition == request.partition]
        return found, bookkeeping.restart_of_partition(request.task, request.partition)
    member = members.get(request.pod)
    if member is None or member.uid != request.pod_uid or member.deleting:
        return [], {}
    return [member], bookkeeping.restart_of_pod(member)


def _run_again(draft: Draft, action: str, request: Request) -> None:
    """Forget that pods of a task or partition that restarts have done their work."""
    task = policies.task_of(draft.job, request.task)
    key = f"{bookkeeping.COMPLETED}{request.task}"
    if task is None or key not in draft.notes or action not in (policies.RESTART_TASK, policies.RESTART_PARTITION):
        return
    indices = bookkeeping.completed(draft.notes, task.name, task.replicas) if action != policies.RESTART_TASK else set()
    size = 0 if task.partition_policy is None else task.partition_policy.partition_size
    del draft.notes[key]
    draft.notes |= bookkeeping.completion(
        task.name, {index for index in indices if str(partition_of(size, index)) != request.partition}
    )


def _plan(seen: Observed, draft: Draft, now: datetime, *, handled: int = 0, writes: tuple[Delete, ...] = ()) -> JobPlan:
    job, victims = draft.job, tuple(draft.victims[name] for name in sorted(draft.victims))
    waiting = (one.member for one in seen.triggers[handled:] if one.event == happenings.COMPLETED)
    counts, by_task = after_kill(seen.members, victims, draft.notes, [one for one in waiting if one is not None])
    status = msgspec.structs.replace(job.status, controlled_resources=draft.notes)
    if draft.change is not None:
        status = statuses.entered(job, statuses.counted(status, counts, by_task.items()), draft.change, now)
    elif draft.acted and draft.notes != seen.job.status.controlled_resources:
        status = statuses.counted(status, counts, by_task.items())
    changed = status != seen.job.status
    return JobPlan(
        status=status if changed else None,
        events=tuple(draft.events),
        writes=writes,
        kill=victims,
        handled=handled,
        arm=tuple(draft.arm.values()),
        disarm=tuple(draft.disarm),
        again=True,
    )


def after_kill(
    members: Members, victims: tuple[Member, ...], notes: Mapping[str, str], waiting: Iterable[Member] = ()
) -> tuple[Counts, dict[str, dict[str, int]]]:
    """Return the numbers of pods as they will be when these pods terminate: of the job, and of each task by phase.

    ``notes`` say which pods that are gone count as succeeded then, beside those that are ``waiting`` to be noted.
    """
    counts = members.counts()._asdict()
    by_task = {name: dict(task.phases) for name, task in members.tasks}
    for member in victims:
        counts[member.phase.lower()] -= 1
        counts["terminating"] += 1
        by_task[member.task][member.phase] -= 1
    for name, indices in members.completed.items():
        kept = bookkeeping.completed(notes, name, members.task(name).replicas)
        again = len(indices - kept - {one.index for one in waiting if one.task == name})
        counts["succeeded"] -= again
        by_task[name][SUCCEEDED] -= again
    return Counts(**counts), by_task


# Delayed actions


def _arm(seen: Observed, draft: Draft, request: Request, resolved: Resolved, now: datetime) -> None:
    delayed = Delayed(
        _since(seen, request, now) + timedelta(seconds=resolved.delay_s), resolved.action, request, resolved.task
    )
    place = delayed.key
    known = draft.arm.get(place)
    if known is None and place not in draft.disarm:
        known = seen.delayed.get(place)
    if known is not None and not (request.event == policies.POD_PENDING and known.request.pod_uid != request.pod_uid):
        return  # it waits already; only that an earlier pod of this name was pending is void
    if (text := _announced(seen, draft, request, resolved)) is not None:
        draft.events.append(event(draft.job, keys.EVENT_NORMAL, EVENT_ACTION, text))
    draft.arm.pop(place, None)
    draft.arm[place] = delayed
    if request.event in delays.KEPT and sum(key.startswith(delays.PREFIX) for key in draft.notes) < delays.MOST_KEPT:
        key, text = delays.kept(delayed)
        draft.notes[key] = text


def _announced(seen: Observed, draft: Draft, request: Request, resolved: Resolved) -> str | None:
    """Return what an event says about an action that is armed now, None if an event has said it or says it at once.

    Every pod is pending at first, so that is said once for all pods that are pending together.
    """
    if resolved.delay_s <= 0:
        return None
    text = f"Execute action {resolved.action} after {statuses.go_duration(resolved.delay_s)}"
    if request.event != policies.POD_PENDING:
        return f"{text}: {reasons.why(seen, request, resolved)}"
    for one in chain(reversed(draft.arm.values()), seen.delayed.values()):
        if (one.request.event, one.action, one.task) == (request.event, resolved.action, resolved.task):
            return None
    return f"{text} if pods are still pending then; {reasons.policy_of(resolved)}"


def _since(seen: Observed, request: Request, now: datetime) -> datetime:
    """Return since when what a delay counts from has been so, as far as the pod says.

    Pods say it in whole seconds, rounded down. A second is added, so that no action comes before its time.
    """
    said = _said(seen, request)
    return now if said is None else min(now, said + timedelta(seconds=1))


def _said(seen: Observed, request: Request) -> datetime | None:
    member = seen.members.get(request.pod)
    if member is None or member.uid != request.pod_uid:
        return None
    if request.event == policies.POD_PENDING:
        return member.created
    if request.event == policies.TASK_COMPLETED:
        return max((one.ended for one in seen.members if one.task == request.task and one.ended), default=None)
    return member.ended if request.event == policies.POD_FAILED else None


def _still(seen: Observed, delayed: Delayed) -> bool:
    """Say whether the reason for a delayed action still holds."""
    request = delayed.request
    if request.version is not None and request.version < seen.job.status.version:
        return False
    if request.event == policies.POD_PENDING:
        member = seen.members.get(request.pod)
        return member is not None and member.uid == request.pod_uid and member.phase == PENDING and not member.deleting
    if request.event == policies.UNKNOWN:
        return seen.group is not None and seen.group.status.phase == keys.PHASE_UNKNOWN
    return True


def _disarm_void(seen: Observed, draft: Draft, request: Request) -> None:
    """Disarm what a pod makes void: it left Pending, or it runs again after it had failed or been evicted."""
    if not (seen.delayed or draft.arm) or not request.pod:
        return
    void = [] if request.event == policies.POD_PENDING else [policies.POD_PENDING]
    if request.event == policies.POD_RUNNING:
        void += [policies.POD_FAILED, policies.POD_EVICTED]
    places = (f"{name}/{request.task}/{request.pod}" for name in void)
    draft.void(place for place in places if place in seen.delayed or place in draft.arm)


def _aims_at(delayed: Delayed, action: str, request: Request) -> bool:
    """Say whether a restart of a part of the job makes a delayed action on the same part void."""
    if delayed.action != action or delayed.request.task != request.task:
        return False
    if action == policies.RESTART_POD:
        return delayed.request.pod == request.pod
    return action == policies.RESTART_TASK or delayed.request.partition == request.partition


def _refusal(command: Command) -> str | None:
    if command.action not in policies.ACTIONS:
        return f"{command.action!r} is not an action on a job; use one of {', '.join(sorted(policies.ACTIONS))}"
    if command.action in _TARGETED:
        return f"{command.action} needs a task or pod, which a Command cannot name; use RestartJob, or a policy"
    return None


# Notes


def _forget_eviction(draft: Draft, request: Request) -> None:
    if request.event == policies.POD_EVICTED:
        draft.notes.pop(f"{bookkeeping.EVICTING}{request.pod}", None)


def _spend(draft: Draft, victims: Iterable[Member]) -> None:
    """Note the restarts of pods that are killed: they use up the budget of their task.

    Pods that the written status says are killed were counted then. An action is answered again if a kill fails.
    """
    for member in victims:
        if member.restarts and member.name not in draft.victims:  # else an earlier request has counted them
            total = bookkeeping.spent(draft.notes, member.task) + member.restarts
            draft.notes[f"{bookkeeping.SPENT}{member.task}"] = str(total)


def evictions_to_note(job: Job, members: Members) -> Mapping[str, str]:
    """Return notes about pods that somebody else is deleting, if a policy will answer their end."""
    found: Notes = {}
    for name in sorted(members.leaving):
        member = members.get(name)
        if member is None or len(found) >= delays.MOST_KEPT:
            continue
        request = Request(event=policies.POD_EVICTED, task=member.task, version=member.version)
        key = f"{bookkeeping.EVICTING}{name}"
        if key not in job.status.controlled_resources and policies.resolve(job, request).action != policies.SYNC_JOB:
            found[key] = member.uid
    return found


def _evictions_to_answer(seen: Observed, draft: Draft, handled: int) -> Notes:
    """Return notes about evictions that the next look answers: the counts that are written now do not tell of them."""
    found: Notes = {}
    for trigger in seen.triggers[handled:]:
        if trigger.event != policies.POD_EVICTED or len(found) >= delays.MOST_KEPT:
            continue
        request = trigger.request(draft.job.metadata.uid)
        if policies.resolve(draft.job, request).action != policies.SYNC_JOB:
            found[f"{bookkeeping.EVICTING}{request.pod}"] = request.pod_uid
    return found


def same_state(state: JobState, reason: str, message: str) -> JobState:
    """Return a state with another reason and message; the phase and its time stay."""
    return msgspec.structs.replace(state, reason=reason, message=message)
