"""An HTTPS server for small questions and answers: `httptools` reads, this module holds the bounds.

    connection ──▶ head ──▶ `refusal` ──▶ body ──▶ `handle` ──▶ answer ──▶ next head
       │            │           │          │          └─▶ an awaitable: the connection waits for it, others go on
       └── each within a time, a number of connections and a number of bytes

Nobody who asks is known, so nothing is taken on trust. Whatever arrives, the process goes on. What is handled without
waiting is answered at once, without a task of its own: that is the common case, and the time of a webhook counts.
"""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

import httptools

_LONGEST_HEAD: Final = 64 * 1024
_MOST_AHEAD: Final = 16  # requests that a client may send before it has read their answers
_LINGER_S: Final = 1.0  # for the rest of a body that was turned away, so that the client reads the answer first
_SWEEP_S: Final = 1.0
_BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """What clients may take of the server."""

    body_limit: int = 3 * 1024 * 1024
    bytes_limit: int = 192 * 1024 * 1024
    """Of all bodies that are being read or handled."""
    connections_limit: int = 2000
    read_timeout_s: float = 10.0
    """For the TLS handshake, for the head of the first request of a connection, and for a request."""
    idle_s: float = 180.0
    """After which an idle connection is closed. API servers close theirs after 90 s: none is closed under them."""


class Question(NamedTuple):
    """A request; the body is empty while `refusal` is asked."""

    method: str
    target: str
    """Path and query."""
    content_type: str
    body: bytes = b""


class Answer(NamedTuple):
    """An answer; ``ends`` closes the connection after it."""

    status: int
    body: bytes
    content_type: str = "application/json"
    ends: bool = False


@dataclass(frozen=True, slots=True)
class Application:
    """What is served."""

    refusal: Callable[[Question], Answer | None]
    """Asked when the head of a request has come; an answer spares the body."""
    handle: Callable[[Question], Answer | Awaitable[Answer]]
    """Must not raise."""
    turned_away: Callable[[str], None]
    """Told when the server ends a request or a connection by itself, with the status or the reason."""


def turned_away(status: int, text: str) -> Answer:
    """Return an answer in plain text that ends the connection."""
    return Answer(status, f"{text}\n".encode(), "text/plain; charset=utf-8", ends=True)


class HttpServer:
    """Listens, and owns its connections; `start`, then `retire` and `close`."""

    def __init__(self, application: Application, tls: ssl.SSLContext, bounds: Bounds) -> None:
        self.application, self.bounds = application, bounds
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._connections: set[_Connection] = set()  # those before the end of the handshake included
        self._tasks: set[asyncio.Task[Answer]] = set()
        self._bytes = 0
        self.under_way = 0
        """How many requests are being read or handled."""
        self._nothing_under_way = asyncio.Event()
        self._nothing_under_way.set()
        self.retiring = False
        self._date = (0, b"")

    @property
    def port(self) -> int:
        """The port it listens on, also when 0 asked for a free one."""
        if self._server is None:
            raise RuntimeError("the server is not started")
        return int(self._server.sockets[0].getsockname()[1])

    async def start(self, host: str | None, port: int) -> None:
        """Begin to listen; raise OSError if the address cannot be had."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._accept,
            host,
            port,
            ssl=self._tls,
            ssl_handshake_timeout=self.bounds.read_timeout_s,
            ssl_shutdown_timeout=1.0,
            backlog=_BACKLOG,
        )
        self._sweeper = asyncio.create_task(self._sweep(), name="sweep connections")

    def retire(self) -> None:
        """Go on answering, but end every connection after its next answer."""
        self.retiring = True

    async def close(self, patience_s: float) -> int:
        """Accept nothing more, complete what is under way within a time, close all connections.

        Returns how many requests were cut off.
        """
        self.retire()
        if self._server is not None:
            self._server.close()
        try:
            async with asyncio.timeout(patience_s):
                await self._nothing_under_way.wait()
        except TimeoutError:
            pass  # the number says so
        cut_off = self.under_way
        tasks: list[asyncio.Task[Any]] = [*self._tasks, *([self._sweeper] if self._sweeper else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self._connections):
            connection.end()
        return cut_off

    def _accept(self) -> asyncio.BaseProtocol:
        if len(self._connections) >= self.bounds.connections_limit:
            self.application.turned_away("connections")
            return _TurnedAway()
        connection = _Connection(self)
        self._connections.add(connection)
        return connection

    async def _sweep(self) -> None:
        """End what takes too long, and forget connections whose handshake has failed."""
        while True:
            await asyncio.sleep(min(_SWEEP_S, self.bounds.read_timeout_s / 2))
            now = asyncio.get_running_loop().time()
            for connection in [one for one in self._connections if one.deadline < now]:
                connection.expire()

    # What connections tell

    def lost(self, connection: "_Connection") -> None:
        """Forget a connection."""
        self._connections.discard(connection)

    def begun(self) -> None:
        """Count a request whose head has come."""
        self.under_way += 1
        self._nothing_under_way.clear()

    def ended(self) -> None:
        """Count a request that is answered or given up."""
        self.under_way -= 1
        if not self.under_way:
            self._nothing_under_way.set()

    def reserve(self, size: int) -> bool:
        """Set bytes aside for a body; return False if there are too many already."""
        if self._bytes + size > self.bounds.bytes_limit:
            return False
        self._bytes += size
        return True

    def release(self, size: int) -> None:
        """Give bytes back."""
        self._bytes -= size

    def run(self, work: Awaitable[Answer]) -> asyncio.Task[Answer]:
        """Run the rest of a request in a task that the server owns."""
        task = asyncio.ensure_future(_awaited(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def date(self) -> bytes:
        """Return the value of the header Date, which changes once a second."""
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, formatdate(now, usegmt=True).encode())
        return self._date[1]


async def _awaited(work: Awaitable[Answer]) -> Answer:
    return await work


def _both_ways(transport: asyncio.BaseTransport) -> asyncio.Transport:
    """Return the transport as what it is; uvloop's has the methods, but not the base class."""
    return cast(asyncio.Transport, transport)


