"""The HTTP server of a process for its operators: health, readiness, metrics and extra routes."""

import asyncio
import errno
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from ipaddress import IPv6Address, ip_address

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from volcano_py.runtime.options import ListenAddress
from volcano_py.runtime.supervisor import Foreseen

Reasons = Callable[[], Iterable[str]]
"""Returns the reasons why a process is not healthy or ready; none means that it is."""
Route = Callable[[web.Request], Awaitable[web.StreamResponse]]
Exposition = Callable[[CollectorRegistry], Iterable[bytes]]
"""Writes metrics in Prometheus' text format, piece by piece; other tasks run between two pieces."""

_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
_GZIP = "gzip"
_GZIP_FORMAT = 31  # of zlib: gzip with the largest window
_LEVEL = 3  # nearly as small as with the default 6, in half the time
_TURN_S = 0.003  # after which other tasks have their turn while metrics are written
_SHUTDOWN_S = 1.0  # for a scrape that is under way


class AddressInUse(Foreseen):
    """Another program listens on the address; the message names address and flag."""


class OperatorServer:
    """Serves ``/healthz``, ``/readyz``, with a registry ``/metrics``, and extra routes; an async context manager.

    Extra routes answer only requests from the same machine (or pod), unless ``remote_routes``.
    """

    def __init__(
        self,
        address: ListenAddress,
        *,
        flag: str = "",
        not_healthy: Reasons = tuple,
        not_ready: Reasons = tuple,
        registry: CollectorRegistry | None = None,
        exposition: Exposition | None = None,
        routes: Mapping[str, Route] | None = None,
        remote_routes: bool = False,
    ) -> None:
        self._address = address
        self._flag = flag
        self._not_healthy = not_healthy
        self._not_ready = not_ready
        self._registry = registry
        self._exposition = exposition or _at_once
        self._routes = {path: route if remote_routes else _local_only(route) for path, route in (routes or {}).items()}
        self._runner: web.AppRunner | None = None

    @property
    def port(self) -> int:
        """The port it listens on, also when 0 asked for a free one."""
        if self._runner is None or not self._runner.addresses:
            raise RuntimeError("the server is not started")
        return int(self._runner.addresses[0][1])

    async def __aenter__(self) -> "OperatorServer":
        """Start to listen; raise AddressInUse if another program does."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        if self._registry is not None:
            app.router.add_get("/metrics", self._metrics)
        for path, route in self._routes.items():
            app.router.add_get(path, route)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_S)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._address.host or None, self._address.port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise self._explained(error) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening and end open connections."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _explained(self, error: OSError) -> Exception:
        remedy = f"; choose another with {self._flag}, or stop that program" if self._flag else ""
        if error.errno == errno.EADDRINUSE:
            return AddressInUse(f"port {self._address.port} ({self._address}) is in use by another program{remedy}")
        return OSError(error.errno, f"cannot listen on {self._address}: {error.strerror}{remedy}")

    async def _healthz(self, _: web.Request) -> web.Response:
        return _answer(self._not_healthy())

    async def _readyz(self, _: web.Request) -> web.Response:
        return _answer(self._not_ready())

    async def _metrics(self, request: web.Request) -> web.Response:
        assert self._registry is not None
        headers = {"Content-Type": _TEXT_FORMAT, "Vary": "Accept-Encoding"}
        gzip = zlib.compressobj(_LEVEL, wbits=_GZIP_FORMAT) if _takes_gzip(request) else None
        if gzip is not None:
            headers["Content-Encoding"] = _GZIP
        pieces, now = [], asyncio.get_running_loop().time
        begun = now()
        for piece in self._exposition(self._registry):
            pieces.append(piece if gzip is None else gzip.compress(piece))
            if now() - begun >= _TURN_S:
                await asyncio.sleep(0)
                begun = now()
        if gzip is not None:
            pieces.append(gzip.flush())
        return web.Response(body=b"".join(pieces), headers=headers)


def _takes_gzip(request: web.Request) -> bool:
    """Say whether the client accepts gzip; ``gzip;q=0`` refuses it."""
    for coding in ",".join(request.headers.getall("Accept-Encoding", [])).split(","):
        name, _, quality = coding.partition(";")
        if name.strip().lower() == _GZIP:
            return quality.replace(" ", "").lower().rstrip("0").rstrip(".") not in ("q=", "q=0")
    return False


def _at_once(registry: CollectorRegistry) -> Iterator[bytes]:
    yield generate_latest(registry)


def _local_only(route: Route) -> Route:
    """Return a route that answers only requests over the loopback interface."""

    async def ask(request: web.Request) -> web.StreamResponse:
        peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        if not peer or not _is_loopback(str(peer[0])):
            text = (
                f"{request.path} answers on the loopback interface only: use kubectl port-forward or kubectl exec, or "
                "start the process with --enable-remote-debug\n"
            )
            return web.Response(status=403, text=text)
        return await route(request)

    return ask


def _is_loopback(host: str) -> bool:
    address = ip_address(host.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def _answer(reasons: Iterable[str]) -> web.Response:
    found = list(reasons)
    return web.Response(text="\n".join([*found, ""]), status=503) if found else web.Response(text="ok\n")
