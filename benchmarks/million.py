"""A million waiting pods: cost of a cycle, and what a pod takes in memory, part by part.

Every case runs in a process of its own. Resident memory is read before and after each part is built, so a part counts
with the space that Python and numpy lose around it. What the process of a scheduler holds in addition is measured by
`lag` and `restart`: they run the whole daemon.
"""

import gc
import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.deep import PER_NODE, carry_out, end_gang, full_cluster, policy_of
from benchmarks.servers import memory_mib, peak_memory_mib
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Decision
from volcano_py.runtime import garbage
from volcano_py.scheduler import Policy, run_cycle
from volcano_py.snapshot.columns import Snapshot

_MIB = float(2**20)


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    context = multiprocessing.get_context("spawn")
    rows = []
    for case in workload["cases"]:
        with context.Pool(1) as pool:
            rows.append(pool.apply(_case, (workload["repeat"], case)))
        print(json.dumps(rows[-1]), flush=True)
    return rows


def _case(repeat: int, case: dict[str, Any]) -> dict[str, Any]:
    garbage.collect_in_small_steps()
    size = {key: case[key] for key in ("nodes", "jobs", "k", "shapes", "queues")}
    policy, parts = policy_of(case), dict[str, float]()
    with _measured(parts, "records and columns"):
        store = full_cluster(**size)
    with _measured(parts, "a snapshot"):
        snapshot = store.snapshot()
    with _measured(parts, "the decisions of the first cycle, and what it remembers"):
        cpu_ms, memory, decisions = _cycle(0, policy, snapshot, Memory())
    del snapshot
    row = {
        **{key: case[key] for key in ("name", "nodes", "jobs", "k")},
        "first_ms": cpu_ms,
        "first_decisions": len(decisions),
    }
    times = list[float]()
    for number in range(1, repeat + 1):
        carry_out(store, decisions, case["shapes"], shown=False)
        end_gang(store, number, case["k"])
        decisions.clear()
        gc.collect()  # otherwise one collection falls into one measurement and not into the next
        cpu_ms, memory, decisions = _cycle(number, policy, store.snapshot(), memory)
        times.append(cpu_ms)
    pods = case["jobs"] * case["k"] + case["nodes"] * PER_NODE
    return {
        **row,
        "cpu_ms": statistics.median(times),
        "bytes_per_pod": {what: round(mib * _MIB / pods) for what, mib in parts.items()},
        "rss_mib": round(memory_mib(os.getpid())),
        "peak_mib": round(peak_memory_mib(os.getpid())),
    }


def _cycle(number: int, policy: Policy, snapshot: Snapshot, memory: Memory) -> tuple[float, Memory, list[Decision]]:
    """Run a cycle; return its CPU time in milliseconds, the next memory and the decisions."""
    decisions = list[Decision]()
    started = time.thread_time()
    clock = CycleClock(float(number), time.perf_counter)
    following, _ = run_cycle(snapshot, policy, clock, 0, memory, decisions.extend)
    return round((time.thread_time() - started) * 1e3, 1), following, decisions


@contextmanager
def _measured(parts: dict[str, float], what: str) -> Iterator[None]:
    """Note by how many MiB the resident set grows."""
    before = memory_mib(os.getpid())
    yield
    parts[what] = memory_mib(os.getpid()) - before
