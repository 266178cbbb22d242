"""Opens the watches that feed the cache, and measures how long events take to arrive there."""

import random
from typing import Any, Final, Generic

from volcano_py.api.core import Pod
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.watched_kinds import WATCHED_KINDS, WatchedKind
from volcano_py.effects.podgroup_status import Shown
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event, EventHandler, EventType, Quarantined, T
from volcano_py.kube.informer import Informers
from volcano_py.kube.reflector import Reflector, ReflectorOptions
from volcano_py.kube.resource import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODGROUPS,
    PODS,
    QUEUES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)
from volcano_py.metrics.effects import BindMetrics
from volcano_py.metrics.state import StateMetrics
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock

_STORAGE: Final = (
    *(CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES),
    *(STORAGE_CLASSES, VOLUME_ATTACHMENTS),
)


class Measured(Generic[T]):
    """Passes events on to a handler, and measures their time from the network to the cache."""

    def __init__(self, resource: str, handler: EventHandler[T], metrics: StateMetrics, clock: Clock) -> None:
        self._resource = resource
        self._handler = handler
        self._metrics = metrics
        self._clock = clock

    def on_events(self, events: list[Event[T]]) -> None:
        """Pass a batch on."""
        self._handler.on_events(events)
        lag_s = None if events[0].listed else self._clock.monotonic() - events[0].received_at
        self._metrics.events(self._resource, len(events), lag_s)

    def on_quarantine(self, entry: Quarantined) -> None:
        """Pass on that an object cannot be read."""
        self._handler.on_quarantine(entry)

    def on_release(self, entry: Quarantined) -> None:
        """Pass on that it can be read again, or is gone."""
        self._handler.on_release(entry)


class AgeAtArrival:
    """Passes pods on, and measures the age of each new pending pod when its watch event arrives."""

    def __init__(self, handler: EventHandler[Pod], cache: ClusterCache, binds: BindMetrics, clock: Clock) -> None:
        self._handler = handler
        self._task = cache.store.task
        self._watched = binds.watched
        self._clock = clock

    def on_events(self, events: list[Event[Pod]]) -> None:
        """Pass a batch on."""
        self._handler.on_events(events)
        now = self._clock.now().timestamp()
        for event in events:
            if event.type is EventType.ADDED and not event.listed:
                place = self._task(event.uid)
                if place is not None and place.status is TaskStatus.PENDING and not place.record.foreign:
                    self._watched(now - place.record.creation)

    def on_quarantine(self, entry: Quarantined) -> None:
        """Pass on that a pod cannot be read."""
        self._handler.on_quarantine(entry)

    def on_release(self, entry: Quarantined) -> None:
        """Pass on that it can be read again, or is gone."""
        self._handler.on_release(entry)


class Watches:
    """The informers of one cache, and what writers must know about the objects that the watches have shown."""

    def __init__(
        self,
        client: ApiClient,
        cache: ClusterCache,
        metrics: StateMetrics,
        binds: BindMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        options: ReflectorOptions,
        shards: bool = False,
    ) -> None:
        """``shards`` says whether nodes are divided among schedulers, so that NodeShards are watched."""
        self.informers = Informers(client, options=options, clock=clock, rng=rng)
        self._cache = cache
        self._metrics = metrics
        self._binds = binds
        self._clock = clock
        self._reflectors: dict[Resource, Reflector[Any]] = {
            kind.resource: self._open(kind) for kind in WATCHED_KINDS if shards or not kind.sharded_only
        }
        cache.storage.absent = self._absent_storage

    def _open(self, kind: WatchedKind[Any]) -> Reflector[Any]:
        """Add the informer of a kind."""
        name = kind.resource.label
        handler = kind.handler(self._cache)
        if kind.resource == PODS:
            handler = AgeAtArrival(handler, self._cache, self._binds, self._clock)
        handler = Measured(name, handler, self._metrics, self._clock)
        reflector: Reflector[Any] = self.informers.add(
            kind.resource, kind.type, handler, optional=kind.optional, dispensable=kind.dispensable
        )
        self._metrics.watch_resource(
            name, lambda: reflector.status().lists, lambda: self._unreadable(kind.resource.kind)
        )
        return reflector

    def _unreadable(self, kind: str) -> int:
        return sum(entry.kind == kind for entry in self._cache.unreadable())

    def absent(self) -> list[str]:
        """Return which of Queues and PodGroups the API server does not serve."""
        status = self.informers.status()
        return [resource.label for resource in (QUEUES, PODGROUPS) if status[resource.label].absent]

    def _absent_storage(self) -> list[str]:
        """Return the storage kinds that the API server does not serve, or does not let us read."""
        return [resource.label for resource in _STORAGE if self._reflectors[resource].status().absent]

    def relist_pods(self) -> None:
        """List pods again and reopen all other watches, because the watch of pods has missed something."""
        self.informers.relist(PODS.label)

    def pods_delivered(self) -> str:
        """Return the resourceVersion up to which the cache knows all changes of pods, "" if that is not known."""
        return self._reflectors[PODS].position

    def pod_version(self, name: str) -> str:
        """Return the last resourceVersion of a pod that the watch has shown."""
        return self._shown_version(PODS, name)[1]

    def group_version(self, name: str) -> str:
        """Return the last resourceVersion of a PodGroup that the watch has shown."""
        return self._shown_version(PODGROUPS, name)[1]

    def queue_version(self, name: str) -> str:
        """Return the last resourceVersion of a queue that the watch has shown."""
        return self._shown_version(QUEUES, name)[1]

    def group_without_conditions(self, key: JobKey) -> Shown | None:
        """Return a PodGroup as the watch shows it; None if it has conditions, which a write must keep."""
        record = self._cache.store.job(key)
        uid, version = self._shown_version(PODGROUPS, str(key))
        if record is None or record.conditions or record.uid != uid:
            return None
        return Shown(uid, version, record.phase, record.running, record.succeeded, record.failed)

    def waits(self, task: TaskRef) -> bool:
        """Say whether a pod still waits for a node."""
        place = self._cache.store.task(task.uid)
        return place is not None and place.status is TaskStatus.PENDING

    def reason(self, task: TaskRef) -> str | None:
        """Return the reason that a waiting pod shows, "" if it shows none; None if the pod does not wait."""
        place = self._cache.store.task(task.uid)
        return None if place is None or place.status is not TaskStatus.PENDING else place.record.condition

    def _shown_version(self, resource: Resource, name: str) -> tuple[str, str]:
        """Return the last uid and resourceVersion that the watch has shown of an object; empty if it shows none."""
        return self._reflectors[resource].delivery.known.get(name, ("", ""))
