"""A scheduler daemon on an embedded API server, both in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from volcano_py.apiserver import ApiServer
from volcano_py.conf.loader import parse_conf
from volcano_py.daemon.configuration import Configuration
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.daemon.options import DaemonOptions
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.reflector import ReflectorOptions
from volcano_py.kube.resource import PODS
from volcano_py.local.manifests import definitions
from volcano_py.local.scheduler import GANG_CONF as CONF
from volcano_py.runtime.options import ListenAddress
from volcano_py.runtime.signals import Shutdown
from volcano_py.scheduler import Policy, resolve
from volcano_py.testing import a_group, a_node, a_pod, manifest

BINDINGS = ("create", "pods/binding")
GROUPS = "podgroups.scheduling.volcano.sh"
QUEUES = "queues.scheduling.volcano.sh"
FREE_PORT = ListenAddress("127.0.0.1", 0)


def serve_definitions(server: ApiServer) -> None:
    for definition in definitions():
        server.create(definition)


class Running:
    """A daemon and the task it runs in."""

    def __init__(self, daemon: SchedulerDaemon, shutdown: Shutdown, task: "asyncio.Task[int]") -> None:
        self.daemon = daemon
        self.shutdown = shutdown
        self.task = task

    def metric(self, name: str, labels: Mapping[str, str] | None = None) -> float:
        return self.daemon.registry.get_sample_value(name, dict(labels or {})) or 0.0

    async def ready(self) -> None:
        async with asyncio.timeout(30):
            await self.daemon.ready.wait()

    async def stop(self) -> int:
        self.shutdown.request("test")
        async with asyncio.timeout(40):
            return await self.task

    async def kill(self) -> None:
        """End it as SIGKILL would: nothing is completed, and connections break."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def a_daemon(
    url: str,
    *,
    cycle: Any = None,
    configuration: Configuration | None = None,
    policy: Policy | None = None,
    **options: Any,
) -> SchedulerDaemon:
    chosen = DaemonOptions(
        **{
            "metrics_address": FREE_PORT,
            "health_address": FREE_PORT,
            "reflectors": ReflectorOptions(absent_retry_s=0.2),
            "period_s": 0.2,
            **options,
        }
    )
    more = {} if cycle is None else {"cycle": cycle}
    if policy is None:
        policy = configuration.policy if configuration is not None else resolve(parse_conf(CONF, "test.conf"))
    return SchedulerDaemon(Credentials(url), policy, chosen, configuration=configuration, **more)


def start(daemon: SchedulerDaemon) -> Running:
    shutdown = Shutdown()
    return Running(daemon, shutdown, asyncio.create_task(daemon.run(shutdown), name="daemon"))


@asynccontextmanager
async def scheduler(url: str, *, wait: bool = True, **options: Any) -> AsyncIterator[Running]:
    running = start(a_daemon(url, **options))
    try:
        if wait:
            ready = asyncio.create_task(running.ready())
            await asyncio.wait([ready, running.task], return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                ready.cancel()
                await running.task  # raises the error that ended it
            await ready
        yield running
        if not running.task.done():
            running.daemon.cache.validate()
    finally:
        if not running.task.done():
            running.shutdown.request("end of test")
            running.shutdown.request("end of test")
        await asyncio.gather(running.task, return_exceptions=True)


def put_node(server: ApiServer, name: str, cpu: int = 4, pods: int = 110) -> None:
    server.create(manifest(a_node(name, cpu=cpu, memory="64Gi", pods=pods)))


def put_group(
    server: ApiServer,
    name: str,
    minimum: int = 1,
    min_resources: Mapping[str, str] | None = None,
    *,
    queue: str = "default",
    **status: Any,
) -> None:
    group = a_group(name, queue=queue, min_available=minimum, min_resources=min_resources)
    server.create(manifest(group, **({"status": status} if status else {})))


def put_pod(
    server: ApiServer,
    name: str,
    group: str = "",
    cpu: str = "1",
    node: str = "",
    namespace: str = "default",
    **spec: Any,
) -> dict[str, Any]:
    return server.create(manifest(a_pod(name, namespace=namespace, group=group, cpu=cpu, node=node), spec=spec))


def put_job(server: ApiServer, name: str, tasks: int, minimum: int | None = None, cpu: str = "1") -> None:
    """Create a PodGroup and its pods, named ``name-0`` and so on."""
    put_group(server, name, tasks if minimum is None else minimum)
    for number in range(tasks):
        put_pod(server, f"{name}-{number}", name, cpu)


async def set_phase(running: Running, pods: Iterable[str], phase: str) -> None:
    """Set a pod's phase, as a kubelet does."""
    for name in pods:
        body = {"status": {"phase": phase}}
        await running.daemon.client.patch(PODS, name, body, dict, namespace="default", subresource="status")


def placed(server: ApiServer, prefix: str = "", namespace: str = "default") -> dict[str, str]:
    """Return the nodes of bound pods by name."""
    pods = server.list("pods", namespace)
    named = [pod for pod in pods if pod["metadata"]["name"].startswith(prefix)]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in named if pod["spec"].get("nodeName")}


def successes(server: ApiServer) -> int:
    return server.requests.count(*BINDINGS, 201)


def group(server: ApiServer, name: str) -> dict[str, Any]:
    found = server.get(GROUPS, name, "default")
    assert found is not None
    return found


def condition(server: ApiServer, pod: str) -> dict[str, Any]:
    """Return the condition PodScheduled of a pod, empty if it has none."""
    found = server.get("pods", pod, "default")
    assert found is not None
    conditions = found["status"].get("conditions", [])
    return next((one for one in conditions if one["type"] == "PodScheduled"), {})


def events(server: ApiServer, kind: str, name: str) -> list[dict[str, Any]]:
    found = server.list("events", "default")
    return [
        event for event in found if (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind, name)
    ]


def event_reasons(server: ApiServer, kind: str, name: str) -> set[str]:
    return {event["reason"] for event in events(server, kind, name)}


async def stays(condition: Callable[[], object], seconds: float = 0.5) -> None:
    """Fail if a condition stops holding within a time."""
    async with asyncio.timeout(seconds + 5):
        deadline = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < deadline:
            assert condition()
            await asyncio.sleep(0.02)


async def comes_to_rest(value: Callable[[], object], seconds: float, timeout_s: float = 10) -> None:
    """Wait until a value has not changed for a time; time in which the whole process stands still is no rest."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(timeout_s):
        last, rested_s = value(), 0.0
        while rested_s < seconds:
            before = loop.time()
            await asyncio.sleep(0.01)
            rested_s += min(loop.time() - before, 0.03)
            if value() != last:
                last, rested_s = value(), 0.0
