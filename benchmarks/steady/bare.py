"""The bare scheduler: it knows the slots of this benchmark beforehand, and decides nothing but which gang comes next.

It watches pods and PodGroups and sends Bindings, with the scheduler's own client. When a pod ends, it binds at once
the oldest complete gang for which there are slots. It looks at no resources, queues, priorities or filters, and tells
no pod why it waits. So its latencies are those of the API server, the watch and this driver on the machine.

python -m benchmarks.steady.bare KUBECONFIG
"""

import asyncio
import signal
import sys
from collections import defaultdict, deque
from typing import Final

import msgspec

from benchmarks.steady.kubelet import NAMESPACE
from benchmarks.steady.load import NODE_CPU, SLOTS_PER_NODE
from volcano_py.api import keys
from volcano_py.api.meta import ObjectMeta
from volcano_py.effects.binding import binding_body
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.kube.errors import Conflict, NotFound
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import NODES, PODGROUPS, PODS
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.loop import loop_factory
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.concurrency_limit import DEFAULT_HIGHEST

_SYNC_S: Final = 120.0
_SEND_S: Final = 30.0
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class _Resources(msgspec.Struct, frozen=True):
    requests: dict[str, str] = {}


class _Container(msgspec.Struct, frozen=True):
    resources: _Resources = _Resources()


class _Spec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()
    node_name: str = msgspec.field(default="", name="nodeName")
    node_selector: dict[str, str] = msgspec.field(default_factory=dict, name="nodeSelector")


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _GroupSpec(msgspec.Struct, frozen=True):
    min_member: int = msgspec.field(default=1, name="minMember")


