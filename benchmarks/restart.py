"""Time to the first bind of a new scheduler on a full cluster, and its memory.

The cluster is an embedded API server in a separate process, because a real one of this size does not fit beside the
scheduler on a small machine. It encodes the scheduler's lists on the same cores, and that is part of the time. A gang
waits when the process starts. The clock runs from the start until a watch sees the first pod of the gang on a node.
"""

import asyncio
import statistics
from typing import Any

from benchmarks import cluster
from benchmarks.daemon import daemon
from benchmarks.servers import Server, cpu_seconds, memory_mib, peak_memory_mib, populated
from benchmarks.watching import BindWatch
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.runtime.loop import loop_factory

GANG = 10


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    rows = []
    for case in workload["cases"]:
        with (
            populated(case["nodes"], case["pods"], case["shapes"]) as running,
            asyncio.Runner(loop_factory=loop_factory()) as runner,
        ):
            rounds = [runner.run(_restart(running, f"round-{number}")) for number in range(workload["rounds"])]
            rows.append({**case, **{key: _median(rounds, key) for key in rounds[0]}})
            print(rows[-1], flush=True)
    return rows


def _median(rounds: list[dict[str, float]], key: str) -> float:
    return round(statistics.median(one[key] for one in rounds), 2)


async def _restart(running: Server, namespace: str) -> dict[str, float]:
    credentials = await load_credentials(kubeconfig=str(running.kubeconfig))
    async with ApiClient(credentials) as client:
        pods = await cluster.make_pods(client, namespace, 1, GANG)
        await cluster.make_groups(client, namespace, 1, GANG)
        async with BindWatch(client, namespace) as watch, daemon(running.kubeconfig) as scheduler:
            times = await watch.until(len(pods))
            return {
                "ready_s": scheduler.ready_at - scheduler.started_at,
                "first_bind_s": times[0] - scheduler.started_at,
                "last_bind_s": times[-1] - scheduler.started_at,
                "cpu_s": cpu_seconds(scheduler.pid),
                "rss_mib": memory_mib(scheduler.pid),
                "peak_mib": peak_memory_mib(scheduler.pid),
            }
