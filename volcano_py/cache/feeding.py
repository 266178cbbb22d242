"""A cache fed by hand: the events that a watch would bring and the writes that decisions lead to.

For tests and for clusters that are only simulated.
"""

from typing import Any, TypeVar

import msgspec

from volcano_py.api import keys
from volcano_py.api.apps import ReplicaSet, StatefulSet
from volcano_py.api.core import Namespace, Node, Pod, ReplicationController, ResourceQuota, Service
from volcano_py.api.meta import Condition
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.api.shard import NodeShard
from volcano_py.cache.cluster import ClusterCache
from volcano_py.kube.delivery import Event, EventHandler, EventType, KubernetesObject
from volcano_py.model.decisions import SetPodCondition, SetPodGroupStatus

T = TypeVar("T", bound=KubernetesObject)

_Fact = Namespace | ResourceQuota | PodDisruptionBudget | NodeShard
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
    handlers: dict[type, EventHandler[Any]] = {
        Node: cache.nodes,
        Pod: cache.pods,
        PodGroup: cache.groups,
        PriorityClass: cache.priority_classes,
        Queue: cache.queues,
        Namespace: cache.namespaces,
        ResourceQuota: cache.quotas,
        PodDisruptionBudget: cache.budgets,
        NodeShard: cache.shards,
        Service: cache.series.services,
        ReplicationController: cache.series.replication_controllers,
        ReplicaSet: cache.series.replica_sets,
        StatefulSet: cache.series.stateful_sets,
    }
    for one in objects:
        handlers[type(one)].on_events([event(type_, one)])
