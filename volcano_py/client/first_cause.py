"""The first cause that keeps a job from running, in the order in which a job meets them, and the ways out of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from typing import Any, Final, NamedTuple

from volcano_py.api import keys
from volcano_py.client import amounts, room, scheduler_words
from volcano_py.client.amounts import Amounts
from volcano_py.client.counting import counted, have
from volcano_py.client.gang import Gang, phase_of
from volcano_py.client.leaving import FOREGROUND, leaving
from volcano_py.client.waiting_facts import Facts
from volcano_py.kube.resource import EVENTS, PODGROUPS, PODS, QUEUES, Resource

Obj = Mapping[str, Any]
Answer = tuple[str, list[str]]
_ENDED: Final = frozenset({"Completed", "Failed", "Terminated"})
_KILLING: Final = frozenset({"Restarting", "Terminating", "Completing"})
_QUIET: Final = frozenset({"", "Created", "PodsCreated", "MinAvailableReached"})
_ANSWERS_FAILURES: Final = frozenset({"PodFailed", "*"})
_OF_KUBERNETES: Final = "default-scheduler"
_SHOWN: Final = 3
_LESS: Final = "smaller requests or a lower minAvailable"


class Surroundings(NamedTuple):
    """Where a gang wants to run."""

    queue: str
    needs: Amounts
    """What the gang lacks or, if it lacks nothing, what a further pod requests.

    Before it is enqueued, also the `minResources` of its PodGroup.
    """
    levels: Sequence[room.Level]
    groups: Sequence[room.NodeGroup]


def first_cause(facts: Facts, gang: Gang, around: Surroundings, now: datetime) -> Answer:
    """Return the answer in one sentence, and what to do."""
    metadata: Obj = (facts.job or facts.group or {}).get("metadata") or {}
    if metadata.get("deletionTimestamp"):
        told, ways = leaving(metadata, facts.pods, now)
        return told, ways if gang.seen or FOREGROUND not in (metadata.get("finalizers") or ()) else []
    for cause in _CAUSES if gang.seen else _CAUSES_UNSEEN:
        if answer := cause(facts, gang, around):
            return answer
    if said := scheduler_words.about_group(facts.group or {}, facts.events):
        return f"the scheduler says: {said}", []
    if gang.seen and gang.created < gang.minimum and phase_of(facts.group or {}) not in ("", "Pending"):
        exist = "its pod does not exist" if gang.minimum == 1 else f"{gang.created} of {gang.minimum} pods exist"
        return exist, ["kubectl -n volcano-system get pods    # does vc-controller-manager run?"]
    if unread := next((kind for kind in (PODS, PODGROUPS, EVENTS) if not facts.sees(kind)), None):
        return _unknown(facts, unread)
    if (name := scheduler_of(facts)) != keys.SCHEDULER_NAME:
        return f"scheduler {name} has not said why yet", []
    return "nobody has said why yet: the scheduler has not answered", [
        "kubectl -n volcano-system get pods    # does volcano-scheduler run?"
    ]


def no_room(level: room.Level, needs: Amounts, who: str = "the gang") -> str:
    """Return what a gang needs beyond what a queue may use."""
    return ", ".join(_against(level, name, needs, who) for name in level.lacks)


def never(subject: str, level: room.Level) -> Answer:
    """Return what to say of a gang that a queue can never hold, and what helps."""
    wanted, allowed = amounts.listed(level.never), amounts.listed(level.capability, level.never)
    return f"{subject} can never start here: it needs {wanted}, and queue {level.name} may use at most {allowed}", [
        f"raise the capability of queue {level.name}, or ask for less: {_LESS}"
    ]


def ended(facts: Facts) -> bool:
    """Say whether a job has ended, so that nothing of it waits."""
    return _state(facts).get("phase") in _ENDED


def scheduler_of(facts: Facts) -> str:
    """Return the name of the scheduler that a job or its pods are for."""
    annotations = ((facts.group or {}).get("metadata") or {}).get("annotations") or {}
    named = ((facts.job or {}).get("spec") or {}).get("schedulerName") or annotations.get(keys.GROUP_SCHEDULER)
    of_pods = ((pod.get("spec") or {}).get("schedulerName") for pod in facts.pods)
    return str(named or next((one for one in of_pods if one), "") or keys.SCHEDULER_NAME)


def _of_the_job(facts: Facts, gang: Gang, around: Surroundings) -> Answer | None:
    state = _state(facts)
    phase, message = str(state.get("phase") or ""), str(state.get("message") or "")
    if phase in _ENDED:
        return f"it does not wait: it is {phase}{f' ({message})' if message else ''}", []
    if phase in ("Aborted", "Aborting"):
        return f"it is {phase} and starts only when it is resumed", [f"vcctl job resume {_flags(facts)}"]
    if facts.job is not None and not phase:
        return "the controllers have not seen it yet", [
            "kubectl -n volcano-system get pods    # does vc-controller-manager run?"
        ]
    return None


def _of_the_queue(facts: Facts, gang: Gang, around: Surroundings) -> Answer | None:
    if not around.levels and facts.sees(QUEUES):
        return f"its queue {around.queue} does not exist", [
            "vcctl queue list",
            f"vcctl queue create -n {around.queue}",
        ]
    if facts.group is not None and not (gang.lacks or gang.waiting or gang.missing):
        return None  # what has started runs on in a closed queue
    return closed(around.levels)


def closed(levels: Sequence[room.Level]) -> Answer | None:
    """Return what to say if a queue, or one above it, is closed.

    The way out names the topmost one: below it, no queue can be opened, and the queues below are opened with it.
    """
    found = [one for one in levels if one.state and one.state != keys.QUEUE_OPEN]
    if not found:
        return None
    lowest, top = found[0], found[-1]
    like = f", and queue {top.name} above it is {top.state}" if top is not lowest else ""
    return f"queue {lowest.name} is {lowest.state}{like}", [f"vcctl queue operate -n {top.name} -a open"]


def _of_the_pods(facts: Facts, gang: Gang, around: Surroundings) -> Answer | None:
    """Return what is wrong with the pods themselves, however much room there is."""
    state = _state(facts)
    reason, message = str(state.get("reason") or ""), str(state.get("message") or "")
    if facts.group is not None and gang.lacks and (answer := _small(facts, gang) or _failed(facts, gang)):
        return answer
    if reason not in _QUIET and message and gang.created < gang.minimum:
        return f"{reason}: {message}", []
    if answer := _without_group(facts):
        return answer
    if not gang.lacks or (gang.failed and str(state.get("phase")) == "Running" and not (gang.waiting or gang.missing)):
        return _not_waiting(facts, gang, around)
    if facts.job is None and gang.created < gang.minimum:
        return _too_few(gang.created, gang.minimum), ["create the missing pods, or lower minMember of the PodGroup"]
    return None


def _without_group(facts: Facts) -> Answer | None:
    if facts.group is not None or not facts.sees(PODGROUPS):
        return None
    message = str(_state(facts).get("message") or "")
    return f"it has no PodGroup yet{f' ({message})' if message else ''}", []


def _small(facts: Facts, gang: Gang) -> Answer | None:
    if facts.job is None or gang.wanted >= gang.minimum:
        return None
    only = counted(gang.wanted, "pod")
    return f"it can never start: minAvailable is {gang.minimum}, and its tasks have only {only}", [
        "lower minAvailable, or raise the replicas of a task"
    ]


def _failed(facts: Facts, gang: Gang) -> Answer | None:
    """Return what to say of a gang that has lost too many pods, if nobody makes them again."""
    phase = str(_state(facts).get("phase") or "")
    too_few = gang.wanted - len(gang.failed) < gang.minimum
    runs = phase == "Running" and not (gang.waiting or gang.missing)
    if not (gang.failed and (too_few or gang.short)) or phase in _KILLING or runs or _answers_failures(facts.job):
        return None
    if facts.job is None and gang.created < gang.minimum:
        return None
    number = len(gang.failed)
    failed, them = (
        f"{counted(number, 'pod')} {'has' if number == 1 else 'have'} failed",
        "it" if number == 1 else "them",
    )
    again = f"the job creates {them} again" if facts.job is not None else f"then create {them} again"
    obj: Obj = facts.job or facts.group or {}
    names = [*gang.failed[:_SHOWN], *(["..."] if number > _SHOWN else [])]
    ways = [f"kubectl delete pod {' '.join(names)} -n {obj['metadata'].get('namespace', '')}    # {again}"]
    if facts.job is None:
        return f"it can never start: {failed}, and it needs {counted(gang.minimum, 'pod')}", ways
    of_task = f", which task {' and '.join(gang.short)} needs," if not too_few else ""
    ways.append("or delete the job, and create it with a policy for the event PodFailed, such as RestartJob")
    return f"it can never start: {failed}{of_task} and no policy restarts {them}", ways


def _answers_failures(job: Obj | None) -> bool:
    """Say whether a policy of a job, or of one of its tasks, does something about failed pods."""
    spec = (job or {}).get("spec") or {}
    lists = [spec.get("policies"), *(task.get("policies") for task in spec.get("tasks") or ())]
    return any(
        {*(one.get("events") or ()), one.get("event")} & _ANSWERS_FAILURES for given in lists for one in given or ()
    )


def _of_the_scheduler(facts: Facts, gang: Gang, around: Surroundings) -> Answer | None:
    name = scheduler_of(facts)
    if name == keys.SCHEDULER_NAME or scheduler_words.has_spoken(facts) or not facts.sees(PODGROUPS):
        return None
    what = "the job and create it" if facts.job is not None else "its pods and create them"
    way = f"delete {what} with schedulerName {keys.SCHEDULER_NAME}"
    if name == _OF_KUBERNETES:
        return f"it is for scheduler {name}, which starts no gangs", [way]
    return f"it is for scheduler {name}, and no scheduler of this name has answered", [
        f"{way}, or run a scheduler with --scheduler-name={name}"
    ]


def _of_the_levels(facts: Facts, gang: Gang, around: Surroundings) -> Answer | None:
    if small := next((one for one in around.levels if one.never), None):
        return never("it", small)
    if full := next((one for one in around.levels if one.lacks), None):
        return f"queue {full.name} has no room: {no_room(full, around.needs)}", [
            f"vcctl queue why {full.name}",
            f"{_patience(facts)}, or raise the capability of the queue",
        ]
    return None


def _of_the_room(facts: Facts, gang: Gang, around: Surroundings) -> Answer | None:
    fitting = sum(one.fitting for one in around.groups)
    if not around.groups or fitting >= gang.lacks:
        return None
    refusals = room.refusals_of(around.groups)
    room_for = "no room for the pod" if gang.lacks == 1 else f"room for {fitting} of the {gang.lacks} pods"
    in_all = room.in_all(around.groups, gang.needs)
    beyond = {name: amount for name, amount in gang.needs.items() if amount > in_all[name]}
    why = "".join(f"; {text}" for text in _by_nodes(refusals, sum(one.nodes for one in around.groups)))
    if beyond and not all(one.stays for one, _ in refusals):
        which = "the nodes that suit them" if any(one.stays for one, _ in refusals) else "all nodes"
        why += f"; the pods need {amounts.listed(beyond)}, and {which} together have {amounts.listed(in_all, beyond)}"
    return f"the nodes have {room_for} that the gang lacks{why}", _more_room(facts, around.groups, waits=not beyond)


def _by_nodes(refusals: Sequence[tuple[room.Refusal, int]], nodes: int) -> Iterator[str]:
    """Yield the most common reasons, each with the nodes that give it."""
    what = " nodes"
    for refusal, count in refusals[:_SHOWN]:
        yield f"{count} of {nodes}{what}: {refusal.text}"
        what = ""


def _more_room(facts: Facts, groups: Sequence[room.NodeGroup], *, waits: bool, less: str = _LESS) -> list[str]:
    """Return what makes room; ``waits`` says whether it may also help to wait."""
    refusals = room.refusals_of(groups)
    by_amounts = {one: count for one, count in refusals if not one.way}
    if not by_amounts:  # more room of the same kind would not help
        return list(dict.fromkeys(one.way for one, _ in refusals[:_SHOWN]))
    # Few nodes that refuse for a taint, such as those of a control plane, are no room that anybody misses.
    many = sum(by_amounts.values())
    helping = frozenset[str]().union(*(one.helping for one in groups))
    others = list(dict.fromkeys(one.way for one, count in refusals if one.way in helping and count >= many))
    if all(one.too_small for one in by_amounts):
        return ["add larger nodes, or lower the requests of each pod", *others]
    way = f"add nodes, or ask for less: {less}"
    waits = waits and bool(_others(facts))
    return [f"wait for the holders above, {way}" if waits else way, *others]


def _others(facts: Facts) -> list[room.Holder]:
    """Return who else holds room, as far as it can be seen."""
    own = [room.key_of(facts.group)] if facts.group else []
    return room.holders(facts.placed, facts.groups, (), own)


def _patience(facts: Facts) -> str:
    return "wait for the holders above" if _others(facts) else "wait until others in the queue end"


def _too_few(exist: int, needed: int) -> str:
    if needed == 1:
        return "the pod that the gang needs does not exist"
    return f"only {exist} of the {needed} pods that the gang needs {'exists' if exist == 1 else 'exist'}"


def _against(level: room.Level, name: str, needs: Amounts, who: str) -> str:
    used = amounts.shown(name, level.allocated.get(name, Fraction()))
    may, lacking = amounts.shown(name, level.capability[name]), amounts.shown(name, needs[name])
    return f"it may use {name} {may}, {used} is in use, and {who} needs {lacking} more"


def _not_waiting(facts: Facts, gang: Gang, around: Surroundings) -> Answer:
    if left := gang.beyond:
        why, ways = _of_the_rest(facts, gang, around)
        verb = "has" if left == 1 else "have"
        return f"its gang runs; {counted(left, 'pod')} beyond the minimum of {gang.minimum} {verb} no node{why}", ways
    return _all_placed(gang), []


def _of_the_rest(facts: Facts, gang: Gang, around: Surroundings) -> Answer:
    """Return why pods beyond the minimum have no node, and what helps; both are empty if there is room for one."""
    if full := next((one for one in around.levels if one.lacks), None):
        why = f": queue {full.name} has no room: {no_room(full, around.needs, 'a pod')}"
        return why, [f"vcctl queue why {full.name}", room_in_queue(full, gang.holds, facts)]
    if not around.groups or any(one.fitting for one in around.groups):
        return "", []
    refusals = room.refusals_of(around.groups)
    why = "; ".join(_by_nodes(refusals, sum(one.nodes for one in around.groups)))
    in_all = room.in_all(around.groups, around.needs)
    waits = all(amount <= in_all[name] for name, amount in around.needs.items())
    return f"; {why}", _more_room(facts, around.groups, waits=waits, less="smaller requests or fewer replicas")


def room_in_queue(level: room.Level, own: Amounts, facts: Facts) -> str:
    """Return what makes room for pods beyond the minimum in a queue, of which their jobs hold something themselves."""
    if any(level.allocated.get(name, Fraction()) > own.get(name, Fraction()) for name in level.lacks):
        return f"{_patience(facts)}, or raise the capability of queue {level.name}"
    return f"raise the capability of queue {level.name}, or ask for fewer replicas: nobody else uses the queue"


def _all_placed(gang: Gang) -> str:
    if gang.wanted == gang.placed == 1:
        return f"it does not wait: its pod {'has a node' if gang.seen else 'runs'}"
    ended = (("succeeded", gang.succeeded), ("failed", len(gang.failed)))
    more = "".join(f", {have(number)} {word}" for word, number in ended if number)
    does = f"{'has' if gang.placed == 1 else 'have'} a node"
    if not gang.seen:
        does = "runs" if gang.placed == 1 else "run"
    return f"it does not wait: {gang.placed} of {gang.wanted} pods {does}{more}"


# Pods that the user may not read


def _of_those_that_run(facts: Facts, gang: Gang, around: Surroundings) -> Answer | None:
    """Return what the status of a job says if it counts enough pods that run."""
    if gang.lacks or not gang.minimum:
        return None
    if gang.beyond:
        told = f"{gang.placed} of {gang.wanted} pods {'runs' if gang.placed == 1 else 'run'}"
        return f"its gang runs; {told}, and whether the others have a node is unknown: pods cannot be read", []
    return _all_placed(gang), []


def _of_the_tasks(facts: Facts, gang: Gang, around: Surroundings) -> Answer | None:
    if small := _small(facts, gang):
        return small
    return _without_group(facts)


def _unknown(facts: Facts, unread: Resource) -> Answer:
    obj, state = facts.job or facts.group or {}, _state(facts)
    phase, message = state.get("phase") or phase_of(obj) or "without a phase", str(state.get("message") or "")
    namespace = (obj.get("metadata") or {}).get("namespace", "")
    told = f"it is {phase}{f' ({message})' if message else ''}"
    return f"{told}; what it waits for is unknown, because {unread.plural} cannot be read", [
        f"ask for the right to list {unread.plural} in namespace {namespace}"
    ]


def _state(facts: Facts) -> Obj:
    return ((facts.job or {}).get("status") or {}).get("state") or {}


def _flags(facts: Facts) -> str:
    obj = facts.job or facts.group or {}
    return f"-N {obj['metadata']['name']} -n {obj['metadata'].get('namespace', 'default')}"


_Cause = Callable[[Facts, Gang, Surroundings], Answer | None]
_CAUSES: Final[Sequence[_Cause]] = (
    _of_the_job,
    _of_the_queue,
    _of_the_pods,
    _of_the_scheduler,
    _of_the_levels,
    _of_the_room,
)
_CAUSES_UNSEEN: Final[Sequence[_Cause]] = (
    _of_the_job,
    _of_those_that_run,
    _of_the_queue,
    _of_the_tasks,
    _of_the_levels,
)
"""Causes of a job whose pods cannot be read."""
