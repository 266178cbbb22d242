"""The kinds of objects that the scheduler watches, one entry each; a new kind is added here.

To add a kind:

1. its wire type in the module of its API group, such as `volcano_py.api.scheduling`,
2. its `Resource` in `volcano_py.kube.resource`,
3. its event handler, as an attribute of `ClusterCache`, or of its ``facts``, ``series`` or ``storage``,
4. a line in the table here, and the right to list and watch it in ``manifests/``.

The daemon opens a watch for each entry. Simulations and tests feed the cache by the same entries (`cache.feeding`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic

from volcano_py.api.apps import ReplicaSet, StatefulSet
from volcano_py.api.core import Namespace, Node, Pod, ReplicationController, ResourceQuota, Service
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.api.shard import NodeShard
from volcano_py.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from volcano_py.api.topology import HyperNode
from volcano_py.cache.cluster import ClusterCache
from volcano_py.kube.delivery import EventHandler, T
from volcano_py.kube.resource import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    HYPER_NODES,
    NAMESPACES,
    NODE_SHARDS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
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
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Resource,
)


@dataclass(frozen=True, slots=True)
class WatchedKind(Generic[T]):
    """One kind: its resource, its wire type and its event handler."""

    resource: Resource
    type: type[T]
    """The wire type that its objects are read into."""
    handler: Callable[[ClusterCache], EventHandler[T]]
    """Returns the event handler of a cache for its objects."""
    optional: bool = False
    """The scheduler runs without it if the API server does not serve it."""
    dispensable: bool = False
    """The scheduler runs without it if the API server does not serve it or does not let us read it."""
    sharded_only: bool = False
    """It is watched only if nodes are divided among schedulers."""


WATCHED_KINDS: Final = (
    # Priorities, queues and groups first, so that most pods find their job in place.
    WatchedKind(PRIORITY_CLASSES, PriorityClass, lambda cache: cache.priority_classes),
    WatchedKind(QUEUES, Queue, lambda cache: cache.queues, optional=True),
    WatchedKind(PODGROUPS, PodGroup, lambda cache: cache.groups, optional=True),
    # Few plugins read these, and they seldom change.
    WatchedKind(NAMESPACES, Namespace, lambda cache: cache.facts.namespaces, dispensable=True),
    WatchedKind(RESOURCE_QUOTAS, ResourceQuota, lambda cache: cache.facts.quotas, dispensable=True),
    WatchedKind(POD_DISRUPTION_BUDGETS, PodDisruptionBudget, lambda cache: cache.facts.budgets, dispensable=True),
    WatchedKind(HYPER_NODES, HyperNode, lambda cache: cache.facts.hyper_nodes, dispensable=True),
    # Their pods are spread even if they have no topology spread constraints.
    WatchedKind(SERVICES, Service, lambda cache: cache.series.services, dispensable=True),
    WatchedKind(
        REPLICATION_CONTROLLERS,
        ReplicationController,
        lambda cache: cache.series.replication_controllers,
        dispensable=True,
    ),
    WatchedKind(REPLICA_SETS, ReplicaSet, lambda cache: cache.series.replica_sets, dispensable=True),
    WatchedKind(STATEFUL_SETS, StatefulSet, lambda cache: cache.series.stateful_sets, dispensable=True),
    WatchedKind(NODE_SHARDS, NodeShard, lambda cache: cache.facts.shards, optional=True, sharded_only=True),
    # Storage: pods with claims are placed where their volumes are, or can be made.
    WatchedKind(STORAGE_CLASSES, StorageClass, lambda cache: cache.storage.classes, dispensable=True),
    WatchedKind(CSI_DRIVERS, CSIDriver, lambda cache: cache.storage.csi_drivers, dispensable=True),
    WatchedKind(CSI_NODES, CSINode, lambda cache: cache.storage.csi_nodes, dispensable=True),
    WatchedKind(CSI_STORAGE_CAPACITIES, CSIStorageCapacity, lambda cache: cache.storage.capacities, dispensable=True),
    WatchedKind(VOLUME_ATTACHMENTS, VolumeAttachment, lambda cache: cache.storage.attachments, dispensable=True),
    WatchedKind(PERSISTENT_VOLUMES, PersistentVolume, lambda cache: cache.storage.volumes, dispensable=True),
    WatchedKind(PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim, lambda cache: cache.storage.claims, dispensable=True),
    # Pods last: what they refer to is known by then.
    WatchedKind(NODES, Node, lambda cache: cache.nodes),
    WatchedKind(PODS, Pod, lambda cache: cache.pods),
)
"""Every kind that the scheduler watches, in the order in which the watches begin.

The type is inferred, so that mypy compares the wire type of each entry with that of its event handler.
"""
