"""The HTTPS server of the webhooks: it reads reviews within bounds, and answers each of them.

Nobody who asks is known, so nothing is taken on trust: a body has at most 3 MiB and arrives in time, connections and
bytes under way are bounded, and a connection that asks nothing is closed. Whatever arrives, the process goes on.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from aiohttp import web

from volcano_py.admission.contract import Request, Verdict
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.paths import WEBHOOKS, Webhook
from volcano_py.admission.reviews import Malformed, answered, read_review, refused
from volcano_py.kube import errors

log = structlog.get_logger()

Judge = Callable[[Webhook, Request, bool], Awaitable[Verdict]]
"""Gets the webhook, the request, and whether it is a dry run."""

_JSON: Final = "application/json"
_SWEEP_S: Final = 1.0
_SHUTDOWN_S: Final = 0.5  # for connections to end
_LINGER_S: Final = 1.0  # for the rest of a body that was turned away, so that the client reads the answer first
_MARGIN_S: Final = 0.2  # an answer must reach the API server before it gives up
_SHORTEST_S: Final = 0.5
_INTERNAL: Final = 500


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Address and bounds of the server."""

    host: str = ""
    port: int = 8443
    body_limit: int = 3 * 1024 * 1024
    bytes_limit: int = 192 * 1024 * 1024
    """Of all bodies that are being read or judged."""
    connections_limit: int = 2000
    read_timeout_s: float = 10.0
    """For the TLS handshake, for the head of the first request of a connection, and for a body."""
    answer_timeout_s: float = 10.0
    """For a verdict; the API server may ask for less."""
    idle_s: float = 180.0
    """After which an idle connection is closed. API servers close theirs after 90 s: none is closed under them."""


class _TurnedAway(asyncio.Protocol):
    """A connection beyond the limit: it ends after its handshake."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class _Connection(asyncio.Protocol):
    """A connection whose end is reported; what arrives is aiohttp's."""

    def __init__(self, inner: Any, on_lost: Callable[[Any], None]) -> None:
        self._inner = inner
        self._on_lost = on_lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._inner.data_received(data)

    def eof_received(self) -> None:
        self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost(self._inner)
        self._inner.connection_lost(exc)


