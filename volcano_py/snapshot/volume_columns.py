"""Volumes as columns, updated one by one: which are free, how large they are, and which nodes reach them.

Volumes that differ only in name, size and place are alike. So a question about class, mode or access is asked once per
kind of volume, and a question about nodes once per distinct node affinity.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np

from volcano_py.model.arrays import Bools, Codes, Floats, Ints
from volcano_py.model.pod_needs import Affinity, PodNeed
from volcano_py.model.volumes import (
    AVAILABLE,
    CapacityRecord,
    ClaimKey,
    ClaimRecord,
    Disk,
    StorageClassRecord,
    VolumeRecord,
)
from volcano_py.snapshot.rows import RowTable, grown

Content = TypeVar("Content", bound=Hashable)


class VolumeKind(NamedTuple):
    """What volumes have in common that can be matched alike."""

    storage_class: str
    volume_mode: str
    access_modes: frozenset[str]
    attributes_class: str


@dataclass(frozen=True, slots=True, eq=False)
class VolumeColumns:
    """All volumes of a snapshot; rows are in no particular order. Nobody changes it."""

    records: Sequence[VolumeRecord | None]  # None where a row is free
    capacity: Ints  # (n_volumes,), bytes
    rank: Ints  # (n_volumes,), the place of its name in order
    free: Bools  # (n_volumes,), whether a claim may be bound to it
    kind: Codes  # (n_volumes,), index into kinds
    kinds: Sequence[VolumeKind | None]
    affinity: Codes  # (n_volumes,), index into affinities
    affinities: Sequence[Affinity]
    stamps: Ints  # (n_affinities,), changes whenever an index gets another affinity

    def __len__(self) -> int:
        return len(self.capacity)


@dataclass(frozen=True, slots=True, eq=False)
class AttachLimits:
    """Used and usable volumes by driver and node."""

    drivers: tuple[str, ...]  # those with a limit on any node, in order
    used: Floats  # (n_drivers, n_nodes)
    most: Floats  # (n_drivers, n_nodes), infinity for no limit


NO_LIMITS: Final = AttachLimits((), np.zeros((0, 0)), np.zeros((0, 0)))


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotVolumes:
    """Storage at one moment, for the pods that use claims; nobody changes it."""

    need: Codes  # (n_tasks,), the need of each task as an index into needs, 0 for none
    needs: tuple[PodNeed, ...]
    wanted: list[tuple[ClaimRecord, ...]]  # by task row: the claims of `PodNeed.wanted`, of a task that waits
    columns: VolumeColumns
    reserved: Mapping[str, int]  # row of each volume that a need names
    limits: AttachLimits
    holders: Mapping[ClaimKey, tuple[str, ...]]  # of each claim of several pods in a need: the nodes of its pods
    disks: Mapping[Disk, Mapping[str, int]]  # how many pods on each node use each disk that a need names
    classes: Mapping[str, StorageClassRecord]
    drivers_with_capacity: frozenset[str]  # the CSI drivers that say how much room they have
    capacities: Mapping[str, tuple[CapacityRecord, ...]]  # by storage class


class _Interned(Generic[Content]):
    """Contents by number; a number is used again when its content is not."""

    def __init__(self) -> None:
        self._table: RowTable[Content] = RowTable()
        self.contents: list[Content | None] = []
        self.stamps = np.zeros(0, dtype=np.int64)
        self._uses: list[int] = []
        self._stamp = 0

    def acquire(self, content: Content) -> int:
        row = self._table.get(content)
        if row is None:
            row = self._table.add(content)
            if row == len(self.contents):
                self.contents.append(None)
                self._uses.append(0)
                self.stamps = grown(self.stamps, self._table.height)
            self._stamp += 1
            self.contents[row], self._uses[row], self.stamps[row] = content, 0, self._stamp
        self._uses[row] += 1
        return row

    def release(self, row: int) -> None:
        self._uses[row] -= 1
        content = self.contents[row]
        if not self._uses[row] and content is not None:
            self._table.remove(content)
            self.contents[row] = None


class _Place(NamedTuple):
    """The affinity of a volume, wrapped so that none at all is a content, too."""

    affinity: Affinity


NO_VOLUMES: Final = VolumeColumns(
    (),
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=bool),
    np.zeros(0, dtype=np.int32),
    (),
    np.zeros(0, dtype=np.int32),
    (),
    np.zeros(0, dtype=np.int64),
)


class VolumeTable:
    """The volumes of the store by row."""

    def __init__(self) -> None:
        self._table: RowTable[str] = RowTable()
        self._records: list[VolumeRecord | None] = []
        self._capacity = np.zeros(0, dtype=np.int64)
        self._free = np.zeros(0, dtype=bool)
        self._kind = np.zeros(0, dtype=np.int32)
        self._affinity = np.zeros(0, dtype=np.int32)
        self._kinds: _Interned[VolumeKind] = _Interned()
        self._places: _Interned[_Place] = _Interned()
        self._rank: Ints | None = None
        self._frozen: VolumeColumns | None = NO_VOLUMES

    def set(self, record: VolumeRecord) -> None:
        """Add or replace a volume."""
        self._frozen = None
        row = self._table.get(record.name)
        if row is None:
            row = self._table.add(record.name)
            self._rank = None
            if row == len(self._records):
                self._records.append(None)
                height = self._table.height
                self._capacity, self._free = grown(self._capacity, height), grown(self._free, height)
                self._kind, self._affinity = grown(self._kind, height), grown(self._affinity, height)
        kind = self._kinds.acquire(
            VolumeKind(record.storage_class, record.volume_mode, record.access_modes, record.attributes_class)
        )
        place = self._places.acquire(_Place(record.node_affinity))
        if self._records[row] is not None:
            self._forget(row)
        self._records[row] = record
        self._capacity[row] = record.capacity
        self._kind[row], self._affinity[row] = kind, place
        self._free[row] = record.claim is None and record.phase == AVAILABLE and not record.deleting

    def remove(self, name: str) -> None:
        """Forget a volume."""
        if name not in self._table:
            return
        self._frozen = self._rank = None
        row = self._table.remove(name)
        self._forget(row)
        self._records[row] = None
        self._free[row] = False

    def row(self, name: str) -> int | None:
        """Return the row of a volume, None if it is unknown."""
        return self._table.get(name)

    def _forget(self, row: int) -> None:
        self._kinds.release(int(self._kind[row]))
        self._places.release(int(self._affinity[row]))

    def freeze(self) -> VolumeColumns:
        """Return a copy, made at most once per change."""
        if self._frozen is None:
            n = self._table.height
            if self._rank is None:
                self._rank = np.zeros(n, dtype=np.int64)
                in_order = sorted(self._table.items())
                self._rank[[row for _, row in in_order]] = np.arange(len(in_order))
            places = [None if place is None else place.affinity for place in self._places.contents]
            self._frozen = VolumeColumns(
                list(self._records),
                self._capacity[:n].copy(),
                self._rank,
                self._free[:n].copy(),
                self._kind[:n].copy(),
                list(self._kinds.contents),
                self._affinity[:n].copy(),
                places,
                self._places.stamps[: len(places)].copy(),
            )
        return self._frozen
