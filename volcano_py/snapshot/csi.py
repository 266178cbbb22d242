"""The store of what CSI drivers say: their limits on nodes, their room, and what is attached where."""

from collections.abc import Callable, Mapping

from volcano_py.model.volumes import (
    AttachmentRecord,
    CapacityRecord,
    CsiDriverRecord,
    CsiNodeRecord,
    VolumeHandle,
    VolumeRecord,
)
from volcano_py.snapshot.attached_volumes import AttachedVolumes


class CsiStore:
    """CSINodes, CSIDrivers, CSIStorageCapacities and VolumeAttachments, and the volumes that nodes use."""

    def __init__(self, volumes: Mapping[str, VolumeRecord], on_other_limits: Callable[[], None]) -> None:
        """Take the volumes by name, and what to call when other drivers than before have limits."""
        self.nodes: dict[str, CsiNodeRecord] = {}
        self.drivers: dict[str, CsiDriverRecord] = {}
        self.capacities: dict[tuple[str, str], CapacityRecord] = {}
        self.attachments: dict[str, AttachmentRecord] = {}
        self.attached = AttachedVolumes()
        """The volumes on nodes; the owner of this counts those of pods."""
        self._volumes = volumes
        self._on_other_limits = on_other_limits
        self._by_class: dict[str, tuple[CapacityRecord, ...]] | None = {}
        self._handles: dict[str, tuple[str, VolumeHandle]] = {}  # attachment -> node and volume
        self._attachments_of: dict[str, set[str]] = {}  # by volume

    def set_node(self, record: CsiNodeRecord) -> None:
        """Add or replace what a node says about its drivers."""
        self.nodes[record.name] = record
        if self.attached.set_limits(record.name, record):
            self._on_other_limits()

    def remove_node(self, name: str) -> None:
        """Forget what a node says about its drivers."""
        self.nodes.pop(name, None)
        if self.attached.set_limits(name, None):
            self._on_other_limits()

    def set_driver(self, record: CsiDriverRecord) -> None:
        """Add or replace a driver."""
        self.drivers[record.name] = record

    def remove_driver(self, name: str) -> None:
        """Forget a driver."""
        self.drivers.pop(name, None)

    def set_capacity(self, record: CapacityRecord) -> None:
        """Add or replace what a driver says about its room."""
        self.capacities[record.namespace, record.name] = record
        self._by_class = None

    def remove_capacity(self, namespace: str, name: str) -> None:
        """Forget what a driver says about its room."""
        self.capacities.pop((namespace, name), None)
        self._by_class = None

    def set_attachment(self, record: AttachmentRecord) -> None:
        """Add or replace an attachment."""
        self.remove_attachment(record.name)
        self.attachments[record.name] = record
        self._attachments_of.setdefault(record.volume, set()).add(record.name)
        self._attach(record)

    def remove_attachment(self, name: str) -> None:
        """Forget an attachment."""
        before = self.attachments.pop(name, None)
        if before is not None:
            self._attachments_of[before.volume].discard(name)
            if not self._attachments_of[before.volume]:
                del self._attachments_of[before.volume]
            self._detach(name)

    def volume_changed(self, name: str) -> None:
        """Note that a volume is new, different or gone: its attachments count by its handle."""
        for attachment in sorted(self._attachments_of.get(name, ())):
            self._detach(attachment)
            self._attach(self.attachments[attachment])

    def _attach(self, record: AttachmentRecord) -> None:
        volume = self._volumes.get(record.volume)
        handle = record.handle if volume is None else volume.handle
        if handle is not None:
            handle = VolumeHandle(record.driver or handle.driver, handle.handle)  # kube-scheduler asks the attacher
            self._handles[record.name] = (record.node, handle)
            self.attached.attach(record.node, handle)

    def _detach(self, name: str) -> None:
        found = self._handles.pop(name, None)
        if found is not None:
            self.attached.detach(*found)

    def capacities_by_class(self) -> dict[str, tuple[CapacityRecord, ...]]:
        """Return what drivers say about their room, by storage class; made at most once per change."""
        if self._by_class is None:
            found: dict[str, list[CapacityRecord]] = {}
            for _, record in sorted(self.capacities.items()):
                found.setdefault(record.storage_class, []).append(record)
            self._by_class = {name: tuple(records) for name, records in found.items()}
        return self._by_class

    def drivers_with_capacity(self) -> frozenset[str]:
        """Return the drivers that say how much room they have."""
        return frozenset(name for name, driver in self.drivers.items() if driver.storage_capacity)
