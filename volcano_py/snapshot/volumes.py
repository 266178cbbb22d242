"""The store of volumes: claims, volumes, storage classes, and what CSI drivers say, updated one by one."""

from volcano_py.model.volumes import (
    AttachmentRecord,
    CapacityRecord,
    ClaimKey,
    ClaimRecord,
    CsiDriverRecord,
    CsiNodeRecord,
    StorageClassRecord,
    VolumeRecord,
)


class VolumeStore:
    """Everything about storage that the API server shows."""

    def __init__(self) -> None:
        self.claims: dict[ClaimKey, ClaimRecord] = {}
        self.volumes: dict[str, VolumeRecord] = {}
        self.classes: dict[str, StorageClassRecord] = {}
        self.csi_nodes: dict[str, CsiNodeRecord] = {}
        self.csi_drivers: dict[str, CsiDriverRecord] = {}
        self.capacities: dict[tuple[str, str], CapacityRecord] = {}
        self.attachments: dict[str, AttachmentRecord] = {}

    def set_claim(self, record: ClaimRecord) -> None:
        """Add or replace a claim."""
        self.claims[record.key] = record

    def remove_claim(self, namespace: str, name: str) -> None:
        """Forget a claim."""
        self.claims.pop(ClaimKey(namespace, name), None)

    def set_volume(self, record: VolumeRecord) -> None:
        """Add or replace a volume."""
        self.volumes[record.name] = record

    def remove_volume(self, name: str) -> None:
        """Forget a volume."""
        self.volumes.pop(name, None)

    def set_class(self, record: StorageClassRecord) -> None:
        """Add or replace a storage class."""
        self.classes[record.name] = record

    def remove_class(self, name: str) -> None:
        """Forget a storage class."""
        self.classes.pop(name, None)

    def set_csi_node(self, record: CsiNodeRecord) -> None:
        """Add or replace what a node says about its CSI drivers."""
        self.csi_nodes[record.name] = record

    def remove_csi_node(self, name: str) -> None:
        """Forget what a node says about its CSI drivers."""
        self.csi_nodes.pop(name, None)

    def set_csi_driver(self, record: CsiDriverRecord) -> None:
        """Add or replace a CSI driver."""
        self.csi_drivers[record.name] = record

    def remove_csi_driver(self, name: str) -> None:
        """Forget a CSI driver."""
        self.csi_drivers.pop(name, None)

    def set_capacity(self, record: CapacityRecord) -> None:
        """Add or replace what a driver says about its room."""
        self.capacities[record.namespace, record.name] = record

    def remove_capacity(self, namespace: str, name: str) -> None:
        """Forget what a driver says about its room."""
        self.capacities.pop((namespace, name), None)

    def set_attachment(self, record: AttachmentRecord) -> None:
        """Add or replace an attachment."""
        self.attachments[record.name] = record

    def remove_attachment(self, name: str) -> None:
        """Forget an attachment."""
        self.attachments.pop(name, None)
