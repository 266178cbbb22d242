"""Cost of a cycle that evicts while many jobs reclaim: gangs hold more than their queue deserves, and newcomers wait.

Some queues deserve nothing and hold the whole cluster, as gangs of which a part may be evicted. All other queues
deserve equal parts of the cluster, and their jobs wait. Each cycle evicts for as many of them as one cycle may. Victims
terminate during the next cycle, while room is nominated for those who wait for it, and then they are gone.
"""

import gc
import statistics
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from benchmarks.decision import GIB, cluster
from benchmarks.deep import configuration
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Bind, Decision, Evict, Nominate
from volcano_py.model.objects import JobKey, JobRecord, QueueRecord, TaskRecord, TaskTrait
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import resolve, run_cycle
from volcano_py.snapshot.store import ClusterStore

_PER_NODE = 16
"""A node has 32 CPU, and each running pod has 2."""
_GANG = 32
_MINIMUM = 8
_SHAPES = 40


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    return [_case(workload, case) for case in workload["cases"]]


def _case(workload: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    policy = resolve(parse_conf(configuration(case), case["conf"]))
    store, memory = lent_cluster(case["nodes"], case["jobs"], case["queues"], case["borrowers"]), Memory()
    rows: list[dict[str, float]] = []
    leaving: list[str] = []
    for number in range(workload["cycles"]):
        snapshot, batches = store.snapshot(), list[tuple[Decision, ...]]()
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        started = time.thread_time()
        clock = CycleClock(float(number), time.perf_counter)
        memory, report = run_cycle(snapshot, policy, clock, 0, memory, batches.append)
        cpu = (time.thread_time() - started) * 1e3
        decisions = [one for batch in batches for one in batch]
        plans = sum(any(isinstance(one, Evict) for one in batch) for batch in batches)
        if not plans:
            raise RuntimeError(f"{case['name']}: cycle {number} evicts nobody")
        rows.append({"cpu": cpu, "plans": plans, "reclaim": report.seconds["reclaim"] * 1e3})
        _carry_out(store, decisions, leaving)
    return {
        **{key: case[key] for key in ("name", "nodes", "jobs", "queues", "borrowers")},
        "plans": statistics.median(row["plans"] for row in rows),
        "first_ms": round(rows[0]["cpu"], 1),
        "cpu_ms": round(max(row["cpu"] for row in rows[1:]), 1),
        "reclaim_ms": round(statistics.median(row["reclaim"] for row in rows), 1),
        "ms_per_plan": round(statistics.median(row["reclaim"] / row["plans"] for row in rows), 2),
    }


def lent_cluster(nodes: int, jobs: int, queues: int, borrowers: int) -> ClusterStore:
    """Return a store of full nodes: gangs of borrowing queues hold them, and jobs wait in turn in all other queues."""
    store = cluster(nodes, 0, 1, 1)
    for number in range(borrowers):
        store.set_queue(QueueRecord(f"borrower{number}", state="Open"))
    due = ResourceList(nodes * 32000.0 / queues, nodes * 256 * GIB / queues)
    for number in range(queues):
        store.set_queue(QueueRecord(f"q{number}", deserved=due, state="Open"))
    for number in range(nodes * _PER_NODE // _GANG):
        key = JobKey("bench", f"run-{number}")
        queue = f"borrower{number % borrowers}"
        record = JobRecord(key, f"group-run-{number}", queue, _MINIMUM, phase="Running", running=_GANG)
        store.set_job(record)
        for i in range(_GANG):
            name = f"run-{number}-{i}"
            task = TaskRecord(name, "bench", name, key.name, traits=TaskTrait.PREEMPTABLE)
            store.set_task(task, _shape(0), TaskStatus.RUNNING, f"node-{(number * _GANG + i) // _PER_NODE:05d}")
    for number in range(jobs):
        name = f"job-{number}"
        store.set_job(JobRecord(JobKey("bench", name), f"group-{number}", f"q{number % queues}", 1, phase="Inqueue"))
        store.set_task(TaskRecord(name, "bench", name, name), _shape(number % _SHAPES), TaskStatus.PENDING)
    return store


def _shape(number: int) -> Shape:
    cpu = 2000.0 - 5 * number
    return Shape(request=(("cpu", cpu), ("memory", GIB), ("pods", 1.0)), nonzero=(cpu, GIB))


def _carry_out(store: ClusterStore, decisions: Iterable[Decision], leaving: list[str]) -> None:
    """Let the cluster be as decided; who has been evicted before is gone, whoever is evicted now is ``leaving``."""
    for uid in leaving:
        store.remove_task(uid)
    leaving.clear()
    for one in decisions:
        match one:
            case Bind():
                store.move_task(one.task.uid, TaskStatus.RUNNING, one.node)
            case Evict():
                store.move_task(one.task.uid, TaskStatus.RELEASING, one.node)
                leaving.append(one.task.uid)
            case Nominate() if (place := store.task(one.task.uid)) is not None:
                number = int(str(place.record.job).removeprefix("job-"))
                record = msgspec.structs.replace(place.record, nominated=one.node)
                store.set_task(record, _shape(number % _SHAPES), place.status, place.node)
