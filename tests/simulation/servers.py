"""The API servers of a simulation: one state, two servers in front of it, and what each request meets there.

    clients ──▶ balancer ──▶ apiserver-a ──▶ registry and store  ◀── the controllers of Kubernetes, the kubelets
                       └───▶ apiserver-b ──▶ writes there; watches (and, as a fault, lists) see a state that lags

A server may be killed and started again; the state survives, as in etcd.
"""

import asyncio
from bisect import bisect_left, insort
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import msgspec
from aiohttp import web

from tests.simulation.draws import Draws
from tests.simulation.loop import Process, SimulationLoop
from tests.simulation.machines import Machine
from tests.simulation.network import End
from volcano_py.apiserver.counters import RequestCounters
from volcano_py.apiserver.faults import Fault
from volcano_py.apiserver.frontend import Frontend
from volcano_py.apiserver.objects import encode
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.requests import Call, object_of
from volcano_py.apiserver.server import ApiServer
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.store import Collection, Event, Store, watch_line
from volcano_py.apiserver.verbs import Reply, Verbs, WatchReply
from volcano_py.apiserver.watching import Watcher
from volcano_py.apiserver.webhooks.chain import WebhookChain

PORT: Final = 6443
BALANCER: Final = "10.0.1.100"
URL: Final = f"http://{BALANCER}:{PORT}"
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"


class _Details(msgspec.Struct):
    name: str = ""


class _Refusal(msgspec.Struct):
    details: _Details = msgspec.field(default_factory=_Details)


@dataclass(slots=True, eq=False)
class Asked:
    """One request, as a server sees it."""

    client: Process
    sent_at: float
    method: str
    path: str
    verb: str = ""
    resource: str = ""
    key: str = ""
    """Namespace and name of the object; without a name that of its collection."""
    retry_after_s: float = 0.0
    """What the answer says about the next attempt."""
    connection: End | None = None
    """The client's end of the connection that brought it."""
    begun_at: float = 0.0
    """When the server began to carry it out."""
    authorization: str = ""
    taken: str = ""
    """The name of the object that was to be created, if there is one of that name."""
    lost: bool = False
    """Whether a fault keeps the answer from whoever asked."""
    after: Callable[[], Awaitable[None]] | None = None
    """What a fault does between the effect of the request and its answer."""


ASKED: ContextVar[Asked | None] = ContextVar("asked", default=None)
"""The request that is being carried out; None outside of requests, for example in a kubelet."""

Judge = Callable[[Asked, str, str], Fault | None]
"""Says what goes wrong with a request, given namespace and name."""


