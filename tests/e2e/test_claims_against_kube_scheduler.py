"""The filters about volume claims agree with the real kube-scheduler on every node: feasibility and reasons.

Both see the same random claims, volumes, storage classes, drivers, limits and attachments through a real API server,
and the same pods one by one. A pod that no node can take because of its claims alone must wait for the same reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

from tests.controlplane.servers import SCHEDULER
from tests.e2e import random_storage as made
from tests.e2e.control_plane import ControlPlane, Options
from tests.e2e.kube_scheduler import CLAIM_PROFILES, CLAIM_WAYS, NOBODY, Judge, may_only_look, typed
from tests.e2e.random_clusters import PODS
from tests.e2e.random_pods import Wire
from tests.e2e.random_storage import RandomStorage, random_storage
from tests.framework.sessions import a_session
from volcano_py.api.core import Node, Pod
from volcano_py.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from volcano_py.cache.cluster import ClusterCache
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import TaskInfo
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.predicates.plugin import PredicatesArgs
from volcano_py.testing import a_cluster, added, deleted

SEEDS: Final = (27, 45, 59, 121, 123, 1049)
N_JUDGED: Final = 25
LISTS: Final = {
    Node: "/api/v1/nodes",
    StorageClass: made.CLASSES,
    CSIDriver: made.DRIVERS,
    CSINode: made.CSI_NODES,
    CSIStorageCapacity: made.CAPACITIES,
    VolumeAttachment: made.ATTACHMENTS,
    PersistentVolume: made.VOLUMES,
    PersistentVolumeClaim: made.CLAIMS,
    Pod: PODS.format(made.NAMESPACE),
}
WAY_OF: Final = {
    "disk-conflict": "restrictions",
    "volume-exclusive": "restrictions",
    "volume-limits": "limits",
    "volume-affinity": "binding",
    "volume-binding": "binding",
    "volume-space": "binding",
    "volume-missing": "binding",
    "volume-affinity-binding": "binding",
    "volume-affinity-space": "binding",
    "volume-binding-missing": "binding",
    "volume-space-missing": "binding",
    "volume-zone": "zone",
}
SWITCHES: Final = {"limits": "volume_limits", "binding": "volume_binding", "zone": "volume_zone"}
_FINALIZER: Final = {"metadata": {"finalizers": None}}
_MERGE: Final = "application/merge-patch+json"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """An API server alone: no controller binds claims."""
    plane = ControlPlane(Options(controller_manager=False, kwok=False))
    plane.binaries.require([SCHEDULER])
    with plane:
        may_only_look(plane)
        plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": made.NAMESPACE}})
        yield plane


@pytest.mark.parametrize("seed", SEEDS)
def test_every_node_is_judged_as_by_kube_scheduler(plane: ControlPlane, seed: int) -> None:
    storage = random_storage(seed, N_JUDGED)
    _create(plane, storage)
    refused = placed = 0
    try:
        ours = _OurJudge(plane)
        with Judge(plane, CLAIM_PROFILES) as judge:
            for pod in storage.judged:
                wire, told = _told(plane, judge, pod)
                assert ours.says(wire) == told, f"{pod['metadata']['name']} of seed {seed}: {pod['spec']['volumes']}"
                refused += not told["feasible"]
                placed += bool(told["feasible"])
    finally:
        _remove(plane, storage)
    assert refused
    assert placed, "no pod could go anywhere"


def _create(plane: ControlPlane, storage: RandomStorage) -> None:
    plane.cluster.create_all("/api/v1/nodes", storage.nodes)
    for path, one in storage.objects:
        plane.request("POST", path, one)
    for path, status in storage.statuses:
        plane.request("PATCH", f"{path}/status", {"status": status}, content_type=_MERGE)
    for path in storage.deleting:
        plane.request("DELETE", path)
    plane.cluster.create_all(PODS.format(made.NAMESPACE), storage.standing)


def _remove(plane: ControlPlane, storage: RandomStorage) -> None:
    plane.request("DELETE", f"{PODS.format(made.NAMESPACE)}?gracePeriodSeconds=0")
    for path in (made.CLAIMS, made.VOLUMES):
        for one in plane.request("GET", path)["items"]:
            if one["metadata"].get("finalizers"):
                plane.request("PATCH", f"{path}/{one['metadata']['name']}", _FINALIZER, content_type=_MERGE)
    for path in [path for kind, path in LISTS.items() if kind is not Pod]:
        plane.request("DELETE", path)


def _told(plane: ControlPlane, judge: Judge, pod: Wire) -> tuple[Wire, dict[str, Any]]:
    """Return a pod as it was created last, and the comparable part of kube-scheduler's judgements."""
    path, name = PODS.format(made.NAMESPACE), pod["metadata"]["name"]
    told: dict[str, Any] = {}
    wire: Wire = {}
    for way in ("claims", *CLAIM_WAYS):
        named = pod["metadata"] | {"name": f"{name}-{way}"}
        wire = plane.request("POST", path, {"metadata": named, "spec": pod["spec"] | {"schedulerName": way}})
        judgement = judge.judgement(f"{made.NAMESPACE}/{name}-{way}")
        if way == "claims":
            told["feasible"] = judgement.feasible
            whole = judgement.error.partition(": ")[2].rstrip(".")
            if whole and not whole[0].isdigit():
                return wire, told | {"refusal": whole}
        else:
            told[way] = judgement.refusals
    return wire, told


