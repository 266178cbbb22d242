"""Cost of placing one gang by network topology: CPU milliseconds of one cycle, no API server."""

import gc
import statistics
import time
from random import Random
from typing import Any

from benchmarks.decision import GIB
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.hyper_nodes import HyperNode, NodeMember
from volcano_py.model.objects import JobKey, JobRecord, NodeRecord, QueueRecord, TaskRecord
from volcano_py.model.requirements import Requirement
from volcano_py.model.selectors import LabelSelector
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.model.sub_groups import NetworkTopology, SubGroupPolicy, TopologyMode
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.snapshot.store import ClusterStore

_POD = Shape(request=(("cpu", 8000.0), ("memory", GIB), ("pods", 1.0)), nonzero=(8000.0, GIB))
_PER_NODE = 4
_PART = "volcano.sh/partition-id"


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    policy = resolve(parse_conf(workload["conf"], "topology.yaml"))
    return [_case(workload, policy, **case) for case in workload["cases"]]


def _case(
    workload: dict[str, Any], policy: Policy, topology: str, busy: float, gang: int, tier: int, partition: int = 0
) -> dict[str, Any]:
    store = _cluster(workload["tiers"], busy)
    _add_gang(store, gang, tier, TopologyMode(topology) if topology != "none" else None, partition)
    cpu: list[float] = []
    for _ in range(workload["repeat"] + 1):
        snapshot = store.snapshot()
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        started = time.thread_time()
        _, report = run_cycle(snapshot, policy, CycleClock(0.0, time.perf_counter), 0, Memory(), lambda _: None)
        cpu.append((time.thread_time() - started) * 1e3)
        if report.tasks_placed != gang:
            raise RuntimeError(f"topology {topology}, busy {busy}: {report.tasks_placed} of {gang} pods placed")
    return {
        "topology": topology,
        "partition": partition,
        "busy": busy,
        "gang": gang,
        "tier": tier,
        "cpu_ms": round(statistics.median(cpu[1:]), 1),
        "cpu_ms_min": round(min(cpu[1:]), 1),
        "first_cycle_ms": round(cpu[0], 1),
    }


def _cluster(tiers: list[int], busy: float) -> ClusterStore:
    """Return a store with nodes in domains of several tiers, the first number for the nodes, a part of them full."""
    store, random = ClusterStore(), Random(1)
    store.set_queue(QueueRecord("default"))
    below = [f"node-{i:05d}" for i in range(tiers[0])]
    for name in below:
        allocatable = {"cpu": 8000.0 * _PER_NODE, "memory": 256 * GIB, "pods": 110.0}
        store.set_node(NodeRecord(name, allocatable, {"kubernetes.io/hostname": name}))
        if random.random() < busy:
            for number in range(_PER_NODE):
                uid = f"old-{name}-{number}"
                store.set_task(TaskRecord(uid, "bench", uid), _POD, TaskStatus.RUNNING, name)
    for tier, count in enumerate(tiers[1:], 1):
        size, names = len(below) // count, [f"tier-{tier}-{i:03d}" for i in range(count)]
        for i, name in enumerate(names):
            mine = below[i * size : (i + 1) * size]
            members = tuple(NodeMember(name=one) for one in mine) if tier == 1 else ()
            store.facts.set_hyper_node(HyperNode(name, tier, "", members, () if tier == 1 else tuple(mine)))
        below = names
    return store


def _add_gang(store: ClusterStore, gang: int, tier: int, mode: TopologyMode | None, partition: int) -> None:
    topology = None if mode is None else NetworkTopology(mode, tier)
    parts = LabelSelector((Requirement(_PART, "Exists"),))
    near = NetworkTopology(TopologyMode.HARD, 1)
    policies = (SubGroupPolicy("part", parts, (_PART,), partition, gang // partition, near),) if partition else ()
    store.set_job(
        JobRecord(
            JobKey("bench", "gang"),
            "gang",
            "default",
            gang,
            network_topology=topology,
            sub_group_policies=policies,
            phase="Inqueue",
        )
    )
    for i in range(gang):
        labels = (_PART, str(i // partition)) if partition else ()
        store.set_task(TaskRecord(f"uid-{i}", "bench", f"gang-{i}", "gang", labels=labels), _POD, TaskStatus.PENDING)
