"""Converts claims, volumes, storage classes and what CSI drivers say to records."""

from collections.abc import Iterable, Mapping
from sys import intern
from typing import Final

from volcano_py.api import keys
from volcano_py.api import storage as wire
from volcano_py.api.core import NodeSelectorTerm
from volcano_py.api.meta import LabelSelectorRequirement, ObjectMeta
from volcano_py.api.quantity import WireQuantity, whole
from volcano_py.model.resources import read_quantity
from volcano_py.model.selectors import label_selector
from volcano_py.model.shape import NodeTerm, Requirement
from volcano_py.model.volumes import (
    FILESYSTEM,
    AttachmentRecord,
    CapacityRecord,
    ClaimRecord,
    ClaimRef,
    CsiDriverRecord,
    CsiNodeRecord,
    StorageClassRecord,
    VolumeHandle,
    VolumeRecord,
)

ZONE_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
)
_ZONES_APART: Final = "__"
_YES: Final = "yes"


def claim_record(claim: wire.PersistentVolumeClaim) -> ClaimRecord:
    """Return the record of a claim; raise ValueError naming the field that cannot be read."""
    meta, spec = claim.metadata, claim.spec
    return ClaimRecord(
        namespace=intern(meta.namespace),
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        storage_class=_storage_class(meta, spec.storage_class_name),
        size=_bytes(spec.resources.requests, "spec.resources.requests"),
        access_modes=frozenset(map(intern, spec.access_modes)),
        volume_mode=intern(spec.volume_mode or FILESYSTEM),
        attributes_class=intern(spec.volume_attributes_class_name or ""),
        selector=None if spec.selector is None else label_selector(spec.selector, "spec.selector"),
        volume=spec.volume_name,
        bind_completed=wire.BIND_COMPLETED in meta.annotations,
        selected_node=intern(meta.annotations.get(wire.SELECTED_NODE, "")),
        phase=intern(claim.status.phase),
        deleting=meta.deletion_timestamp is not None,
        owner=next((owner.uid for owner in meta.owner_references if owner.controller), ""),
        promised_by=intern(meta.annotations.get(keys.PROMISED_BY, "")),
    )


def volume_record(volume: wire.PersistentVolume) -> VolumeRecord:
    """Return the record of a volume; raise ValueError naming the field that cannot be read."""
    meta, spec = volume.metadata, volume.spec
    affinity = spec.node_affinity.required if spec.node_affinity is not None else None
    ref = spec.claim_ref
    return VolumeRecord(
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
        storage_class=_storage_class(meta, spec.storage_class_name),
        capacity=_bytes(spec.capacity, "spec.capacity"),
        access_modes=frozenset(map(intern, spec.access_modes)),
        volume_mode=intern(spec.volume_mode or FILESYSTEM),
        attributes_class=intern(spec.volume_attributes_class_name or ""),
        labels=meta.labels,
        node_affinity=None if affinity is None else _terms_of_volume(affinity.node_selector_terms),
        claim=None if ref is None else ClaimRef(intern(ref.namespace), ref.name, ref.uid),
        bound_by_controller=meta.annotations.get(wire.BOUND_BY_CONTROLLER) == _YES,
        promised_by=intern(meta.annotations.get(keys.PROMISED_BY, "")),
        phase=intern(volume.status.phase),
        deleting=meta.deletion_timestamp is not None,
        handle=_handle(spec),
        zones=_zones(meta.labels),
    )


def storage_class_record(storage_class: wire.StorageClass) -> StorageClassRecord:
    """Return the record of a storage class."""
    terms = (
        NodeTerm(tuple(Requirement(one.key, "In", tuple(one.values)) for one in term.match_label_expressions))
        for term in storage_class.allowed_topologies
    )
    return StorageClassRecord(
        intern(storage_class.metadata.name),
        storage_class.provisioner,
        intern(storage_class.volume_binding_mode),
        tuple(terms),
    )


def csi_node_record(node: wire.CSINode) -> CsiNodeRecord:
    """Return the record of a CSINode."""
    limits = {
        intern(driver.name): driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    return CsiNodeRecord(node.metadata.name, limits)


def csi_driver_record(driver: wire.CSIDriver) -> CsiDriverRecord:
    """Return the record of a CSI driver."""
    return CsiDriverRecord(intern(driver.metadata.name), driver.spec.storage_capacity)


def capacity_record(capacity: wire.CSIStorageCapacity) -> CapacityRecord:
    """Return the record of a CSIStorageCapacity; raise ValueError naming the field that cannot be read."""
    meta, topology = capacity.metadata, capacity.node_topology
    total = _amount(capacity.capacity, "capacity")
    largest = _amount(capacity.maximum_volume_size, "maximumVolumeSize")
    return CapacityRecord(
        meta.namespace,
        meta.name,
        intern(capacity.storage_class_name),
        None if topology is None else label_selector(topology, "nodeTopology"),
        total if largest is None else largest,
        total,
    )


def attachment_record(attachment: wire.VolumeAttachment) -> AttachmentRecord:
    """Return the record of a VolumeAttachment."""
    spec = attachment.spec
    inline = spec.source.inline_volume_spec
    return AttachmentRecord(
        attachment.metadata.name,
        intern(spec.node_name),
        intern(spec.attacher),
        spec.source.persistent_volume_name,
        None if inline is None else _handle(inline),
    )


def _storage_class(meta: ObjectMeta, name: str | None) -> str:
    return intern(meta.annotations.get(wire.CLASS_ANNOTATION) or name or "")


def _bytes(amounts: Mapping[str, WireQuantity], where: str) -> int:
    return _amount(amounts.get(wire.STORAGE), f"{where}.{wire.STORAGE}") or 0


def _amount(written: WireQuantity | None, where: str) -> int | None:
    return None if written is None else whole(read_quantity(written, where))


def _handle(spec: wire.PersistentVolumeSpec) -> VolumeHandle | None:
    return None if spec.csi is None else VolumeHandle(intern(spec.csi.driver), spec.csi.volume_handle)


def _zones(labels: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the zones and regions of a volume; a label with an empty part cannot be read and does not count."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for key in ZONE_LABELS:
        values = tuple(part.strip() for part in labels.get(key, "").split(_ZONES_APART))
        if all(values):
            found.append((key, tuple(sorted(set(values)))))
    return tuple(found)


def _terms_of_volume(terms: Iterable[NodeSelectorTerm]) -> tuple[NodeTerm, ...]:
    """Return the terms of a volume; they see the labels of a node and no fields, so its name is "" to them.

    kube-scheduler and the kubelet compare so (component-helpers, CheckNodeAffinity): a volume for ``metadata.name In
    [n1]`` is mounted nowhere.
    """
    found = [_term(term) for term in terms]
    return tuple(term for term in found if all(one.operator != "In" or "" in one.values for one in term.fields))


def _term(term: NodeSelectorTerm) -> NodeTerm:
    def read(written: Iterable[LabelSelectorRequirement]) -> tuple[Requirement, ...]:
        return tuple(Requirement(one.key, one.operator, tuple(one.values)) for one in written)

    return NodeTerm(read(term.match_expressions), read(term.match_fields))
