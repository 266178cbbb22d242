"""Jobs: one from its creation until its pods are bound, many at once beside a bare client, and a large one.

The bare client creates the same PodGroups and pods, as fast as one process can with as many requests in flight, and
watches nothing. It copies the objects of a job that the controllers made before. Both halves use the same scheduler, in
the order A-B-B-A.
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import cluster, lagging
from benchmarks.daemon import controllers, daemon
from benchmarks.servers import Server, cpu_seconds, peak_memory_mib, server
from benchmarks.watching import BindWatch
from volcano_py.api import keys
from volcano_py.controllers.writes import IN_FLIGHT
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.kube.resource import NAMESPACES, PODGROUPS, PODS, VCJOBS

_LIMIT_S = 300.0
_METADATA = ("name", "labels", "annotations", "ownerReferences")
_CONTAINER = {"name": "main", "image": "none", "command": ["sleep", "3600"]}


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Measure the cases of the workload."""
    return [row for case in workload["cases"] for row in asyncio.run(_case(case))]


async def _case(case: dict[str, Any]) -> list[dict[str, Any]]:
    with server(case["server"]) as running:
        credentials = await load_credentials(kubeconfig=str(running.kubeconfig))
        async with ApiClient(credentials, connections=IN_FLIGHT) as client:
            await cluster.define(client)
            await cluster.make_nodes(client, case["nodes"])
            if case["kind"] == "one":
                return [await _one(client, running, case)]
            if case["kind"] == "large":
                return [await _large(client, running, case)]
            return [await _many(client, running, case)]


def _job(name: str, replicas: int) -> dict[str, Any]:
    container = {**_CONTAINER, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": VCJOBS.api_version,
        "kind": VCJOBS.kind,
        "metadata": {"name": name},
        "spec": {
            "minAvailable": replicas,
            "queue": keys.DEFAULT_QUEUE,
            "schedulerName": keys.SCHEDULER_NAME,
            "tasks": [{"name": "w", "replicas": replicas, "template": template}],
        },
    }


