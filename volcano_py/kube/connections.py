"""A pool of kept connections to one server, each with one request at a time: the minimum of HTTP/1.1.

A request costs half of what it costs in a session of aiohttp (docs/performance.md), and a bind is little else than a
request. Proxies, compression and watches are left to aiohttp.

    connecting ──▶ asked ──▶ idle ──▶ asked ...      the idle connection used last is used again first
        │            │         └───▶ closed          after a while, or by the server
        └────────────┴─────────────▶ closed          no answer in time, malformed, cut, or the server says so
"""

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.kube.http1 import Answer, AnswerReader, Malformed
from volcano_py.kube.sockets import notice_dead_peers

KEEP_ALIVE_S: Final = 30.0  # API servers keep idle connections for longer, and so do most balancers
_ATTEMPT_S: Final = 3.0  # per address, while there are others
_CLOSE_S: Final = 1.0
_UNAUTHORIZED: Final = 401

Obstacle = Callable[[], str]
"""Says why a request must not be sent now, "" if it may."""


class RequestFailed(Exception):
    """There is no complete answer; ``sent`` says whether the server may have received the request."""

    sent = True


class NoConnection(RequestFailed):
    """No connection could be made; the cause says why."""

    sent = False


class NoConnectionInTime(RequestFailed):
    """No connection became free or could be made in time."""

    sent = False


class Withheld(RequestFailed):
    """The request was not sent because an obstacle forbids it now; the message says why."""

    sent = False


class NoAnswerInTime(RequestFailed):
    """The request was sent and not answered in time."""


class ConnectionCut(RequestFailed):
    """The connection broke before the answer was complete."""

    def __init__(self, message: str, *, within_answer: bool, stale: bool = False) -> None:
        super().__init__(message)
        self.within_answer = within_answer
        self.stale = stale  # most likely closed while idle: no byte of an answer came


@dataclass(frozen=True)
class Address:
    """Where a server is and how to trust it."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    server_name: str | None = None  # name that its certificate must have; None: the host


class Connection(asyncio.Protocol):
    """One connection; its owner sends a request, waits for the answer, and may then send the next one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._reader = AnswerReader()
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self.used = False
        """Whether it has carried a request that was answered."""
        self.idle_since = 0.0
        self.open = False
        self.last = False  # whether it closes after the request that is under way
        self.lost: asyncio.Future[None] = loop.create_future()

    async def ask(self, request: bytes, deadline: float) -> Answer:
        """Send a request and return its answer; close the connection if there is none."""
        if self._transport is None or not self.open:
            raise ConnectionCut("it was closed while it was idle", within_answer=False, stale=True)
        self._waiting = waiting = self._loop.create_future()
        timer = self._loop.call_at(deadline, self._fail, NoAnswerInTime())
        self._transport.write(request)
        try:
            answer: Answer = await waiting
        except BaseException:
            self.close()  # a late answer would be taken for that of the next request
            raise
        finally:
            timer.cancel()
            self._waiting = None
        self.used = True
        if self.last or not answer.reusable or answer.status == _UNAUTHORIZED:
            self.close()  # the client certificate of this connection may have been renewed since
        return answer

    def close(self) -> None:
        """Close it."""
        self.open = False
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close it at once, without a TLS close message to the server."""
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: Any) -> None:
        """Note that it is open (called by the loop)."""
        self._transport = transport
        self.open = True

    def data_received(self, data: bytes) -> None:
        """Take a part of an answer (called by the loop)."""
        waiting = self._waiting
        if waiting is None or waiting.done():
            self.close()  # no request is under way
            return
        try:
            answer = self._reader.feed(data)
        except Malformed as problem:
            self._fail(ConnectionCut(f"its answer is not HTTP/1.1: {problem}", within_answer=False))
            return
        if answer is not None:
            waiting.set_result(answer)

    def eof_received(self) -> None:
        """Note that the server sends nothing more (called by the loop, which then closes the connection)."""
        self.open = False

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that it is closed, and end the request under way (called by the loop)."""
        self.open = False
        if not self.lost.done():
            self.lost.set_result(None)
        waiting = self._waiting
        if waiting is None or waiting.done():
            return
        answer = self._reader.end() if exc is None else None
        if answer is not None:
            waiting.set_result(answer)
            return
        begun = self._reader.begun
        message = str(exc) if exc else "the server closed it"
        self._fail(ConnectionCut(message, within_answer=begun, stale=self.used and not begun))

    def _fail(self, problem: RequestFailed) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(problem)


