"""Watches whose bytes are not HTTP any more: something between the server and us has spoiled them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.errors import ConnectionFailed, Gone, Timeout
from volcano_py.kube.resource import PODS
from volcano_py.kube.transport import Stream

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
LINE = b'5\r\n{"a"}\r\n'


@asynccontextmanager
async def serving(*pieces: tuple[float, bytes], ends: bool) -> AsyncIterator[str]:
    """Answer every request with pieces of bytes, each after a pause; then end the connection, or keep it open."""
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for pause_s, piece in pieces:
            await asyncio.sleep(pause_s)
            writer.write(piece)
        if not ends:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        try:
            yield f"http://{host}:{port}"
        finally:
            over.set()


@asynccontextmanager
async def a_client(address: str, *, compress: bool = False) -> AsyncIterator[ApiClient]:
    """Give a client to a test that may last 20 seconds: less than a watch that stalls."""
    async with ApiClient(Credentials(address), compress=compress) as client, asyncio.timeout(20.0):
        yield client


async def read_all(stream: Stream, pause_s: float) -> None:
    """Read to the end, slowly."""
    for _ in range(10):
        if not await stream.read():
            return
        await asyncio.sleep(pause_s)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("pause_s", [0.0, 0.2])
@pytest.mark.parametrize("spoiled", [b"zz\r\nwhat", b'5\r\n{"b"}what'])
async def test_a_spoiled_watch_breaks_off(spoiled: bytes, pause_s: float, *, ends: bool) -> None:
    async with (
        serving((0.0, HEAD + LINE), (0.05, spoiled), ends=ends) as address,
        a_client(address) as client,
        client.watch(PODS, {}, lasts_s=60.0, stall_s=30.0) as stream,
    ):
        assert await stream.read() == b'{"a"}'
        await asyncio.sleep(pause_s)
        with pytest.raises(ConnectionFailed):
            await read_all(stream, pause_s)


@pytest.mark.parametrize("ends", [True, False])
async def test_a_spoiled_answer_over_the_session_of_aiohttp_fails(*, ends: bool) -> None:
    pieces = ((0.0, HEAD + LINE), (0.05, b"zz\r\nwhat"))
    async with serving(*pieces, ends=ends) as address, a_client(address, compress=True) as client:
        with pytest.raises(ConnectionFailed):
            await client.list_bytes(PODS, {})


REFUSAL = (
    b'{"kind":"Status","message":"too large","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}'
)


@pytest.mark.parametrize("ends", [True, False])
async def test_a_refusal_of_a_watch_that_comes_in_pieces_is_read_to_its_end(*, ends: bool) -> None:
    head = b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: %d\r\n\r\n" % len(REFUSAL)
    pieces = ((0.0, head + REFUSAL[:30]), (0.05, REFUSAL[30:]))
    async with serving(*pieces, ends=ends) as address, a_client(address) as client:
        with pytest.raises(Timeout, match="too large") as caught:
            async with client.watch(PODS, {}, lasts_s=60.0, stall_s=30.0):
                pass
    assert caught.value.details is not None
    assert caught.value.details.causes[0].reason == "ResourceVersionTooLarge"


async def test_a_refusal_of_a_watch_that_breaks_off_counts_without_its_text() -> None:
    head = b"HTTP/1.1 410 Gone\r\nContent-Length: 999\r\n\r\n"
    async with serving((0.0, head + REFUSAL[:30]), ends=True) as address, a_client(address) as client:
        with pytest.raises(Gone):
            async with client.watch(PODS, {}, lasts_s=60.0, stall_s=30.0):
                pass
