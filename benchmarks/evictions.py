"""Cost of planning evictions on a full cluster: one cycle of one action, no API server."""

import gc
import statistics
import time
from typing import Any

from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Decision, Evict, Nominate
from volcano_py.model.objects import JobKey, JobRecord, NodeRecord, QueueRecord, TaskRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import resolve, run_cycle
from volcano_py.snapshot.store import ClusterStore

GIB = float(2**30)


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    return [_case(workload, case) for case in workload["cases"]]


def _case(workload: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    conf = workload["conf"].replace("ACTION", case["action"])
    policy = resolve(parse_conf(conf, "benchmarks/workloads/evictions.yaml"))
    store = cluster(case)
    wall: list[float] = []
    cpu: list[float] = []
    decisions: list[Decision] = []
    for _ in range(workload["repeat"]):
        snapshot = store.snapshot()
        decisions.clear()
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        started, thread = time.perf_counter(), time.thread_time()
        run_cycle(snapshot, policy, CycleClock(0.0, time.perf_counter), 0, Memory(), decisions.extend)
        wall.append((time.perf_counter() - started) * 1e3)
        cpu.append((time.thread_time() - thread) * 1e3)
    placed = sum(isinstance(one, Nominate) for one in decisions)
    if placed != case["expected"]:
        raise RuntimeError(f"{case['name']}: room for {placed} of {case['expected']} tasks")
    return {
        "case": case["name"],
        "nodes": case["nodes"],
        "evictions": sum(isinstance(one, Evict) for one in decisions),
        "tasks": placed,
        "ms": round(statistics.median(wall), 1),
        "cpu_ms": round(statistics.median(cpu), 1),
        "cpu_us_per_task": round(statistics.median(cpu) * 1e3 / placed, 1),
    }


def cluster(case: dict[str, Any]) -> ClusterStore:
    """Return a store of full nodes and waiting jobs.

    Each node has ten pods, of 100 jobs in all queues but the last. The waiting jobs are gangs of tasks of ``cpu`` cores
    in the last queue. If there is only one queue, all jobs are in it, and the waiting ones have the higher priority.
    """
    store, queues, n_nodes = ClusterStore(), case["queues"], case["nodes"]
    for name in queues:
        store.set_queue(QueueRecord(name, state="Open"))
    for row in range(n_nodes):
        store.set_node(NodeRecord(f"node-{row:05d}", {"cpu": 10000.0, "memory": 40 * GIB, "pods": 110.0}))
    full = queues[:-1] or queues
    for number in range(100):
        queue = full[number % len(full)]
        key = JobKey("bench", f"runs-{number}")
        store.set_job(JobRecord(key, f"u-{number}", queue, 1, priority=1, creation=float(number), phase="Running"))
    for index in range(10 * n_nodes):
        job = f"runs-{index % 100}"
        task = TaskRecord(f"r-{index}", "bench", f"{job}-{index}", job)
        store.set_task(task, _shape(1), TaskStatus.RUNNING, f"node-{index % n_nodes:05d}")
    for number in range(case["gangs"]):
        key = JobKey("bench", f"waits-{number}")
        minimum = case["gang"]
        record = JobRecord(
            key, f"w-{number}", queues[-1], minimum, priority=9, creation=1000.0 + number, phase="Inqueue"
        )
        store.set_job(record)
        for index in range(minimum):
            task = TaskRecord(f"w-{number}-{index}", "bench", f"{key.name}-{index}", key.name)
            store.set_task(task, _shape(case["cpu"]), TaskStatus.PENDING)
    return store


def _shape(cpu: int) -> Shape:
    return Shape(
        request=(("cpu", cpu * 1000.0), ("memory", cpu * GIB), ("pods", 1.0)),
        nonzero=(cpu * 1000.0, cpu * GIB),
        n_containers=1,
    )
