"""The driver: creates the objects, plays the kubelet for bound pods, and notes when what happened.

A pod that is seen with a node becomes Running, runs for the life of its gang, becomes Succeeded, and is deleted a
second later, the PodGroup with its last pod. In a balanced run, the next gang arrives once as many pods have ended.
Work that is due waits in a heap; a few workers send it.
"""

import asyncio
import heapq
import itertools
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec

from benchmarks import cluster
from benchmarks.steady.load import PRIORITIES, QUEUES, SLOTS_PER_NODE, Gang, Plan
from benchmarks.steady.times import TimesLog
from volcano_py.api import keys
from volcano_py.api.meta import ObjectMeta
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.kube.errors import AlreadyExists, NotFound
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import NAMESPACES, PODGROUPS, PODS, PRIORITY_CLASSES, Resource
from volcano_py.kube.resource import QUEUES as QUEUES_RESOURCE
from volcano_py.runtime.supervisor import Supervisor

NAMESPACE: Final = "steady"
WORKERS: Final = 32
_DELETED_AFTER_S = 1.0
_SYNC_S = 120.0

Work = Callable[[], Awaitable[None]]


class _Spec(msgspec.Struct, frozen=True):
    node_name: str = msgspec.field(default="", name="nodeName")


class _Condition(msgspec.Struct, frozen=True):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""
    conditions: tuple[_Condition, ...] | None = ()


class _Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Kubelet:
    """Creates gangs and lets bound pods run and end; a handler of the watch of pods."""

    def __init__(self, client: ApiClient, gangs: Sequence[Gang], log: TimesLog) -> None:
        self.log = log
        self.late_s: list[float] = []
        """By how much each piece of work began too late: large numbers mean that this driver is the limit."""
        self._client = client
        self._gang_of = {name: gang for gang in gangs for name in gang.pods()}
        self._left = {gang.number: gang.size for gang in gangs}
        self._handled: set[str] = set()
        self._due: list[tuple[float, int, Work]] = []
        self._tickets = itertools.count()
        self._sooner = asyncio.Event()
        self._next: deque[Gang] = deque()
        self._ended = 0
        """Pods that ended and that no gang of ``_next`` has replaced yet."""

    def on_events(self, events: list[Event[_Pod]]) -> None:
        """Note the state of pods; a pod that has a node now begins to run."""
        for event in events:
            pod = event.object
            if pod is None or event.type is EventType.DELETED:
                continue
            scheduled = next((one.status for one in pod.status.conditions or () if one.type == "PodScheduled"), "")
            name = pod.metadata.name
            self.log.note(name, pod.spec.node_name, pod.status.phase, scheduled)
            if pod.spec.node_name and name not in self._handled:
                self._handled.add(name)
                now = time.monotonic()
                self.at(now, partial(self._run, name))
                self.at(now + self._gang_of[name].life_s, partial(self._finish, name))

    def on_quarantine(self, entry: Quarantined) -> None:
        """Raise an error: an unreadable pod is a bug of the benchmark."""
        raise RuntimeError(entry.message)

    def on_release(self, entry: Quarantined) -> None:
        """Nothing is ever in quarantine."""

    def at(self, when: float, work: Work) -> None:
        """Do some work at a monotonic time."""
        heapq.heappush(self._due, (when, next(self._tickets), work))
        self._sooner.set()

    def runs_already(self, gangs: Iterable[Gang]) -> None:
        """Say that these gangs run before the measurement begins."""
        self._handled.update(name for gang in gangs for name in gang.pods())

    def begin(self, plan: Plan, started: float) -> None:
        """Let gangs arrive and running pods end, from this monotonic time on."""
        if plan.balanced:
            self._next.extend(plan.arriving)
        else:
            for gang in plan.arriving:
                self.at(started + gang.at_s, partial(self._arrive, gang, started + gang.at_s))
        for gang in plan.running:
            for name in gang.pods():
                self.at(started + gang.life_s, partial(self._finish, name))

    async def work(self) -> None:
        """Do what is due, for ever; several of these run at once."""
        while True:
            if not self._due or self._due[0][0] > time.monotonic():
                self._sooner.clear()
                wait_s = self._due[0][0] - time.monotonic() if self._due else 1.0
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(max(wait_s, 0.001), 1.0)):
                        await self._sooner.wait()
                continue
            when, _, work = heapq.heappop(self._due)
            self.late_s.append(max(0.0, time.monotonic() - when))
            await work()

    async def _arrive(self, gang: Gang, when: float) -> None:
        await make_group(self._client, gang)
        for name in gang.pods():
            self.at(when, partial(make_pod, self._client, gang, name))

    async def _run(self, name: str) -> None:
        await _set_status(self._client, name, "Running", "True")

    async def _finish(self, name: str) -> None:
        await _set_status(self._client, name, "Succeeded", "False")
        now = time.monotonic()
        self.at(now + _DELETED_AFTER_S, partial(self._remove, name))
        self._ended += 1
        while self._next and self._next[0].size <= self._ended:
            gang = self._next.popleft()
            self._ended -= gang.size
            self.at(now, partial(self._arrive, gang, now))

    async def _remove(self, name: str) -> None:
        gang = self._gang_of[name]
        with suppress(NotFound):
            await self._client.delete(PODS, name, namespace=NAMESPACE, grace_period_s=0)
        self._left[gang.number] -= 1
        if not self._left[gang.number]:
            with suppress(NotFound):
                await self._client.delete(PODGROUPS, gang.name, namespace=NAMESPACE)


