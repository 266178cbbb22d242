"""Cost of a decision: microseconds per placed pod against gang size and number of nodes, one cycle, no API server."""

import gc
import math
import statistics
import time
from pathlib import Path
from typing import Any

from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.objects import JobKey, JobRecord, NodeRecord, QueueRecord, TaskRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.snapshot.store import ClusterStore

GIB = float(2**30)


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    conf = Path(__file__).parents[1] / workload["conf"]
    policy = resolve(parse_conf(conf.read_text(), str(conf)))
    rows = [_case(workload, policy, case["nodes"], case["k"]) for case in workload["cases"]]
    for row in rows:
        smaller = [other for other in rows if other["k"] == row["k"] and other["nodes"] < row["nodes"]]
        if smaller:
            row["exponent"] = _exponent(max(smaller, key=lambda other: other["nodes"]), row)
    return rows


def _exponent(smaller: dict[str, Any], larger: dict[str, Any]) -> float:
    """Return the exponent e if the cost grows with nodes**e between two sizes: 0 is constant, 1 proportional."""
    cost = math.log(larger["cpu_us_per_pod"] / smaller["cpu_us_per_pod"])
    return round(cost / math.log(larger["nodes"] / smaller["nodes"]), 2)


def _case(workload: dict[str, Any], policy: Policy, n_nodes: int, k: int) -> dict[str, Any]:
    n_pods = min(workload["pods_at_most"], n_nodes * workload["pods_per_node_at_most"])
    store = cluster(n_nodes, n_pods // k, k, workload["shapes"])
    wall: list[float] = []
    cpu: list[float] = []
    opened: list[float] = []
    for _ in range(workload["repeat"]):
        started = time.perf_counter()
        snapshot = store.snapshot()
        taken = time.perf_counter() - started
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        started, thread = time.perf_counter(), time.thread_time()
        _, report = run_cycle(snapshot, policy, CycleClock(0.0, time.perf_counter), 0, Memory(), lambda batch: None)
        wall.append((time.perf_counter() - started) / report.tasks_placed * 1e6)
        cpu.append((time.thread_time() - thread) / report.tasks_placed * 1e6)
        opened.append((taken + report.seconds["open"]) * 1e3)
        if report.tasks_placed != n_pods // k * k:
            raise RuntimeError(f"{n_nodes} nodes, k={k}: {report.tasks_placed} of {n_pods // k * k} pods placed")
    return {
        "nodes": n_nodes,
        "k": k,
        "pods": n_pods // k * k,
        "us_per_pod": round(statistics.median(wall), 1),
        "us_per_pod_min": round(min(wall), 1),
        "cpu_us_per_pod": round(statistics.median(cpu), 1),
        "open_ms": round(statistics.median(opened), 2),
    }


def cluster(n_nodes: int, n_jobs: int, k: int, n_shapes: int) -> ClusterStore:
    """Return a store with empty nodes and pending gangs of k tasks, job j having shape j modulo n_shapes."""
    store = ClusterStore()
    store.set_queue(QueueRecord("default"))
    for i in range(n_nodes):
        name = f"node-{i:05d}"
        allocatable = {"cpu": 32000.0, "memory": 256 * GIB, "pods": 110.0}
        store.set_node(NodeRecord(name, allocatable, {"kubernetes.io/hostname": name}))
    for j in range(n_jobs):
        cpu = 1000.0 + 5 * (j % n_shapes)
        shape = Shape(request=(("cpu", cpu), ("memory", GIB), ("pods", 1.0)), nonzero=(cpu, GIB))
        store.set_job(JobRecord(JobKey("bench", f"job-{j}"), f"group-{j}", "default", k))
        for i in range(k):
            task = TaskRecord(f"uid-{j}-{i}", "bench", f"job-{j}-{i}", f"job-{j}")
            store.set_task(task, shape, TaskStatus.PENDING)
    return store