async def _one(client: ApiClient, running: Server, case: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds from the answer to the creation of a job until the last of its pods is bound."""
    taken = []
    async with daemon(running.kubeconfig), controllers(running.kubeconfig):
        for number in range(case["repeat"]):
            namespace = f"one-{number}"
            await client.create(NAMESPACES, {"metadata": {"name": namespace}}, dict)
            async with BindWatch(client, namespace) as watch:
                await client.create(VCJOBS, _job("job", case["pods"]), dict, namespace=namespace)
                started = time.monotonic()
                taken.append((await watch.until(case["pods"]))[-1] - started)
    return {
        "kind": "one",
        "case": f"one job of {case['pods']}",
        "server": case["server"],
        "seconds": round(statistics.median(taken), 3),
    }


async def _large(client: ApiClient, running: Server, case: dict[str, Any]) -> dict[str, Any]:
    """Return the cost of one large job in the controllers until it is Running."""
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        lag = Path(folder) / "lag.json"
        async with daemon(running.kubeconfig):
            async with controllers(running.kubeconfig, lag) as manager:
                await client.create(NAMESPACES, {"metadata": {"name": "large"}}, dict)
                before, started = cpu_seconds(manager.pid), time.monotonic()
                await client.create(VCJOBS, _job("job", case["pods"]), dict, namespace="large")
                async with asyncio.timeout(_LIMIT_S):
                    while True:
                        job = await client.get(VCJOBS, "job", dict[str, Any], namespace="large")
                        if job.get("status", {}).get("state", {}).get("phase") == "Running":
                            break
                        await asyncio.sleep(0.1)
                seconds = time.monotonic() - started
                cpu = cpu_seconds(manager.pid) - before
                peak = peak_memory_mib(manager.pid)
            late = lagging.marks([sample.late_s for sample in lagging.read(lag)])
    return {
        "kind": "large",
        "case": f"one job of {case['pods']}, until Running",
        "server": case["server"],
        "seconds": round(seconds, 2),
        "cpu_ms_per_pod": round(cpu / case["pods"] * 1000, 3),
        "lag_p999_ms": late["p99.9"],
        "lag_max_ms": late["max"],
        "peak_mib": peak,
    }


async def _many(client: ApiClient, running: Server, case: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds for many jobs, and for a bare client that creates the same objects."""
    ours: list[float] = []
    bare: list[float] = []
    async with daemon(running.kubeconfig):
        async with controllers(running.kubeconfig):
            group, pod = await _objects_of_a_job(client, case["pods"])
        for number, half in enumerate("ABBA"):
            namespace = f"many-{number}"
            await client.create(NAMESPACES, {"metadata": {"name": namespace}}, dict)
            async with BindWatch(client, namespace) as watch:
                if half == "A":
                    async with controllers(running.kubeconfig):
                        started = time.monotonic()
                        await _create_jobs(client, namespace, case)
                        ours.append((await watch.until(case["jobs"] * case["pods"]))[-1] - started)
                        print(f"jobs: {ours[-1]:.2f} s", flush=True)
                        await _remove_jobs(client, namespace)
                else:
                    started = time.monotonic()
                    await _create_objects(client, namespace, case, group, pod)
                    bare.append((await watch.until(case["jobs"] * case["pods"]))[-1] - started)
                    print(f"bare client: {bare[-1]:.2f} s", flush=True)
            await cluster.clean(client, namespace)
    return {
        "kind": "many",
        "case": f"{case['jobs']} jobs of {case['pods']}",
        "server": case["server"],
        "seconds": round(statistics.mean(ours), 2),
        "bare_s": round(statistics.mean(bare), 2),
        "ratio": round(statistics.mean(ours) / statistics.mean(bare), 3),
        "all": [[round(one, 2) for one in ours], [round(one, 2) for one in bare]],
    }


async def _create_jobs(client: ApiClient, namespace: str, case: dict[str, Any]) -> None:
    async def make(number: int) -> None:
        await client.create(VCJOBS, _job(f"job-{number}", case["pods"]), dict, namespace=namespace)

    await cluster.in_turns(range(case["jobs"]), make)


async def _remove_jobs(client: ApiClient, namespace: str) -> None:
    names = [
        item.metadata.name
        async for page in client.list_pages(VCJOBS, cluster.Named, namespace=namespace)
        for item in page.items
    ]
    await cluster.in_turns(names, lambda name: client.delete(VCJOBS, name, namespace=namespace))


async def _objects_of_a_job(client: ApiClient, replicas: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the PodGroup and the first pod that the controllers make of a job, as they were created."""
    namespace = "sample"
    await client.create(NAMESPACES, {"metadata": {"name": namespace}}, dict)
    async with BindWatch(client, namespace) as watch:
        await client.create(VCJOBS, _job("job", replicas), dict, namespace=namespace)
        await watch.until(replicas)
    pod = await client.get(PODS, "job-w-0", dict[str, Any], namespace=namespace)
    name = pod["metadata"]["annotations"][keys.GROUP_NAME]
    group = await client.get(PODGROUPS, name, dict[str, Any], namespace=namespace)
    pod["spec"].pop("nodeName")
    await cluster.clean(client, namespace)
    return _as_created(group), _as_created(pod)


def _as_created(found: dict[str, Any]) -> dict[str, Any]:
    meta = {key: found["metadata"][key] for key in _METADATA if key in found["metadata"]}
    return {**{key: found[key] for key in ("apiVersion", "kind", "spec") if key in found}, "metadata": meta}


async def _create_objects(
    client: ApiClient, namespace: str, case: dict[str, Any], group: dict[str, Any], pod: dict[str, Any]
) -> None:
    """Create the PodGroups and pods that the jobs lead to, 32 requests at once."""

    async def make_group(number: int) -> None:
        body = {**group, "metadata": {**group["metadata"], "name": f"job-{number}"}}
        await client.create(PODGROUPS, body, dict, namespace=namespace)

    async def make_pod(which: tuple[int, int]) -> None:
        job, index = which
        own = {keys.JOB_NAME: f"job-{job}", keys.TASK_INDEX: str(index)}
        meta = {
            **pod["metadata"],
            "name": f"job-{job}-w-{index}",
            "labels": {**pod["metadata"]["labels"], **own},
            "annotations": {**pod["metadata"]["annotations"], **own, keys.GROUP_NAME: f"job-{job}"},
        }
        await client.create(PODS, {**pod, "metadata": meta}, dict, namespace=namespace)

    await cluster.in_turns(range(case["jobs"]), make_group, at_once=IN_FLIGHT)
    await cluster.in_turns(
        [(job, index) for job in range(case["jobs"]) for index in range(case["pods"])], make_pod, at_once=IN_FLIGHT
    )