class Judged:
    """What a :class:`Frontend` asks for faults (`Faults.match`)."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    def match(self, verb: str, resource: str, namespace: str, name: str) -> Fault | None:
        """Return what goes wrong with the request that is being read."""
        asked = ASKED.get()
        if asked is None:
            return None
        asked.verb, asked.resource = verb, resource
        asked.key = f"{namespace}/{name}" if namespace else name
        if verb == "watch" and asked.connection is not None:
            asked.connection.peer.watched = resource
        fault = self._judge(asked, namespace, name)
        asked.lost = fault is not None and fault.action == "drop_after"
        return fault


_BELIEVED_S: Final = 60.0
"""For so long after a server has shown lists of an older state, such a list may still be in force."""

Binding = Callable[[Asked, str, str], None]
"""Told before a Binding is carried out: who asks, the key of the pod, and the node."""


class Lagging:
    """A copy of the store that follows after a while; what a server knows whose connection to etcd is slow."""

    def __init__(self, store: Store, loop: SimulationLoop, draws: Draws, context: Context) -> None:
        """Take the context in which it follows: that of a request would end with the server that carried it out."""
        self.store = Store(16384)
        self.lag_s = 0.0
        """How late the copy is; the order is kept."""
        self._stale_lists = False
        self._stale_until = -inf  # when lists came from the copy last
        self._stands: list[tuple[str, Event]] | None = None
        self._loop = loop
        self._draws = draws
        self._due = 0.0
        self._late = 0  # events that have not arrived
        self._context = context
        self._source = store
        for name, collection in store.collections.items():
            self._copy(name, collection)
        self.store.rv = store.rv
        store.listeners.append(self._follow)

    def _copy(self, name: str, collection: Collection) -> None:
        mine = self.store.collection(name)
        mine.items, mine.keys = dict(collection.items), list(collection.keys)
        mine.history = collection.history.copy()
        mine.compacted_rv = collection.compacted_rv

    @property
    def stale_lists(self) -> bool:
        """Whether lists come from the copy, too."""
        return self._stale_lists

    @stale_lists.setter
    def stale_lists(self, stale: bool) -> None:
        if self._stale_lists and not stale:
            self._stale_until = self._loop.time()
        self._stale_lists = stale

    def stale_lists_since(self, moment: float) -> bool:
        """Say whether a list may have come from the copy at this moment of virtual time or later."""
        return self._stale_lists or self._stale_until >= moment

    def stand_still(self) -> None:
        """Follow no longer, until `go_on`."""
        if self._stands is None:
            self._stands = []

    def go_on(self) -> None:
        """Catch up."""
        waiting, self._stands = self._stands or [], None
        for name, event in waiting:
            self._arrived(name, event)

    def mark(self) -> None:
        """Send a bookmark to every watcher, as a server does from time to time."""
        for collection in self.store.collections.values():
            for watcher in tuple(collection.watchers):
                if isinstance(watcher, Watcher) and not watcher.closed:
                    watcher._queue.append(("MODIFIED", _Bookmark(self.store.rv)))  # type: ignore[arg-type]
                    watcher._notify()

    def _follow(self, collection: Collection, event: Event) -> None:
        if self.lag_s <= 0 and not self._late:
            self._arrived(collection.name, event)
            return
        late = self.lag_s * self._draws.between(0.5, 1.0)
        self._due = max(self._due, self._loop.time() + late)
        self._late += 1
        self._loop.call_at(self._due, self._arrived_late, collection.name, event, context=self._context)

    def _arrived_late(self, name: str, event: Event) -> None:
        self._late -= 1
        self._arrived(name, event)

    def _arrived(self, name: str, event: Event) -> None:
        if self._stands is None:
            self._apply(name, event)
        else:
            self._stands.append((name, event))

    def _apply(self, name: str, event: Event) -> None:
        mine = self.store.collection(name)
        key = event.stored.key
        if event.type == "DELETED":
            if mine.items.pop(key, None) is not None:
                del mine.keys[bisect_left(mine.keys, key)]
        else:
            if key not in mine.items:
                insort(mine.keys, key)
            mine.items[key] = event.stored
        self.store.rv = event.rv
        mine._publish(event)
        if name == DEFINITIONS and event.type == "DELETED":
            self.store.drop(key)


class _Bookmark:
    """What a watcher queues as an event, and sends as a bookmark."""

    prev = None

    def __init__(self, version: int) -> None:
        self._meta = encode({"metadata": {"resourceVersion": str(version), "creationTimestamp": None}})

    def line(self, _: str, prefix: bytes) -> bytes:
        """Return the line; ``prefix`` names the type."""
        return watch_line("BOOKMARK", prefix + self._meta[1:])


class _Verbs(Verbs):
    """Tells faults of every Binding before it is carried out."""

    def __init__(self, registry: Registry, options: ApiServerOptions, binding: list[Binding]) -> None:
        super().__init__(registry, options)
        self._binding = binding

    def perform(self, call: Call) -> Reply | WatchReply:
        """Carry out one request."""
        target = call.target
        if self._binding and target.subresource == "binding" and (asked := ASKED.get()) is not None:
            node = str(object_of(call).get("target", {}).get("name"))
            for told in tuple(self._binding):
                told(asked, f"{target.namespace}/{target.name}", node)
        return super().perform(call)


class _TwoStates(_Verbs):
    """Carries out writes and reads on the true state, and watches on what this server knows of it."""

    def __init__(
        self,
        registry: Registry,
        known: Registry,
        options: ApiServerOptions,
        lagging: Lagging,
        binding: list[Binding],
    ) -> None:
        super().__init__(registry, options, binding)
        self._lagging = lagging
        self._known = Verbs(known, options)

    def perform(self, call: Call) -> Reply | WatchReply:
        verb, query = call.target.verb, call.query
        if verb == "watch":
            version = query.get("resourceVersion", "")
            if version.isdigit() and int(version) > self._lagging.store.rv:
                raise StatusError(504, "Timeout", f"Too large resource version: {version}", retry_after_s=1)
            return self._known.perform(call)
        if verb == "list" and self._lagging.stale_lists:
            return self._known.perform(call)
        return super().perform(call)


class Servers:
    """The state of the cluster, and the machines that serve it."""

    def __init__(
        self,
        loop: SimulationLoop,
        seed: int,
        judge: Judge,
        answered: Callable[[Asked, int], None],
        options: ApiServerOptions | None = None,
    ) -> None:
        """Take who decides about faults, and who is told how each request was answered."""
        self._loop = loop
        self._context = copy_context()
        self.core = ApiServer(options or ApiServerOptions(host=BALANCER, port=PORT))
        self.store, self.registry = self.core.store, self.core.registry
        self._judge, self._answered = judge, answered
        self._seed = seed
        self.open: dict[Asked, None] = {}
        """The requests that are not answered yet, in the order in which they came; watches, too."""
        self.lagging: dict[str, Lagging] = {}
        """The copies of the state, by server."""
        self.binding: list[Binding] = []
        """Told of every Binding before it is carried out."""

    def create(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object, past the network."""
        return self.core.create(dict(obj))

    def stale_lists_since(self, moment: float) -> bool:
        """Say whether a list may have shown an older state at this moment of virtual time or later."""
        return any(lagging.stale_lists_since(moment) for lagging in self.lagging.values())

    def stale_lists_in_force(self) -> bool:
        """Say whether a program may still believe a list of an older state."""
        return self.stale_lists_since(self._loop.time() - _BELIEVED_S)

    def objects(self, resource: str) -> list[dict[str, Any]]:
        """Return all objects of a resource; treat them as read-only."""
        return self.core.list(resource)

    def get(self, resource: str, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """Return an object; treat it as read-only."""
        return self.core.get(resource, name, namespace)

    async def serve(self, machine: Machine, lags: bool) -> int:
        """Serve until the process is killed."""
        options = ApiServerOptions(host=machine.host, port=PORT, shutdown_timeout_s=0.1)
        if lags:
            if machine.name not in self.lagging:
                draws = Draws(self._seed, f"{machine.name} lag")
                self.lagging[machine.name] = Lagging(self.store, self._loop, draws, self._context)
            lagging = self.lagging[machine.name]
            known = Registry(lagging.store, self.registry.resources)  # also for bookmarks
            frontend = self._frontend(known, options)
            frontend._verbs = _TwoStates(self.registry, known, options, lagging, self.binding)
            frontend._webhooks = WebhookChain(self.registry)
        else:
            frontend = self._frontend(self.registry, options)
            frontend._verbs = _Verbs(self.registry, options, self.binding)

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            end = request.transport
            if not isinstance(end, End):
                raise ConnectionResetError("the client is gone")
            asked = Asked(end.peer.process, end.received_sent_at, request.method, request.rel_url.raw_path)
            asked.connection, asked.begun_at = end.peer, self._loop.time()
            asked.authorization = request.headers.get("Authorization", "")
            token = ASKED.set(asked)
            self.open[asked] = None
            try:
                response = await frontend.handle(request)
                asked.retry_after_s = float(response.headers.get("Retry-After", 0.0))
                if response.status == 409 and request.method == "POST":
                    asked.taken = _name_in(response)
                self._answered(asked, response.status)
                if asked.after is not None:
                    await asked.after()
                return response
            finally:
                ASKED.reset(token)
                self.open.pop(asked, None)

        server = web.Server(handle, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=options.shutdown_timeout_s)
        await runner.setup()
        await web.TCPSite(runner, machine.host, PORT).start()
        await asyncio.Event().wait()
        return 0

    def _frontend(self, registry: Registry, options: ApiServerOptions) -> Frontend:
        return Frontend(registry, Judged(self._judge), RequestCounters(), options)  # type: ignore[arg-type]


def _name_in(response: web.StreamResponse) -> str:
    """Return the name of the object that a refusal is about."""
    body = response.body if isinstance(response, web.Response) else None
    return msgspec.json.decode(body, type=_Refusal).details.name if isinstance(body, bytes) else ""
