"""Why a job or the jobs of a queue wait: facts in, an explanation for one screen out. Nothing here reads or prints."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, Final, NamedTuple

from volcano_py.api import keys
from volcano_py.client import amounts, room, scheduler_words
from volcano_py.client.ages import age, time_of
from volcano_py.client.amounts import Amounts
from volcano_py.client.counting import counted, have
from volcano_py.client.first_cause import Surroundings, closed, ended, first_cause, never, no_room, room_in_queue
from volcano_py.client.gang import Gang, gang_of, phase_of, real, told_counts, waiting_pod, waits
from volcano_py.client.waiting_facts import Facts
from volcano_py.kube.resource import PODGROUPS, PODS, QUEUES

Obj = Mapping[str, Any]
Row = tuple[str, ...]
_Beyond = tuple[Obj, list[Obj]]
"""A gang that runs, and its pods that have no node."""
_EVENTS: Final = 5
_HOLDERS: Final = 5
_WAITING: Final = 10
_REASONS: Final = 3


class Section(NamedTuple):
    """One part of the screen: lines, or a table with headers."""

    title: str
    rows: tuple[Row, ...]
    headers: Row = ()
    more: int = 0
    """Rows that are left out."""
    short: bool = False
    """Whether the first rows say enough on a small screen."""


class Explanation(NamedTuple):
    """The screen: the answer in one sentence, then what it rests on, then what to do."""

    subject: str
    answer: str
    sections: tuple[Section, ...]
    ways_out: tuple[str, ...]


def why_job(facts: Facts, now: datetime) -> Explanation:
    """Explain why a job, or a PodGroup, waits."""
    subject = _subject(facts)
    gang = gang_of(facts)
    queue = room.queue_of(facts.group or facts.job or {})
    pod = waiting_pod(facts) if gang.seen else None
    lacking = gang.lacks or (gang.beyond and not ended(facts))
    needs = amounts.requests_of(pod) if pod and lacking and not gang.lacks else gang.needs
    asked = _to_be_enqueued(facts, gang, needs)
    levels = room.levels(queue, facts.queues, asked, gang.holds)
    groups = room.node_groups(facts.nodes, facts.placed, pod) if pod else []
    answer, ways_out = first_cause(facts, gang, Surroundings(queue, asked, levels, groups), now)
    sections = [
        Section("State", tuple(_state(facts, now))),
        Section("Gang", (*_gang_rows(gang, facts), *_enqueue_row(asked, needs))),
        _levels(levels, queue, asked, seen=facts.sees(QUEUES)),
    ]
    if groups and lacking:
        sections.append(_nodes(groups, pod))
    if lacking:
        sections.append(_holders(facts, needs, _own(facts)))
    sections += [Section("Scheduler", tuple(_said(facts, gang))), _events(facts.events, now), _notes(facts)]
    return Explanation(subject, answer, tuple(one for one in sections if one.rows), tuple(ways_out))


def _to_be_enqueued(facts: Facts, gang: Gang, needs: Amounts) -> Amounts:
    """Return what the queue must have room for: before a gang is enqueued, also the `minResources` of its PodGroup.

    They are more than its pods need if tasks wait for other tasks, or if a user has written more.
    """
    if facts.group is None or gang.created or phase_of(facts.group) not in ("", "Pending"):
        return needs
    least = real(amounts.read((facts.group.get("spec") or {}).get("minResources")))
    return {**needs, **{name: one for name, one in least.items() if one > needs.get(name, Fraction())}}


def _enqueue_row(asked: Amounts, needs: Amounts) -> tuple[Row, ...]:
    text = f"to be enqueued, it asks its queue for minResources of its PodGroup: {amounts.listed(real(asked))}"
    return ((text,),) if asked != needs else ()


def why_queue(facts: Facts, name: str, now: datetime) -> Explanation:
    """Explain why the jobs of a queue wait."""
    inside = room.subtree(name, facts.queues)
    own = [one for one in facts.groups if room.queue_of(one) in inside]
    waiting = sorted((one for one in own if phase_of(one) in ("", "Pending", "Inqueue", "Unknown")), key=_created)
    beyond = _beyond(own, facts)
    first = amounts.read((waiting[0].get("spec") or {}).get("minResources")) if waiting else {}
    if beyond and not waiting:
        first = amounts.requests_of(beyond[0][1][0])
    levels = room.levels(name, facts.queues, first, {})
    phases = Counter(phase_of(one) or "no phase" for one in own)
    answer, ways_out = _queue_answer(waiting, beyond, levels, first, facts)
    counts = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items())) or (
        "none" if facts.sees(PODGROUPS) else "unknown"
    )
    of_jobs = [_waiting_row(one, facts, now) for one in waiting]
    all_rows = [*of_jobs, *(_beyond_row(group, pods, facts, now) for group, pods in beyond)]
    rows = tuple(all_rows[:_WAITING])
    headers = ("Job", "Queue", "Phase", "Age", "Needs", "Reason")
    sections = [
        Section("State", ((f"{levels[0].state or 'no state'}; PodGroups: {counts}",),)),
        _levels(levels, name, first),
        Section("Waiting, oldest first", rows, headers, len(all_rows) - len(rows), short=True),
        _holders(facts, first or {keys.CPU: Fraction(1)}, (), inside),
        _events(facts.events, now),
        _notes(facts),
    ]
    return Explanation(f"queue {name}", answer, tuple(one for one in sections if one.rows), tuple(ways_out))


# The answer


def _subject(facts: Facts) -> str:
    obj, what = (facts.job, "job") if facts.job is not None else (facts.group, "PodGroup")
    assert obj is not None
    return f"{what} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _own(facts: Facts) -> tuple[str, ...]:
    group = facts.group
    return (f"{group['metadata'].get('namespace', '')}/{group['metadata']['name']}",) if group else ()


def _queue_answer(
    waiting: Sequence[Obj], beyond: Sequence[_Beyond], levels: Sequence[room.Level], first: Amounts, facts: Facts
) -> tuple[str, list[str]]:
    if answer := closed(levels):
        return answer
    if not waiting:
        return _answer_beyond(beyond, levels, first, facts) if beyond else (_nothing(facts), [])
    subject = _group_name(waiting[0])
    if small := next((one for one in levels if one.never), None):
        return never(subject, small)
    if full := next((one for one in levels if one.lacks), None):
        return f"queue {full.name} has no room for {subject}: {no_room(full, first)}", [
            "wait for the holders above, or raise the capability of the queue"
        ]
    namespace, _, job = subject.partition("/")
    said = _reason(waiting[0], facts)
    number = "1 job waits" if len(waiting) == 1 else f"{len(waiting)} jobs wait"
    return f"{number}; the oldest is {subject}{f': {said}' if said else ''}", [f"vcctl job why {job} -n {namespace}"]


def _nothing(facts: Facts) -> str:
    """Return what to say of a queue in which nothing is seen that waits."""
    if not facts.sees(PODGROUPS):
        return "what waits in it is unknown: podgroups cannot be read"
    if not facts.sees(PODS):
        return "no job waits for its start; whether pods of jobs that run wait is unknown: pods cannot be read"
    return "nothing waits in it"


def _answer_beyond(
    beyond: Sequence[_Beyond], levels: Sequence[room.Level], first: Amounts, facts: Facts
) -> tuple[str, list[str]]:
    """Return what to say of a queue in which only pods of jobs that run wait."""
    pods, (group, own) = sum(len(pods) for _, pods in beyond), beyond[0]
    whose = "a job that runs" if len(beyond) == 1 else f"{len(beyond)} jobs that run"
    told = f"{counted(pods, 'pod')} of {whose} {_verb(pods, 'wait')}"
    if full := next((one for one in levels if one.lacks), None):
        held = (amounts.requests_of(one) for one in facts.placed if room.group_of(one) == room.key_of(group))
        way = room_in_queue(full, amounts.total(held), facts)
        return f"{told}: queue {full.name} has no room: {no_room(full, first, 'a pod')}", [way]
    namespace, _, job = _group_name(group).partition("/")
    said = next((text for text, _ in scheduler_words.about_pods(own)), "")
    return f"{told}{f': {said}' if said else ''}", [f"vcctl job why {job} -n {namespace}"]


# The parts of the screen


def _state(facts: Facts, now: datetime) -> Iterable[Row]:
    if facts.job is not None:
        state = (facts.job.get("status") or {}).get("state") or {}
        since = age(state.get("lastTransitionTime") or facts.job["metadata"].get("creationTimestamp"), now)
        reason = ": ".join(str(state[name]) for name in ("reason", "message") if state.get(name))
        yield (f"job: {state.get('phase') or 'no phase'} for {since}{f' ({reason})' if reason else ''}",)
    if facts.group is not None:
        since = age(facts.group["metadata"].get("creationTimestamp"), now)
        yield (f"PodGroup {facts.group['metadata']['name']}: {phase_of(facts.group) or 'no phase'}, {since} old",)
        if phase_of(facts.group) in ("", "Pending"):
            pods = "" if facts.job is None else ", so the pods of the job are not created yet"
            yield (f"it is not enqueued{pods}",)


def _gang_rows(gang: Gang, facts: Facts) -> Iterable[Row]:
    needed = f"needs {counted(gang.minimum, 'pod')} at the same time"
    if not gang.seen:
        yield from _told_rows(needed, gang, facts)
        return
    yield (f"{needed}; {', '.join(_counts(gang))}",)
    if not gang.lacks:
        return
    needs = amounts.listed(real(gang.needs)) if real(gang.needs) else ""
    known = gang.waiting if facts.job is None else gang.waiting + gang.missing
    lacks = f"lacks {counted(gang.lacks, 'pod')}"
    if not needs or not 0 < known < gang.lacks:
        yield (f"{lacks}{f': {needs}' if needs else ''}",)
        return
    told = [f"{counted(known, 'pod')} that {_verb(known, 'exist' if facts.job is None else 'wait')}: {needs}"]
    if facts.job is None and gang.missing:  # nobody knows what they will request
        told.append(f"{counted(gang.missing, 'pod')} {_verb(gang.missing, 'do')} not exist yet")
    if gang.failed:
        told.append(f"{have(len(gang.failed))} failed")
    yield ("; ".join([lacks, *told]),)


def _told_rows(needed: str, gang: Gang, facts: Facts) -> Iterable[Row]:
    """Yield what the status says of pods that cannot be read."""
    whose = "job" if facts.job is not None else "PodGroup"
    counts = ", ".join(f"{number} {name}" for name, number in told_counts(facts).items())
    yield (f"{needed}; the status of the {whose} counts {f'pods: {counts}' if counts else 'no pods'}",)
    if gang.lacks or gang.beyond:
        yield ("which pods have a node is unknown: pods cannot be read",)


def _counts(gang: Gang) -> Iterable[str]:
    """Yield how many pods are where; only the pods with a node are told if there are none."""
    yield f"{have(gang.placed)} a node"
    if gang.succeeded:
        yield f"{have(gang.succeeded)} succeeded"
    if gang.failed:
        yield f"{have(len(gang.failed))} failed"
    if gang.waiting:
        yield f"{gang.waiting} {_verb(gang.waiting, 'wait')}"
    if gang.missing:
        yield f"{gang.missing} {_verb(gang.missing, 'do')} not exist yet"


def _verb(number: int, verb: str) -> str:
    return verb if number != 1 else f"{verb}es" if verb.endswith("o") else f"{verb}s"


def _levels(levels: Sequence[room.Level], queue: str, needs: Amounts, *, seen: bool = True) -> Section:
    names = list(real(needs)) or [keys.CPU, keys.MEMORY]
    rows = []
    for level in levels:
        may = amounts.listed(level.capability, names) if level.capability else "-"
        deserved = amounts.listed(level.deserved, names) if level.deserved else "-"
        rows.append(
            (
                level.name,
                level.state or "-",
                deserved,
                may,
                amounts.listed(level.allocated, names),
                _verdict(level, needs),
            )
        )
    if not rows:
        return Section("Queue", ((f"{queue} {'does not exist' if seen else 'cannot be read with your rights'}",),))
    return Section("Queue, up to the root", tuple(rows), ("Name", "State", "Deserved", "May use", "In use", "Verdict"))


def _verdict(level: room.Level, needs: Amounts) -> str:
    """Return what a queue says to what is needed; if that is nothing, whether it takes more at all."""
    if level.state and level.state != keys.QUEUE_OPEN:
        return f"is {level.state}"
    if level.lacks:
        return f"lacks {amounts.listed(real(level.lacks) or level.lacks)}"
    if not needs and level.full:
        return f"full: {', '.join(level.full)}"
    if not level.capability:
        return "no limit"
    return "has room" if needs else "not full"


def _nodes(groups: Sequence[room.NodeGroup], pod: Obj | None) -> Section:
    shape = amounts.listed(real(amounts.requests_of(pod or {})))
    rows = tuple(row for one in groups for row in _group_rows(one))
    return Section(f"Nodes, for a pod of {shape}", rows, ("Group", "Nodes", "Room for", "Why not more"))


def _group_rows(group: room.NodeGroup) -> Iterable[Row]:
    """Yield a line for each of the most common reasons; the first one has the numbers of the group."""
    told = [f"{refusal.text} ({counted(count, 'node')})" for refusal, count in group.refusals[:_REASONS]]
    if left := sum(count for _, count in group.refusals[_REASONS:]):
        told.append(f"other reasons ({counted(left, 'node')})")
    numbers = (group.name, str(group.nodes), str(group.fitting))
    for text in told:
        yield (*numbers, text)
        numbers = ("", "", "")


def _holders(facts: Facts, needs: Amounts, own: Iterable[str], queues: Iterable[str] | None = None) -> Section:
    names = list(real(needs)) or [keys.CPU]
    found = room.holders(facts.placed, facts.groups, names, own)
    if queues is not None:
        wanted = set(queues)
        found = [one for one in found if one.queue in wanted]
    rows = tuple((one.name, one.queue, str(one.pods), amounts.listed(one.holds, names)) for one in found[:_HOLDERS])
    headers = ("Job or PodGroup", "Queue", "Pods", "Holds")
    return Section("Who holds the room", rows, headers, len(found) - len(rows), short=True)


def _said(facts: Facts, gang: Gang) -> Iterable[Row]:
    """Return the words of the scheduler: the last cycle, and the conditions of PodGroup and pods that still hold."""
    yield from ((line,) for line in scheduler_words.of_last_cycle(facts))
    waiting = gang.lacks or gang.waiting
    if facts.group is not None and waiting and (said := scheduler_words.about_group(facts.group, facts.events)):
        yield (f"PodGroup: {said}",)
    for text, count in scheduler_words.about_pods(facts.pods):
        yield (f"{counted(count, 'pod')}: {text}",)


def _events(events: Sequence[Obj], now: datetime) -> Section:
    """Return the last different events, warnings first."""
    last: dict[tuple[str, str], Obj] = {}
    for one in events:
        key = (str(one.get("reason")), str(one.get("message")))
        if key not in last or scheduler_words.when(one) > scheduler_words.when(last[key]):
            last[key] = one
    chosen = sorted(
        last.values(), key=lambda one: (one.get("type") == keys.EVENT_WARNING, scheduler_words.when(one)), reverse=True
    )
    rows = tuple(
        (age(scheduler_words.time(one), now), str(one.get("reason", "")), " ".join(str(one.get("message", "")).split()))
        for one in chosen[:_EVENTS]
    )
    return Section("Events", rows, ("Age", "Reason", "Message"), short=True)


def _notes(facts: Facts) -> Section:
    return Section("Not seen", tuple((note,) for note in facts.notes))


# Queues


def _created(group: Obj) -> tuple[float, str]:
    found = time_of(group["metadata"].get("creationTimestamp"))
    return (found.timestamp() if found else 0.0, group["metadata"]["name"])


def _group_name(group: Obj) -> str:
    metadata = group["metadata"]
    owner = next((one for one in metadata.get("ownerReferences") or () if one.get("kind") == "Job"), None)
    return f"{metadata.get('namespace', '')}/{owner['name'] if owner else metadata['name']}"


def _waiting_row(group: Obj, facts: Facts, now: datetime) -> Row:
    spec = group.get("spec") or {}
    needs = amounts.listed(real(amounts.read(spec.get("minResources"))))
    when = age(group["metadata"].get("creationTimestamp"), now)
    return (_group_name(group), room.queue_of(group), phase_of(group) or "-", when, needs, _reason(group, facts) or "-")


def _beyond(own: Sequence[Obj], facts: Facts) -> list[_Beyond]:
    """Return the gangs that run and the pods of each that have no node, the oldest gang first."""
    by_group: dict[str, list[Obj]] = {}
    for pod in filter(waits, facts.pods):
        by_group.setdefault(room.group_of(pod), []).append(pod)
    running = sorted((one for one in own if phase_of(one) == "Running"), key=_created)
    return [(one, by_group[room.key_of(one)]) for one in running if room.key_of(one) in by_group]


def _beyond_row(group: Obj, pods: Sequence[Obj], facts: Facts, now: datetime) -> Row:
    row = _waiting_row(group, facts, now)
    needs = amounts.listed(real(amounts.total(map(amounts.requests_of, pods))))
    said = next((text for text, _ in scheduler_words.about_pods(pods)), _reason(group, facts))
    told = f": {said}" if said else ""
    return (*row[:4], needs, f"{counted(len(pods), 'pod')} {_verb(len(pods), 'wait')}{told}")


def _reason(group: Obj, facts: Facts) -> str:
    metadata = group["metadata"]
    for job in (facts.debug or {}).get("jobs") or ():
        if (job.get("namespace"), job.get("name")) == (metadata.get("namespace"), metadata["name"]) and job.get(
            "message"
        ):
            return str(job["message"])
    about = [one for one in facts.events if _is_about(one, metadata)]
    return scheduler_words.about_group(group, about)


def _is_about(event: Obj, metadata: Obj) -> bool:
    about = event.get("involvedObject") or {}
    return about.get("name") == metadata["name"] and about.get("namespace") in (None, metadata.get("namespace"))
