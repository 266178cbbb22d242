"""The store of volumes: claims, volumes, storage classes, what CSI drivers say, and the needs of pods, kept up to date.

A change recomputes only the needs of the pods that it concerns. What an assumed bind promises counts at once, as if the
watch had shown it: a volume promised to a claim is reserved for it, a node promised to a claim is its selected node.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from volcano_py.model.objects import TaskRecord
from volcano_py.model.pod_needs import PodNeed
from volcano_py.model.statuses import OCCUPYING_STATUSES, TaskStatus
from volcano_py.model.volumes import (
    ClaimKey,
    ClaimRecord,
    ClaimRef,
    Disk,
    StorageClassRecord,
    VolumeHandle,
    VolumeRecord,
)
from volcano_py.snapshot.columns import NodeStatics
from volcano_py.snapshot.csi import CsiStore
from volcano_py.snapshot.pod_needs import NeedTable, Use, holding_use, waiting_use
from volcano_py.snapshot.rows import grown
from volcano_py.snapshot.twin_volumes import Twins
from volcano_py.snapshot.volume_columns import SnapshotVolumes, VolumeTable

K = TypeVar("K")
M = TypeVar("M")


class _Place(NamedTuple):
    """A task that uses claims."""

    record: TaskRecord
    node: str  # "": it waits
    use: Use
    number: int  # of its need


def uses_claims(status: TaskStatus, node: str) -> bool:
    """Say whether a task waits or occupies a node ("": none), so that its claims matter."""
    return status is TaskStatus.PENDING or (bool(node) and status in OCCUPYING_STATUSES)


class VolumeStore:
    """Everything about storage that the API server shows or that is promised, and what pods need of it."""

    def __init__(self) -> None:
        self.claims: dict[ClaimKey, ClaimRecord] = {}
        self.volumes: dict[str, VolumeRecord] = {}
        self.classes: dict[str, StorageClassRecord] = {}
        self.csi = CsiStore(self.volumes, self._all_changed)
        self.problem = ""
        """Why claims cannot be read at all, "" if they can."""
        self.ignored_provisioners: frozenset[str] = frozenset()
        """Their volumes do not count towards the limits of nodes."""
        self._promised_volumes: dict[str, ClaimRef] = {}  # by volume
        self._promised_nodes: dict[ClaimKey, str] = {}
        self._claims_of_volume: dict[str, set[ClaimKey]] = {}  # claims that name the volume
        self._volumes_of_claim: dict[ClaimKey, set[str]] = {}  # volumes that name the claim
        self._twins = Twins()
        self._users: dict[ClaimKey, set[int]] = {}  # task rows
        self._places: dict[int, _Place] = {}  # by task row
        self._disks: dict[Disk, Counter[str]] = {}  # how many pods on each node use each disk; "": they wait
        self._needs = NeedTable()
        self._names: tuple[tuple[PodNeed, ...], list[str], list[ClaimKey]] | None = None  # see `_named`
        self._need = np.zeros(0, dtype=np.int32)
        self._wanted: list[tuple[ClaimRecord, ...]] = []
        self._table = VolumeTable()
        self._nodes = self.csi.attached

    @property
    def in_use(self) -> bool:
        """Whether any pod uses claims."""
        return bool(self._places)

    @property
    def limited(self) -> frozenset[str]:
        """The CSI drivers that limit the volumes of a node."""
        return self._nodes.limited - self.ignored_provisioners if self.ignored_provisioners else self._nodes.limited

    # What is known, with what is promised

    def claim(self, key: ClaimKey) -> ClaimRecord | None:
        """Return a claim, None if there is none of this name."""
        found, node = self.claims.get(key), self._promised_nodes.get(key, "")
        if found is None or not node or found.bound or found.selected_node:
            return found
        return replace(found, selected_node=node)

    def volume(self, name: str) -> VolumeRecord | None:
        """Return a volume, None if there is none of this name."""
        found, promised = self.volumes.get(name), self._promised_volumes.get(name)
        return found if found is None or promised is None else replace(found, claim=promised)

    def reserved(self, claim: ClaimRecord) -> tuple[str, ...]:
        """Return the volumes that are reserved for a claim, by name."""
        found: list[str] = []
        for name in sorted(self._volumes_of_claim.get(claim.key, ())):
            volume = self.volume(name)
            if volume is not None and volume.claim is not None and volume.claim.uid in ("", claim.uid):
                found.append(name)
        return tuple(found)

    def waited_for(self, key: ClaimKey) -> bool:
        """Say whether a pod that waits for a node uses a claim."""
        return any(not self._places[row].node for row in self._users.get(key, ()))

    def volume_waited_for(self, record: VolumeRecord) -> bool:
        """Say whether a pod that waits for a node may get a volume, or has a claim that is bound to it."""
        if record.claim is None:
            return self.in_use
        claims = {ClaimKey(*record.claim[:2]), *self._claims_of_volume.get(record.name, ())}
        return any(map(self.waited_for, claims))

    def sharing(self, key: ClaimKey, handle: VolumeHandle | None = None) -> ClaimKey | None:
        """Return the key under which the pods count that use a claim, None if at most one does.

        If several volumes have the ``handle`` of its volume, that is the key of the handle, for one pod as for many:
        so a pod that comes or goes changes nothing for a thousand others.
        """
        if handle is not None and (twin := self._twins.key(handle)) is not None:
            return twin
        return None if len(self._users.get(key, ())) < 2 else key

    def _rows_of(self, handle: VolumeHandle) -> set[int]:
        """Return the rows of the tasks that use volumes with a handle."""
        claims = {key for name in self._twins.volumes(handle) for key in self._claims_of_volume.get(name, ())}
        return {row for key in claims for row in self._users.get(key, ())}

    def users(self, key: ClaimKey) -> list[tuple[TaskRecord, str]]:
        """Return the tasks that use a claim and wait, with "", or occupy a node, with its name; sorted by uid."""
        places = (self._places[row] for row in self._users.get(key, ()))
        return sorted(((place.record, place.node) for place in places), key=lambda user: user[0].uid)

    # Changes of objects

    def set_claim(self, record: ClaimRecord) -> None:
        """Add or replace a claim."""
        key = record.key
        before = self.claims.get(key)
        self.claims[key] = record
        if before is not None and before.volume and before.volume != record.volume:
            _discard(self._claims_of_volume, before.volume, key)
        if record.volume:
            self._claims_of_volume.setdefault(record.volume, set()).add(key)
        self._claim_changed(key)

    def remove_claim(self, namespace: str, name: str) -> None:
        """Forget a claim."""
        key = ClaimKey(namespace, name)
        before = self.claims.pop(key, None)
        if before is not None and before.volume:
            _discard(self._claims_of_volume, before.volume, key)
        self._claim_changed(key)

    def set_volume(self, record: VolumeRecord) -> None:
        """Add or replace a volume."""
        before = self.volumes.get(record.name)
        self.volumes[record.name] = record
        self._volume_changed(record.name, before)
        if before is None or before.handle != record.handle:
            self.csi.volume_changed(record.name)
            self._handle_changed(record.name, None if before is None else before.handle, record.handle)

    def remove_volume(self, name: str) -> None:
        """Forget a volume."""
        before = self.volumes.pop(name, None)
        if before is not None:
            self._volume_changed(name, before)
            self.csi.volume_changed(name)
            self._handle_changed(name, before.handle, None)

    def _handle_changed(self, name: str, before: VolumeHandle | None, after: VolumeHandle | None) -> None:
        """Determine the needs again of those who use volumes whose handle became, or is no longer, that of several."""
        for handle in self._twins.change(name, before, after):
            self._again(self._rows_of(handle))

    def set_class(self, record: StorageClassRecord) -> None:
        """Add or replace a storage class."""
        self.classes[record.name] = record
        self._all_changed()

    def remove_class(self, name: str) -> None:
        """Forget a storage class."""
        self.classes.pop(name, None)
        self._all_changed()

    def set_problem(self, text: str) -> None:
        """Set why claims cannot be read at all; "" if they can."""
        if text != self.problem:
            self.problem = text
            self._all_changed()

    # Promises

    def promise_volume(self, name: str, claim: ClaimRef) -> None:
        """Reserve a volume for a claim."""
        before = self.volume(name)
        self._promised_volumes[name] = claim
        self._volume_changed(name, before)

    def promise_node(self, claim: ClaimKey, node: str) -> None:
        """Count a node as selected for a claim."""
        self._promised_nodes[claim] = node
        self._claim_changed(claim)

    def end_volume_promise(self, name: str) -> None:
        """Forget the promise of a volume."""
        before = self.volume(name)
        if self._promised_volumes.pop(name, None) is not None:
            self._volume_changed(name, before)

    def end_node_promise(self, claim: ClaimKey) -> None:
        """Forget the promise of a node to a claim."""
        if self._promised_nodes.pop(claim, None) is not None:
            self._claim_changed(claim)

    def promised(self) -> tuple[set[str], set[ClaimKey]]:
        """Return the volumes that are promised, and the claims that are promised a node."""
        return set(self._promised_volumes), set(self._promised_nodes)

    # Pods

    def enter(self, row: int, record: TaskRecord, node: str) -> None:
        """Add a task that uses claims; it waits if it has no node."""
        if row >= len(self._wanted):
            self._need = grown(self._need, row + 1)
            self._wanted.extend(() for _ in range(row + 1 - len(self._wanted)))
        self._places[row] = _Place(record, node, Use(), 0)
        for disk in record.disks:
            self._disks.setdefault(disk, Counter())[node] += 1
        for key in _keys(record):
            users = self._users.setdefault(key, set())
            users.add(row)
            if len(users) == 2:
                self._again(users - {row})
        self._again((row,))

    def leave(self, row: int) -> None:
        """Forget a task that uses claims."""
        place = self._places.pop(row)
        if place.node:
            self._nodes.pod_left(place.node, place.use.handles)
        self._needs.release(place.number)
        self._need[row] = 0
        self._wanted[row] = ()
        for disk in place.record.disks:
            self._disks[disk][place.node] -= 1
            if not self._disks[disk].total():
                del self._disks[disk]
        for key in _keys(place.record):
            users = self._users[key]
            users.discard(row)
            if len(users) == 1:
                self._again(users)
            elif not users:
                del self._users[key]

    def _again(self, rows: Iterable[int]) -> None:
        """Determine the needs of tasks again."""
        for row in sorted(rows):
            record, node, before, number = self._places[row]
            use = holding_use(self, record) if node else waiting_use(self, record)
            if use == before:
                continue
            if node and use.handles != before.handles:
                self._nodes.pod_left(node, before.handles)
                self._nodes.pod_came(node, use.handles)
            after = self._needs.acquire(use.need)
            self._needs.release(number)
            self._places[row] = _Place(record, node, use, after)
            self._need[row] = after
            self._wanted[row] = use.wanted

    def _all_changed(self) -> None:
        self._again(tuple(self._places))

    def _claim_changed(self, key: ClaimKey) -> None:
        self._again(self._users.get(key, ()))

    def _volume_changed(self, name: str, before: VolumeRecord | None) -> None:
        after = self.volume(name)
        if before is not None and before.claim is not None:
            _discard(self._volumes_of_claim, ClaimKey(*before.claim[:2]), name)
        if after is None:
            self._table.remove(name)
        else:
            self._table.set(after)
            if after.claim is not None:
                self._volumes_of_claim.setdefault(ClaimKey(*after.claim[:2]), set()).add(name)
        concerned = set(self._claims_of_volume.get(name, ()))
        concerned.update(ClaimKey(*one.claim[:2]) for one in (before, after) if one is not None and one.claim)
        for key in sorted(concerned):
            self._claim_changed(key)

    # Snapshots

    def freeze(self, n_tasks: int, statics: NodeStatics) -> SnapshotVolumes | None:
        """Return what a cycle needs to know, None if no pod uses claims."""
        if not self._places:
            return None
        need = grown(self._need, n_tasks)[:n_tasks].copy()
        needs = self._needs.freeze()
        volumes, claims = self._named(needs)
        rows = {name: self._table.row(name) for name in volumes}
        return SnapshotVolumes(
            need=need,
            needs=needs,
            wanted=list(self._wanted),
            columns=self._table.freeze(),
            reserved={name: row for name, row in rows.items() if row is not None},
            limits=self._nodes.freeze(statics),
            holders={key: self._nodes_of(key) for key in claims},
            disks={disk: dict(nodes) for disk, nodes in self._disks.items()},
            classes=dict(self.classes),
            drivers_with_capacity=self.csi.drivers_with_capacity(),
            capacities=self.csi.capacities_by_class(),
        )

    def _nodes_of(self, key: ClaimKey) -> tuple[str, ...]:
        """Return the node of every pod that holds a claim on one, or a volume of a handle that several have."""
        handle = self._twins.handle(key)
        rows = self._users.get(key, ()) if handle is None else self._rows_of(handle)
        places = (self._places[row] for row in sorted(rows))
        return tuple(place.node for place in places if place.node)

    def _named(self, needs: tuple[PodNeed, ...]) -> tuple[list[str], list[ClaimKey]]:
        """Return the reserved volumes, and the claims of several pods, that needs name."""
        if self._names is None or self._names[0] is not needs:
            volumes = {name for need in needs for wanted in need.wanted for name in wanted.reserved}
            claims = {one.claim for need in needs for one in need.shared}
            claims.update(key for need in needs for key in need.exclusive)
            self._names = (needs, sorted(volumes), sorted(claims))
        return self._names[1:]


def _keys(record: TaskRecord) -> list[ClaimKey]:
    return [ClaimKey(record.namespace, claim.name) for claim in record.claims]


def _discard(sets: dict[K, set[M]], key: K, member: M) -> None:
    members = sets.get(key)
    if members is not None:
        members.discard(member)
        if not members:
            del sets[key]