class ReviewServer:
    """Serves the webhooks; `start`, then `retire` and `close`."""

    def __init__(
        self,
        judge: Judge,
        paths: Iterable[str],
        tls: ssl.SSLContext,
        metrics: AdmissionMetrics,
        options: ServerOptions | None = None,
    ) -> None:
        self._judge, self._tls, self._metrics = judge, tls, metrics
        self._options = options or ServerOptions()
        self._webhooks = {path: WEBHOOKS[path] for path in paths}
        # An application with routes would cost as much time again as the rest of aiohttp.
        self._http = web.Server(
            self._handle,
            request_factory=self._request,
            access_log=None,
            keepalive_timeout=self._options.idle_s,
            lingering_time=_LINGER_S,
        )
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._born: dict[Any, float] = {}  # open connections, those before the end of the handshake included
        self._asked: set[Any] = set()  # connections that have sent the head of a request
        self._under_way = 0
        self._nothing_under_way = asyncio.Event()
        self._nothing_under_way.set()
        self._bytes = 0
        self._retiring = False

    @property
    def port(self) -> int:
        """The port it listens on, also when 0 asked for a free one."""
        if self._server is None:
            raise RuntimeError("the server is not started")
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def under_way(self) -> int:
        """How many requests are being read or answered."""
        return self._under_way

    async def start(self) -> None:
        """Begin to listen; raise OSError if the address cannot be had."""
        options = self._options
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                self._accept,
                options.host or None,
                options.port,
                ssl=self._tls,
                ssl_handshake_timeout=options.read_timeout_s,
                ssl_shutdown_timeout=1.0,
                backlog=1024,
            )
        except OSError as error:
            text = f"cannot listen on {options.host}:{options.port}: {error.strerror}; choose another --port"
            raise OSError(error.errno, text) from error
        self._sweeper = asyncio.create_task(self._sweep(), name="sweep connections")

    def retire(self) -> None:
        """Go on answering, but end every connection after its next answer, so that clients look for another server."""
        self._retiring = True

    async def close(self, patience_s: float) -> None:
        """Accept nothing more, complete what is under way within a time, close all connections."""
        self._retiring = True
        if self._server is not None:
            self._server.close()
        try:
            async with asyncio.timeout(patience_s):
                await self._nothing_under_way.wait()
        except TimeoutError:
            log.warning("reviews are cut off at the end", reviews=self._under_way)
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        self._http.pre_shutdown()
        await self._http.shutdown(_SHUTDOWN_S)

    # Connections

    def _accept(self) -> asyncio.BaseProtocol:
        if len(self._born) >= self._options.connections_limit:
            self._metrics.turned_away("connections")
            return _TurnedAway()
        handler = self._http()
        self._born[handler] = asyncio.get_running_loop().time()
        return _Connection(handler, self._lost)

    def _lost(self, handler: Any) -> None:
        self._born.pop(handler, None)
        self._asked.discard(handler)

    async def _sweep(self) -> None:
        """Close connections that ask nothing, and forget those whose handshake has failed."""
        while True:
            await asyncio.sleep(min(_SWEEP_S, self._options.read_timeout_s / 2))
            now, made = asyncio.get_running_loop().time(), set(self._http.connections)
            for handler, born in list(self._born.items()):
                if handler in self._asked or now - born <= self._options.read_timeout_s:
                    continue
                self._metrics.turned_away("silent connection")
                if handler in made:
                    handler.force_close()
                else:
                    self._lost(handler)

    # Requests

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop, limit = asyncio.get_running_loop(), self._options.body_limit
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limit)

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        self._asked.add(request.protocol)
        self._under_way += 1
        self._nothing_under_way.clear()
        try:
            response = await self._routed(request)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._nothing_under_way.set()
        if self._retiring:
            response.force_close()
        return response

    async def _routed(self, request: web.BaseRequest) -> web.Response:
        webhook = self._webhooks.get(request.path)
        if webhook is None:
            return self._turn_away(404, f"nothing is served at {request.path}")
        if request.method != "POST":
            return self._turn_away(405, f"send a POST, not a {request.method}")
        return await self._answer(webhook, request)

    async def _answer(self, webhook: Webhook, request: web.BaseRequest) -> web.Response:
        limit = self._options.body_limit
        declared = request.content_length
        if request.content_type != _JSON:
            return self._turn_away(415, f"send {_JSON}, not {request.content_type}")
        if declared is not None and declared > limit:
            return self._turn_away(413, f"the body has more than {limit} bytes")
        share = limit if declared is None else declared
        if self._bytes + share > self._options.bytes_limit:
            return self._turn_away(503, "too many reviews are under way: try again")
        self._bytes += share
        try:
            async with asyncio.timeout(self._options.read_timeout_s):
                body = await request.read()
            return await self._judged(webhook, request, body)
        except TimeoutError:
            return self._turn_away(408, f"the body did not arrive within {self._options.read_timeout_s:g} s")
        except web.HTTPRequestEntityTooLarge:
            return self._turn_away(413, f"the body has more than {limit} bytes")
        except (web.PayloadAccessError, ValueError, EOFError, ConnectionError, web.RequestPayloadError) as error:
            return self._turn_away(400, f"the body cannot be read: {error}")
        finally:
            self._bytes -= share

    def _turn_away(self, status: int, text: str) -> web.Response:
        self._metrics.turned_away(str(status))
        response = web.Response(status=status, text=f"{text}\n")
        response.force_close()
        return response

    async def _judged(self, webhook: Webhook, request: web.BaseRequest, body: bytes) -> web.Response:
        loop = asyncio.get_running_loop()
        began = loop.time()
        result, response = "failed", web.Response(status=_INTERNAL)
        try:
            result, response = await self._reviewed(webhook, body, self._time_for(request))
        finally:
            self._metrics.review(webhook.path, result, loop.time() - began)
        return response

    async def _reviewed(self, webhook: Webhook, body: bytes, time_s: float) -> tuple[str, web.Response]:
        try:
            review = read_review(body)
        except Malformed as error:
            if not error.uid:
                return "malformed", web.Response(status=400, text=f"{error}\n")
            return "malformed", _json(refused(error.uid, str(error)))
        if problem := review.misdirected(webhook):
            return "malformed", _json(refused(review.uid, problem))
        try:
            async with asyncio.timeout(time_s):
                verdict = await self._judge(webhook, review.request, review.dry_run)
        except (TimeoutError, errors.ApiError) as error:
            text = str(error) or f"no answer within {time_s:g} s"
            log.warning("a verdict could not be confirmed", path=webhook.path, problem=text)
            return "failed", web.Response(status=503, text=f"the verdict could not be confirmed: {text}\n")
        except Exception as error:
            log.exception("a rule failed; the review is refused", path=webhook.path, name=review.request.name)
            text = f"the review at {webhook.path} failed: {type(error).__name__}: {error}"
            return "failed", _json(refused(review.uid, text, _INTERNAL))
        return ("allowed" if verdict.allowed else "refused"), _json(answered(review.uid, verdict))

    def _time_for(self, request: web.BaseRequest) -> float:
        """Return how long a verdict may take; the API server names its patience in the URL: ``?timeout=10s``."""
        asked = request.query.get("timeout", "").removesuffix("s")
        patience = self._options.answer_timeout_s
        with contextlib.suppress(ValueError):
            patience = min(patience, float(asked))
        return max(_SHORTEST_S, patience - _MARGIN_S)


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type=_JSON)