@asynccontextmanager
async def watching(client: ApiClient, kubelet: Kubelet) -> AsyncIterator[None]:
    """Watch pods and do what is due until the block ends."""
    informers = Informers(client)
    informers.add(PODS, _Pod, kubelet, namespace=NAMESPACE)
    async with Supervisor() as supervisor:
        informers.start(supervisor)
        await informers.synced(_SYNC_S)
        for number in range(WORKERS):
            supervisor.start(f"worker {number}", kubelet.work())
        yield
        await supervisor.stop(5)


async def fill(client: ApiClient, nodes: int, plan: Plan) -> None:
    """Create nodes, queues, priorities, the gangs that run, and those that wait."""
    await cluster.define(client)
    await cluster.make_nodes(client, nodes)
    with suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}}, dict)
    for name, value in PRIORITIES.items():
        # Without preemption: a scheduler that preempts pods one by one would measure something else.
        body = {"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"}
        await client.create(PRIORITY_CLASSES, body, dict)
    for name, weight in QUEUES.items():
        body = {"metadata": {"name": name}, "spec": {"weight": weight, "reclaimable": False}}
        await client.create(QUEUES_RESOURCE, _of_kind(QUEUES_RESOURCE, body), dict)
    await cluster.in_turns([*plan.running, *plan.waiting], lambda gang: make_group(client, gang))
    slots = itertools.count()
    places = [
        (gang, name, cluster.node_name(next(slots) // SLOTS_PER_NODE)) for gang in plan.running for name in gang.pods()
    ]

    async def run(place: tuple[Gang, str, str]) -> None:
        await make_pod(client, *place)
        await _set_status(client, place[1], "Running", "True")

    await cluster.in_turns(places, run)
    pods = [(gang, name) for gang in plan.waiting for name in gang.pods()]
    await cluster.in_turns(pods, lambda pod: make_pod(client, *pod))


def _of_kind(resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


async def make_group(client: ApiClient, gang: Gang) -> None:
    """Create the PodGroup of a gang."""
    spec = {"minMember": gang.size, "queue": gang.queue, "priorityClassName": gang.priority}
    body = _of_kind(PODGROUPS, {"metadata": {"name": gang.name}, "spec": spec})
    await client.create(PODGROUPS, body, dict, namespace=NAMESPACE)


async def make_pod(client: ApiClient, gang: Gang, name: str, node: str = "") -> None:
    """Create one pod of a gang, on a node if one is given."""
    body = cluster.pod_body(name, gang.name, node)
    spec = body["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": f"{gang.cpu_m}m", "memory": "1Gi"}}
    spec |= {"priorityClassName": gang.priority, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    if gang.selector:
        spec["nodeSelector"] = gang.selector
    body["metadata"]["annotations"][keys.QUEUE_NAME] = gang.queue
    await client.create(PODS, body, dict, namespace=NAMESPACE)


async def _set_status(client: ApiClient, name: str, phase: str, ready: str) -> None:
    """Write the phase of a pod and its condition Ready."""
    body = {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}}
    with suppress(NotFound):
        await client.patch(PODS, name, body, dict, kind=PatchType.STRATEGIC, namespace=NAMESPACE, subresource="status")


class OwnWrites:
    """Counts the requests of this driver, to tell them from the scheduler's; an observer of a client."""

    def __init__(self) -> None:
        self.count: Counter[tuple[str, str]] = Counter()

    def __call__(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """Count one request; those without an answer count for the server, too, as far as one can know."""
        self.count[verb, resource] += 1
