"""The embedded API server: one store, one registry, one listening socket.

async with ApiServer(ApiServerOptions(port=0)) as server:
    server.url          # http://127.0.0.1:43123
    server.registry     # create, read and change objects in the same process
    server.store        # collections, versions, history
    server.faults       # misbehave on demand
    server.requests     # how often each verb was used
"""

from __future__ import annotations

import asyncio
import errno
from types import TracebackType
from typing import Self

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from volcano_py.apiserver.counters import RequestCounters
from volcano_py.apiserver.crds.controller import DefinitionController
from volcano_py.apiserver.faults import Faults
from volcano_py.apiserver.frontend import Frontend
from volcano_py.apiserver.garbage import GarbageCollector
from volcano_py.apiserver.kinds.table import built_ins
from volcano_py.apiserver.namespaces import NamespaceController
from volcano_py.apiserver.node_lifecycle import NodeLifecycle
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.reconciler import Reconciler
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.resources import ResourceTable
from volcano_py.apiserver.store import Store, Stored

INITIAL_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SYSTEM_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}


class PortInUse(OSError):
    """Another program listens on the port that was asked for."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            errno.EADDRINUSE,
            f"port {port} on {host} is in use by another program; choose another port, or 0 for a free one",
        )
        self.host = host
        self.port = port


class ApiServer:
    """An API server in this process; an async context manager, or `start` and `stop`.

    A server that is stopped and started again keeps its objects, its history and its port, as a real one does.
    """

    def __init__(self, options: ApiServerOptions | None = None) -> None:
        self.options = options or ApiServerOptions()
        self.store = Store(self.options.history_limit)
        self.resources = ResourceTable(built_ins(taint_new_nodes=self.options.node_lifecycle))
        self.registry = Registry(self.store, self.resources)
        self.requests = RequestCounters()
        self.faults = Faults(self.store, self.registry.inject)
        self.port = 0
        self._frontend = Frontend(self.registry, self.faults, self.requests, self.options)
        self._reconcilers: list[Reconciler] = [
            DefinitionController(self.registry),
            NamespaceController(self.registry),
            GarbageCollector(self.registry),
        ]
        if self.options.node_lifecycle:
            self._reconcilers.append(NodeLifecycle(self.registry))
        self._runner: web.ServerRunner | None = None
        self._create_initial_objects()

    def _create_initial_objects(self) -> None:
        namespaces = self.resources.named("namespaces")
        for name in INITIAL_NAMESPACES:
            self.registry.create(namespaces, None, {"metadata": {"name": name}})
        classes = self.resources.named("priorityclasses.scheduling.k8s.io")
        for name, value in SYSTEM_PRIORITIES.items():
            self.registry.create(classes, None, {"metadata": {"name": name}, "value": value})

    @property
    def url(self) -> str:
        """Base URL, without a trailing slash."""
        scheme = "https" if self.options.ssl_context else "http"
        return f"{scheme}://{self.options.host}:{self.port}"

    async def start(self) -> None:
        """Begin to listen and serve; PortInUse if the port is taken."""
        options = self.options
        server = web.Server(
            self._frontend.handle,
            request_factory=self._make_request,
            handler_cancellation=True,
            access_log=None,
        )
        runner = web.ServerRunner(server, shutdown_timeout=options.shutdown_timeout_s)
        await runner.setup()
        port = options.port or self.port  # after a restart the clients find the server at the same port
        site = web.TCPSite(runner, options.host, port, ssl_context=options.ssl_context, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            if error.errno == errno.EADDRINUSE:
                raise PortInUse(options.host, port) from error
            raise
        self._runner = runner
        self.port = runner.addresses[0][1]
        for reconciler in self._reconcilers:
            reconciler.start()

    def _make_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(
            message, payload, protocol, writer, task, loop, client_max_size=self.options.max_body_bytes
        )

    async def stop(self) -> None:
        """End every watch, finish running requests, stop listening; no task is left."""
        for reconciler in self._reconcilers:
            await reconciler.stop()
        for collection in self.store.collections.values():
            for watcher in tuple(collection.watchers):
                watcher.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        await self._frontend.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def settled(self) -> bool:
        """Whether the background work is done."""
        return all(reconciler.idle for reconciler in self._reconcilers)

    def create(self, obj: Obj) -> Obj:
        """Create an object in-process, with all defaults and checks; the namespace defaults to `default`."""
        resource = self.resources.of_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
        if resource is None:
            raise LookupError(f"no resource of {obj.get('apiVersion')}, kind {obj.get('kind')} is served")
        namespace = None
        if resource.namespaced:
            namespace = (obj.get("metadata") or {}).get("namespace") or "default"
        return self.registry.create(resource, namespace, obj).obj

    def get(self, resource: str, name: str, namespace: str | None = None) -> Obj | None:
        """Look an object up in-process: `server.get("pods", "web-1", "default")`. Treat it as read-only."""
        key = f"{namespace}/{name}" if namespace else name
        return self.registry.peek(resource, key)

    def list(self, resource: str, namespace: str | None = None) -> list[Obj]:
        """All objects of a resource in-process, in key order. Treat them as read-only."""
        prefix = f"{namespace}/" if namespace else ""
        found: list[Stored] = list(self.store.collection(resource).scan(prefix))
        return [stored.obj for stored in found]
