"""A cache filled from wire objects, also from whole jobs and from objects that cannot be read."""

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
    """Return a cache that has seen these objects; without ``queues`` there is the queue ``default``.

    The clock is one that stands still; further options are those of `ClusterCache`.
    """
    cache = ClusterCache(clock=clock or FakeClock(), **options)
    added(cache, *([a_queue()] if queues is None else queues), *objects)
    return cache


def added(cache: ClusterCache, *objects: Object) -> None:
    """Let a cache learn of new objects, one batch for each, in the order given; a job brings its PodGroup first."""
    feeding.added(cache, *flat(objects))


def modified(cache: ClusterCache, *objects: Object) -> None:
    """Let a cache learn of new states of objects it knows."""
    feeding.modified(cache, *flat(objects))


def deleted(cache: ClusterCache, *objects: Object) -> None:
    """Let a cache learn that objects are gone; a job's pods go before its PodGroup."""
    feeding.deleted(cache, *reversed(list(flat(objects))))


def quarantined(obj: Known, problem: str, **broken: Any) -> Quarantined:
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


def flat(objects: Iterable[Object]) -> Iterable[Known]:
    """Yield single objects: of a job, its PodGroup and then its pods."""
    for one in objects:
        if isinstance(one, Job):
            yield one.group
            yield from one.pods
        else:
            yield one
