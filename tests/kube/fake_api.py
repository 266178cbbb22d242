"""A hand-driven API server for one resource: the test controls its lists and watch events."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from volcano_py.kube.resource import Resource

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

WIDGETS = Resource("test.example", "v1", "widgets", "Widget")
CLOSE = object()
ABORT = object()


class Meta(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Metadata of a widget."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Widget(msgspec.Struct, frozen=True, gc=False):
    """A small object of our own, so that these tests need no real kind."""

    metadata: Meta
    size: int = 0
    parts: dict[str, int] = msgspec.field(default_factory=dict)


def a_widget(name: str, version: int, *, uid: str = "", **fields: Any) -> dict[str, Any]:
    """Return a widget as JSON values; its UID defaults to one made from its name."""
    meta = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": meta, **fields}


def a_status(code: int, reason: str, message: str = "", **fields: Any) -> dict[str, Any]:
    """Return a Status object as the server writes it."""
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, **fields}


async def serving(body: dict[str, Any]) -> web.Response:
    """Answer with a document."""
    return web.json_response(body)


async def refuse(code: int, reason: str, message: str = "", headers: dict[str, str] | None = None) -> web.Response:
    """Answer with a Status."""
    return web.json_response(a_status(code, reason, message), status=code, headers=headers)


async def away(_: web.Request) -> web.Response:
    """Answer that the server is not available now."""
    return await refuse(503, "ServiceUnavailable", "not now")


class Watch:
    """One open watch, fed by the test."""

    def __init__(self, query: dict[str, str]) -> None:
        self.query = query
        self.closed = asyncio.Event()
        self._queue: asyncio.Queue[Any] = asyncio.Queue()

    def send(self, kind: str, obj: dict[str, Any]) -> None:
        """Send one event."""
        self.send_bytes(msgspec.json.encode({"type": kind, "object": obj}) + b"\n")

    def bookmark(self, version: int, **annotations: str) -> None:
        """Send a bookmark."""
        self.send("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})

    def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._queue.put_nowait(data)

    def end(self) -> None:
        """End the stream as a server does at a watch timeout."""
        self._queue.put_nowait(CLOSE)

    def abort(self) -> None:
        """Cut the connection."""
        self._queue.put_nowait(ABORT)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Stream what the test sends."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            while (item := await self._queue.get()) is not CLOSE:
                if item is ABORT:
                    assert request.transport is not None
                    request.transport.abort()
                    break
                await response.write(item)
        finally:
            self.closed.set()
        return response


class FakeApi:
    """Serves lists from ``objects`` and hands every watch to the test; ``answers`` override both, in order.

    Discovery is separate: it names widgets unless ``discovery`` overrides it.
    """

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.version = 1
        self.requests: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.answers: list[Answer] = []
        self.watches: list[Watch] = []
        self.url = ""
        self.discovered: list[str] = []
        self.discovery: list[Answer] = []

    @property
    def lists(self) -> list[dict[str, str]]:
        """The queries of the lists so far."""
        return [dict(r.query) for r in self.requests if r.method == "GET" and "watch" not in r.query]

    def fail_next(self, code: int, reason: str, message: str = "", headers: dict[str, str] | None = None) -> None:
        """Answer one request with a Status."""
        self.answers.append(lambda _: refuse(code, reason, message, headers))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        if request.path in (WIDGETS.root, "/apis"):
            return await self._discover(request)
        self.requests.append(request)
        self.bodies.append(await request.read())
        if self.answers:
            return await self.answers.pop(0)(request)
        if request.method != "GET":
            return web.json_response({"kind": "Status", "status": "Success"}, status=201)
        if "watch" in request.query:
            watch = Watch(dict(request.query))
            self.watches.append(watch)
            return await watch.serve(request)
        return self._list(request.query.get("limit", ""), request.query.get("continue", ""))

    async def _discover(self, request: web.Request) -> web.StreamResponse:
        """Answer discovery: widgets, unless ``discovery`` has another answer."""
        self.discovered.append(request.path)
        if self.discovery:
            return await self.discovery.pop(0)(request)
        return web.json_response({"kind": "APIResourceList", "resources": [{"name": "widgets"}]})

    def _list(self, limit: str, token: str) -> web.Response:
        start = int(token or 0)
        end = start + int(limit) if limit else len(self.objects)
        meta = {"resourceVersion": str(self.version)}
        if end < len(self.objects):
            meta["continue"] = str(end)
        return web.json_response({"kind": "WidgetList", "metadata": meta, "items": self.objects[start:end]})


@asynccontextmanager
async def a_server(handler: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve every request with one handler on a free port; yield the address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        yield f"http{'s' if tls else ''}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
