"""The store of volumes: whatever was told in whatever order, it ends as one that was told only how things are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from volcano_py.model.objects import NodeRecord, TaskRecord
from volcano_py.model.shape import NodeTerm, Requirement, Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.model.volumes import (
    READ_WRITE_ONCE_POD,
    WAIT_FOR_FIRST_CONSUMER,
    AttachmentRecord,
    ClaimRecord,
    ClaimRef,
    CsiNodeRecord,
    StorageClassRecord,
    TaskClaim,
    VolumeHandle,
    VolumeRecord,
)
from volcano_py.snapshot import volumes
from volcano_py.snapshot.columns import Snapshot
from volcano_py.snapshot.pod_needs import Use, holding_use
from volcano_py.snapshot.store import ClusterStore

NODES = ("n0", "n1", "n2")
DRIVERS = ("d0", "d1")
STATUSES = (TaskStatus.PENDING, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.RELEASING, TaskStatus.SUCCEEDED)


class Told:
    """A store that is told random changes, and the objects as they are now."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.store = ClusterStore()
        for name in NODES:
            self.store.set_node(NodeRecord(name))
        self.now: dict[tuple[str, str], Any] = {}

    def change(self) -> None:
        chance = self.chance
        kind = chance.choice(["claim", "claim", "volume", "volume", "class", "csi", "attachment", "task", "task"])
        name = f"{kind}{chance.randrange(5)}"
        if chance.random() < 0.2:
            if self.now.pop((kind, name), None) is not None:
                remove(self.store, kind, name)
            return
        record = getattr(self, f"_{kind}")(name)
        self.now[kind, name] = record
        tell(self.store, kind, record)

    def _claim(self, name: str) -> ClaimRecord:
        chance = self.chance
        return ClaimRecord(
            "ns",
            name,
            f"uid-{name}",
            storage_class=chance.choice(["", "class0", "class1"]),
            size=chance.randrange(3),
            access_modes=frozenset([chance.choice(["ReadWriteOnce", READ_WRITE_ONCE_POD])]),
            volume=chance.choice(["", "volume0", "volume1"]),
            bind_completed=chance.random() < 0.7,
            selected_node=chance.choice(["", "", "n1"]),
            phase=chance.choice(["Pending", "Bound", "Lost"]),
            deleting=chance.random() < 0.1,
            owner=chance.choice(["", "uid-task1"]),
        )

    def _volume(self, name: str) -> VolumeRecord:
        chance = self.chance
        here = (NodeTerm((Requirement("zone", "In", (chance.choice("ab"),)),)),)
        claim = ClaimRef("ns", f"claim{chance.randrange(5)}", chance.choice(["", "uid-claim0"]))
        return VolumeRecord(
            name,
            capacity=chance.randrange(3),
            phase=chance.choice(["Available", "Bound"]),
            node_affinity=chance.choice([None, here]),
            claim=chance.choice([None, claim]),
            handle=chance.choice([None, VolumeHandle(chance.choice(DRIVERS), chance.choice(["x", name]))]),
            zones=chance.choice([(), (("zone", ("a",)),)]),
        )

    def _class(self, name: str) -> StorageClassRecord:
        mode = self.chance.choice(["Immediate", WAIT_FOR_FIRST_CONSUMER])
        return StorageClassRecord(name, self.chance.choice(DRIVERS), mode)

    def _csi(self, name: str) -> CsiNodeRecord:
        limits = {driver: self.chance.randrange(4) for driver in DRIVERS if self.chance.random() < 0.4}
        return CsiNodeRecord(f"n{int(name[-1]) % 3}", limits)

    def _attachment(self, name: str) -> AttachmentRecord:
        return AttachmentRecord(name, self.chance.choice(NODES), "d0", f"volume{self.chance.randrange(3)}")

    def _task(self, name: str) -> tuple[TaskRecord, TaskStatus, str]:
        status = self.chance.choice(STATUSES)
        node = "" if status in (TaskStatus.PENDING, TaskStatus.SUCCEEDED) else self.chance.choice(NODES)
        claims = [TaskClaim(f"claim{i}", i == 4) for i in range(5) if Random(name).random() < 0.9 or i % 2]
        used = tuple(claims[int(name[-1]) % 3 :][:2])
        return TaskRecord(f"uid-{name}", "ns", name, claims=used), status, node


def tell(store: ClusterStore, kind: str, record: Any) -> None:
    match kind:
        case "claim":
            store.volumes.set_claim(record)
        case "volume":
            store.volumes.set_volume(record)
        case "class":
            store.volumes.set_class(record)
        case "csi":
            store.volumes.csi.set_node(record)
        case "attachment":
            store.volumes.csi.set_attachment(record)
        case _:
            task, status, node = record
            store.set_task(task, Shape(), status, node)


def remove(store: ClusterStore, kind: str, name: str) -> None:
    match kind:
        case "claim":
            store.volumes.remove_claim("ns", name)
        case "volume":
            store.volumes.remove_volume(name)
        case "class":
            store.volumes.remove_class(name)
        case "csi":
            store.volumes.csi.remove_node(f"n{int(name[-1]) % 3}")
        case "attachment":
            store.volumes.csi.remove_attachment(name)
        case _:
            store.remove_task(f"uid-{name}")


