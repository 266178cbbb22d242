"""A body ends with its connection, and a connection that lasts does not keep the bodies that it brought."""

import asyncio
import gc
import weakref
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
from aiohttp.base_protocol import BaseProtocol

from volcano_py.kube.transport import _end_body_with_connection


class Body(aiohttp.StreamReader):
    """A body of aiohttp to which weak references are possible."""


def a_body(closed: asyncio.Future[None]) -> Body:
    """Return the body of an answer that arrives on a connection."""
    loop = asyncio.get_running_loop()
    body = Body(BaseProtocol(loop), 2**16, loop=loop)
    connection = SimpleNamespace(protocol=SimpleNamespace(closed=closed))
    _end_body_with_connection(cast(Any, SimpleNamespace(connection=connection, content=body)))
    return body


async def test_a_body_that_waits_hears_that_its_connection_is_gone() -> None:
    closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    body = a_body(closed)

    closed.set_result(None)
    await asyncio.sleep(0)

    assert isinstance(body.exception(), aiohttp.ClientPayloadError)


async def test_a_connection_that_lasts_keeps_no_body_that_has_ended() -> None:
    closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    body = a_body(closed)
    known = weakref.ref(body)

    body.feed_eof()
    del body
    gc.collect()

    assert known() is None
    assert not closed.done()
