"""Cost of opening a session after few changes: the snapshot, and the preparations of plugins."""

import gc
import statistics
import time
from typing import Any

from benchmarks.decision import cluster
from volcano_py.conf.defaults import BUILT_IN_CONF
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.objects import NodeRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import resolve, run_cycle
from volcano_py.snapshot.store import ClusterStore


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    return [_case(case, workload["repeat"]) for case in workload["cases"]]


def _case(case: dict[str, Any], repeat: int) -> dict[str, Any]:
    # Cycles only enqueue jobs: placement is measured elsewhere, and all jobs must still wait in the next cycle.
    conf = BUILT_IN_CONF.replace('"enqueue, allocate, backfill"', '"enqueue"')
    policy = resolve(parse_conf(conf, "benchmarks/session.py"))
    store = cluster(case["nodes"], case["jobs"], case["k"], case["shapes"])
    memory = Memory()
    taken: list[float] = []
    opened: list[float] = []
    cpu: list[float] = []
    for number in range(repeat + 1):
        _change(store, case["changes"], number)
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        started, thread = time.perf_counter(), time.thread_time()
        snapshot = store.snapshot()
        taken.append((time.perf_counter() - started) * 1e3)
        snapshot_cpu = (time.thread_time() - thread) * 1e3
        memory, report = run_cycle(snapshot, policy, CycleClock(0.0, time.perf_counter), 0, memory, lambda batch: None)
        opened.append(report.seconds["open"] * 1e3)
        cpu.append(snapshot_cpu)
    return {
        **case,
        "tasks": case["jobs"] * case["k"],
        "snapshot_ms": round(statistics.median(taken[1:]), 2),
        "open_ms": round(statistics.median(opened[1:]), 2),
        "total_ms": round(statistics.median(one + other for one, other in zip(taken[1:], opened[1:], strict=True)), 2),
        "first_ms": round(taken[0] + opened[0], 2),
        "snapshot_cpu_ms": round(statistics.median(cpu[1:]), 2),
    }


def _change(store: ClusterStore, changes: int, number: int) -> None:
    """Bind (or unbind) half as many tasks as there are changes, and let as many nodes pull an image."""
    half = changes // 2
    for i in range(half):
        uid = f"uid-{i}-0"
        if number % 2:
            store.move_task(uid, TaskStatus.BOUND, f"node-{i:05d}")
        else:
            store.move_task(uid, TaskStatus.PENDING)
    for i in range(half, changes):
        record = store.nodes.record(f"node-{i:05d}")
        assert record is not None
        images = {f"image-{number}": 10**8}
        store.set_node(NodeRecord(record.name, record.allocatable, record.labels, images=images))
