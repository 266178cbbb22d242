"""The layer below the client: connections, headers, deadlines, one retry after a refused token.

Every request is reported to an observer and ends in its answer or in an :class:`~volcano_py.kube.errors.ApiError`.
Requests go over our own connection pool (:mod:`volcano_py.kube.connections`), or over a session of aiohttp if they need
a proxy or compression. Watches use separate connections, so that they never wait behind writes.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import lru_cache, partial
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from volcano_py.kube import errors
from volcano_py.kube.connections import Address, Connections, Obstacle, RequestFailed, Withheld
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.http1 import checked_target, header_lines
from volcano_py.kube.resource import resource_of
from volcano_py.kube.sockets import attentive_socket

READ_BUFFER = 2**21  # a watch line holds one whole object, and etcd allows 1.5 MiB
_UNAUTHORIZED = 401
STREAM_GRACE_S = 5.0  # if the server does not end a watch in time, we end it this much later
_REFUSAL_S = 5.0  # for the body of a refusal; after this time, what has come must do
_STREAMS_KEPT_S = 1.0  # a watch is resumed over the same connection within this time, otherwise over a new one

RequestObserver = Callable[[str, str, int, float], None]
"""Called for every request: verb, resource, HTTP status (0: no answer), seconds (of a watch: until it is open)."""


class Call(NamedTuple):
    """A request that has no connection yet."""

    method: str
    verb: str
    path: str
    body: bytes | None = None
    content_type: str = "application/json"
    query: Mapping[str, str] | None = None


class Stream:
    """The body of a watch, read in pieces as they arrive."""

    def __init__(self, response: aiohttp.ClientResponse, call: Call, stall_s: float, server: str) -> None:
        self._response = response
        self._call = call
        self._stall_s = stall_s
        self._server = server

    async def read(self) -> bytes:
        """Wait for data and return what has arrived; empty at the end.

        Raises Timeout when nothing arrives for the stall time or the server does not end the watch in time, and
        ConnectionFailed when the connection breaks.
        """
        try:
            return await _read(self._response.content.readany())
        except aiohttp.SocketTimeoutError as error:
            message = f"nothing received from {self._server} for {self._stall_s:g} s"
            raise errors.Timeout("watch", self._call.path, message) from error
        except TimeoutError as error:
            message = f"{self._server} has not ended the watch when its time was up: the connection may be dead"
            raise errors.Timeout("watch", self._call.path, message) from error
        except aiohttp.ClientError as error:
            raise errors.from_transport("watch", self._call.path, error, self._stall_s, self._server) from error


class _Answered(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]


class Transport:
    """Sends requests to one API server; use it as an asynchronous context manager."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections: int,
        user_agent: str,
        compress: bool,
        observer: RequestObserver | None,
        obstacle: Obstacle | None = None,
    ) -> None:
        self._obstacle = obstacle
        self._credentials = credentials
        self._limit = connections
        self._common = {
            "User-Agent": user_agent,
            "Accept": "application/json",
            # Inside a cluster, compressing lists costs the API server more than sending them costs the network.
            "Accept-Encoding": "gzip" if compress else "identity",
        }
        self._observer = observer
        self._use_aiohttp = compress or credentials.proxy is not None  # our own connections support neither
        self._connections: Connections | None = None
        self._session: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._headers: dict[str, CIMultiDict[str]] = {}
        self._lines: dict[str, bytes] = {}  # the same in wire form
        self._identity = credentials.identity  # the identity that self._headers and self._lines were built with
        self._route: dict[str, Any] = {"allow_redirects": False}  # a redirect could carry the token elsewhere
        self._base = ""  # the path of the server's address
        if credentials.proxy:
            self._route["proxy"] = credentials.proxy
        if credentials.tls_server_name:
            self._route["server_hostname"] = credentials.tls_server_name

    @property
    def server(self) -> str:
        """The address requests go to."""
        return self._credentials.server

    async def __aenter__(self) -> "Transport":
        """Get ready; connections are made when they are needed."""
        self._credentials.open()
        if self._use_aiohttp:
            self._session = self._new_session(self._limit)
        else:
            self._connections = Connections(self._address(), self._limit)
        # No limit: there is one connection per reflector.
        self._streams = self._new_session(0, keepalive_timeout=_STREAMS_KEPT_S)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection."""
        await self._credentials.close()
        if self._connections is not None:
            await self._connections.close()
        for session in (self._session, self._streams):
            if session is not None:
                await session.close()
        self._session = self._streams = self._connections = None

    def distrust_idle(self) -> None:
        """Close idle connections: if one went silent, the others may be dead, too."""
        if self._connections is not None:
            self._connections.distrust_idle()

    async def send(self, call: Call, timeout_s: float) -> bytes:
        """Send a request and return the body of its successful answer."""
        started = perf_counter()
        status = 0
        try:
            if self._connections is not None:
                answer = await self._ask(self._connections, call, timeout_s)
            else:
                answer = await self._ask_over_aiohttp(call, timeout_s)
            status = answer.status
        except (aiohttp.ClientError, TimeoutError, RequestFailed) as error:
            raise errors.from_transport(call.verb, call.path, error, timeout_s, self.server) from error
        finally:
            self._observe(call, status, started)
        if status >= 300:
            raise errors.from_answer(call.verb, call.path, status, answer.body, answer.headers)
        return answer.body

    async def _ask(self, connections: Connections, call: Call, timeout_s: float) -> _Answered:
        """Send a request over our own connections; after a 401, once more with a fresh token if there is one."""
        self._credentials.look()
        repeatable = call.method == "GET"
        obstacle = None if repeatable else self._obstacle
        deadline = asyncio.get_running_loop().time() + timeout_s
        used = self._credentials.identity  # another request may refresh it before this answer arrives
        answer = await connections.ask(self._request(call), timeout_s, repeatable=repeatable, obstacle=obstacle)
        if answer.status == _UNAUTHORIZED and await self._credentials.refresh_after_refusal(used, _left(deadline)):
            timeout_s = _left(deadline)
            answer = await connections.ask(self._request(call), timeout_s, repeatable=repeatable, obstacle=obstacle)
        headers = {"Retry-After": answer.header("Retry-After")} if answer.status >= 300 else {}
        return _Answered(answer.status, answer.body, headers)

    def _request(self, call: Call) -> bytes:
        """Return a request in wire form, in one piece, because two pieces would be two packets."""
        target = self._base + call.path
        line = (
            call.method.encode() + b" " + checked_target(f"{target}?{urlencode(call.query)}" if call.query else target)
        )
        body = call.body
        if body is None:
            return line + self._lines_for("") + b"\r\n"
        return b"%b%bContent-Length: %d\r\n\r\n%b" % (line, self._lines_for(call.content_type), len(body), body)

    async def _ask_over_aiohttp(self, call: Call, timeout_s: float) -> _Answered:
        """Send a request over the session of aiohttp."""
        async with await self._respond(self._session, call, _total(timeout_s), timeout_s) as response:
            if response.status == _UNAUTHORIZED:
                response.close()  # the next request needs a new connection with the identity valid then
                return _Answered(response.status, b"", response.headers)
            return _Answered(response.status, await _read(response.read()), response.headers)

    @asynccontextmanager
    async def stream(self, call: Call, *, open_s: float, lasts_s: float, stall_s: float) -> AsyncIterator[Stream]:
        """Open a watch that the server ends after ``lasts_s`` and that must not be silent longer than ``stall_s``.

        A watch that has not ended shortly after its time counts as dead, whatever it brought before.
        """
        timeout = aiohttp.ClientTimeout(total=lasts_s + STREAM_GRACE_S, sock_connect=open_s, sock_read=stall_s)
        started = perf_counter()
        status = 0
        try:
            async with asyncio.timeout(open_s):
                response = await self._respond(self._streams, call, timeout, stall_s)
            status = response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            raise errors.from_transport(call.verb, call.path, error, min(open_s, stall_s), self.server) from error
        finally:
            self._observe(call, status, started)
        stream = Stream(response, call, stall_s, self.server)
        try:
            if status != 200:
                raise errors.from_answer(
                    call.verb, call.path, status, await _refusal(stream, min(open_s, _REFUSAL_S)), response.headers
                )
            yield stream
        finally:
            response.close()  # the rest of the body is not read, so the connection cannot be used again

    async def _respond(
        self, session: aiohttp.ClientSession | None, call: Call, timeout: aiohttp.ClientTimeout, timeout_s: float
    ) -> aiohttp.ClientResponse:
        """Return the response, its body unread; after a 401, send once more with a fresh token if there is one."""
        if session is None:
            raise RuntimeError("the API client is not open: use it in `async with`")
        self._credentials.look()
        text = self._credentials.server + call.path
        url = URL(f"{text}?{urlencode(call.query)}" if call.query else text, encoded=True)
        deadline = asyncio.get_running_loop().time() + timeout_s
        used = self._credentials.identity  # another request may refresh it before this answer arrives
        headers = self._headers_for(call)
        options = {**self._route, "timeout": timeout, "data": call.body}
        response = await session.request(call.method, url, headers=headers, **options)
        _end_body_with_connection(response)
        if response.status != _UNAUTHORIZED:
            return response
        if not await self._credentials.refresh_after_refusal(used, _left(deadline)):
            return response
        response.close()
        if timeout.sock_read is None:  # not a watch: the whole request must end in time
            options["timeout"] = aiohttp.ClientTimeout(total=_left(deadline))
        response = await session.request(call.method, url, headers=self._headers_for(call), **options)
        _end_body_with_connection(response)
        return response

    def _address(self) -> Address:
        parts = urlsplit(self._credentials.server)
        if not parts.hostname or parts.scheme not in ("http", "https"):
            raise ValueError(f"{self._credentials.server!r} is not an API server's address: write https://host:port")
        secure = parts.scheme == "https"
        tls = (self._credentials.tls or ssl.create_default_context()) if secure else None
        port = parts.port or (443 if secure else 80)
        self._base = parts.path
        return Address(parts.hostname, port, tls, self._credentials.tls_server_name)

    def _check_identity(self) -> None:
        """Forget headers that were built with another token, and connections made with another certificate."""
        before, now = self._identity, self._credentials.identity
        if now is not before:
            self._identity = now
            self._headers.clear()
            self._lines.clear()
            if self._connections is not None and now.certificate != before.certificate:
                self._connections.renew()

    def _lines_for(self, content_type: str) -> bytes:
        """Return the rest of the request line and the headers, built once per content type and token."""
        self._check_identity()
        lines = self._lines.get(content_type)
        if lines is None:
            headers = {"Host": urlsplit(self._credentials.server).netloc.rpartition("@")[2], **self._common}
            if content_type:
                headers["Content-Type"] = content_type
            if self._identity.authorization:
                headers["Authorization"] = self._identity.authorization
            lines = self._lines[content_type] = b" HTTP/1.1\r\n" + header_lines(headers)
        return lines

    def _headers_for(self, call: Call) -> CIMultiDict[str]:
        """Return the headers of a request, built once per content type and token."""
        self._check_identity()
        content_type = call.content_type if call.body is not None else ""
        headers = self._headers.get(content_type)
        if headers is None:
            headers = CIMultiDict(self._common)
            if content_type:
                headers["Content-Type"] = content_type
            if self._identity.authorization:
                headers["Authorization"] = self._identity.authorization
            self._headers[content_type] = headers
        return headers

    def _observe(self, call: Call, status: int, started: float) -> None:
        if self._observer is not None:
            self._observer(call.verb, resource_of(call.path), status, perf_counter() - started)

    def _new_session(self, limit: int, **options: Any) -> aiohttp.ClientSession:
        tls: Any = self._credentials.tls if self._credentials.tls is not None else True
        identity = self._credentials.identity
        if identity.certificate and identity.until is not None:
            options = {"force_close": True}  # a kept connection would outlive the certificate
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limit, ssl=tls, socket_factory=attentive_socket, **options),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # True looks for proxies and netrc at every request: 4.5 times the cost
            read_bufsize=READ_BUFFER,
            request_class=_obstructed_request(self._obstacle),
        )


def _obstructed_request(obstacle: Obstacle | None) -> type[aiohttp.ClientRequest]:
    """Return a request class that checks the obstacle to writes once it has a connection, and fails if there is one."""
    if obstacle is None:
        return aiohttp.ClientRequest
    why_not: Obstacle = obstacle

    class Asking(aiohttp.ClientRequest):
        async def send(self, conn: Any) -> aiohttp.ClientResponse:
            if self.method != "GET" and (why := why_not()):
                raise Withheld(why)
            return await super().send(conn)

    return Asking


def _end_body_with_connection(response: aiohttp.ClientResponse) -> None:
    """Let who reads the body hear that the connection is gone.

    aiohttp closes a connection that brings what is not HTTP, and tells nobody: a reader that waits goes on waiting.
    """
    connection, body = response.connection, response.content
    if connection is None or connection.protocol is None:
        return  # the whole answer is here

    def lost(closed: "asyncio.Future[None] | None") -> None:
        error = None if closed is None or closed.cancelled() else closed.exception()
        if not body.is_eof() and body.exception() is None:
            body.set_exception(error or aiohttp.ClientPayloadError("the connection was lost within the body"))

    closed = connection.protocol.closed
    if closed is None:
        lost(None)
    else:
        closed.add_done_callback(lost)
        body.on_eof(partial(_forget, closed, lost))  # a connection lasts, and must not keep each body that it brought


def _forget(closed: "asyncio.Future[None]", lost: Callable[["asyncio.Future[None] | None"], None]) -> None:
    closed.remove_done_callback(lost)


async def _refusal(stream: Stream, limit_s: float) -> bytes:
    """Return the body of an answer that is no watch; it may come in pieces, and its status counts without it."""
    body = b""
    with suppress(errors.ApiError, TimeoutError):
        async with asyncio.timeout(limit_s):
            while len(body) < READ_BUFFER and (piece := await stream.read()):
                body += piece
    return body


async def _read(body: Awaitable[bytes]) -> bytes:
    """Return what is read; a RuntimeError is what aiohttp raises if it has just closed the connection itself."""
    try:
        return await body
    except RuntimeError as error:
        raise aiohttp.ClientPayloadError(str(error)) from error


def _left(deadline: float) -> float:
    """Return the time left, never 0, because aiohttp takes 0 for no limit."""
    return max(deadline - asyncio.get_running_loop().time(), 0.001)


@lru_cache(maxsize=64)
def _total(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds)