class _Group(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _GroupSpec = _GroupSpec()


class _Node(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


class Slots:
    """Which slots are free, and which complete gangs wait for how many."""

    def __init__(self) -> None:
        self._free: dict[str, int] = {}
        self._held: dict[str, str] = {}  # node by uid of a pod
        self._sizes: dict[str, int] = {}
        self._pods: defaultdict[str, dict[str, TaskRef]] = defaultdict(dict)  # of gangs that are not complete, by uid
        self._waiting: defaultdict[int, deque[tuple[int, list[TaskRef]]]] = defaultdict(deque)
        self._tickets = 0
        self._known: set[str] = set()  # uids of pods that wait or have waited

    def add_node(self, name: str) -> None:
        """Take a node whose slots are free, but for those that pods hold already."""
        held = sum(node == name for node in self._held.values())
        self._free.setdefault(name, SLOTS_PER_NODE - held)

    def add_group(self, name: str, size: int) -> None:
        """Take the size of a gang."""
        self._sizes[name] = size
        self._complete(name)

    def add_waiting(self, group: str, pod: TaskRef) -> None:
        """Take a pod without a node."""
        if pod.uid not in self._held and pod.uid not in self._known:
            self._known.add(pod.uid)
            self._pods[group][pod.uid] = pod
            self._complete(group)

    def hold(self, uid: str, node: str) -> None:
        """Take that a pod has a node."""
        if uid not in self._held:
            self._held[uid] = node
            if node in self._free:
                self._free[node] -= 1

    def release(self, uid: str) -> None:
        """Take that a pod has ended or is gone."""
        node = self._held.pop(uid, "")
        if node in self._free:
            self._free[node] += 1

    def decide(self) -> list[Bind]:
        """Return the Bindings of all gangs that have room now, the oldest first; their slots are taken."""
        binds: list[Bind] = []
        left = sum(self._free.values())
        while found := [(gangs[0][0], size) for size, gangs in self._waiting.items() if gangs and size <= left]:
            _, size = min(found)
            _, pods = self._waiting[size].popleft()
            left -= size
            places = iter([node for node, free in self._free.items() for _ in range(free)])
            for pod in pods:
                node = next(places)
                self.hold(pod.uid, node)
                binds.append(Bind(pod, node, JobKey(pod.namespace, "")))
        return binds

    def _complete(self, group: str) -> None:
        """Let a gang wait for slots once all its pods are there."""
        size = self._sizes.get(group)
        if size is not None and len(self._pods[group]) >= size:
            self._tickets += 1
            self._waiting[size].append((self._tickets, list(self._pods.pop(group).values())))


class BareScheduler:
    """Follows the watches and sends Bindings; a handler of the watch of pods."""

    def __init__(self, client: ApiClient) -> None:
        self.slots = Slots()
        self.groups = _Groups(self)
        self._client = client
        self._binds: asyncio.Queue[Bind] = asyncio.Queue()  # bounded by the pods of the benchmark
        self.started = False

    def on_events(self, events: list[Event[_Pod]]) -> None:
        """Take the state of pods, and bind what has room now."""
        for event in events:
            pod = event.object
            if pod is None:
                continue
            meta, spec = pod.metadata, pod.spec
            if event.type is EventType.DELETED or pod.status.phase in _ENDED:
                self.slots.release(meta.uid)
            elif spec.node_name:
                self.slots.hold(meta.uid, spec.node_name)
            elif not _never(spec):
                ref = TaskRef(meta.namespace, meta.name, meta.uid)
                self.slots.add_waiting(meta.annotations[keys.GROUP_NAME], ref)
        self.decide()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Raise an error: an unreadable object is a bug of the benchmark."""
        raise RuntimeError(entry.message)

    def on_release(self, entry: Quarantined) -> None:
        """Nothing is ever in quarantine."""

    def decide(self) -> None:
        """Queue the Bindings of what has room, unless the first lists are not complete."""
        for bind in self.slots.decide() if self.started else ():
            self._binds.put_nowait(bind)

    async def send(self) -> None:
        """Send Bindings for ever; a pod that is gone or bound keeps its slot until the watch says that it has ended."""
        while True:
            bind = await self._binds.get()
            path = PODS.item(bind.task.name, bind.task.namespace, "binding")
            try:
                await asyncio.wait_for(self._client.post_bytes(path, binding_body(bind)), _SEND_S)
            except (Conflict, NotFound) as error:
                print(error, flush=True)


class _Groups:
    """A handler of the watch of PodGroups."""

    def __init__(self, scheduler: BareScheduler) -> None:
        self._scheduler = scheduler

    def on_events(self, events: list[Event[_Group]]) -> None:
        """Take the sizes of gangs."""
        for event in events:
            if event.object is not None and event.type is not EventType.DELETED:
                self._scheduler.slots.add_group(event.object.metadata.name, event.object.spec.min_member)
        self._scheduler.decide()

    def on_quarantine(self, entry: Quarantined) -> None:
        """Raise an error: an unreadable object is a bug of the benchmark."""
        raise RuntimeError(entry.message)

    def on_release(self, entry: Quarantined) -> None:
        """Nothing is ever in quarantine."""


def _never(spec: _Spec) -> bool:
    """Say whether no node can run a pod."""
    cpu = spec.containers[0].resources.requests["cpu"]
    millis = int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
    return bool(spec.node_selector) or millis > NODE_CPU * 1000


async def schedule(kubeconfig: str) -> None:
    """Schedule until SIGTERM."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    credentials = await load_credentials(kubeconfig=kubeconfig)
    async with ApiClient(credentials, connections=DEFAULT_HIGHEST) as client:
        bare = BareScheduler(client)
        informers = Informers(client)
        informers.add(PODGROUPS, _Group, bare.groups, namespace=NAMESPACE)
        informers.add(PODS, _Pod, bare, namespace=NAMESPACE)
        async with Supervisor() as supervisor:
            informers.start(supervisor)
            await informers.synced(_SYNC_S)
            async for page in client.list_pages(NODES, _Node):
                for node in page.items:
                    bare.slots.add_node(node.metadata.name)
            bare.started = True
            bare.decide()
            for number in range(DEFAULT_HIGHEST):
                supervisor.start(f"sender {number}", bare.send())
            await ended.wait()
            await supervisor.stop(5)


def main() -> int:
    """Schedule with the kubeconfig on the command line."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(schedule(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
