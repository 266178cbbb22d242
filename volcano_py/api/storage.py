"""What storage consists of: claims, volumes, storage classes, and what CSI drivers say about nodes and room.

Claims and volumes are in the core group, all other kinds in ``storage.k8s.io``.
"""

from typing import Any, Final

from volcano_py.api.core import NodeSelector
from volcano_py.api.meta import LabelSelector, ObjectMeta, ResourceList, Wire
from volcano_py.api.quantity import WireQuantity

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim: the volume controller has finished binding it."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""Annotation of a volume or claim: a controller, not a user, has bound it."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: its provisioner makes a volume that this node can reach."""
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
"""Annotation of a claim or volume: its storage class, before there was a field; it wins over the field."""
STORAGE: Final = "storage"
"""The resource of which claims request and volumes offer an amount."""


class VolumeResources(Wire, frozen=True):
    """How much storage a claim asks for."""

    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Wire, frozen=True):
    """What a claim asks for, and the volume it is bound to."""

    access_modes: list[str] = []
    resources: VolumeResources = VolumeResources()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str = ""
    volume_name: str = ""


class PersistentVolumeClaimStatus(Wire, frozen=True):
    """How far a claim is."""

    phase: str = ""


class PersistentVolumeClaim(Wire, frozen=True):
    """A user's request for a volume."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ObjectReference(Wire, frozen=True):
    """The claim that a volume is bound to or reserved for."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Wire, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class CsiVolumeSource(Wire, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Wire, frozen=True):
    """What a volume offers."""

    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    csi: CsiVolumeSource | None = None
    aws_elastic_block_store: dict[str, Any] | None = None
    gce_persistent_disk: dict[str, Any] | None = None
    azure_disk: dict[str, Any] | None = None
    cinder: dict[str, Any] | None = None
    portworx_volume: dict[str, Any] | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_attributes_class_name: str | None = None
    volume_mode: str = ""


class PersistentVolumeStatus(Wire, frozen=True):
    """How far a volume is."""

    phase: str = ""


class PersistentVolume(Wire, frozen=True):
    """A piece of storage."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorTerm(Wire, frozen=True):
    """Where a storage class may make volumes: all of its requirements on node labels."""

    match_label_expressions: list["TopologyRequirement"] = []


class TopologyRequirement(Wire, frozen=True):
    """One requirement: the node's label has one of these values."""

    key: str = ""
    values: list[str] = []


class StorageClass(Wire, frozen=True):
    """A kind of storage: who makes its volumes, where and when."""

    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: list[TopologySelectorTerm] = []


class CsiNodeAllocatable(Wire, frozen=True):
    """How many volumes of a driver a node can use."""

    count: int | None = None


class CsiNodeDriver(Wire, frozen=True):
    """A driver on a node."""

    name: str = ""
    allocatable: CsiNodeAllocatable | None = None


class CsiNodeSpec(Wire, frozen=True):
    """The drivers on a node."""

    drivers: list[CsiNodeDriver] = []


class CSINode(Wire, frozen=True):
    """The CSI drivers of the node of the same name."""

    metadata: ObjectMeta
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Wire, frozen=True):
    """What a driver can do."""

    storage_capacity: bool = False


class CSIDriver(Wire, frozen=True):
    """A CSI driver."""

    metadata: ObjectMeta
    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(Wire, frozen=True):
    """How much room a driver has for volumes of a class that some nodes can reach."""

    metadata: ObjectMeta
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: WireQuantity | None = None
    maximum_volume_size: WireQuantity | None = None


class VolumeAttachmentSource(Wire, frozen=True):
    """What is attached."""

    persistent_volume_name: str = ""
    inline_volume_spec: PersistentVolumeSpec | None = None


class VolumeAttachmentSpec(Wire, frozen=True):
    """What is attached where."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Wire, frozen=True):
    """A volume that is attached to a node, or about to be."""

    metadata: ObjectMeta
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
