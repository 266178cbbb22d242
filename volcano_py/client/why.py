"""Why a job or the jobs of a queue wait: facts in, an explanation for one screen out. Nothing here reads or prints."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, Final, NamedTuple

from volcano_py.api import keys
from volcano_py.client import amounts, room
from volcano_py.client.ages import age, time_of
from volcano_py.client.amounts import Amounts
from volcano_py.client.waiting_facts import Facts

Obj = Mapping[str, Any]
Row = tuple[str, ...]
_ENDED: Final = frozenset({"Completed", "Failed", "Terminated"})
_DONE: Final = frozenset({"Succeeded", "Failed"})
_QUIET: Final = frozenset({"", "Created", "MinAvailableReached"})
_REFUSALS: Final = frozenset({keys.EVENT_UNSCHEDULABLE, keys.EVENT_FAILED_SCHEDULING})
_EVENTS: Final = 5
_HOLDERS: Final = 5
_WAITING: Final = 10
_SHOWN: Final = 3


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


class _Gang(NamedTuple):
    """A gang in numbers."""

    minimum: int
    wanted: int
    created: int
    placed: int
    succeeded: int
    needs: Amounts

    @property
    def lacks(self) -> int:
        return max(self.minimum - self.placed - self.succeeded, 0)


def why_job(facts: Facts, now: datetime) -> Explanation:
    """Explain why a job, or a PodGroup, waits."""
    subject = _subject(facts)
    gang = _gang(facts)
    queue = _queue_name(facts)
    levels = room.levels(queue, facts.queues, gang.needs)
    pod = _waiting_pod(facts)
    groups = room.node_groups(facts.nodes, facts.placed, pod) if pod else []
    answer, ways_out = _answer(facts, gang, queue, levels, groups)
    sections = [
        Section("State", tuple(_state(facts, now))),
        Section("Gang", tuple(_gang_rows(gang, facts))),
        _levels(levels, queue, gang.needs, seen=facts.sees_queues),
    ]
    if groups and gang.lacks:
        sections.append(_nodes(groups, pod))
    if gang.lacks:
        sections.append(_holders(facts, gang.needs, _own(facts)))
    sections += [Section("Scheduler", tuple(_said(facts))), _events(facts.events, now), _notes(facts)]
    return Explanation(subject, answer, tuple(one for one in sections if one.rows), tuple(ways_out))


def why_queue(facts: Facts, name: str, now: datetime) -> Explanation:
    """Explain why the jobs of a queue wait."""
    inside = _subtree(name, facts.queues)
    own = [one for one in facts.groups if _queue_of(one) in inside]
    waiting = sorted((one for one in own if _phase(one) in ("", "Pending", "Inqueue", "Unknown")), key=_created)
    first = amounts.read((waiting[0].get("spec") or {}).get("minResources")) if waiting else {}
    levels = room.levels(name, facts.queues, first)
    phases = Counter(_phase(one) or "no phase" for one in own)
    answer, ways_out = _queue_answer(name, waiting, levels, first, facts)
    counts = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items())) or "none"
    rows = tuple(_waiting_row(one, facts, now) for one in waiting[:_WAITING])
    headers = ("Job", "Queue", "Phase", "Age", "Needs", "Reason")
    sections = [
        Section("State", ((f"{levels[0].state or 'no state'}; PodGroups: {counts}",),)),
        _levels(levels, name, first),
        Section("Waiting, oldest first", rows, headers, len(waiting) - len(rows), short=True),
        _holders(facts, first or {keys.CPU: Fraction(1)}, (), inside),
        _events(facts.events, now),
        _notes(facts),
    ]
    return Explanation(f"queue {name}", answer, tuple(one for one in sections if one.rows), tuple(ways_out))


# The gang


def _subject(facts: Facts) -> str:
    obj, what = (facts.job, "job") if facts.job is not None else (facts.group, "PodGroup")
    assert obj is not None
    return f"{what} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _own(facts: Facts) -> tuple[str, ...]:
    group = facts.group
    return (f"{group['metadata'].get('namespace', '')}/{group['metadata']['name']}",) if group else ()


def _gang(facts: Facts) -> _Gang:
    spec: Obj = (facts.job or {}).get("spec") or {}
    of_group: Obj = (facts.group or {}).get("spec") or {}
    minimum = int(of_group.get("minMember") or spec.get("minAvailable") or 0)
    tasks = spec.get("tasks") or ()
    wanted = sum(int(task.get("replicas") or 0) for task in tasks) if tasks else len(facts.pods)
    live = [pod for pod in facts.pods if _pod_phase(pod) not in _DONE]
    placed = sum(bool((pod.get("spec") or {}).get("nodeName")) for pod in live)
    succeeded = sum(_pod_phase(pod) == "Succeeded" for pod in facts.pods)
    return _Gang(minimum, wanted, len(facts.pods), placed, succeeded, _needs(facts, minimum - placed - succeeded))


def _needs(facts: Facts, lacking: int) -> Amounts:
    """Return what the pods that the gang lacks request: waiting pods first, then pods that do not exist yet."""
    waiting = [amounts.requests_of(pod) for pod in facts.pods if _waits(pod)]
    for task in ((facts.job or {}).get("spec") or {}).get("tasks") or ():
        there = sum(_task_of(pod) == task.get("name") for pod in facts.pods)
        missing = max(int(task.get("replicas") or 0) - there, 0)
        waiting += [amounts.requests_of(task.get("template") or {})] * missing
    found = amounts.total(waiting[: max(lacking, 0)])
    if not found and lacking > 0 and facts.group:
        found = amounts.read((facts.group.get("spec") or {}).get("minResources"))
    return {name: amount for name, amount in found.items() if amount > 0}


def _waiting_pod(facts: Facts) -> Obj | None:
    """Return the pod, or the template of one, that is hardest to place: the one with the largest requests."""
    waiting: list[Obj] = [pod for pod in facts.pods if _waits(pod)]
    waiting += [
        task.get("template") or {}
        for task in ((facts.job or {}).get("spec") or {}).get("tasks") or ()
        if sum(_task_of(pod) == task.get("name") for pod in facts.pods) < int(task.get("replicas") or 0)
    ]
    return max(waiting, key=lambda pod: sorted(amounts.requests_of(pod).items()), default=None)


def _task_of(pod: Obj) -> str:
    metadata = pod["metadata"]
    found = (metadata.get("annotations") or {}).get(keys.TASK_SPEC) or (metadata.get("labels") or {}).get(
        keys.TASK_SPEC
    )
    return str(found or "")


def _waits(pod: Obj) -> bool:
    return not (pod.get("spec") or {}).get("nodeName") and _pod_phase(pod) not in _DONE


def _pod_phase(pod: Obj) -> str:
    return str((pod.get("status") or {}).get("phase") or "")


def _phase(group: Obj) -> str:
    return str((group.get("status") or {}).get("phase") or "")


def _job_state(facts: Facts) -> Obj:
    return ((facts.job or {}).get("status") or {}).get("state") or {}


def _queue_name(facts: Facts) -> str:
    return _queue_of(facts.group or facts.job or {})


def _queue_of(obj: Obj) -> str:
    return str((obj.get("spec") or {}).get("queue") or keys.DEFAULT_QUEUE)


# The answer


def _deleted(metadata: Obj) -> tuple[str, list[str]]:
    waits = [str(one) for one in metadata.get("finalizers") or ()]
    if not waits:
        return "it is being deleted", []
    return (
        f"it is being deleted, and stays until {' and '.join(waits)} is removed from metadata.finalizers",
        ["find the controller that adds the finalizer: it removes it when it has cleaned up, if it runs"],
    )


def _answer(
    facts: Facts, gang: _Gang, queue: str, levels: Sequence[room.Level], groups: Sequence[room.NodeGroup]
) -> tuple[str, list[str]]:
    """Return the first cause that holds, in the order in which a job meets them, and the ways out of it."""
    state = _job_state(facts)
    phase, reason = str(state.get("phase") or ""), str(state.get("reason") or "")
    message = str(state.get("message") or "")
    metadata: Obj = (facts.job or facts.group or {}).get("metadata") or {}
    if metadata.get("deletionTimestamp"):
        return _deleted(metadata)
    if phase in _ENDED:
        return f"it does not wait: it is {phase}{f' ({message})' if message else ''}", []
    if phase in ("Aborted", "Aborting"):
        return f"it is {phase} and starts only when it is resumed", [f"vcctl job resume {_flags(facts)}"]
    if facts.job is not None and not phase:
        return "the controllers have not seen it yet", [
            "kubectl -n volcano-system get pods    # does vc-controller-manager run?"
        ]
    if not levels and facts.sees_queues:
        return f"its queue {queue} does not exist", ["vcctl queue list", f"vcctl queue create -n {queue}"]
    if closed := next((one for one in levels if one.state and one.state != keys.QUEUE_OPEN), None):
        return f"queue {closed.name} is {closed.state}", [f"vcctl queue operate -n {closed.name} -a open"]
    if reason not in _QUIET and message and gang.created < gang.minimum:
        return f"{reason}: {message}", []
    if facts.group is None:
        return f"it has no PodGroup yet{f' ({message})' if message else ''}", []
    if not gang.lacks:
        return _not_waiting(facts, gang)
    if gang.wanted < gang.minimum:
        return _too_few(facts, gang)
    if full := next((one for one in levels if one.lacks), None):
        what = ", ".join(_against(full, name, gang.needs) for name in full.lacks)
        return f"queue {full.name} has no room: {what}", [
            f"vcctl queue why {full.name}",
            "wait for the holders above, or raise the capability of the queue",
        ]
    fitting = sum(one.fitting for one in groups)
    if groups and fitting < gang.lacks:
        worst = max(groups, key=lambda one: one.refusing)
        why = f"; {worst.refusing} of {worst.nodes} nodes: {worst.reason}" if worst.reason else ""
        way = "add nodes, or ask for less: smaller requests or a lower minAvailable"
        if all(one.reason.startswith(room.TOO_SMALL) for one in groups):
            way = "add larger nodes, or lower the requests of each pod"
        elif room.holders(facts.placed, facts.groups, (), _own(facts)):
            way = f"wait for the holders above, {way}"
        return f"the nodes have room for {fitting} of the {gang.lacks} pods that the gang lacks{why}", [way]
    if said := _condition(facts.group) or _last_words(facts.events):
        return f"the scheduler says: {said}", []
    if gang.created < gang.minimum and _phase(facts.group) not in ("", "Pending"):
        return f"{gang.created} of {gang.minimum} pods exist", ["kubectl -n volcano-system get pods"]
    return "nobody has said why yet: the scheduler has not answered", [
        "kubectl -n volcano-system get pods    # does volcano-scheduler run?"
    ]


def _too_few(facts: Facts, gang: _Gang) -> tuple[str, list[str]]:
    """Return what to say of a gang that has fewer pods than it needs, however much room there is."""
    if facts.job is None:
        return f"only {gang.created} of the {gang.minimum} pods that the gang needs exist", [
            "create the missing pods, or lower minMember of the PodGroup"
        ]
    return f"it can never start: minAvailable is {gang.minimum}, and its tasks have only {_pods(gang.wanted)}", [
        "lower minAvailable, or raise the replicas of a task"
    ]


def _against(level: room.Level, name: str, needs: Amounts) -> str:
    used = amounts.shown(name, level.allocated.get(name, Fraction()))
    may, lacking = amounts.shown(name, level.capability[name]), amounts.shown(name, needs[name])
    return f"it may use {name} {may}, {used} is in use, and the gang needs {lacking} more"


def _not_waiting(facts: Facts, gang: _Gang) -> tuple[str, list[str]]:
    left = gang.wanted - gang.placed - gang.succeeded
    if left > 0:
        return f"its gang runs; {left} pods beyond the minimum of {gang.minimum} have no node", []
    return f"it does not wait: {gang.placed} of {gang.wanted} pods have a node", []


def _flags(facts: Facts) -> str:
    obj = facts.job or facts.group or {}
    return f"-N {obj['metadata']['name']} -n {obj['metadata'].get('namespace', 'default')}"


def _queue_answer(
    name: str, waiting: Sequence[Obj], levels: Sequence[room.Level], first: Amounts, facts: Facts
) -> tuple[str, list[str]]:
    if closed := next((one for one in levels if one.state and one.state != keys.QUEUE_OPEN), None):
        return f"queue {closed.name} is {closed.state}", [f"vcctl queue operate -n {closed.name} -a open"]
    if not waiting:
        return "nothing waits in it", []
    subject = _group_name(waiting[0])
    if full := next((one for one in levels if one.lacks), None):
        what = ", ".join(_against(full, one, first) for one in full.lacks)
        return f"queue {full.name} has no room for {subject}: {what}", [
            "wait for the holders above, or raise the capability of the queue"
        ]
    namespace, _, job = subject.partition("/")
    said = _reason(waiting[0], facts)
    return f"{len(waiting)} wait; the oldest is {subject}{f': {said}' if said else ''}", [
        f"vcctl job why {job} -n {namespace}"
    ]


# The parts of the screen


def _state(facts: Facts, now: datetime) -> Iterable[Row]:
    if facts.job is not None:
        state = _job_state(facts)
        since = age(state.get("lastTransitionTime") or facts.job["metadata"].get("creationTimestamp"), now)
        reason = ": ".join(str(state[name]) for name in ("reason", "message") if state.get(name))
        yield (f"job: {state.get('phase') or 'no phase'} for {since}{f' ({reason})' if reason else ''}",)
    if facts.group is not None:
        since = age(facts.group["metadata"].get("creationTimestamp"), now)
        yield (f"PodGroup {facts.group['metadata']['name']}: {_phase(facts.group) or 'no phase'}, {since} old",)
        if _phase(facts.group) in ("", "Pending"):
            pods = "" if facts.job is None else ", so the pods of the job are not created yet"
            yield (f"it is not enqueued{pods}",)


def _gang_rows(gang: _Gang, facts: Facts) -> Iterable[Row]:
    missing = max((gang.minimum if facts.job is None else gang.wanted) - gang.created, 0)
    waiting = sum(_waits(pod) for pod in facts.pods)
    yield (
        f"needs {_pods(gang.minimum)} at the same time; {gang.placed} have a node, {gang.succeeded} have succeeded, "
        f"{waiting} wait, {missing} do not exist yet",
    )
    if gang.lacks:
        yield (f"lacks {_pods(gang.lacks)}: {amounts.listed(_real(gang.needs))}",)


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"


def _real(needs: Amounts) -> Amounts:
    return {name: amount for name, amount in needs.items() if name != keys.PODS}


def _levels(levels: Sequence[room.Level], queue: str, needs: Amounts, *, seen: bool = True) -> Section:
    names = list(_real(needs)) or [keys.CPU, keys.MEMORY]
    rows = []
    for level in levels:
        verdict = (
            f"lacks {amounts.listed(level.lacks)}" if level.lacks else "has room" if level.capability else "no limit"
        )
        if level.state and level.state != keys.QUEUE_OPEN:
            verdict = f"is {level.state}"
        may = amounts.listed(level.capability, names) if level.capability else "-"
        deserved = amounts.listed(level.deserved, names) if level.deserved else "-"
        rows.append((level.name, level.state or "-", deserved, may, amounts.listed(level.allocated, names), verdict))
    if not rows:
        return Section("Queue", ((f"{queue} {'does not exist' if seen else 'cannot be read with your rights'}",),))
    return Section("Queue, up to the root", tuple(rows), ("Name", "State", "Deserved", "May use", "In use", "Verdict"))


def _nodes(groups: Sequence[room.NodeGroup], pod: Obj | None) -> Section:
    shape = amounts.listed(_real(amounts.requests_of(pod or {})))
    rows = tuple(
        (one.name, str(one.nodes), str(one.fitting), f"{one.reason} ({one.refusing} nodes)" if one.reason else "-")
        for one in groups
    )
    return Section(f"Nodes, for a pod of {shape}", rows, ("Group", "Nodes", "Room for", "Why not more"))


def _holders(facts: Facts, needs: Amounts, own: Iterable[str], queues: Iterable[str] | None = None) -> Section:
    names = list(_real(needs)) or [keys.CPU]
    found = room.holders(facts.placed, facts.groups, names, own)
    if queues is not None:
        wanted = set(queues)
        found = [one for one in found if one.queue in wanted]
    rows = tuple((one.name, one.queue, str(one.pods), amounts.listed(one.holds, names)) for one in found[:_HOLDERS])
    headers = ("Job or PodGroup", "Queue", "Pods", "Holds")
    return Section("Who holds the room", rows, headers, len(found) - len(rows), short=True)


def _said(facts: Facts) -> Iterable[Row]:
    """Return the words of the scheduler: the last cycle, else the conditions of PodGroup and pods."""
    for job in (facts.debug or {}).get("jobs") or ():
        if job.get("message"):
            yield (f"last cycle: {job['message']}",)
        for rejection in (job.get("rejections") or ())[:_SHOWN]:
            for reason in (rejection.get("reasons") or ())[:_SHOWN]:
                nodes = f" on {reason['nodes']} nodes" if reason.get("nodes") else ""
                yield (f"{reason.get('plugin')}: {reason.get('text')} [{reason.get('code')}]{nodes}",)
    if facts.group is not None and (said := _condition(facts.group) or _last_words(facts.events)):
        yield (f"PodGroup: {said}",)
    texts = Counter(text for pod in facts.pods if _waits(pod) and (text := _scheduled_condition(pod)))
    for text, count in texts.most_common(_SHOWN):
        yield (f"{_pods(count)}: {text}",)


def _condition(group: Obj) -> str:
    """Return why a PodGroup is unschedulable now."""
    for one in (group.get("status") or {}).get("conditions") or ():
        if one.get("type") == keys.CONDITION_UNSCHEDULABLE and one.get("status") == "True":
            return ": ".join(str(one[name]) for name in ("reason", "message") if one.get(name))
    return ""


def _scheduled_condition(pod: Obj) -> str:
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one.get("type") == keys.CONDITION_POD_SCHEDULED and one.get("status") == "False":
            return str(one.get("message") or one.get("reason") or "")
    return ""


def _events(events: Sequence[Obj], now: datetime) -> Section:
    """Return the last different events, warnings first."""
    last: dict[tuple[str, str], Obj] = {}
    for one in events:
        key = (str(one.get("reason")), str(one.get("message")))
        if key not in last or _when(one) > _when(last[key]):
            last[key] = one
    chosen = sorted(last.values(), key=lambda one: (one.get("type") == keys.EVENT_WARNING, _when(one)), reverse=True)
    rows = tuple(
        (age(_time(one), now), str(one.get("reason", "")), " ".join(str(one.get("message", "")).split()))
        for one in chosen[:_EVENTS]
    )
    return Section("Events", rows, ("Age", "Reason", "Message"), short=True)


def _time(event: Obj) -> Any:
    series = (event.get("series") or {}).get("lastObservedTime")
    return series or event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")


def _when(event: Obj) -> float:
    found = time_of(_time(event))
    return found.timestamp() if found else 0.0


def _notes(facts: Facts) -> Section:
    return Section("Not seen", tuple((note,) for note in facts.notes))


# Queues


def _subtree(name: str, queues: Sequence[Obj]) -> set[str]:
    return {one["metadata"]["name"] for one in queues if name in room.path_of(one["metadata"]["name"], queues)}


def _created(group: Obj) -> tuple[float, str]:
    found = time_of(group["metadata"].get("creationTimestamp"))
    return (found.timestamp() if found else 0.0, group["metadata"]["name"])


def _group_name(group: Obj) -> str:
    metadata = group["metadata"]
    owner = next((one for one in metadata.get("ownerReferences") or () if one.get("kind") == "Job"), None)
    return f"{metadata.get('namespace', '')}/{owner['name'] if owner else metadata['name']}"


def _waiting_row(group: Obj, facts: Facts, now: datetime) -> Row:
    spec = group.get("spec") or {}
    needs = amounts.listed(_real(amounts.read(spec.get("minResources"))))
    when = age(group["metadata"].get("creationTimestamp"), now)
    return (_group_name(group), _queue_of(group), _phase(group) or "-", when, needs, _reason(group, facts) or "-")


def _reason(group: Obj, facts: Facts) -> str:
    metadata = group["metadata"]
    for job in (facts.debug or {}).get("jobs") or ():
        if (job.get("namespace"), job.get("name")) == (metadata.get("namespace"), metadata["name"]) and job.get(
            "message"
        ):
            return str(job["message"])
    if said := _condition(group):
        return said
    about = [one for one in facts.events if (one.get("involvedObject") or {}).get("name") == metadata["name"]]
    return _last_words(about)


def _last_words(events: Sequence[Obj]) -> str:
    """Return the last event that says why something is not scheduled."""
    found = [one for one in events if one.get("reason") in _REFUSALS]
    return " ".join(str(max(found, key=_when).get("message", "")).split()) if found else ""
