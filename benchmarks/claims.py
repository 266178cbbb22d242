"""Cost of a decision for pods with volume claims: microseconds per placed pod, one cycle, no API server."""

import gc
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks.decision import cluster
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Bind, Decision
from volcano_py.model.objects import NodeRecord, TaskRecord
from volcano_py.model.shape import NodeTerm, Requirement, Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.model.volumes import (
    AVAILABLE,
    NO_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimRecord,
    ClaimRef,
    CsiNodeRecord,
    StorageClassRecord,
    TaskClaim,
    VolumeHandle,
    VolumeRecord,
)
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.snapshot.store import ClusterStore

_GIB = 2**30
_ONCE = frozenset({"ReadWriteOnce"})
_DRIVER = "csi.example.com"
_ZONE = "topology.kubernetes.io/zone"
_HOST = "kubernetes.io/hostname"


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    conf = Path(__file__).parents[1] / workload["conf"]
    return [
        _case(workload, resolve(parse_conf(conf.read_text(), str(conf))), **{key: case[key] for key in case})
        for case in workload["cases"]
    ]


def _case(workload: dict[str, Any], policy: Policy, nodes: int, k: int, pods: int, claims: str) -> dict[str, Any]:
    store = cluster(nodes, pods // k, k, workload["shapes"])
    if claims != "none":
        _add_claims(store, nodes, pods // k, k, claims)
    cpu: list[float] = []
    steps = 0
    for _ in range(workload["repeat"] + 1):
        snapshot = store.snapshot()
        batches: list[tuple[Decision, ...]] = []
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        started = time.thread_time()
        _, report = run_cycle(snapshot, policy, CycleClock(0.0, time.perf_counter), 0, Memory(), batches.append)
        cpu.append((time.thread_time() - started) / max(report.tasks_placed, 1) * 1e6)
        if report.tasks_placed != pods:
            raise RuntimeError(f"{nodes} nodes, claims {claims}: {report.tasks_placed} of {pods} pods placed")
        steps = sum(len(one.prepare) for batch in batches for one in batch if isinstance(one, Bind))
    return {
        "nodes": nodes,
        "k": k,
        "pods": pods,
        "claims": claims,
        "cpu_us_per_pod": round(statistics.median(cpu[1:]), 1),
        "first_cycle_us_per_pod": round(cpu[0], 1),
        "steps_per_pod": round(steps / pods, 2),
    }


def _add_claims(store: ClusterStore, n_nodes: int, n_jobs: int, k: int, kind: str) -> None:
    """Give every pod a claim, with the storage that its kind needs."""
    provisioner = NO_PROVISIONER if kind in ("local", "pair") else _DRIVER
    each = 2 if kind == "pair" else 1
    store.volumes.set_class(StorageClassRecord("fast", provisioner, WAIT_FOR_FIRST_CONSUMER))
    for i in range(n_nodes):
        name = f"node-{i:05d}"
        record = store.nodes.record(name)
        if kind == "bound" and record is not None:
            store.set_node(NodeRecord(name, record.allocatable, {**record.labels, _ZONE: f"z{i % 3}"}))
        if kind == "limited":
            store.volumes.csi.set_node(CsiNodeRecord(name, {_DRIVER: 20}))
        for number in range(each if kind in ("local", "pair") else 0):
            store.volumes.set_volume(_volume(f"local-{name}-{number}", Requirement(_HOST, "In", (name,)), None))
    for j in range(n_jobs):
        cpu = 1000.0 + 5 * (j % 40)
        shape = Shape(request=(("cpu", cpu), ("memory", float(_GIB)), ("pods", 1.0)), nonzero=(cpu, float(_GIB)))
        for i in range(k):
            name = f"job-{j}-{i}"
            volume = f"pv-{name}" if kind == "bound" else ""
            claim = ClaimRecord("bench", name, f"uid-{name}", "1", "fast", _GIB, _ONCE, volume=volume)
            if kind == "bound":
                claim = ClaimRecord(
                    "bench", name, f"uid-{name}", "1", "fast", _GIB, _ONCE, volume=volume, bind_completed=True
                )
                zone = Requirement(_ZONE, "In", (f"z{j % 3}",))
                store.volumes.set_volume(_volume(volume, zone, ClaimRef("bench", name, f"uid-{name}")))
            store.volumes.set_claim(claim)
            claims = [TaskClaim(name)]
            if each > 1:
                second = f"{name}-second"
                store.volumes.set_claim(ClaimRecord("bench", second, f"uid-{second}", "1", "fast", _GIB, _ONCE))
                claims.append(TaskClaim(second))
            task = TaskRecord(f"uid-{j}-{i}", "bench", name, f"job-{j}", claims=tuple(claims))
            store.set_task(task, shape, TaskStatus.PENDING)


def _volume(name: str, where: Requirement, claim: ClaimRef | None) -> VolumeRecord:
    return VolumeRecord(
        name,
        f"uid-{name}",
        "1",
        "fast",
        _GIB,
        _ONCE,
        node_affinity=(NodeTerm((where,)),),
        claim=claim,
        phase=AVAILABLE if claim is None else "Bound",
        handle=VolumeHandle(_DRIVER, name),
    )