class Connections:
    """At most ``limit`` connections to one server; further requests wait for one, first come first served."""

    def __init__(self, address: Address, limit: int) -> None:
        self._address = address
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._count = 0  # connections, including those being made
        self._all: set[Connection] = set()
        self._idle: list[Connection] = []
        self._queue: deque[asyncio.Future[Connection | None]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._reached: Any = None  # the socket address that worked last

    async def ask(
        self, request: bytes, timeout_s: float, *, repeatable: bool, obstacle: Obstacle | None = None
    ) -> Answer:
        """Send a request and return its answer; raise RequestFailed if there is none.

        A ``repeatable`` request is sent once more if the server had closed the idle connection used for it. The
        ``obstacle`` is checked at the moment of sending, after any wait for a connection.
        """
        deadline = self._loop.time() + timeout_s
        connection = self._take_idle() or await self._connection(deadline)
        try:
            return await self._ask_over(connection, request, deadline, obstacle)
        except ConnectionCut as problem:
            if not (problem.stale and repeatable):
                raise
        self.distrust_idle()  # the others are most likely closed, too
        return await self._ask_over(await self._connection(deadline), request, deadline, obstacle)

    def distrust_idle(self) -> None:
        """Close all idle connections: if one broke or went silent, most likely all of its age did."""
        for connection in self._idle:
            connection.abort()

    async def _ask_over(
        self, connection: Connection, request: bytes, deadline: float, obstacle: Obstacle | None
    ) -> Answer:
        reused = connection.used
        try:
            if obstacle is not None and (why := obstacle()):
                raise Withheld(why)
            answer = await connection.ask(request, deadline)
        except NoAnswerInTime:
            if reused:
                self.distrust_idle()
            raise
        finally:
            self._give_back(connection)
        if answer.status == _UNAUTHORIZED and reused:
            self.distrust_idle()
        return answer

    def renew(self) -> None:
        """Close every connection once it is idle, so that new ones present the renewed certificate."""
        for connection in self._all:
            connection.last = True
        for connection in self._idle:
            connection.close()

    async def close(self) -> None:
        """Close every connection; requests under way fail."""
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in self._all:
            connection.close()
        lost = [connection.lost for connection in self._all]
        if lost:
            await asyncio.wait(lost, timeout=_CLOSE_S)
        for connection in self._all:
            connection.abort()

    def _take_idle(self) -> Connection | None:
        """Return the connection that was used last."""
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                return connection
            self._forget(connection)
        return None

    async def _connection(self, deadline: float) -> Connection:
        """Return an idle connection, a new one within the limit, or the next one that is returned."""
        while True:
            connection = self._take_idle()
            if connection is not None:
                return connection
            if self._count < self._limit:
                return await self._connect(deadline)
            connection = await self._turn(deadline)
            if connection is not None:
                if connection.open:
                    return connection
                self._forget(connection)

    async def _turn(self, deadline: float) -> Connection | None:
        """Wait for a connection that another request gives back; None: a new one may be made."""
        turn: asyncio.Future[Connection | None] = self._loop.create_future()
        self._queue.append(turn)
        try:
            async with asyncio.timeout_at(deadline):
                return await turn
        except BaseException as problem:
            if turn.done() and not turn.cancelled():
                self._pass_on(turn.result())
            elif turn in self._queue:
                self._queue.remove(turn)
            if isinstance(problem, TimeoutError):
                raise NoConnectionInTime from problem
            raise

    def _give_back(self, connection: Connection) -> None:
        if not connection.open:
            self._forget(connection)
            return
        connection.idle_since = self._loop.time()
        self._pass_on(connection)
        if self._idle and self._sweep is None:
            self._sweep = self._loop.call_later(KEEP_ALIVE_S, self._close_idle)

    def _forget(self, connection: Connection) -> None:
        """Drop a closed connection, so that another one may be made."""
        self._all.discard(connection)
        self._count -= 1
        self._pass_on(None)

    def _pass_on(self, connection: Connection | None) -> None:
        """Give a connection, or (None) the right to make one, to the request that has waited longest."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(connection)
                return
        if connection is not None:
            self._idle.append(connection)

    def _close_idle(self) -> None:
        self._sweep = None
        before = self._loop.time() - KEEP_ALIVE_S
        kept = []
        for connection in self._idle:
            if connection.open and connection.idle_since > before:
                kept.append(connection)
            else:
                connection.close()
                self._forget(connection)
        self._idle = kept
        if kept:
            self._sweep = self._loop.call_later(KEEP_ALIVE_S, self._close_idle)

    async def _connect(self, deadline: float) -> Connection:
        self._count += 1
        try:
            async with asyncio.timeout_at(deadline):
                connection = await self._open()
        except TimeoutError as problem:
            self._count -= 1
            self._pass_on(None)
            raise NoConnectionInTime from problem
        except OSError as problem:  # the host cannot be resolved, reached or trusted
            self._count -= 1
            self._pass_on(None)
            raise NoConnection(str(problem)) from problem
        except BaseException:
            self._count -= 1
            self._pass_on(None)
            raise
        self._all.add(connection)
        return connection

    async def _open(self) -> Connection:
        """Connect to the address that worked last, or else to the first that works."""
        host, port = self._address.host, self._address.port
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        places = sorted({entry[4][:2]: None for entry in found}, key=lambda place: place != self._reached)
        problem: Exception = OSError(f"{host} has no address")
        for number, place in enumerate(places):
            last = number + 1 == len(places)
            try:
                async with asyncio.timeout(None if last else _ATTEMPT_S):
                    connection = await self._open_at(str(place[0]), int(place[1]))
            except ssl.SSLError:
                raise
            except (OSError, TimeoutError) as error:
                problem = error
            else:
                self._reached = place
                return connection
        raise problem

    async def _open_at(self, host: str, port: int) -> Connection:
        tls = self._address.tls
        name = (self._address.server_name or self._address.host) if tls is not None else None
        transport, connection = await self._loop.create_connection(
            lambda: Connection(self._loop), host, port, ssl=tls, server_hostname=name
        )
        notice_dead_peers(transport.get_extra_info("socket"))
        return connection
