"""A cache filled from wire objects, and the events that a watch would bring."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from volcano_py.api.types import Node, Pod, PodGroup, PriorityClass, Queue
from volcano_py.cache.cluster import ClusterCache
from volcano_py.kube.delivery import Event, EventHandler, EventType, KubernetesObject, Quarantined
from volcano_py.runtime.clock import Clock, FakeClock
from volcano_py.testing.objects import Job, a_queue

T = TypeVar("T", bound=KubernetesObject)

Object = Node | Pod | PodGroup | PriorityClass | Queue | Job


def a_cluster(
    *objects: Object,
    queues: Iterable[Queue] | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> ClusterCache:
    """Return a cache that has seen these objects; without ``queues`` there is the queue ``default``.

    The clock is one that stands still; further options are those of `ClusterCache`.
    """
    cache = ClusterCache(clock=clock or FakeClock(), **options)
    added(cache, *([a_queue()] if queues is None else queues), *objects)
    return cache


def added(cache: ClusterCache, *objects: Object) -> None:
    """Let a cache learn of new objects, one batch for each, in the order given; a job brings its PodGroup first."""
    for one in flat(objects):
        _handler(cache, one).on_events([event(EventType.ADDED, one)])


def modified(cache: ClusterCache, *objects: Object) -> None:
    """Let a cache learn of new states of objects it knows."""
    for one in flat(objects):
        _handler(cache, one).on_events([event(EventType.MODIFIED, one)])


def deleted(cache: ClusterCache, *objects: Object) -> None:
    """Let a cache learn that objects are gone; a job's pods go before its PodGroup."""
    for one in reversed(list(flat(objects))):
        _handler(cache, one).on_events([event(EventType.DELETED, one)])


def event(type_: EventType, obj: T) -> Event[T]:
    """Return the event that a watch would bring."""
    meta = obj.metadata
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return Event(type_, key, meta.uid, obj, 0.0, False)


def quarantined(obj: Pod | Node | PodGroup | PriorityClass | Queue, problem: str, **broken: Any) -> Quarantined:
    """Return what a reflector says of an object that does not fit its type.

    ``broken`` puts values of the wrong type into its JSON: ``spec={"containers": 7}``.
    """
    wire = msgspec.to_builtins(obj)
    for section, fields in broken.items():
        wire.setdefault(section, {}).update(fields)
    meta = obj.metadata
    return Quarantined(
        resource=f"{type(obj).__name__.lower()}s",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        field="",
        value="",
        problem=problem,
        delivered=False,
        raw=msgspec.json.encode(wire),
    )


def flat(objects: Iterable[Object]) -> Iterable[Node | Pod | PodGroup | PriorityClass | Queue]:
    """Yield single objects: of a job, its PodGroup and then its pods."""
    for one in objects:
        if isinstance(one, Job):
            yield one.group
            yield from one.pods
        else:
            yield one


def _handler(cache: ClusterCache, obj: Node | Pod | PodGroup | PriorityClass | Queue) -> EventHandler[Any]:
    handlers: dict[type, EventHandler[Any]] = {
        Node: cache.nodes,
        Pod: cache.pods,
        PodGroup: cache.groups,
        PriorityClass: cache.priority_classes,
        Queue: cache.queues,
    }
    return handlers[type(obj)]
