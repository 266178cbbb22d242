"""The way from the watches into the cache, with a look at how long it takes."""

from typing import Any, Generic

from volcano_py.api.apps import ReplicaSet, StatefulSet
from volcano_py.api.core import Namespace, Node, Pod, ReplicationController, ResourceQuota, Service
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.api.shard import NodeShard
from volcano_py.cache.cluster import ClusterCache
from volcano_py.effects.podgroup_status import Shown
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event, EventHandler, EventType, Quarantined, T
from volcano_py.kube.informer import Informers
from volcano_py.kube.reflector import Reflector, ReflectorOptions
from volcano_py.kube.resource import (
    NAMESPACES,
    NODE_SHARDS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_QUOTAS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from volcano_py.metrics.effects import BindMetrics
from volcano_py.metrics.state import StateMetrics
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock


class Measured(Generic[T]):
    """Passes changes on to a handler and measures their way from the network to the cache."""

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
    """Passes pods on and measures how long after its creation a pending one is known, unless a list brought it."""

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
    """The informers of one cache, and what the writers of statuses must know of what they have shown."""

    def __init__(
        self,
        client: ApiClient,
        cache: ClusterCache,
        metrics: StateMetrics,
        binds: BindMetrics,
        *,
        clock: Clock,
        options: ReflectorOptions,
        shards: bool = False,
    ) -> None:
        """Take whether nodes are divided among schedulers."""
        self.informers = Informers(client, options=options, clock=clock)
        self._cache = cache

        def add(
            resource: Resource,
            into: type[T],
            handler: EventHandler[T],
            *,
            optional: bool = False,
            dispensable: bool = False,
        ) -> Reflector[T]:
            name = resource.label
            handler = Measured(name, handler, metrics, clock)
            reflector = self.informers.add(resource, into, handler, optional=optional, dispensable=dispensable)
            metrics.watch_resource(name, lambda: reflector.status().lists, lambda: self._unreadable(resource.kind))
            return reflector

        # Priorities, queues and groups first, so that most pods find their job in place.
        add(PRIORITY_CLASSES, PriorityClass, cache.priority_classes)
        add(QUEUES, Queue, cache.queues, optional=True)
        self._groups = add(PODGROUPS, PodGroup, cache.groups, optional=True)
        # What few plugins read, and what changes seldom; a scheduler that may not read it does everything else.
        add(NAMESPACES, Namespace, cache.namespaces, dispensable=True)
        add(RESOURCE_QUOTAS, ResourceQuota, cache.quotas, dispensable=True)
        add(POD_DISRUPTION_BUDGETS, PodDisruptionBudget, cache.budgets, dispensable=True)
        # Whose pods are spread although they do not say so.
        add(SERVICES, Service, cache.series.services, dispensable=True)
        add(REPLICATION_CONTROLLERS, ReplicationController, cache.series.replication_controllers, dispensable=True)
        add(REPLICA_SETS, ReplicaSet, cache.series.replica_sets, dispensable=True)
        add(STATEFUL_SETS, StatefulSet, cache.series.stateful_sets, dispensable=True)
        if shards:
            add(NODE_SHARDS, NodeShard, cache.shards, optional=True)
        add(NODES, Node, cache.nodes)
        self._pods = add(PODS, Pod, AgeAtArrival(cache.pods, cache, binds, clock))

    def _unreadable(self, kind: str) -> int:
        return sum(entry.kind == kind for entry in self._cache.unreadable())

    def absent(self) -> list[str]:
        """Return the resources of gangs that the API server does not serve."""
        status = self.informers.status()
        return [resource.label for resource in (QUEUES, PODGROUPS) if status[resource.label].absent]

    def relist_pods(self) -> None:
        """List pods anew, and open all other watches again: what the watch of pods has shown is not all there is."""
        self.informers.relist(PODS.label)

    def pod_version(self, name: str) -> str:
        """Return the resourceVersion of a pod that the watch has shown last."""
        return _shown_version(self._pods, name)[1]

    def group_version(self, name: str) -> str:
        """Return the resourceVersion of a PodGroup that the watch has shown last."""
        return _shown_version(self._groups, name)[1]

    def group_without_conditions(self, key: JobKey) -> Shown | None:
        """Return a PodGroup as the watch shows it, if it has no conditions that a write would have to keep."""
        record = self._cache.store.job(key)
        uid, version = _shown_version(self._groups, str(key))
        if record is None or record.conditions or record.uid != uid:
            return None
        return Shown(uid, version, record.phase, record.running, record.succeeded, record.failed)

    def waits(self, task: TaskRef) -> bool:
        """Say whether a pod still waits for a node."""
        place = self._cache.store.task(task.uid)
        return place is not None and place.status is TaskStatus.PENDING


def _shown_version(reflector: Reflector[Any], name: str) -> tuple[str, str]:
    return reflector.delivery.known.get(name, ("", ""))
