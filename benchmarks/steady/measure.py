"""One half: a new cluster, one scheduler, the load. It returns what was seen."""

import asyncio
import re
import time
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final

import msgspec

from benchmarks.servers import Server, cpu_seconds, observed
from benchmarks.steady import kubelet
from benchmarks.steady.audit import AuditedServer, audited
from benchmarks.steady.load import Load, Plan
from benchmarks.steady.schedulers import Running, SchedulerFile, running
from benchmarks.steady.times import PodTimes, TimesLog
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.runtime.loop import loop_factory

POINTS: Final = 120
"""How many points a series has at most."""
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "APPLY": "patch", "DELETE": "delete"}
_REQUESTS: Final = re.compile(r"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')
_OF_THE_SERVER: Final = ("leases.coordination.k8s.io", "apiservices.apiregistration.k8s.io")


@dataclass
class Half:
    """What one half showed; times are monotonic seconds."""

    scheduler: SchedulerFile
    pods: dict[str, PodTimes] = field(default_factory=dict)
    started: float = 0.0
    ended: float = 0.0
    settled: float = 0.0
    ready_s: float = 0.0
    backlog_s: float | None = None
    """From the start of the scheduler until all pods that waited had a reason; None if that took too long."""
    cycles: float | None = None
    cpu_s: float = 0.0
    server_cpu_s: float = 0.0
    writes: Counter[str] = field(default_factory=Counter)
    sampled_at: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)

    @property
    def span(self) -> tuple[float, float]:
        """The measured span."""
        return self.started, self.ended


@dataclass(frozen=True)
class _Readings:
    """Counters at one time."""

    at: float
    cycles: float | None
    cpu_s: float
    server_cpu_s: float
    writes: Counter[tuple[str, str]]


@dataclass(frozen=True)
class Waits:
    """Seconds beside the measurement."""

    warm_up_s: float
    """The most time for the reasons of the gangs that wait at the start."""
    settle_s: float
    """How long reasons of the last arrivals are awaited after the measurement."""


def measure(kind: str, load: Load, plan: Plan, scheduler: SchedulerFile, waits: Waits) -> Half:
    """Run one half on a new API server: ``embedded`` or ``real``."""
    new: AbstractContextManager[Server] = observed() if kind == "embedded" else audited()
    with new as api_server, asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_half(api_server, load, plan, scheduler, waits))


async def _half(api_server: Server, load: Load, plan: Plan, scheduler: SchedulerFile, waits: Waits) -> Half:
    credentials = await load_credentials(kubeconfig=str(api_server.kubeconfig))
    own, half = kubelet.OwnWrites(), Half(scheduler)
    async with ApiClient(credentials, observer=own) as client:
        await kubelet.fill(client, load.nodes, plan)
        driver = kubelet.Kubelet(client, plan.gangs, TimesLog())
        driver.runs_already(plan.running)
        async with kubelet.watching(client, driver), running(scheduler, api_server.kubeconfig) as process:
            half.ready_s = process.ready_at - process.started_at
            half.backlog_s = await _backlog(driver.log, plan, process, waits.warm_up_s)
            before = await _readings(client, own, process, api_server)
            half.started = before.at
            driver.begin(plan, half.started)
            await _sample(process, half, load.seconds)
            after = await _readings(client, own, process, api_server)
            half.ended = after.at
            half.late_s = list(driver.late_s)
            await asyncio.sleep(waits.settle_s)
            half.settled = time.monotonic()
            half.pods = await _times(client, driver.log, api_server)
    _take_difference(half, before, after)
    return half


async def _backlog(log: TimesLog, plan: Plan, process: Running, at_most_s: float) -> float | None:
    """Wait until the pods that wait have reasons, at most so long; return how long that took."""
    names = [name for gang in plan.waiting for name in gang.pods()]
    deadline = time.monotonic() + at_most_s
    while time.monotonic() < deadline:
        if not log.without_reason(names):
            return time.monotonic() - process.started_at
        await asyncio.sleep(0.25)
    return None


async def _sample(process: Running, half: Half, seconds: float) -> None:
    """Note the memory of the scheduler at equal distances for so many seconds."""
    every_s = max(seconds / POINTS, 0.5)
    for number in range(round(seconds / every_s) + 1):
        await asyncio.sleep(max(0.0, half.started + number * every_s - time.monotonic()))
        half.sampled_at.append(time.monotonic())
        half.rss_mib.append(process.rss_mib())


async def _readings(client: ApiClient, own: kubelet.OwnWrites, process: Running, api_server: Server) -> _Readings:
    text = (await client.get_bytes("/metrics", timeout_s=60)).decode()
    at = time.monotonic()  # the counters are of this moment, also where the next readings take long
    writes = served_writes(text)
    writes.subtract(own.count)
    server_cpu = sum(cpu_seconds(pid) for pid in api_server.pids.values())
    return _Readings(at, await process.cycles(), process.cpu_s(), server_cpu, writes)


def served_writes(text: str) -> Counter[tuple[str, str]]:
    """Read the writes of an API server by verb and resource from its metrics."""
    found: Counter[tuple[str, str]] = Counter()
    for labels, value in _REQUESTS.findall(text):
        label = dict(_LABEL.findall(labels))
        verb = _VERBS.get(label["verb"])
        resource = f"{label['resource']}.{label['group']}" if label.get("group") else label["resource"]
        if label.get("subresource"):
            resource += f"/{label['subresource']}"
        if verb and resource not in _OF_THE_SERVER:
            found[verb, resource] += int(float(value))
    return found


async def _times(client: ApiClient, log: TimesLog, api_server: Server) -> dict[str, PodTimes]:
    """Return the times of pods, from the API server itself if it notes them."""
    if isinstance(api_server, AuditedServer):
        return api_server.times(log.pods)
    return msgspec.json.decode(await client.get_bytes("/pod-times", timeout_s=60), type=dict[str, PodTimes])


def _take_difference(half: Half, before: _Readings, after: _Readings) -> None:
    if before.cycles is not None and after.cycles is not None:
        half.cycles = after.cycles - before.cycles
    half.cpu_s = after.cpu_s - before.cpu_s
    half.server_cpu_s = after.server_cpu_s - before.server_cpu_s
    for (verb, resource), number in after.writes.items():
        change = number - before.writes[verb, resource]
        # Requests of the driver that are under way at a reading may give or take a few.
        if change > 0:
            half.writes[f"{verb} {_short(resource)}"] += change


def _short(resource: str) -> str:
    """Return a resource without its group."""
    name, _, subresource = resource.partition("/")
    return name.partition(".")[0] + (f"/{subresource}" if subresource else "")
