"""Matching claims and volumes over columns gives what plain Python gives, node by node."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.plain_matching import match
from volcano_py.api.meta import LabelSelector
from volcano_py.framework.state.session_volumes import SessionVolumes
from volcano_py.framework.state.volume_matching import NONE
from volcano_py.model.decisions import BindClaim
from volcano_py.model.objects import NodeRecord, TaskRecord
from volcano_py.model.selectors import label_selector
from volcano_py.model.shape import NodeTerm, Requirement, Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.model.volumes import (
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimRecord,
    ClaimRef,
    StorageClassRecord,
    TaskClaim,
    VolumeRecord,
)
from volcano_py.plugins.predicates import Predicates
from volcano_py.snapshot.store import ClusterStore

HOST, ZONE, RACK = "kubernetes.io/hostname", "zone", "rack"
GOLD = label_selector(LabelSelector(match_labels={"tier": "gold"}), "selector")


class World:
    """Random nodes, volumes and one pod with one to three claims."""

    def __init__(self, seed: int, *, local: bool) -> None:
        chance = Random(seed)
        self.chance, self.local = chance, local
        self.store = ClusterStore()
        self.store.volumes.set_class(StorageClassRecord("slow", NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER))
        self.store.volumes.set_class(StorageClassRecord("fast", NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER))
        self.nodes = {f"n{i}": self._labels(f"n{i}") for i in range(chance.randrange(1, 9))}
        for name, labels in self.nodes.items():
            self.store.set_node(NodeRecord(name, {"cpu": 64000.0, "memory": 2.0**40, "pods": 110.0}, labels))
        self.volumes = [self._volume(f"v{i}") for i in range(chance.randrange(0, 14))]
        self.claims = [self._claim(f"c{i}") for i in range(1 if local else chance.randrange(1, 4))]
        for volume in self.volumes:
            self.store.volumes.set_volume(volume)
        for claim in self.claims:
            self.store.volumes.set_claim(claim)
        task = TaskRecord("uid", "ns", "pod", claims=tuple(TaskClaim(claim.name) for claim in self.claims))
        self.store.set_task(task, Shape(), TaskStatus.PENDING)

    def _labels(self, name: str) -> dict[str, str]:
        chance = self.chance
        labels = {HOST: name} if self.local or chance.random() < 0.9 else {}
        if chance.random() < 0.8:
            labels[ZONE] = chance.choice("ab")
        return labels

    def _volume(self, name: str) -> VolumeRecord:
        chance = self.chance
        host = (NodeTerm((Requirement(HOST, "In", (f"n{chance.randrange(9)}",)),)),)
        affinity = chance.choice(
            [
                None,
                host,
                host,
                (NodeTerm((Requirement(ZONE, "In", (chance.choice("abc"),)),)),),
                (NodeTerm((Requirement(ZONE, "In", ("a", "b")),)),),
                (NodeTerm((Requirement(ZONE, "DoesNotExist"),)), *host),
                (NodeTerm(),),
            ]
        )
        claim = ClaimRef("ns", f"c{chance.randrange(4)}", chance.choice(["", "uid-c0", "uid-c1"]))
        return VolumeRecord(
            name,
            storage_class=chance.choice(["slow", "slow", "fast"]),
            capacity=chance.randrange(1, 5),
            access_modes=frozenset(chance.sample(["a", "b"], chance.randrange(1, 3))),
            volume_mode=chance.choice(["Filesystem"] * 6 + ["Block"]),
            labels=chance.choice([{}, {"tier": "gold"}]),
            node_affinity=host if self.local else affinity,
            claim=claim if chance.random() < 0.2 else None,
            phase="Available" if chance.random() < 0.9 else "Released",
            deleting=chance.random() < 0.05,
        )

    def _claim(self, name: str) -> ClaimRecord:
        chance = self.chance
        return ClaimRecord(
            "ns",
            name,
            f"uid-{name}",
            storage_class=chance.choice(["slow", "slow", "fast"]),
            size=chance.randrange(1, 4),
            access_modes=frozenset(chance.sample(["a", "b"], chance.choice([1, 1, 2]))),
            selector=GOLD if chance.random() < 0.2 else None,
            selected_node="n0" if not self.local and chance.random() < 0.1 else "",
        )

    def open(self) -> SessionVolumes:
        self.session = a_session(self.store.snapshot(), Predicates())
        volumes = self.session.state.volumes
        assert volumes is not None
        return volumes


@pytest.mark.parametrize("local", [False, True], ids=["any", "local"])
def test_claims_get_the_volumes_that_plain_matching_gives_them(local: bool) -> None:
    seen = 0
    for seed in range(400):
        world = World(seed, local=local)
        volumes = world.open()
        task = world.session.state.task_of(int(world.session.state.tasks.shape[0]))
        need = volumes.need_of(task)
        wanted, own = volumes.wanted_now(need)
        claims = volumes.storage.wanted[0]
        everywhere = volumes.matching.on_nodes(wanted, own)
        for row, (name, labels) in enumerate(world.nodes.items()):
            expected = match(world.claims, world.volumes, labels)
            rows = volumes.matching.on_node(wanted, own, row)
            records = [None if found == NONE else volumes.storage.columns.records[found] for found in rows]
            found = {claim.name: one.name for claim, one in zip(claims, records, strict=True) if one is not None}
            assert found == expected, f"seed {seed}, node {name}"
            assert {claim.name for claim, there in zip(claims, everywhere[:, row], strict=True) if there} == set(found)
            only = volumes.local(task)
            if only is not None:
                best = only.best(row, volumes.taken)
                assert best == rows[0]
                assert (only.free[row] > 0) == (best != NONE)
            seen += bool(found)
    assert seen > 100, "too few claims found a volume for the test to mean much"


@pytest.mark.parametrize("local", [False, True], ids=["any", "local"])
def test_no_volume_is_promised_twice_and_an_undo_restores_everything(local: bool) -> None:
    placed = 0
    for seed in range(150):
        world = World(seed, local=local)
        for number in range(6):
            claim = world._claim(f"more{number}")
            world.store.volumes.set_claim(claim)
            task = TaskRecord(f"uid-{number}", "ns", f"pod{number}", claims=(TaskClaim(claim.name),))
            world.store.set_task(task, Shape(), TaskStatus.PENDING)
        shared = TaskRecord("uid-s", "ns", "pods", claims=(TaskClaim("c0"), TaskClaim("more0")))
        world.store.set_task(shared, Shape(), TaskStatus.PENDING)
        volumes, chance = world.open(), world.chance
        state = world.session.state
        rows = [row for row, record in enumerate(state.tasks.records) if record is not None]
        for row in rows:  # make the lazily built parts before the pictures are taken
            volumes.local(state.task_of(int(state.tasks.shape[row])))
        pictures = []
        promised: dict[int, tuple[BindClaim, ...]] = {}
        for _ in range(12):
            if pictures and chance.random() < 0.4:
                checkpoint, before, promised = pictures.pop()
                state.journal.rollback(checkpoint)
                assert _picture(volumes) == before, f"seed {seed}"
                continue
            waiting = [row for row in rows if row not in promised]
            if not waiting:
                continue
            row = chance.choice(waiting)
            task = state.task_of(int(state.tasks.shape[row]))
            feasible = np.flatnonzero(world.session.placement.rank(task).ranked > -np.inf)
            if not len(feasible):
                continue
            node = int(chance.choice(feasible.tolist()))
            pictures.append((state.journal.checkpoint(), _picture(volumes), dict(promised)))
            volumes.placed(task, np.array([row]), np.array([node]))
            steps = volumes.steps(row, node)
            promised[row] = tuple(step for step in steps if isinstance(step, BindClaim))
            placed += 1
            given = {(step.claim, step.volume) for one in promised.values() for step in one}
            assert len({volume for _, volume in given}) == len(given), f"seed {seed}: a volume has two claims"
    assert placed > 150


def _picture(volumes: SessionVolumes) -> object:
    return (
        volumes.taken.tolist(),
        volumes.used.tolist(),
        [{node: count for node, count in pods.items() if count} for pods in volumes._holders],
        volumes._got_volume.tolist(),
        volumes._got_node.tolist(),
        [None if local is None else local.free.tolist() for local in volumes._local.values()],
    )


def test_answers_for_all_nodes_follow_every_promise_and_every_undo() -> None:
    differences = 0
    for seed in range(200):
        world = World(seed, local=False)
        volumes, chance = world.open(), world.chance
        task = world.session.state.task_of(int(world.session.state.tasks.shape[0]))
        wanted, own = volumes.wanted_now(volumes.need_of(task))
        before = None
        for _ in range(6):
            everywhere = volumes.matching.on_nodes(wanted, own)
            alone = [volumes.matching.on_node(wanted, own, row) for row in range(len(world.nodes))]
            assert everywhere.T.tolist() == [[found != NONE for found in rows] for rows in alone], f"seed {seed}"
            differences += before is not None and everywhere.tolist() != before
            before = everywhere.tolist()
            if len(volumes.taken):
                row = chance.randrange(len(volumes.taken))
                volumes.taken[row] = not volumes.taken[row]
    assert differences > 50
