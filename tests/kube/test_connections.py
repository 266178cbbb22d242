"""Kept connections: used again, bounded, and never trusted after anything went wrong."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.effects.waiting import until
from tests.kube.certificates import Authority
from volcano_py.kube import connections
from volcano_py.kube.connections import (
    Address,
    ConnectionCut,
    Connections,
    NoAnswerInTime,
    NoConnection,
    NoConnectionInTime,
    Withheld,
)

REQUEST = b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """A server that does with each connection what the test says; counts them."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.accepted = 0
        self.ended = 0
        self.requests = 0
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                await self._script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or the test is over
        finally:
            writer.close()
            self.ended += 1

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[Address]:
        """Serve while the block runs."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        try:
            yield Address("127.0.0.1", port)
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()


@asynccontextmanager
async def opened(address: Address, limit: int = 4) -> AsyncIterator[Connections]:
    """Connections that are closed at the end."""
    pool = Connections(address, limit)
    try:
        yield pool
    finally:
        await pool.close()


async def answer_ok(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(OK)


async def ask(pool: Connections, timeout_s: float = 5, *, repeatable: bool = False) -> bytes:
    return (await pool.ask(REQUEST, timeout_s, repeatable=repeatable)).body


async def test_a_connection_is_used_again() -> None:
    server = Server(answer_ok)
    async with server.running() as address, opened(address) as pool:
        assert [await ask(pool) for _ in range(3)] == [b"ok"] * 3

    assert (server.accepted, server.requests) == (1, 3)


async def test_no_more_connections_than_allowed_and_everybody_is_answered() -> None:
    async def slowly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.002)
        writer.write(OK)

    server = Server(slowly)
    async with server.running() as address, opened(address, limit=3) as pool:
        assert await asyncio.gather(*(ask(pool) for _ in range(20))) == [b"ok"] * 20

    assert (server.accepted, server.requests) == (3, 20)


async def test_a_connection_that_the_server_wants_closed_is_not_used_again() -> None:
    async def once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")

    server = Server(once)
    async with server.running() as address, opened(address, limit=1) as pool:
        assert [await ask(pool) for _ in range(3)] == [b"ok"] * 3

    assert server.accepted == 3


async def test_after_a_401_older_connections_are_not_used_again() -> None:
    """A server may know a client by the certificate that the connection began with."""
    answers = iter([OK, OK, b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"])

    async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.01)
        writer.write(next(answers, OK))

    server = Server(say)
    async with server.running() as address, opened(address) as pool:
        await asyncio.gather(ask(pool), ask(pool))  # two connections, of the same age
        statuses = [(await pool.ask(REQUEST, 5, repeatable=False)).status for _ in range(3)]

    assert statuses == [401, 200, 200]
    assert server.accepted == 3  # the other one was not trusted either


async def test_after_a_time_out_over_a_used_connection_no_idle_one_is_trusted() -> None:
    silent = False

    async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600 if silent and server.accepted == 3 else 0.01)
        writer.write(OK)

    server = Server(say)
    async with server.running() as address, opened(address) as pool:
        await asyncio.gather(ask(pool), ask(pool), ask(pool))
        silent = True
        with pytest.raises(NoAnswerInTime):
            await ask(pool, 0.1)

        assert await ask(pool, 10) == b"ok"

    assert server.accepted == 4


async def test_the_obstacle_is_checked_after_the_wait_for_a_connection() -> None:
    sent: list[str] = []
    why = ""

    async def slowly(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.append(why)
        await asyncio.sleep(0.1)
        writer.write(OK)

    server = Server(slowly)
    async with server.running() as address, opened(address, limit=1) as pool:
        asking = [
            asyncio.create_task(pool.ask(REQUEST, 5, repeatable=False, obstacle=lambda: why), name=str(number))
            for number in range(3)
        ]
        await until(lambda: sent)
        why = "the lease is lost"
        found = await asyncio.gather(*asking, return_exceptions=True)
        why = ""
        assert await ask(pool) == b"ok"  # and the connection serves others

    assert sent == ["", ""]
    assert [str(problem) for problem in found[1:]] == ["the lease is lost"] * 2
    assert all(isinstance(problem, Withheld) for problem in found[1:])


class _Leaver:
    """Answers the first request of the first connection, and leaves at its second without a word."""

    def __init__(self) -> None:
        self.seen = 0

    async def __call__(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen += 1
        if self.seen == 2:
            writer.close()
        else:
            writer.write(OK)


async def test_a_repeatable_request_on_a_connection_closed_meanwhile_is_sent_again() -> None:
    server = Server(_Leaver())
    async with server.running() as address, opened(address) as pool:
        assert [await ask(pool, repeatable=True) for _ in range(2)] == [b"ok"] * 2

    assert (server.accepted, server.requests) == (2, 3)


async def test_a_request_that_must_not_be_repeated_is_not() -> None:
    server = Server(_Leaver())
    async with server.running() as address, opened(address) as pool:
        await ask(pool)
        with pytest.raises(ConnectionCut) as cut:
            await ask(pool)
        assert (cut.value.sent, cut.value.within_answer) == (True, False)
        assert await ask(pool) == b"ok"

    assert server.requests == 3


async def test_a_connection_cut_within_an_answer_says_so() -> None:
    async def half(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK[:-1])
        writer.close()

    async with Server(half).running() as address, opened(address) as pool:
        with pytest.raises(ConnectionCut) as cut:
            await ask(pool, repeatable=True)
    assert cut.value.within_answer


async def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one() -> None:
    late = asyncio.Event()

    async def first_late(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if server.requests == 1:
            await late.wait()
            writer.write(OK.replace(b"ok", b"no"))
        else:
            writer.write(OK)

    server = Server(first_late)
    async with server.running() as address, opened(address, limit=1) as pool:
        with pytest.raises(NoAnswerInTime):
            await ask(pool, timeout_s=0.3)
        late.set()
        assert await ask(pool) == b"ok"

    assert server.accepted == 2


async def test_a_cancelled_request_gives_its_place_to_the_next() -> None:
    asked = asyncio.Event()

    async def first_never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        if server.requests > 1:
            writer.write(OK)

    server = Server(first_never)
    async with server.running() as address, opened(address, limit=1) as pool:
        first = asyncio.create_task(ask(pool))
        await asyncio.wait_for(asked.wait(), 5)
        second = asyncio.create_task(ask(pool))
        waits_and_gives_up = asyncio.create_task(ask(pool))
        await asyncio.sleep(0)
        for task in (waits_and_gives_up, first):
            task.cancel()
        assert await second == b"ok"
        await asyncio.gather(first, waits_and_gives_up, return_exceptions=True)
        assert await ask(pool) == b"ok"


async def test_waiting_for_a_connection_respects_the_deadline() -> None:
    async def never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pass

    async with Server(never).running() as address, opened(address, limit=1) as pool:
        first = asyncio.create_task(ask(pool, timeout_s=5))
        await asyncio.sleep(0)
        with pytest.raises(NoConnectionInTime) as late:
            await ask(pool, timeout_s=0.02)
        assert not late.value.sent
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)


async def test_bytes_that_nobody_asked_for_close_the_connection() -> None:
    async def too_much(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        await asyncio.sleep(0.01)
        writer.write(OK)

    server = Server(too_much)
    async with server.running() as address, opened(address) as pool:
        assert await ask(pool) == b"ok"
        await until(lambda: server.ended)  # the client has noticed
        assert await ask(pool) == b"ok"

    assert server.accepted == 2


async def test_an_answer_that_is_not_http_is_a_broken_connection() -> None:
    async def noise(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example ESMTP\r\n\r\n")

    async with Server(noise).running() as address, opened(address) as pool:
        with pytest.raises(ConnectionCut, match=r"not HTTP/1\.1"):
            await ask(pool)


async def test_idle_connections_are_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 0.02)
    server = Server(answer_ok)
    async with server.running() as address, opened(address) as pool:
        await ask(pool)
        await asyncio.sleep(0.08)
        await ask(pool)

    assert server.accepted == 2


async def test_a_server_that_is_not_there_is_no_connection() -> None:
    async with Server(answer_ok).running() as address:
        pass
    async with opened(address, limit=1) as pool:
        for _ in range(2):  # and the place is free again
            with pytest.raises(NoConnection):
                await ask(pool)


async def test_closing_fails_requests_in_flight() -> None:
    asked = asyncio.Event()

    async def never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()

    async with Server(never).running() as address, opened(address) as pool:
        under_way = asyncio.create_task(ask(pool))
        await asyncio.wait_for(asked.wait(), 5)
        await pool.close()
        with pytest.raises(ConnectionCut):
            await under_way


def _server_tls(authority: Authority) -> ssl.SSLContext:
    pair = authority.sign("server", address="127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


async def test_tls_to_a_server_that_is_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server = Server(answer_ok)
    async with server.running(_server_tls(authority)) as address:
        tls = ssl.create_default_context(cafile=str(authority.file))
        async with opened(Address(address.host, address.port, tls)) as pool:
            assert [await ask(pool) for _ in range(2)] == [b"ok"] * 2

    assert server.accepted == 1


@pytest.mark.parametrize("server_name", [None, "another.example"])
async def test_no_request_is_sent_to_a_server_that_is_not_trusted(tmp_path: Path, server_name: str | None) -> None:
    authority = Authority(tmp_path)
    server = Server(answer_ok)
    async with server.running(_server_tls(authority)) as address:
        cafile = str(authority.file) if server_name else None
        tls = ssl.create_default_context(cafile=cafile)
        async with opened(Address(address.host, address.port, tls, server_name)) as pool:
            with pytest.raises(NoConnection) as refused:
                await ask(pool)
    assert isinstance(refused.value.__cause__, ssl.SSLError)
    assert server.requests == 0
