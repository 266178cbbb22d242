"""A cache fed by hand: the events that a watch would bring, for tests and for clusters that are only simulated."""

from typing import Any, TypeVar

from volcano_py.api.types import (
    Namespace,
    Node,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    Queue,
    ResourceQuota,
)
from volcano_py.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from volcano_py.cache.cluster import ClusterCache
from volcano_py.kube.delivery import Event, EventHandler, EventType, KubernetesObject

T = TypeVar("T", bound=KubernetesObject)

_Fact = Namespace | ResourceQuota | PodDisruptionBudget
_Series = Service | ReplicationController | ReplicaSet | StatefulSet
Known = Node | Pod | PodGroup | PriorityClass | Queue | _Fact | _Series
"""What a cache takes in."""


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


def _tell(cache: ClusterCache, type_: EventType, objects: tuple[Known, ...]) -> None:
    handlers: dict[type, EventHandler[Any]] = {
        Node: cache.nodes,
        Pod: cache.pods,
        PodGroup: cache.groups,
        PriorityClass: cache.priority_classes,
        Queue: cache.queues,
        Namespace: cache.namespaces,
        ResourceQuota: cache.quotas,
        PodDisruptionBudget: cache.budgets,
        Service: cache.series.services,
        ReplicationController: cache.series.replication_controllers,
        ReplicaSet: cache.series.replica_sets,
        StatefulSet: cache.series.stateful_sets,
    }
    for one in objects:
        handlers[type(one)].on_events([event(type_, one)])
