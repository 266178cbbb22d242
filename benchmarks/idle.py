"""Cost of an idle scheduler: CPU and requests on a quiet cluster whose pods all run."""

import asyncio
import time
from typing import Any

from benchmarks import cluster
from benchmarks.daemon import Daemon, daemon
from benchmarks.servers import Server, cpu_seconds, memory_mib, server
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.runtime.loop import loop_factory

_SETTLES_S = 3.0


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    rows = []
    for case in workload["cases"]:
        with server(case["server"]) as running, asyncio.Runner(loop_factory=loop_factory()) as runner:
            rows.append(runner.run(_case(running, case, workload["seconds"])))
            print(rows[-1], flush=True)
    return rows


async def _case(running: Server, case: dict[str, Any], seconds: float) -> dict[str, Any]:
    credentials = await load_credentials(kubeconfig=str(running.kubeconfig))
    async with ApiClient(credentials) as client:
        await cluster.define(client)
        await cluster.make_nodes(client, case["nodes"])
        await cluster.make_pods(client, "idle", case["gangs"], case["k"])
        await cluster.make_groups(client, "idle", case["gangs"], case["k"])
    async with daemon(running.kubeconfig, elect=True) as scheduler:
        await _until_quiet(scheduler)
        before, cpu, started = await scheduler.requests(), cpu_seconds(scheduler.pid), time.monotonic()
        await asyncio.sleep(seconds)
        used, took = cpu_seconds(scheduler.pid) - cpu, time.monotonic() - started
        found = await scheduler.requests() - before
        rss = memory_mib(scheduler.pid)
    writes = {key: count for key, count in found.items() if key[0] not in ("get", "list", "watch")}
    leases = sum(count for (_, resource), count in writes.items() if resource.startswith("leases"))
    return {
        **case,
        "seconds": round(took, 1),
        "cpu_percent": round(used / took * 100, 2),
        "writes_per_minute": round((sum(writes.values()) - leases) / took * 60, 2),
        "lease_writes_per_minute": round(leases / took * 60, 2),
        "reads_per_minute": round((found.total() - sum(writes.values())) / took * 60, 2),
        "rss_mib": rss,
    }


async def _until_quiet(scheduler: Daemon) -> None:
    """Wait until nothing has been written for a while: the pods are bound and their events written."""
    before = -1
    async with asyncio.timeout(300):
        while True:
            found = await scheduler.requests()
            writes = sum(n for (verb, what), n in found.items() if verb != "watch" and not what.startswith("leases"))
            if writes == before:
                return
            before = writes
            await asyncio.sleep(_SETTLES_S)
