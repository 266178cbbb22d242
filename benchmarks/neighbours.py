"""Cost of a decision with inter-pod terms: microseconds per placed pod, one job each, one cycle, no API server."""

import gc
import statistics
import time
from typing import Any

from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.objects import JobKey, JobRecord, NodeRecord, QueueRecord, TaskRecord
from volcano_py.model.pod_terms import PodSelector, PodTerm, PodTerms, Spread, WeighedPodTerm
from volcano_py.model.requirements import Requirement
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.snapshot.store import ClusterStore

GIB = float(2**30)
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    policy = resolve(parse_conf(workload["conf"], "benchmarks/workloads/neighbours.yaml"))
    return [_case(workload, policy, nodes, terms) for nodes in workload["nodes"] for terms in workload["terms"]]


def _case(workload: dict[str, Any], policy: Policy, n_nodes: int, terms: str) -> dict[str, Any]:
    n_pods = workload["pods"]
    store = cluster(n_nodes, n_pods, workload["shapes"], workload["running"], terms)
    wall: list[float] = []
    cpu: list[float] = []
    for _ in range(workload["repeat"]):
        snapshot = store.snapshot()
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        started, thread = time.perf_counter(), time.thread_time()
        _, report = run_cycle(snapshot, policy, CycleClock(0.0, time.perf_counter), 0, Memory(), lambda batch: None)
        wall.append((time.perf_counter() - started) / n_pods * 1e6)
        cpu.append((time.thread_time() - thread) / n_pods * 1e6)
        if report.tasks_placed != n_pods:
            raise RuntimeError(f"{n_nodes} nodes, {terms}: {report.tasks_placed} of {n_pods} pods placed")
    return {
        "nodes": n_nodes,
        "terms": terms,
        "pods": n_pods,
        "us_per_pod": round(statistics.median(wall), 1),
        "us_per_pod_min": round(min(wall), 1),
        "cpu_us_per_pod": round(statistics.median(cpu), 1),
    }


def cluster(n_nodes: int, n_pods: int, n_shapes: int, n_running: int, terms: str) -> ClusterStore:
    """Return a store of nodes in ten zones, running pods of the same shapes, and pending jobs of one task."""
    store = ClusterStore()
    store.set_queue(QueueRecord("default"))
    for i in range(n_nodes):
        name = f"node-{i:05d}"
        allocatable = {"cpu": 32000.0, "memory": 256 * GIB, "pods": 110.0}
        store.set_node(NodeRecord(name, allocatable, {HOST: name, ZONE: f"zone-{i % 10}"}))
    shapes = [_shape(number, terms) for number in range(n_shapes)]
    for i in range(n_running):
        number = i % n_shapes
        task = TaskRecord(f"running-{i}", "bench", f"running-{i}", labels=("app", f"app-{number}"))
        store.set_task(task, shapes[number], TaskStatus.RUNNING, f"node-{i * 7 % n_nodes:05d}")
    for i in range(n_pods):
        number = i % n_shapes
        store.set_job(JobRecord(JobKey("bench", f"job-{i}"), f"group-{i}", "default", 1))
        task = TaskRecord(f"uid-{i}", "bench", f"job-{i}-0", f"job-{i}", labels=("app", f"app-{number}", "job", f"{i}"))
        store.set_task(task, shapes[number], TaskStatus.PENDING)
    return store


def _shape(number: int, terms: str) -> Shape:
    cpu = 1000.0 + 5 * number
    own = PodSelector(("bench",), None, (Requirement("app", "In", (f"app-{number}",)),))
    other = PodSelector(("bench",), None, (Requirement("app", "In", (f"app-{number ^ 1}",)),))
    wanted = terms.split("+")
    preferred = (WeighedPodTerm(50, PodTerm(other, ZONE)), WeighedPodTerm(-20, PodTerm(own, HOST)))
    spread = (Spread(own, ZONE, 5, hard=True), Spread(own, HOST, 1, hard=False), Spread(own, ZONE, 1, hard=False))
    return Shape(
        request=(("cpu", cpu), ("memory", GIB), ("pods", 1.0)),
        nonzero=(cpu, GIB),
        pod_terms=PodTerms(
            away=(PodTerm(own, HOST),) if "anti" in wanted else (),
            preferred=preferred if "preferred" in wanted else (),
        ),
        spread=spread if "spread" in wanted else (),
    )
