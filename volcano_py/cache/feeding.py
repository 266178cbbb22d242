"""Feeds a cache without a watch: the events that a watch would bring, and objects as decisions change them.

For tests and simulated clusters.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from volcano_py.api import keys, storage
from volcano_py.api.core import NodeSelector, NodeSelectorTerm, Pod
from volcano_py.api.meta import Condition, LabelSelectorRequirement, ObjectMeta
from volcano_py.api.scheduling import PodGroup
from volcano_py.api.storage import PersistentVolume, PersistentVolumeClaim
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.watched_kinds import WATCHED_KINDS
from volcano_py.kube.delivery import Event, EventHandler, EventType, KubernetesObject
from volcano_py.model.decisions import BindClaim, PrepareStep, SetPodCondition, SetPodGroupStatus

T = TypeVar("T", bound=KubernetesObject)

Known = KubernetesObject
"""An object that a cache can take in: one of `WATCHED_KINDS`."""

_HANDLERS: Final[dict[type, Callable[[ClusterCache], EventHandler[Any]]]] = {
    kind.type: kind.handler for kind in WATCHED_KINDS
}


def added(cache: ClusterCache, *objects: Known) -> None:
    """Add new objects to a cache in the given order, one batch each."""
    _feed(cache, EventType.ADDED, objects)


def modified(cache: ClusterCache, *objects: Known) -> None:
    """Pass new states of known objects to a cache."""
    _feed(cache, EventType.MODIFIED, objects)


def deleted(cache: ClusterCache, *objects: Known) -> None:
    """Delete objects from a cache."""
    _feed(cache, EventType.DELETED, objects)


def event(type_: EventType, obj: T) -> Event[T]:
    """Return the event that a watch would bring."""
    meta = obj.metadata
    key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    return Event(type_, key, meta.uid, obj, 0.0, False)


def with_status(group: PodGroup, decision: SetPodGroupStatus) -> PodGroup:
    """Return a PodGroup with the status that a decision writes."""
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
    """Return a pod without the scheduling gate of its queue."""
    gates = [gate for gate in pod.spec.scheduling_gates if gate.name != keys.QUEUE_GATE]
    annotations = {**pod.metadata.annotations, keys.QUEUE_GATE: "true"}
    return msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, annotations=annotations),
        spec=msgspec.structs.replace(pod.spec, scheduling_gates=gates),
    )


def prepared(
    cache: ClusterCache, step: PrepareStep, claim: PersistentVolumeClaim, volume: PersistentVolume | None
) -> tuple[PersistentVolumeClaim, PersistentVolume]:
    """Return a claim and its volume as they are once a step of a bind has taken effect.

    ``volume`` is the one that the step names; a volume that has to be made is new, and only its node reaches it. It is
    a volume of the driver that the storage class names, if ``cache`` knows the class.
    """
    meta, spec = claim.metadata, claim.spec
    reference = storage.ObjectReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
    notes = {**meta.annotations, storage.BIND_COMPLETED: "yes"}
    if not isinstance(step, BindClaim):
        notes[storage.SELECTED_NODE] = step.node
        known = cache.store.volumes.classes.get(spec.storage_class_name or "")
        volume = _made(claim, step.node, "" if known is None else known.provisioner)
    if volume is None:
        raise LookupError(f"there is no volume for {step}")
    bound = msgspec.structs.replace(
        volume,
        spec=msgspec.structs.replace(volume.spec, claim_ref=reference),
        status=storage.PersistentVolumeStatus(phase="Bound"),
    )
    done = msgspec.structs.replace(
        claim,
        metadata=msgspec.structs.replace(meta, annotations=notes),
        spec=msgspec.structs.replace(spec, volume_name=bound.metadata.name),
        status=storage.PersistentVolumeClaimStatus(phase="Bound"),
    )
    return done, bound


def _made(claim: PersistentVolumeClaim, node: str, driver: str) -> PersistentVolume:
    """Return the volume that a provisioner makes for a claim on a node."""
    meta, spec = claim.metadata, claim.spec
    source = storage.CsiVolumeSource(driver=driver, volume_handle=f"pvc-{meta.uid}") if driver else None
    here = LabelSelectorRequirement(key=keys.LABEL_HOSTNAME, operator="In", values=[node])
    return PersistentVolume(
        metadata=ObjectMeta(name=f"pvc-{meta.uid}", uid=f"volume-of-{meta.uid}"),
        spec=storage.PersistentVolumeSpec(
            capacity=spec.resources.requests,
            access_modes=spec.access_modes,
            csi=source,
            node_affinity=storage.VolumeNodeAffinity(
                required=NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[here])])
            ),
            storage_class_name=spec.storage_class_name or "",
            volume_mode=spec.volume_mode,
        ),
    )


def _feed(cache: ClusterCache, type_: EventType, objects: tuple[Known, ...]) -> None:
    for one in objects:
        handler = _HANDLERS.get(type(one))
        if handler is None:
            raise TypeError(
                f"the cache does not take in {type(one).__name__} objects: add the kind to cache/watched_kinds.py"
            )
        handler(cache).on_events([event(type_, one)])
