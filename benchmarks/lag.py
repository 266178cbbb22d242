"""How late the event loop of vc-scheduler is while a deep queue waits.

The cluster is an embedded API server in a separate process. Its nodes are full, and thousands of gangs wait. The lag is
measured inside the scheduler (:mod:`benchmarks.lagging`), in three spans:

start     from the process start until the scheduler is ready: the lists, and the start barrier
first     the seconds after that: the first cycles, which say why each pod waits
steady    then a gang ends every two seconds, and a waiting one takes its place

``own`` is the part of a lag that CPU time of the scheduler explains, in whatever thread. The rest is the work of other
processes, such as the API server of this benchmark.
"""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import lagging
from benchmarks.daemon import daemon
from benchmarks.deep import configuration
from benchmarks.populated import NAMESPACE, PER_NODE
from benchmarks.servers import cpu_seconds, memory_mib, peak_memory_mib, populated
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.kube.resource import PODGROUPS, PODS
from volcano_py.runtime.loop import loop_factory

_GANG_ENDS_EVERY_S = 2.0


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    rows = []
    for case in workload["cases"]:
        size = (case["nodes"], case["nodes"] * PER_NODE, case["shapes"], case["jobs"], case["k"], case["queues"])
        with populated(*size) as running, asyncio.Runner(loop_factory=loop_factory()) as runner:
            rows.append({**case, **runner.run(_measure(running.kubeconfig, case, workload))})
            print(rows[-1], flush=True)
    return rows


async def _measure(kubeconfig: Path, case: dict[str, Any], workload: dict[str, Any]) -> dict[str, Any]:
    credentials = await load_credentials(kubeconfig=str(kubeconfig))
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        file = Path(folder) / "lag.json"
        async with (
            ApiClient(credentials) as client,
            daemon(kubeconfig, conf=configuration(case), lag_file=file) as scheduler,
        ):
            began = time.monotonic()
            await asyncio.sleep(workload["first_s"])
            steady = time.monotonic()
            cpu = cpu_seconds(scheduler.pid)
            await _end_gangs(client, case["k"], steady + workload["steady_s"])
            ended = time.monotonic()
            cpu = (cpu_seconds(scheduler.pid) - cpu) / (ended - steady)
            memory, peak = memory_mib(scheduler.pid), peak_memory_mib(scheduler.pid)
        spans = {"start": (0.0, began), "first": (began, steady), "steady": (steady, ended)}
        lags = {name: _lags(file, *span) for name, span in spans.items()}
    return {**lags, "steady_cores": round(cpu, 2), "rss_mib": memory, "peak_mib": peak}


def _lags(file: Path, since: float, until: float) -> dict[str, Any]:
    samples = lagging.read(file, since, until)
    return {
        "late_ms": lagging.marks([sample.late_s for sample in samples]),
        "own_ms": lagging.marks([sample.own_s for sample in samples]),
        "over_20_ms": sum(sample.own_s > 0.02 for sample in samples),
    }


async def _end_gangs(client: ApiClient, k: int, until: float) -> None:
    gang = 0
    while time.monotonic() < until:
        for i in range(k):
            await client.delete(PODS, f"gang-{gang}-worker-{i}", namespace=NAMESPACE, grace_period_s=0)
        await client.delete(PODGROUPS, f"gang-{gang}", namespace=NAMESPACE)
        gang += 1
        await asyncio.sleep(_GANG_ENDS_EVERY_S)
