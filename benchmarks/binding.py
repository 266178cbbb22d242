"""Binds per second beside a bare binder with the same client and connections, on the same server, in turn.

The bare binder knows every node beforehand and sends nothing but Bindings: what it reaches is the limit of client and
server. One clock, an independent watch of pods, times both.
"""

import asyncio
import contextlib
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.servers import Server, cpu_seconds, peak_memory_mib, server
from tests.controlplane.ports import free_ports
from volcano_py.api import keys
from volcano_py.api.types import ObjectMeta, Pod
from volcano_py.conf.defaults import BUILT_IN_CONF
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.kube.delivery import Event, Quarantined
from volcano_py.kube.errors import AlreadyExists
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, Resource
from volcano_py.local.manifests import definitions
from volcano_py.runtime.supervisor import Supervisor

GROUPS = Resource(keys.SCHEDULING_GROUP, keys.SCHEDULING_VERSION, "podgroups", "PodGroup", True)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)
CREATORS = 16
LIMIT_S = 300.0
VC_SCHEDULER = Path(sys.executable).with_name("vc-scheduler")


class _Bound(msgspec.Struct, frozen=True):
    node_name: str = msgspec.field(default="", name="nodeName")


class _Seen(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Bound = _Bound()


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run every case and return one row each."""
    rows = []
    for kind, cases in itertools.groupby(workload["cases"], key=lambda case: case["server"]):
        with server(kind) as running:
            for case in cases:
                rows.append(asyncio.run(_case(running, case, workload["in_flight"], workload["rounds"])))
                print(rows[-1], flush=True)
    return rows


async def _case(running: Server, case: dict[str, Any], in_flight: int, rounds: int) -> dict[str, Any]:
    credentials = await load_credentials(kubeconfig=str(running.kubeconfig))
    bare: list[dict[str, float]] = []
    ours: list[dict[str, float]] = []
    async with ApiClient(credentials, connections=in_flight) as client:
        if running.kind == "embedded":
            await _define(client)
        await _make_nodes(client, case["nodes"])
        for number in range(rounds):
            bare.append(await _bare(client, running, case, f"bare-{case['gangs']}-{number}", in_flight))
            ours.append(await _scheduler(client, running, case, f"ours-{case['gangs']}-{number}"))
        await _remove_nodes(client, case["nodes"])
    return {
        **case,
        "pods": case["gangs"] * case["k"],
        "bare": _medians(bare),
        "scheduler": _medians(ours),
        "bind_rate_ratio": round(_median(ours, "binds_per_s") / _median(bare, "binds_per_s"), 2),
        "makespan_ratio": round(_median(ours, "makespan_s") / _median(bare, "makespan_s"), 2),
    }


def _median(rows: list[dict[str, float]], key: str) -> float:
    return statistics.median(row[key] for row in rows)


def _medians(rows: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(_median(rows, key), 3) for key in rows[0]}


async def _define(client: ApiClient) -> None:
    for definition in definitions():
        with contextlib.suppress(AlreadyExists):
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition, dict)


async def _make_nodes(client: ApiClient, count: int) -> None:
    has = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    for number in range(count):
        name = f"node-{number:05d}"
        labels = {keys.LABEL_HOSTNAME: name}
        body = {"metadata": {"name": name, "labels": labels}, "status": {"capacity": has, "allocatable": has}}
        await client.create(NODES, body, dict)


async def _remove_nodes(client: ApiClient, count: int) -> None:
    for number in range(count):
        await client.delete(NODES, f"node-{number:05d}")


async def _bare(
    client: ApiClient, running: Server, case: dict[str, Any], namespace: str, in_flight: int
) -> dict[str, float]:
    """Bind the pods of a case to nodes chosen beforehand."""
    pods = await _make_pods(client, case, namespace)
    async with _Watch(client, namespace) as watch:
        server_cpu = sum(cpu_seconds(pid) for pid in running.pids.values())
        todo = iter([(pod, f"node-{number % case['nodes']:05d}") for number, pod in enumerate(pods)])
        started = time.monotonic()

        async def work() -> None:
            for pod, node in todo:
                meta = {"name": pod.name, "namespace": namespace, "uid": pod.uid}
                target = {"apiVersion": "v1", "kind": "Node", "name": node}
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
                await client.post_bytes(PODS.item(pod.name, namespace, "binding"), msgspec.json.encode(body))

        await asyncio.gather(*(work() for _ in range(in_flight)))
        times = await watch.until(len(pods))
        result = _timing(times, started)
        result["server_cpu_s"] = sum(cpu_seconds(pid) for pid in running.pids.values()) - server_cpu
    await _clean(client, namespace)
    return result


async def _scheduler(client: ApiClient, running: Server, case: dict[str, Any], namespace: str) -> dict[str, float]:
    """Let the scheduler daemon bind the same pods, in a process of its own; the clock starts with the PodGroups."""
    pods = await _make_pods(client, case, namespace)
    async with _Watch(client, namespace) as watch, _daemon(running) as process:
        pid = process.pid
        server_cpu = sum(cpu_seconds(each) for each in running.pids.values())
        own_cpu = cpu_seconds(pid)
        started = time.monotonic()
        for gang in range(case["gangs"]):
            spec = {"minMember": case["k"], "queue": "default"}
            body = {
                "apiVersion": GROUPS.api_version,
                "kind": "PodGroup",
                "metadata": {"name": f"gang-{gang}"},
                "spec": spec,
            }
            await client.create(GROUPS, body, dict, namespace=namespace)
        times = await watch.until(len(pods))
        result = _timing(times, started)
        result["server_cpu_s"] = sum(cpu_seconds(each) for each in running.pids.values()) - server_cpu
        result["scheduler_cpu_s"] = cpu_seconds(pid) - own_cpu
        result["scheduler_peak_mib"] = peak_memory_mib(pid)
    await _clean(client, namespace)
    return result


def _timing(times: list[float], started: float) -> dict[str, float]:
    first, last = times[0] - started, times[-1] - started
    return {
        "first_bind_s": first,
        "makespan_s": last,
        "binds_per_s": (len(times) - 1) / (last - first),
    }


async def _make_pods(client: ApiClient, case: dict[str, Any], namespace: str) -> list[ObjectMeta]:
    await client.create(NAMESPACES, {"metadata": {"name": namespace}}, dict)
    todo = iter([(gang, number) for gang in range(case["gangs"]) for number in range(case["k"])])
    made: list[ObjectMeta] = []

    async def work() -> None:
        for gang, number in todo:
            requests = {"cpu": "1", "memory": "1Gi"}
            container = {"name": "main", "image": "none", "resources": {"requests": requests}}
            annotations = {keys.GROUP_NAME: f"gang-{gang}"}
            body = {
                "metadata": {"name": f"gang-{gang}-{number}", "annotations": annotations},
                "spec": {"schedulerName": keys.SCHEDULER_NAME, "containers": [container]},
            }
            pod = await client.create(PODS, body, Pod, namespace=namespace)
            made.append(pod.metadata)

    await asyncio.gather(*(work() for _ in range(CREATORS)))
    return made


async def _clean(client: ApiClient, namespace: str) -> None:
    """Delete the pods and groups of a round, so that the next one finds empty nodes."""
    for resource in (PODS, GROUPS):
        names: list[str] = []
        async for page in client.list_pages(resource, Pod, namespace=namespace):
            names.extend(item.metadata.name for item in page.items)
        todo = iter(names)

        async def work(resource: Resource = resource, todo: Any = todo) -> None:
            for name in todo:
                await client.delete(resource, name, namespace=namespace, grace_period_s=0)

        await asyncio.gather(*(work() for _ in range(CREATORS)))


class _Watch:
    """Notes when each pod of a namespace is first seen with a node."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._informers = Informers(client)
        self._informers.add(PODS, _Seen, self, namespace=namespace)
        self._supervisor = Supervisor()
        self._seen: dict[str, float] = {}
        self._changed = asyncio.Event()

    def on_events(self, events: list[Event[_Seen]]) -> None:
        """Note pods that have a node now."""
        now = time.monotonic()
        for event in events:
            if event.object is not None and event.object.spec.node_name:
                self._seen.setdefault(event.uid, now)
        self._changed.set()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Stop: a pod of ours that cannot be read is a fault of the benchmark."""
        raise RuntimeError(entry.message)

    def on_release(self, entry: Quarantined) -> None:
        """Nothing is ever in quarantine."""

    async def __aenter__(self) -> "_Watch":
        await self._supervisor.__aenter__()
        self._informers.start(self._supervisor)
        await self._informers.synced(30)
        return self

    async def __aexit__(self, *details: Any) -> None:
        await self._supervisor.stop(5)
        await self._supervisor.__aexit__(*details)

    async def until(self, count: int) -> list[float]:
        """Wait until so many pods have a node; return the times, first to last."""
        async with asyncio.timeout(LIMIT_S):
            while len(self._seen) < count:
                self._changed.clear()
                await self._changed.wait()
        return sorted(self._seen.values())


@contextlib.asynccontextmanager
async def _daemon(running: Server) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run vc-scheduler until the block ends; it is ready when the block begins."""
    metrics, health = free_ports(2)
    with tempfile.TemporaryDirectory(prefix="volcano-py-bench-") as folder:
        conf = Path(folder) / "conf.yaml"
        conf.write_text(BUILT_IN_CONF)
        log = (Path(folder) / "scheduler.log").open("wb")
        process = await asyncio.create_subprocess_exec(
            VC_SCHEDULER,
            f"--kubeconfig={running.kubeconfig}",
            f"--scheduler-conf={conf}",
            "--leader-elect=false",
            f"--listen-address=127.0.0.1:{metrics}",
            f"--healthz-address=127.0.0.1:{health}",
            stdout=log,
            stderr=log,
        )
        try:
            if not await _ready(health, process):
                raise RuntimeError(f"vc-scheduler did not become ready:\n{_tail(Path(folder) / 'scheduler.log')}")
            yield process
        finally:
            if process.returncode is None:
                process.terminate()
            await asyncio.wait_for(process.wait(), 20)
            log.close()


def _tail(log: Path) -> str:
    return log.read_text()[-2000:]


async def _ready(port: int, process: asyncio.subprocess.Process) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.returncode is None:
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /readyz HTTP/1.0\r\n\r\n")
            answer = await asyncio.wait_for(reader.readline(), 5)
            writer.close()
            if b" 200 " in answer:
                return True
        await asyncio.sleep(0.1)
    return False