def picture(snapshot: Snapshot) -> Any:
    """Return what a snapshot says about volumes, without row numbers."""
    found = snapshot.volumes
    if found is None:
        return None
    columns, rank = found.columns, found.columns.rank
    return (
        {
            record.name: (found.needs[int(found.need[row])], found.wanted[row])
            for row, record in enumerate(snapshot.tasks.records)
            if record is not None and found.need[row]
        },
        (found.limits.drivers, found.limits.used.tolist(), found.limits.most.tolist()),
        {key: Counter(nodes) for key, nodes in found.holders.items()},
        {
            record.name: (
                record,
                int(columns.capacity[row]),
                bool(columns.free[row]),
                columns.kinds[columns.kind[row]],
                columns.affinities[columns.affinity[row]],
            )
            for row, record in enumerate(columns.records)
            if record is not None
        },
        [name for _, name in sorted((rank.item(row), one.name) for row, one in enumerate(columns.records) if one)],
        set(found.reserved),
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_store_ends_as_one_that_was_told_only_how_things_are(seed: int) -> None:
    told = Told(seed)
    for number in range(150):
        told.change()
        if number % 10 == 0:
            told.store.snapshot()  # what is kept between snapshots must stay right, too

    fresh = ClusterStore()
    for name in NODES:
        fresh.set_node(NodeRecord(name))
    kinds = list(told.now)
    told.chance.shuffle(kinds)
    for kind, name in kinds:
        if kind != "csi":
            tell(fresh, kind, told.now[kind, name])
    for record in told.store.volumes.csi.nodes.values():
        fresh.volumes.csi.set_node(record)

    assert picture(told.store.snapshot()) == picture(fresh.snapshot())


def test_claims_that_need_the_same_have_one_need_and_a_shared_claim_keeps_its_name() -> None:
    store = ClusterStore()
    store.set_node(NodeRecord("n0"))
    store.volumes.set_class(StorageClassRecord("fast", "d0", WAIT_FOR_FIRST_CONSUMER))
    for i in range(3):
        store.volumes.set_claim(ClaimRecord("ns", f"c{i}", f"uid-{i}", storage_class="fast", size=1))
        store.set_task(TaskRecord(f"t{i}", "ns", f"t{i}", claims=(TaskClaim(f"c{i}"),)), Shape(), TaskStatus.PENDING)

    found = store.snapshot().volumes

    assert found is not None
    assert len(set(found.need.tolist())) == 1
    store.set_task(TaskRecord("t3", "ns", "t3", claims=(TaskClaim("c0"),)), Shape(), TaskStatus.PENDING)
    found = store.snapshot().volumes
    assert found is not None
    assert [int(number == found.need[0]) for number in found.need] == [1, 0, 0, 1]


def test_without_pods_with_claims_a_snapshot_says_nothing_about_volumes() -> None:
    store = ClusterStore()
    store.volumes.set_volume(VolumeRecord("v"))
    store.set_task(TaskRecord("t", "ns", "t"), Shape(), TaskStatus.PENDING)

    assert store.snapshot().volumes is None


def test_a_snapshot_does_not_change_when_the_store_does() -> None:
    store = ClusterStore()
    store.set_node(NodeRecord("n0"))
    store.volumes.csi.set_node(CsiNodeRecord("n0", {"d0": 2}))
    store.volumes.set_volume(VolumeRecord("v", phase="Available", handle=VolumeHandle("d0", "v")))
    claim = ClaimRecord("ns", "c", "uid", volume="v", bind_completed=True)
    store.volumes.set_claim(claim)
    store.set_task(TaskRecord("t", "ns", "t", claims=(TaskClaim("c"),)), Shape(), TaskStatus.RUNNING, "n0")
    snapshot = store.snapshot()
    before = picture(snapshot)

    store.volumes.set_claim(replace(claim, volume="other"))
    store.volumes.remove_volume("v")
    store.volumes.csi.remove_node("n0")
    store.remove_task("t")
    store.snapshot()

    assert picture(snapshot) == before


def test_a_pod_that_shares_a_handle_with_a_thousand_others_changes_nothing_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, asked = ClusterStore(), Counter[str]()
    store.set_node(NodeRecord("n0"))
    store.volumes.csi.set_node(CsiNodeRecord("n0", {"d0": 5}))
    for name in ("a", "b"):
        store.volumes.set_volume(VolumeRecord(f"v-{name}", phase="Bound", handle=VolumeHandle("d0", "one")))
        claim = ClaimRecord("ns", name, f"uid-{name}", volume=f"v-{name}", bind_completed=True, phase="Bound")
        store.volumes.set_claim(claim)

    def noted(storage: Any, task: TaskRecord) -> Use:
        asked[task.name] += 1
        return holding_use(storage, task)

    monkeypatch.setattr(volumes, "holding_use", noted)
    for number in range(100):
        task = TaskRecord(f"t{number}", "ns", f"t{number}", claims=(TaskClaim("ab"[number % 2]),))
        store.set_task(task, Shape(), TaskStatus.RUNNING, "n0")

    assert asked.total() < 110  # once for each pod, and once more when a claim gets its second pod
    found = store.snapshot().volumes
    assert found is not None
    assert found.limits.used.tolist() == [[1.0]]