class _OurJudge:
    """This scheduler's judgement of the same pods."""

    def __init__(self, plane: ControlPlane) -> None:
        objects = [typed(one, kind) for kind, path in LISTS.items() for one in plane.request("GET", path)["items"]]
        self._cache: ClusterCache = a_cluster(*objects)

    def says(self, wire: Wire) -> dict[str, Any]:
        pod = typed(wire | {"spec": wire["spec"] | {"schedulerName": "volcano"}}, Pod)
        added(self._cache, pod)
        ssn, task, _ = self._open(pod, PredicatesArgs())
        volumes = ssn.state.volumes
        assert volumes is not None
        refusal = volumes.refusal(task)
        ranked = ssn.placement.rank(task).ranked
        said: dict[str, Any] = {"feasible": {ssn.state.nodes.names[row] for row in np.flatnonzero(ranked > -np.inf)}}
        if refusal is not None:
            said |= {"feasible": set(), "refusal": refusal.text}
        else:
            said |= {way: self._refusals(pod, way) for way in CLAIM_WAYS}
        deleted(self._cache, pod)
        return said

    def _refusals(self, pod: Pod, way: str) -> Counter[str]:
        """Return the number of nodes per reason of one filter; each filter runs alone."""
        switches = {name: of == way for of, name in SWITCHES.items()}
        ssn, task, plugin = self._open(pod, PredicatesArgs(**switches))
        refused = plugin.refusals(task, ssn.state.nodes)
        counts = Counter[str]()
        for row in range(len(ssn.state.nodes)):
            reasons = [plugin.reasons[number] for number in np.flatnonzero(refused[:, row])]
            joined = [reason.text for reason in reasons if WAY_OF.get(reason.code) == way] or [NOBODY]
            # Volcano joins the reasons of one filter, kube-scheduler counts each.
            counts.update(text for texts in joined for text in texts.split(", "))
        return counts

    def _open(self, pod: Pod, args: PredicatesArgs) -> tuple[Session, TaskInfo, Predicates]:
        plugin = Predicates(args)
        ssn = a_session(self._cache.snapshot(), plugin)
        uid = pod.metadata.uid
        row = next(
            row for row, record in enumerate(ssn.state.tasks.records) if record is not None and record.uid == uid
        )
        return ssn, ssn.state.task_of(int(ssn.state.tasks.shape[row])), plugin