class _TurnedAway(asyncio.Protocol):
    """A connection beyond the limit: it ends after its handshake."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        _both_ways(transport).abort()


class _Request:
    """A request while it is read."""

    __slots__ = ("body", "content_type", "declared", "expects", "refusal", "reserved", "size", "target")

    def __init__(self) -> None:
        self.target = b""
        self.content_type = b""
        self.declared: int | None = None
        self.expects = False
        self.body: list[bytes] = []
        self.size = 0
        self.reserved = 0
        self.refusal: Answer | None = None


class _Connection(asyncio.Protocol):
    """One connection. The methods that begin with ``on_`` are called by the parser."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._request: _Request | None = None  # that is being read
        self._head_size = 0
        self._waiting: deque[tuple[Question, int, bool]] = deque()  # read, with reserved bytes and whether to go on
        self._busy: asyncio.Task[Answer] | None = None
        self._whole_head = False  # of the request that is being read
        self._closing = False
        self._paused = False
        self._asked = False
        self._loop = asyncio.get_running_loop()
        self.deadline = self._loop.time() + server.bounds.read_timeout_s
        """When it is ended, unless something happens before."""

    # Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = _both_ways(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing, self._transport = True, None
        if self._busy is not None:
            self._busy.cancel()
        self._give_up()
        self._server.lost(self)

    def pause_writing(self) -> None:
        """Handle nothing more while the client does not read its answers."""
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._next()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return None  # the rest of what was turned away
        if self._request is None or not self._whole_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            return self._refused_or(turned_away(400, "no other protocol is spoken here"))
        except httptools.HttpParserError as error:
            return self._refused_or(turned_away(400, f"the request cannot be read: {error}"))
        return self._after_read()

    def _refused_or(self, answer: Answer) -> None:
        request = self._request
        self._turn_away(answer if request is None or request.refusal is None else request.refusal)

    def _after_read(self) -> None:
        request = self._request
        if request is not None and request.refusal is not None:
            self._turn_away(request.refusal)
        elif len(self._waiting) > _MOST_AHEAD:
            self._turn_away(turned_away(400, "too many requests are sent ahead"))
        elif not self._whole_head and self._head_size > _LONGEST_HEAD:
            self._turn_away(turned_away(431, f"the head has more than {_LONGEST_HEAD} bytes"))
        else:
            self._next()

    # Parser

    def on_message_begin(self) -> None:
        if self._request is not None:
            return  # the one before is being turned away
        self._request = _Request()
        self._whole_head = False
        self._server.begun()
        self.deadline = self._loop.time() + self._server.bounds.read_timeout_s

    def on_url(self, url: bytes) -> None:
        assert self._request is not None
        self._request.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        request, name = self._request, name.lower()
        assert request is not None
        if name == b"content-type":
            request.content_type = value
        elif name == b"content-length":
            request.declared = int(value)  # the parser has accepted it
        elif name == b"expect":
            request.expects = value.lower() == b"100-continue"

    def on_headers_complete(self) -> None:
        request, server = self._request, self._server
        assert request is not None
        if request.refusal is not None:
            return
        self._asked = self._whole_head = True
        self._head_size = 0
        limit = server.bounds.body_limit
        request.refusal = server.application.refusal(self._question(request))
        if request.refusal is None and request.declared is not None and request.declared > limit:
            request.refusal = turned_away(413, f"the body has more than {limit} bytes")
        share = limit if request.declared is None else request.declared
        if request.refusal is None:
            if server.reserve(share):
                request.reserved = share
            else:
                request.refusal = turned_away(503, "too many reviews are under way: try again")
        if request.refusal is None and request.expects and self._transport is not None:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        request, limit = self._request, self._server.bounds.body_limit
        assert request is not None
        if request.refusal is None:
            request.size += len(data)
            if request.size > limit:
                request.body = []
                request.refusal = turned_away(413, f"the body has more than {limit} bytes")
            else:
                request.body.append(data)

    def on_message_complete(self) -> None:
        request = self._request
        assert request is not None
        if request.refusal is not None:
            return  # `_after_read` turns it away
        self._request = None
        question = self._question(request)._replace(body=b"".join(request.body))
        self._waiting.append((question, request.reserved, self._parser.should_keep_alive()))

    def _question(self, request: _Request) -> Question:
        content_type = request.content_type.partition(b";")[0].strip().lower()
        return Question(
            self._parser.get_method().decode("latin-1"),
            request.target.decode("latin-1"),
            content_type.decode("latin-1"),
        )

    # Answers

    def _next(self) -> None:
        """Handle what has been read, one request after the other."""
        while self._waiting and self._busy is None and not self._closing and not self._paused:
            question, reserved, goes_on = self._waiting.popleft()
            found = self._server.application.handle(question)
            if isinstance(found, Answer):
                self._answered(found, reserved, goes_on)
            else:
                self.deadline = float("inf")  # whoever handles it has a time limit
                self._busy = task = self._server.run(found)
                task.add_done_callback(partial(self._later, reserved, goes_on))

    def _later(self, reserved: int, goes_on: bool, task: asyncio.Task[Answer]) -> None:
        self._busy = None
        if task.cancelled():  # the client is gone, or the server ends
            self._server.release(reserved)
            self._server.ended()
            return
        self._answered(task.result(), reserved, goes_on)
        self._next()

    def _answered(self, answer: Answer, reserved: int, goes_on: bool) -> None:
        self._server.release(reserved)
        self._server.ended()
        if self._closing:
            return
        ends = answer.ends or self._server.retiring or not goes_on
        self._write(answer, ends)
        if ends:
            self.end()
        elif self._request is None:
            self.deadline = self._loop.time() + self._server.bounds.idle_s

    def _write(self, answer: Answer, ends: bool) -> None:
        if self._transport is None:
            return
        head = b"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nDate: %s\r\n%s\r\n" % (
            answer.status,
            HTTPStatus(answer.status).phrase.encode(),
            answer.content_type.encode(),
            len(answer.body),
            self._server.date(),
            b"Connection: close\r\n" if ends else b"",
        )
        self._transport.write(head + answer.body)

    # Ends

    def _turn_away(self, answer: Answer) -> None:
        """Answer, drop the rest that comes, and close after a moment."""
        self._server.application.turned_away(str(answer.status))
        self._write(answer, ends=True)
        self._closing = True
        self._give_up()
        self.deadline = self._loop.time() + _LINGER_S

    def _give_up(self) -> None:
        """Release what requests that will not be handled have taken."""
        if self._request is not None:
            self._server.release(self._request.reserved)
            self._server.ended()
            self._request = None
        while self._waiting:
            self._server.release(self._waiting.popleft()[1])
            self._server.ended()

    def expire(self) -> None:
        """End a connection whose time is over: say why, if a request has begun."""
        if self._transport is None:
            self._server.lost(self)  # the handshake has failed
        elif self._closing or self._busy is not None:
            self.end()
        elif self._request is not None and self._whole_head:
            text = f"the body did not arrive within {self._server.bounds.read_timeout_s:g} s"
            self._turn_away(turned_away(408, text))
        else:
            if not self._asked:
                self._server.application.turned_away("silent connection")
            self.end()

    def end(self) -> None:
        """Close the connection; what has been written is still sent."""
        self._closing = True
        self._give_up()
        if self._transport is not None:
            self._transport.close()
        else:
            self._server.lost(self)
