"""Fills a cache from wire objects, including whole jobs and objects that cannot be read."""

from collections.abc import Iterable
from typing import Any

import msgspec

from volcano_py.api.scheduling import Queue
from volcano_py.cache import feeding
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.feeding import Known
from volcano_py.kube.delivery import Quarantined
from volcano_py.runtime.clock import Clock, FakeClock
from volcano_py.testing.objects import Job, a_queue

Object = Known | Job


def a_cluster(
    *objects: Object,
    queues: Iterable[Queue] | None = None,
    clock: Clock | None = None,
    **options: Any,
) -> ClusterCache:
    """Return a cache with these objects; without ``queues`` it has the queue ``default``.

    Without ``clock`` it has a `FakeClock`, which stands still; further options are those of `ClusterCache`.
    """
    cache = ClusterCache(clock=clock or FakeClock(), **options)
    added(cache, *([a_queue()] if queues is None else queues), *objects)
    return cache


def added(cache: ClusterCache, *objects: Object) -> None:
    """Add new objects to a cache in the given order, one batch each; a job's PodGroup goes before its pods."""
    feeding.added(cache, *flat(objects))


def modified(cache: ClusterCache, *objects: Object) -> None:
    """Pass new states of known objects to a cache."""
    feeding.modified(cache, *flat(objects))


def deleted(cache: ClusterCache, *objects: Object) -> None:
    """Delete objects from a cache; a job's pods go before its PodGroup."""
    feeding.deleted(cache, *reversed(list(flat(objects))))


def quarantined(obj: Known, problem: str, **broken: Any) -> Quarantined:
    """Return a reflector's report of an object that does not fit its type.

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


def flat(objects: Iterable[Object]) -> Iterable[Known]:
    """Yield single objects; a job becomes its PodGroup and then its pods."""
    for one in objects:
        if isinstance(one, Job):
            yield one.group
            yield from one.pods
        else:
            yield one
