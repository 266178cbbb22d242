"""A cache fed by hand: the events that a watch would bring and the writes that decisions lead to.

For tests and for clusters that are only simulated.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.api.meta import Condition
from volcano_py.api.scheduling import PodGroup
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.watched_kinds import WATCHED_KINDS
from volcano_py.kube.delivery import Event, EventHandler, EventType, KubernetesObject
from volcano_py.model.decisions import SetPodCondition, SetPodGroupStatus

T = TypeVar("T", bound=KubernetesObject)

Known = KubernetesObject
"""What a cache takes in: an object of one of `WATCHED_KINDS`."""

_HANDLERS: Final[dict[type, Callable[[ClusterCache], EventHandler[Any]]]] = {
    kind.type: kind.handler for kind in WATCHED_KINDS
}


def added(cache: ClusterCache, *objects: Known) -> None:
    """Let a cache learn of new objects, one batch for each, in the order given."""
    _tell(cache, EventType.ADDED, objects)


def modified(cache: ClusterCache, *objects: Known) -> None:
    """Let a cache learn of new states of objects it knows."""
    _tell(cache, EventType.MODIFIED, objects)


def deleted(cache: ClusterCache, *objects: Known) -> None:
    """Let a cache learn that objects are gone."""
    _tell(cache, EventType.DELETED, objects)


def event(type_: EventType, obj: T) -> Event[T]:
    """Return the event that a watch would bring."""
    meta = obj.metadata
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return Event(type_, key, meta.uid, obj, 0.0, False)


def with_status(group: PodGroup, decision: SetPodGroupStatus) -> PodGroup:
    """Return a PodGroup as it is once a decision has been written to its status."""
    conditions = {condition.type: condition for condition in group.status.conditions}
    for new in decision.conditions:
        conditions[new.type] = Condition(
            type=new.type,
            status="True" if new.status else "False",
            reason=new.reason,
            message=new.message,
            transition_id=new.transition_id,
        )
    status = msgspec.structs.replace(
        group.status,
        phase=decision.phase,
        running=decision.running,
        succeeded=decision.succeeded,
        failed=decision.failed,
        conditions=list(conditions.values()),
    )
    return msgspec.structs.replace(group, status=status)


def why_pending(decision: SetPodCondition) -> Condition:
    """Return the condition that a decision writes on a pod."""
    return Condition(
        type=keys.CONDITION_POD_SCHEDULED, status="False", reason=decision.reason, message=decision.message
    )


def without_queue_gate(pod: Pod) -> Pod:
    """Return a pod as it is once the scheduling gate of its queue has been taken away."""
    gates = [gate for gate in pod.spec.scheduling_gates if gate.name != keys.QUEUE_GATE]
    annotations = {**pod.metadata.annotations, keys.QUEUE_GATE: "true"}
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, annotations=annotations),
        spec=msgspec.structs.replace(pod.spec, scheduling_gates=gates),
    )


def _tell(cache: ClusterCache, type_: EventType, objects: tuple[Known, ...]) -> None:
    for one in objects:
        handler = _HANDLERS.get(type(one))
        if handler is None:
            raise TypeError(f"the cache takes in no {type(one).__name__}: add the kind to cache/watched_kinds.py")
        handler(cache).on_events([event(type_, one)])
