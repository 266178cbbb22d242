"""Events of storage kinds, and the read access to claims and volumes for those who carry decisions out.

An object that cannot be read counts as absent, so that pods that need it wait.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from volcano_py.api import storage as wire
from volcano_py.cache import storage
from volcano_py.cache.fact_events import FactEvents
from volcano_py.cache.state import ClusterState
from volcano_py.cache.unreadable_objects import UnreadableObjects
from volcano_py.kube.delivery import KubernetesObject
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
from volcano_py.snapshot.volumes import VolumeStore

W = TypeVar("W", bound=KubernetesObject)
R = TypeVar("R")
CLAIM = "PersistentVolumeClaim"
VOLUME = "PersistentVolume"


class VolumeChange(NamedTuple):
    """A claim or volume that is new, different or gone."""

    kind: str  # CLAIM or VOLUME
    namespace: str
    name: str


VolumeCallback = Callable[[VolumeChange], None]
"""Called for every change of a claim or volume, on the thread that owns the cache."""


class Volumes:
    """Claims and volumes as the watch shows them now, and notices of their changes."""

    def __init__(self, store: VolumeStore) -> None:
        self._store = store
        self._callbacks: list[VolumeCallback] = []

    def claim(self, namespace: str, name: str) -> ClaimRecord | None:
        """Return a claim, None if there is none of this name."""
        return self._store.claims.get(ClaimKey(namespace, name))

    def volume(self, name: str) -> VolumeRecord | None:
        """Return a volume, None if there is none of this name."""
        return self._store.volumes.get(name)

    def on_change(self, callback: VolumeCallback) -> None:
        """Call ``callback`` with every claim or volume that is new, different or gone, once it is known here."""
        self._callbacks.append(callback)

    def changed(self, kind: str, namespace: str, name: str) -> None:
        """Tell everyone about a change."""
        change = VolumeChange(kind, namespace, name)
        for callback in self._callbacks:
            callback(change)


class StorageEvents:
    """The event handlers of all storage kinds."""

    def __init__(self, state: ClusterState, unreadable: UnreadableObjects) -> None:
        known = state.store.volumes
        self.absent: Callable[[], Sequence[str]] = tuple
        """Returns the storage kinds that cannot be read at present, by the names of their resources."""
        self._store = known
        self.known = Volumes(known)
        self.claims = self._claim_events(state, unreadable)
        self.volumes = self._volume_events(state, unreadable)
        self.classes: FactEvents[wire.StorageClass, StorageClassRecord] = _named(
            "StorageClass",
            state,
            unreadable,
            storage.storage_class_record,
            known.classes,
            known.set_class,
            known.remove_class,
        )
        self.csi_nodes: FactEvents[wire.CSINode, CsiNodeRecord] = _named(
            "CSINode",
            state,
            unreadable,
            storage.csi_node_record,
            known.csi.nodes,
            known.csi.set_node,
            known.csi.remove_node,
        )
        self.csi_drivers: FactEvents[wire.CSIDriver, CsiDriverRecord] = _named(
            "CSIDriver",
            state,
            unreadable,
            storage.csi_driver_record,
            known.csi.drivers,
            known.csi.set_driver,
            known.csi.remove_driver,
        )
        self.capacities: FactEvents[wire.CSIStorageCapacity, CapacityRecord] = FactEvents(
            "CSIStorageCapacity",
            state,
            unreadable,
            read=storage.capacity_record,
            get=lambda namespace, name: known.csi.capacities.get((namespace, name)),
            put=known.csi.set_capacity,
            drop=known.csi.remove_capacity,
            helps=_may_help,
        )
        self.attachments: FactEvents[wire.VolumeAttachment, AttachmentRecord] = _named(
            "VolumeAttachment",
            state,
            unreadable,
            storage.attachment_record,
            known.csi.attachments,
            known.csi.set_attachment,
            known.csi.remove_attachment,
            helps=lambda before, _: before is not None,
        )

    def _claim_helps(self, before: ClaimRecord | None, after: ClaimRecord | None) -> bool:
        either = after or before
        if either is None or (before and before.unversioned) == (after and after.unversioned):
            return False
        return self._store.waited_for(either.key)

    def _volume_helps(self, before: VolumeRecord | None, after: VolumeRecord | None) -> bool:
        if (before and before.unversioned) == (after and after.unversioned):
            return False
        return any(self._store.volume_waited_for(one) for one in (before, after) if one is not None)

    def check(self) -> None:
        """Let pods with claims wait while a storage kind cannot be read: what is not known cannot be promised."""
        absent = sorted(self.absent()) if self._store.in_use else []
        text = f"volume claims wait because this scheduler cannot list and watch {', '.join(absent)}: allow it to"
        self._store.set_problem(text if absent else "")

    def _claim_events(
        self, state: ClusterState, unreadable: UnreadableObjects
    ) -> FactEvents[wire.PersistentVolumeClaim, ClaimRecord]:
        known = state.store.volumes

        def put(record: ClaimRecord) -> None:
            known.set_claim(record)
            self.known.changed(CLAIM, record.namespace, record.name)

        def drop(namespace: str, name: str) -> None:
            known.remove_claim(namespace, name)
            self.known.changed(CLAIM, namespace, name)

        return FactEvents(
            CLAIM,
            state,
            unreadable,
            read=storage.claim_record,
            get=lambda namespace, name: known.claims.get(ClaimKey(namespace, name)),
            put=put,
            drop=drop,
            helps=self._claim_helps,
        )

    def _volume_events(
        self, state: ClusterState, unreadable: UnreadableObjects
    ) -> FactEvents[wire.PersistentVolume, VolumeRecord]:
        known = state.store.volumes

        def put(record: VolumeRecord) -> None:
            known.set_volume(record)
            self.known.changed(VOLUME, "", record.name)

        def drop(_: str, name: str) -> None:
            known.remove_volume(name)
            self.known.changed(VOLUME, "", name)

        return FactEvents(
            VOLUME,
            state,
            unreadable,
            read=storage.volume_record,
            get=lambda _, name: known.volumes.get(name),
            put=put,
            drop=drop,
            helps=self._volume_helps,
        )


def _may_help(before: R | None, after: R | None) -> bool:
    """Say that any change may let a pending job be placed: these kinds seldom change."""
    return True


def _named(
    kind: str,
    state: ClusterState,
    unreadable: UnreadableObjects,
    read: Callable[[W], R],
    records: Mapping[str, R],
    put: Callable[[R], None],
    drop: Callable[[str], None],
    helps: Callable[[R | None, R | None], bool] = _may_help,
) -> FactEvents[W, R]:
    """Return the event handler of a kind without namespaces."""
    return FactEvents(
        kind,
        state,
        unreadable,
        read=read,
        get=lambda _, name: records.get(name),
        put=put,
        drop=lambda _, name: drop(name),
        helps=helps,
    )
