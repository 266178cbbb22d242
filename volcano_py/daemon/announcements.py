"""The events that the daemon records by itself; all other events are decisions of a cycle."""

from collections.abc import Sequence

from volcano_py.api import keys
from volcano_py.cache.unreadable_objects import Unreadable
from volcano_py.effects import evictor
from volcano_py.effects.outcomes import GangOutcome
from volcano_py.model.decisions import Bind, Evict, RecordEvent
from volcano_py.model.objects import JobRecord, TaskRef

_NAMED = 3  # failed binds or evicted pods that a message names


def scheduled(bind: Bind) -> RecordEvent:
    """Return the event of a pod that is bound to its node."""
    text = f"Successfully assigned {bind.task} to {bind.node}"
    return RecordEvent("Pod", *bind.task, keys.EVENT_NORMAL, keys.EVENT_SCHEDULED, text)


def preparing(bind: Bind, missing: str) -> RecordEvent:
    """Return the event of a pod whose volumes take long."""
    text = f"Assigned to {bind.node} as soon as its volumes are there: {missing}"
    return RecordEvent("Pod", *bind.task, keys.EVENT_NORMAL, keys.EVENT_WAITING_FOR_VOLUMES, text)


def waiting(task: TaskRef, why: str) -> RecordEvent:
    """Return the event of a pod that waits, in the words of its condition."""
    return RecordEvent("Pod", *task, keys.EVENT_WARNING, keys.EVENT_FAILED_SCHEDULING, why)


def gang_failed(outcome: GangOutcome, uid: str) -> RecordEvent:
    """Return the event of a PodGroup with failed binds, or with binds that were not sent."""
    if outcome.unsent:
        bind, why = outcome.failed[0]
        text = f"{outcome.unsent} pods are placed again: pod {bind.task} cannot be bound to node {bind.node}: {why}"
        return RecordEvent("PodGroup", *outcome.job, uid, keys.EVENT_WARNING, keys.EVENT_FAILED_SCHEDULING, text)
    named = "; ".join(f"pod {bind.task}: {why}" for bind, why in outcome.failed[:_NAMED])
    more = f"; and {len(outcome.failed) - _NAMED} more" if len(outcome.failed) > _NAMED else ""
    text = f"{len(outcome.failed)} of {outcome.binds} binds failed, their pods are placed again: {named}{more}"
    return RecordEvent("PodGroup", *outcome.job, uid, keys.EVENT_WARNING, keys.EVENT_FAILED_SCHEDULING, text)


def evicted(evict: Evict) -> RecordEvent:
    """Return the event of a pod that is evicted."""
    return RecordEvent("Pod", *evict.task, keys.EVENT_WARNING, keys.EVENT_EVICT, evictor.message(evict))


def member_evicted(evict: Evict, job: JobRecord) -> RecordEvent:
    """Return the event of a PodGroup that loses a pod by eviction; its text is the action, as in Volcano."""
    return RecordEvent("PodGroup", *job.key, job.uid, keys.EVENT_NORMAL, keys.EVENT_EVICT, evict.action)


def evicting(job: JobRecord, evictions: Sequence[Evict]) -> RecordEvent:
    """Return the event of a PodGroup for which victims are evicted."""
    named = ", ".join(str(evict.task) for evict in evictions[:_NAMED])
    more = f" and {len(evictions) - _NAMED} more" if len(evictions) > _NAMED else ""
    text = f"{evictions[0].action}: pods are evicted to make room: {named}{more}"
    return RecordEvent("PodGroup", *job.key, job.uid, keys.EVENT_NORMAL, keys.EVENT_PREEMPTING, text)


def unreadable(entry: Unreadable) -> RecordEvent:
    """Return the event of an object that cannot be read."""
    who = (entry.kind, entry.namespace, entry.name, entry.uid)
    return RecordEvent(*who, keys.EVENT_WARNING, keys.UNREADABLE, entry.message)
