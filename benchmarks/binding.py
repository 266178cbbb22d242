"""Binds per second of the scheduler and of two bare binders (:mod:`benchmarks.bare`), in turn on the same server.

The limits refer to the plain bare binder; `to_fast` compares the scheduler with the one that uses its own client.

One clock, an independent watch of pods, times both. It starts when the PodGroups are created (also for a bare binder,
which starts at once and does not need them), and stops when the last pod is seen with a node. In a case with
`gang_tax`, the scheduler binds the same pods once more in each round, in PodGroups with a minimum of one pod.

In a case that is `complete`, the PodGroups exist before the scheduler starts, so that the rate from the first bind to
the last does not depend on how fast they are created. Its other times say nothing: they begin when the scheduler is
ready, and by then it may have bound some pods.
"""

import asyncio
import itertools
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks import cluster
from benchmarks.bare import FAST, PLAIN, bare_binder, go
from benchmarks.daemon import daemon
from benchmarks.servers import Server, cpu_seconds, peak_memory_mib, server
from benchmarks.watching import BindWatch
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.runtime.loop import loop_factory

SETTLES_S = 3.0  # for the writes that wait while pods are bound


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    rows = []
    for kind, cases in itertools.groupby(workload["cases"], key=lambda case: case["server"]):
        with server(kind) as running, asyncio.Runner(loop_factory=loop_factory()) as runner:
            for case in cases:
                rounds = case.get("rounds", workload["rounds"])
                rows.append(runner.run(_case(running, case, rounds)))
                print(rows[-1], flush=True)
    return rows


async def _case(running: Server, case: dict[str, Any], rounds: int) -> dict[str, Any]:
    credentials = await load_credentials(kubeconfig=str(running.kubeconfig))
    plains: list[dict[str, float]] = []
    fasts: list[dict[str, float]] = []
    own: list[dict[str, float]] = []
    loose: list[dict[str, float]] = []
    async with ApiClient(credentials) as client:
        await cluster.define(client)
        await cluster.make_nodes(client, case["nodes"])
        for number in range(rounds):
            name = f"{case['gangs']}-{number}"
            plains.append(await bare(client, running, case, f"plain-{name}", PLAIN))
            fasts.append(await bare(client, running, case, f"fast-{name}", FAST))
            own_now, writes = await ours(client, running, case, f"ours-{name}", case["k"])
            own.append(own_now)
            if case.get("gang_tax"):
                loose_now, _ = await ours(client, running, case, f"loose-{name}", 1)
                loose.append(loose_now)
        await cluster.remove_nodes(client, case["nodes"])
    return {
        **case,
        "pods": case["gangs"] * case["k"],
        "bare": _medians(plains),
        "fast": _medians(fasts),
        "scheduler": _medians(own),
        "writes": writes,
        "bind_rate_ratio": _ratio(own, plains, "binds_per_s"),
        "makespan_ratio": _ratio(own, plains, "makespan_s"),
        "cpu_ratio": _ratio(own, plains, "all_cpu_s"),
        "to_fast": {key: _ratio(own, fasts, key) for key in ("binds_per_s", "makespan_s", "all_cpu_s")},
        **({"gang_tax": _ratio(own, loose, "makespan_s"), "loose": _medians(loose)} if loose else {}),
        "ratios": [_ratio([one], [other], "binds_per_s") for one, other in zip(own, plains, strict=True)],
    }


def _ratio(ours: list[dict[str, float]], bare: list[dict[str, float]], key: str) -> float:
    """Return the median of the ratios of the rounds, because a longer disturbance affects both halves of a round."""
    return round(statistics.median(one[key] / other[key] for one, other in zip(ours, bare, strict=True)), 2)


def _medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(statistics.median(row[key] for row in rows), 3) for key in rows[0]}


async def bare(client: ApiClient, running: Server, case: dict[str, Any], namespace: str, kind: str) -> dict[str, float]:
    """Let a bare binder bind the pods of a case to nodes chosen beforehand."""
    pods = await cluster.make_pods(client, namespace, case["gangs"], case["k"])
    places = [
        (namespace, pod.name, pod.uid, cluster.node_name(number % case["nodes"])) for number, pod in enumerate(pods)
    ]
    if case.get("complete"):
        await cluster.make_groups(client, namespace, case["gangs"], case["k"])
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        async with (
            BindWatch(client, namespace) as watch,
            bare_binder(running.kubeconfig, places, kind, Path(folder)) as process,
        ):
            clock = _Clock(running, process.pid)
            go(process)
            if not case.get("complete"):
                # Nothing uses these groups: they give the server as much other work as in the scheduler's half.
                await cluster.make_groups(client, namespace, case["gangs"], case["k"])
            result = clock.read(await watch.until(len(pods)))
    await cluster.clean(client, namespace)
    return result


async def ours(
    client: ApiClient,
    running: Server,
    case: dict[str, Any],
    namespace: str,
    min_member: int,
    settles_s: float = SETTLES_S,
) -> tuple[dict[str, float], dict[str, float]]:
    """Let the scheduler daemon find nodes for the same pods and bind them; return times and writes."""
    pods = await cluster.make_pods(client, namespace, case["gangs"], case["k"])
    if case.get("complete"):
        await cluster.make_groups(client, namespace, case["gangs"], min_member)
    async with BindWatch(client, namespace) as watch, daemon(running.kubeconfig) as scheduler:
        clock = _Clock(running, scheduler.pid)
        if not case.get("complete"):
            await cluster.make_groups(client, namespace, case["gangs"], min_member)
        result = clock.read(await watch.until(len(pods)))
        result["peak_mib"] = peak_memory_mib(scheduler.pid)
        await asyncio.sleep(settles_s)
        writes = _writes(await scheduler.requests(), len(pods))
    await cluster.clean(client, namespace)
    return result, writes


def _writes(requests: Counter[tuple[str, str]], pods: int) -> dict[str, float]:
    """Return the scheduler's writes per pod, also those of events alone, and by verb and resource."""
    written = {key: count for key, count in requests.items() if key[0] not in ("get", "list", "watch")}
    events = sum(count for (_, resource), count in written.items() if resource == "events")
    by_kind = {f"{verb} {resource.partition('.')[0]}": round(n / pods, 4) for (verb, resource), n in written.items()}
    return {
        "per_pod": round((sum(written.values()) - events) / pods, 3),
        "events_per_pod": round(events / pods, 3),
        **by_kind,
    }


class _Clock:
    """Measures wall time, and CPU seconds of the server and of the binder, from now on."""

    def __init__(self, running: Server, pid: int) -> None:
        self._server = list(running.pids.values())
        self._pid = pid
        self._server_cpu = sum(cpu_seconds(each) for each in self._server)
        self._cpu = cpu_seconds(pid)
        self._started = time.monotonic()

    def read(self, times: list[float]) -> dict[str, float]:
        """Return the cost until the last of these times, which is about now."""
        first, last = times[0] - self._started, times[-1] - self._started
        cpu = cpu_seconds(self._pid) - self._cpu
        server_cpu = sum(cpu_seconds(each) for each in self._server) - self._server_cpu
        return {
            "first_bind_s": first,
            "makespan_s": last,
            "binds_per_s": (len(times) - 1) / (last - first),
            "cpu_s": cpu,
            "server_cpu_s": server_cpu,
            "all_cpu_s": cpu + server_cpu,
        }
