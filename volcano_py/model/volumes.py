"""Storage as the core sees it: claims, volumes, storage classes, and what CSI drivers say about nodes and room."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from volcano_py.model.selectors import LabelSelector
from volcano_py.model.shape import NodeTerm

FILESYSTEM: Final = "Filesystem"
IMMEDIATE: Final = "Immediate"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
AVAILABLE: Final = "Available"
LOST: Final = "Lost"


class ClaimKey(NamedTuple):
    """The namespace and name of a claim."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class VolumeHandle(NamedTuple):
    """What a CSI driver calls a volume."""

    driver: str
    handle: str


class TaskClaim(NamedTuple):
    """A claim that a pod uses, in the order of the pod's volumes."""

    name: str
    ephemeral: bool = False  # it is made for this pod alone, which owns it


class Disk(NamedTuple):
    """A disk that a pod names itself, without a claim."""

    kind: str  # gce, aws, iscsi or rbd
    name: str
    read_only: bool = False
    monitors: tuple[str, ...] = ()  # of rbd, sorted

    def conflicts(self, other: "Disk") -> bool:
        """Say whether two pods on one node cannot use both (kube-scheduler: isVolumeConflict)."""
        if self[:2] != other[:2] or (self.read_only and other.read_only):
            return False
        return self.kind != "rbd" or not set(self.monitors).isdisjoint(other.monitors)


@dataclass(frozen=True, slots=True)
class ClaimRecord:
    """One PersistentVolumeClaim."""

    namespace: str
    name: str
    uid: str = ""
    resource_version: str = ""
    storage_class: str = ""  # "": none, or none is given yet
    size: int = 0  # bytes
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    selector: LabelSelector | None = None  # None: any volume
    volume: str = ""  # the volume it is bound to, or must be bound to
    bind_completed: bool = False
    selected_node: str = ""  # for which its provisioner makes a volume
    phase: str = ""
    deleting: bool = False
    owner: str = ""  # uid of its controlling owner, "" for none
    promised_by: str = ""  # the scheduler that has asked for a volume for the selected node, "": unknown

    @property
    def key(self) -> ClaimKey:
        """Its namespace and name."""
        return ClaimKey(self.namespace, self.name)

    @property
    def bound(self) -> bool:
        """Whether it is bound to a volume, and the volume controller has finished binding it."""
        return bool(self.volume) and self.bind_completed

    @property
    def unversioned(self) -> "ClaimRecord":
        """The same without the version of the object: all that a decision may depend on."""
        return replace(self, resource_version="")


class ClaimRef(NamedTuple):
    """The claim that a volume is bound to or reserved for."""

    namespace: str
    name: str
    uid: str = ""  # "": a user has reserved it for a claim of this name


@dataclass(frozen=True, slots=True)
class VolumeRecord:
    """One PersistentVolume."""

    name: str
    uid: str = ""
    resource_version: str = ""
    storage_class: str = ""
    capacity: int = 0  # bytes
    access_modes: frozenset[str] = frozenset()
    volume_mode: str = FILESYSTEM
    attributes_class: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    node_affinity: tuple[NodeTerm, ...] | None = None  # any of the terms; None: every node reaches it
    claim: ClaimRef | None = None
    bound_by_controller: bool = False  # the claim was filled in by a controller or scheduler, not by a user
    promised_by: str = ""  # the scheduler that has filled it in, "": unknown
    phase: str = ""
    deleting: bool = False
    handle: VolumeHandle | None = None  # None: not a volume of a CSI driver
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()  # labels of zones and regions with the values in them, sorted

    @property
    def unversioned(self) -> "VolumeRecord":
        """The same without the version of the object: all that a decision may depend on."""
        return replace(self, resource_version="")


@dataclass(frozen=True, slots=True)
class StorageClassRecord:
    """One StorageClass."""

    name: str
    provisioner: str = ""
    binding_mode: str = ""
    topologies: tuple[NodeTerm, ...] = ()  # where volumes may be made: any of the terms; (): everywhere

    @property
    def provisions(self) -> bool:
        """Whether volumes are made for claims of the class."""
        return self.provisioner not in ("", NO_PROVISIONER)


@dataclass(frozen=True, slots=True)
class CsiNodeRecord:
    """The CSI drivers of a node: for each with a limit, how many volumes the node can use."""

    name: str
    limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CsiDriverRecord:
    """One CSI driver."""

    name: str
    storage_capacity: bool = False  # it says how much room it has; see `CapacityRecord`


@dataclass(frozen=True, slots=True)
class CapacityRecord:
    """How much room a driver has for volumes of a class that some nodes can reach (CSIStorageCapacity)."""

    namespace: str
    name: str
    storage_class: str = ""
    topology: LabelSelector | None = None  # over node labels; None: no node
    largest: int | None = None  # bytes of the largest volume that fits; None: unknown, so that none fits
    capacity: int | None = None  # bytes in total


@dataclass(frozen=True, slots=True)
class AttachmentRecord:
    """A volume that is attached to a node, or about to be."""

    name: str
    node: str = ""
    driver: str = ""  # who attaches it
    volume: str = ""  # the name of the PersistentVolume; "": `handle` says what is attached
    handle: VolumeHandle | None = None
