"""Builds storage objects as the API server would send them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from volcano_py.api import storage as wire
from volcano_py.api.meta import LabelSelector, ObjectMeta
from volcano_py.model.volumes import AVAILABLE, IMMEDIATE, NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER
from volcano_py.testing.objects import EPOCH, NAMESPACE

_ONCE: Final = ("ReadWriteOnce",)
PROVISIONER: Final = "csi.example.com"
"""The provisioner of storage classes that name no other."""


def a_storage_class(
    name: str = "fast",
    *,
    provisioner: str = PROVISIONER,
    wait: bool = True,
    topologies: Sequence[Mapping[str, Sequence[str]]] = (),
) -> wire.StorageClass:
    """Return a storage class; its claims wait for a pod, or (not ``wait``) are bound at once.

    ``topologies`` are terms: label -> values.
    """
    return wire.StorageClass(
        metadata=ObjectMeta(name=name, uid=f"uid-class-{name}"),
        provisioner=provisioner,
        volume_binding_mode=WAIT_FOR_FIRST_CONSUMER if wait else IMMEDIATE,
        allowed_topologies=[
            wire.TopologySelectorTerm(
                match_label_expressions=[wire.TopologyRequirement(key=key, values=list(to)) for key, to in term.items()]
            )
            for term in topologies
        ],
    )


def a_local_class(name: str = "local") -> wire.StorageClass:
    """Return a storage class of which nobody makes volumes; its claims wait for a pod."""
    return a_storage_class(name, provisioner=NO_PROVISIONER)


def a_claim(
    name: str = "data",
    *,
    namespace: str = NAMESPACE,
    storage_class: str | None = "fast",
    size: str = "1Gi",
    modes: Sequence[str] = _ONCE,
    volume: str = "",
    bound: bool | None = None,
    selected_node: str = "",
    phase: str = "",
    owner: str = "",
    terminating: bool = False,
    spec: Mapping[str, Any] | None = None,
) -> wire.PersistentVolumeClaim:
    """Return a claim; with a ``volume`` it is bound unless ``bound`` says otherwise. ``owner`` is the uid of a pod."""
    is_bound = bool(volume) if bound is None else bound
    notes = {wire.BIND_COMPLETED: "yes"} if is_bound else {}
    if selected_node:
        notes[wire.SELECTED_NODE] = selected_node
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"uid-claim-{namespace}-{name}",
                "annotations": notes,
                **({"deletionTimestamp": EPOCH} if terminating else {}),
                **({"ownerReferences": [{"kind": "Pod", "uid": owner, "controller": True}]} if owner else {}),
            },
            "spec": {
                "accessModes": list(modes),
                "resources": {"requests": {wire.STORAGE: size}},
                **({} if storage_class is None else {"storageClassName": storage_class}),
                "volumeName": volume,
                **(spec or {}),
            },
            "status": {"phase": phase or ("Bound" if is_bound else "Pending")},
        },
        wire.PersistentVolumeClaim,
    )


def a_volume(
    name: str = "v1",
    *,
    storage_class: str = "fast",
    size: str = "1Gi",
    modes: Sequence[str] = _ONCE,
    node: str = "",
    affinity: Mapping[str, Sequence[str]] | None = None,
    claim: str = "",
    claim_uid: str = "",
    phase: str = "",
    labels: Mapping[str, str] | None = None,
    driver: str = "",
    handle: str = "",
    terminating: bool = False,
    spec: Mapping[str, Any] | None = None,
) -> wire.PersistentVolume:
    """Return a volume: reached by one ``node``, or by those with the labels of ``affinity``; else by all.

    ``claim`` is the name of its claim, or ``namespace/name``. With a ``driver`` it is a CSI volume.
    """
    expressions = {key: list(values) for key, values in (affinity or {}).items()}
    if node:
        expressions["kubernetes.io/hostname"] = [node]
    required = [{"key": key, "operator": "In", "values": values} for key, values in expressions.items()]
    namespace, _, claim_name = claim.rpartition("/")
    namespace = namespace or NAMESPACE
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": f"uid-volume-{name}",
                "labels": dict(labels or {}),
                **({"deletionTimestamp": EPOCH} if terminating else {}),
            },
            "spec": {
                "capacity": {wire.STORAGE: size},
                "accessModes": list(modes),
                "storageClassName": storage_class,
                **({"claimRef": {"namespace": namespace, "name": claim_name, "uid": claim_uid}} if claim else {}),
                **({"csi": {"driver": driver, "volumeHandle": handle or name}} if driver else {}),
                **(
                    {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": required}]}}}
                    if required
                    else {}
                ),
                **(spec or {}),
            },
            "status": {"phase": phase or (AVAILABLE if not claim else "Bound")},
        },
        wire.PersistentVolume,
    )


def a_csi_node(name: str = "n1", **limits: int | None) -> wire.CSINode:
    """Return a CSINode; ``limits`` are its drivers with the number of volumes, None for no limit.

    Underlines in the names of drivers stand for dots.
    """
    drivers = [
        wire.CsiNodeDriver(name=driver.replace("_", "."), allocatable=wire.CsiNodeAllocatable(count=count))
        for driver, count in limits.items()
    ]
    meta = ObjectMeta(name=name, uid=f"uid-csi-{name}")
    return wire.CSINode(metadata=meta, spec=wire.CsiNodeSpec(drivers=drivers))


def a_csi_driver(name: str = PROVISIONER, *, storage_capacity: bool = True) -> wire.CSIDriver:
    """Return a CSI driver."""
    meta = ObjectMeta(name=name, uid=f"uid-driver-{name}")
    return wire.CSIDriver(metadata=meta, spec=wire.CsiDriverSpec(storage_capacity=storage_capacity))


def a_capacity(
    name: str = "room",
    *,
    storage_class: str = "fast",
    labels: Mapping[str, str] | None = None,
    capacity: str | None = "1Gi",
    largest: str | None = None,
) -> wire.CSIStorageCapacity:
    """Return what a driver says about its room on nodes with these labels (None: on no node)."""
    return wire.CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE, uid=f"uid-capacity-{name}"),
        storage_class_name=storage_class,
        node_topology=None if labels is None else LabelSelector(match_labels=dict(labels)),
        capacity=capacity,
        maximum_volume_size=largest,
    )


def an_attachment(name: str, *, node: str, volume: str, driver: str = PROVISIONER) -> wire.VolumeAttachment:
    """Return the attachment of a volume to a node."""
    return wire.VolumeAttachment(
        metadata=ObjectMeta(name=name, uid=f"uid-attachment-{name}"),
        spec=wire.VolumeAttachmentSpec(
            attacher=driver, node_name=node, source=wire.VolumeAttachmentSource(persistent_volume_name=volume)
        ),
    )


def with_claims(*names: str) -> dict[str, Any]:
    """Return the part of a pod's spec that uses these claims."""
    return {"volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]}
