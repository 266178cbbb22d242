"""Cost of a cycle over a deep queue: every node is full, many gangs wait, and one gang ends before each cycle.

The pods of the gang that ends make room for a gang that waits. With ``shown: true`` the statuses and reasons of each
cycle are in the cluster before the next one, as after a while; without it none is, as in the first minutes.

With ``pending: true`` the gangs that wait have minResources and are not enqueued yet. Enqueue refuses nearly all of
them in every cycle, because overcommit enqueues only as many as there may soon be room for.

With ``steps: 2`` the gang ends in two steps, with a cycle after each. In between there is room for half of a gang. The
first gangs that end so are not counted: the reasons of all jobs change, which is told at once three times.
"""

import dataclasses
import gc
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.decision import cluster
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Bind, Decision, SetPodCondition, SetPodGroupStatus
from volcano_py.model.objects import JobKey, JobRecord, QueueRecord, TaskRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.scheduler.telling import TURNS
from volcano_py.snapshot.store import ClusterStore

_GIB = float(2**30)
PER_NODE = 16
"""A node has 32 CPU, and each running pod has 2."""


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    return [_case(workload, case) for case in workload["cases"]]


def configuration(case: dict[str, Any]) -> str:
    """Return a configuration of the project, with other actions and plugins if the case says so."""
    text = (Path(__file__).parents[1] / "conf" / f"{case['conf']}.yaml").read_text()
    if case.get("evicts"):
        text = text.replace('"enqueue, allocate, backfill"', '"enqueue, allocate, backfill, preempt, reclaim"')
    return text.replace("proportion", case.get("shares", "proportion"))


def policy_of(case: dict[str, Any]) -> Policy:
    """Return the policy of a case."""
    return resolve(parse_conf(configuration(case), case["conf"]))


def _case(workload: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    policy, size = policy_of(case), {key: case[key] for key in ("nodes", "jobs", "k", "shapes", "queues")}
    store, memory, emitted = full_cluster(**size, enqueued=not case.get("pending")), Memory(), 0
    steps = case.get("steps", 1)
    uncounted = 1 + (0 if steps == 1 else TURNS * steps)  # the first cycle tells all pods why they wait
    cpu: list[float] = []
    reports: list[CycleReport] = []
    for number in range(workload["repeat"] * steps + uncounted):
        snapshot, decisions = store.snapshot(), list[Decision]()
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        started = time.thread_time()
        clock = CycleClock(float(number), time.perf_counter)
        memory, report = run_cycle(snapshot, policy, clock, 0, memory, decisions.extend)
        cpu.append((time.thread_time() - started) * 1e3)
        reports.append(report)
        emitted = len(decisions)
        carry_out(store, decisions, case["shapes"], shown=case["shown"])
        end_gang(store, number // steps, case["k"], number % steps, steps)
    if reports[-1].tasks_placed != case["k"]:
        raise RuntimeError(f"{case['name']}: {reports[-1].tasks_placed} of {case['k']} pods placed")
    return {
        **{key: case[key] for key in ("name", "nodes", "jobs", "k", "queues", "shown")},
        # Of several steps, the one that costs most.
        "cpu_ms": round(max(statistics.median(cpu[uncounted + step :: steps]) for step in range(steps)), 1),
        "first_ms": round(cpu[0], 1),
        **{
            f"{stage}_ms": _stage(reports[uncounted:], stage)
            for stage in ("open", "enqueue", "allocate", "preempt", "reclaim", "close")
        },
        "decisions": emitted,
    }


def _stage(reports: Iterable[CycleReport], stage: str) -> float:
    return round(statistics.median(report.seconds.get(stage, 0.0) for report in reports) * 1e3, 1)


def full_cluster(nodes: int, jobs: int, k: int, shapes: int, queues: int, *, enqueued: bool = True) -> ClusterStore:
    """Return a store of full nodes; gangs of k run there, and ``jobs`` gangs of k wait, in turn in all queues.

    If they are not ``enqueued``, they wait for that, with minResources as the controllers write them.
    """
    store = cluster(nodes, 0, k, shapes)
    names = [f"q{number}" for number in range(queues)] if queues > 1 else ["default"]
    for name in names:
        store.set_queue(QueueRecord(name))
    for number in range(nodes * PER_NODE // k):
        key = JobKey("bench", f"run-{number}")
        store.set_job(JobRecord(key, f"group-run-{number}", names[number % queues], k, phase="Running", running=k))
        for i in range(k):
            record = TaskRecord(f"run-{number}-{i}", "bench", f"run-{number}-{i}", key.name)
            store.set_task(record, _shape(0), TaskStatus.RUNNING, f"node-{(number * k + i) // PER_NODE:05d}")
    for number in range(jobs):
        key = JobKey("bench", f"job-{number}")
        least = None if enqueued else {name: k * amount for name, amount in _shape(number % shapes).request}
        phase = "Inqueue" if enqueued else "Pending"
        store.set_job(JobRecord(key, f"group-{number}", names[number % queues], k, phase=phase, min_resources=least))
        for i in range(k):
            record = TaskRecord(f"job-{number}-{i}", "bench", f"job-{number}-{i}", key.name)
            store.set_task(record, _shape(number % shapes), TaskStatus.PENDING)
    return store


def _shape(number: int) -> Shape:
    cpu = 2000.0 - 5 * number
    return Shape(request=(("cpu", cpu), ("memory", _GIB), ("pods", 1.0)), nonzero=(cpu, _GIB))


def end_gang(store: ClusterStore, number: int, k: int, step: int = 0, steps: int = 1) -> None:
    """Take a running gang of k out of the store, or what belongs to one of several steps."""
    for i in range(k * step // steps, k * (step + 1) // steps):
        store.remove_task(f"run-{number}-{i}")
    if step == steps - 1:
        store.remove_job(JobKey("bench", f"run-{number}"))


def carry_out(store: ClusterStore, decisions: Iterable[Decision], shapes: int, *, shown: bool) -> None:
    """Let the cluster be as decided; statuses and reasons only if they are ``shown``."""
    for one in decisions:
        match one:
            case Bind():
                store.move_task(one.task.uid, TaskStatus.BOUND, one.node)
            case SetPodCondition() if shown and (place := store.task(one.task.uid)) is not None:
                record = msgspec.structs.replace(place.record, condition=one.message)
                number = int(str(record.job).removeprefix("job-"))
                store.set_task(record, _shape(number % shapes), place.status, place.node)
            case SetPodGroupStatus() if shown and (job := store.job(one.job)) is not None:
                store.set_job(_with_status(job, one))


def _with_status(job: JobRecord, status: SetPodGroupStatus) -> JobRecord:
    by_type = {condition.type: condition for condition in (*job.conditions, *status.conditions)}
    return dataclasses.replace(
        job,
        phase=status.phase,
        running=status.running,
        succeeded=status.succeeded,
        failed=status.failed,
        conditions=tuple(by_type.values()),
    )
