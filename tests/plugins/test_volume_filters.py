"""The filters about volumes over columns give what plain Python gives for each pod and node alone."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.plain_volume_filters import ZONES, PlainStorage
from volcano_py.api.meta import LabelSelector
from volcano_py.model.objects import NodeRecord, TaskRecord
from volcano_py.model.selectors import label_selector
from volcano_py.model.shape import NodeTerm, Requirement, Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.model.volumes import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    AttachmentRecord,
    CapacityRecord,
    ClaimRecord,
    ClaimRef,
    CsiDriverRecord,
    CsiNodeRecord,
    Disk,
    StorageClassRecord,
    TaskClaim,
    VolumeHandle,
    VolumeRecord,
)
from volcano_py.plugins.predicates import Predicates
from volcano_py.snapshot.store import ClusterStore

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
LIMITED, ROOMY = "limited", "roomy"
ABOUT_VOLUMES = ("volume-", "disk-")


def world(chance: Random) -> tuple[PlainStorage, list[TaskRecord]]:
    """Return random storage with pods on nodes, and pods that wait."""
    made = PlainStorage()
    for number in range(chance.randrange(2, 7)):
        labels = {HOST: f"n{number}"} | {
            key: chance.choice("ab") for key in ZONES if chance.random() < (0.7 if key == ZONE else 0.15)
        }
        made.nodes[f"n{number}"] = labels
        if chance.random() < 0.7:
            made.csi_nodes[f"n{number}"] = CsiNodeRecord(f"n{number}", {LIMITED: chance.randrange(1, 4)})
    in_a = NodeTerm((Requirement(ZONE, "In", ("a",)),))
    made.classes = {
        "local": StorageClassRecord("local", NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER),
        "fast": StorageClassRecord("fast", LIMITED, WAIT_FOR_FIRST_CONSUMER),
        "near": StorageClassRecord("near", LIMITED, WAIT_FOR_FIRST_CONSUMER, (in_a,)),
        "roomy": StorageClassRecord("roomy", ROOMY, WAIT_FOR_FIRST_CONSUMER),
        "now": StorageClassRecord("now", LIMITED, "Immediate"),
    }
    made.drivers = {ROOMY: CsiDriverRecord(ROOMY, storage_capacity=True)}
    everywhere, here = LabelSelector(), LabelSelector(match_labels={ZONE: "a"})
    made.capacities = [
        CapacityRecord("ns", f"r{number}", "roomy", label_selector(chance.choice([everywhere, here]), ""), size, size)
        for number, size in enumerate(chance.sample([1, 2, 3], chance.randrange(3)))
    ]
    for number in range(12):
        name = f"v{number}"
        made.volumes[name] = _volume(chance, name)
    for number in range(12):
        claim = _claim(chance, f"c{number}", made)
        made.claims[claim.key] = claim
    made.attachments = [
        AttachmentRecord(f"a{number}", chance.choice(list(made.nodes)), LIMITED, f"v{number}")
        for number in range(12)
        if chance.random() < 0.2
    ]
    made.standing = [(_pod(chance, f"s{number}"), chance.choice(list(made.nodes))) for number in range(4)]
    return made, [_pod(chance, f"p{number}") for number in range(6)]


def _volume(chance: Random, name: str) -> VolumeRecord:
    host = (NodeTerm((Requirement(HOST, "In", (f"n{chance.randrange(6)}",)),)),)
    zone = (NodeTerm((Requirement(ZONE, "In", (chance.choice("ab"),)),)),)
    return VolumeRecord(
        name,
        storage_class=chance.choice(["local", "local", "fast"]),
        capacity=chance.randrange(1, 5),
        access_modes=frozenset(["ReadWriteOnce", "ReadWriteOncePod"]),
        node_affinity=chance.choice([None, host, zone]),
        phase="Available",
        handle=VolumeHandle(LIMITED, name) if chance.random() < 0.6 else None,
        zones=((chance.choice(list(ZONES)), ("a",)),) if chance.random() < 0.3 else (),
    )


def _claim(chance: Random, name: str, made: PlainStorage) -> ClaimRecord:
    free = [volume for volume in made.volumes.values() if volume.claim is None]
    volume = chance.choice(free).name if free and chance.random() < 0.4 else ""
    if volume:
        fields = made.volumes[volume]
        made.volumes[volume] = VolumeRecord(
            volume,
            storage_class=fields.storage_class,
            capacity=fields.capacity,
            access_modes=fields.access_modes,
            node_affinity=fields.node_affinity,
            claim=ClaimRef("ns", name, f"uid-{name}"),
            phase="Bound",
            handle=fields.handle,
            zones=fields.zones,
        )
    return ClaimRecord(
        "ns",
        name,
        f"uid-{name}",
        storage_class=chance.choice(["local", "local", "fast", "near", "roomy", "now"]),
        size=chance.randrange(1, 4),
        access_modes=frozenset([chance.choice(["ReadWriteOnce", "ReadWriteOncePod"])]),
        volume=volume or ("gone" if chance.random() < 0.05 else ""),
        bind_completed=bool(volume) and chance.random() < 0.95,
        selected_node=f"n{chance.randrange(6)}" if not volume and chance.random() < 0.1 else "",
        phase="Lost" if chance.random() < 0.03 else "",
        deleting=chance.random() < 0.03,
    )


def _pod(chance: Random, name: str) -> TaskRecord:
    names = chance.sample([f"c{number}" for number in range(12)], chance.choice([1, 1, 2, 3]))
    disk = Disk(chance.choice(["gce", "aws"]), "d", chance.random() < 0.5)
    disks = (disk,) if chance.random() < 0.2 else ()
    return TaskRecord(f"uid-{name}", "ns", name, claims=tuple(TaskClaim(one) for one in names), disks=disks)


def store_of(made: PlainStorage, pods: list[TaskRecord]) -> ClusterStore:
    store = ClusterStore()
    for name, labels in made.nodes.items():
        store.set_node(NodeRecord(name, {"cpu": 1000.0, "memory": 2.0**40, "pods": 110.0}, labels))
    for claim in made.claims.values():
        store.volumes.set_claim(claim)
    for volume in made.volumes.values():
        store.volumes.set_volume(volume)
    for storage_class in made.classes.values():
        store.volumes.set_class(storage_class)
    for csi in made.csi_nodes.values():
        store.volumes.csi.set_node(csi)
    for driver in made.drivers.values():
        store.volumes.csi.set_driver(driver)
    for capacity in made.capacities:
        store.volumes.csi.set_capacity(capacity)
    for attachment in made.attachments:
        store.volumes.csi.set_attachment(attachment)
    for pod, node in made.standing:
        store.set_task(pod, Shape(), TaskStatus.RUNNING, node)
    for pod in pods:
        store.set_task(pod, Shape(), TaskStatus.PENDING)
    return store


@pytest.mark.parametrize("seed", range(60))
def test_each_node_refuses_for_the_reasons_that_plain_python_finds(seed: int) -> None:
    made, pods = world(Random(seed))
    plugin = Predicates()
    ssn = a_session(store_of(made, pods).snapshot(), plugin)
    volumes = ssn.state.volumes
    assert volumes is not None
    for row, record in enumerate(ssn.state.tasks.records):
        if record not in pods:
            continue
        task = ssn.state.task_of(int(ssn.state.tasks.shape[row]))
        assert (volumes.refusal(task) is None) == made.usable(record), f"pod {record.name}"
        need = volumes.need_of(task)
        assert need.refusal or not (need.zone_refusal or need.limits_refusal), "a filter refuses what all others take"
        if not made.usable(record):
            continue
        refused = plugin.refusals(task, ssn.state.nodes)
        ranked = ssn.placement.rank(task).ranked
        for number, node in enumerate(ssn.state.nodes.names):
            codes = {plugin.reasons[place].code for place in np.flatnonzero(refused[:, number])}
            about = {code for code in codes if code.startswith(ABOUT_VOLUMES)}
            expected = made.reasons(record, node)
            assert about == expected, f"pod {record.name} on {node}"
            assert (ranked[number] == -np.inf) == bool(expected)
