"""A load balancer that silently loses its connections: both ends believe they are open, but no data passes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class FreezingProxy:
    """Forwards bytes between its clients and one server; connections opened after a freeze work."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname, parts.port)
        self._frozen: set[object] = set()
        self._connections: set[object] = set()
        self.url = ""

    def freeze(self) -> int:
        """From now on drop all data of the open connections; return their number."""
        self._frozen |= self._connections
        return len(self._connections)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection."""
        connection = object()
        self._connections.add(connection)
        up_reader, up_writer = await asyncio.open_connection(*self._upstream)
        try:
            await asyncio.gather(self._pump(connection, reader, up_writer), self._pump(connection, up_reader, writer))
        finally:
            self._connections.discard(connection)
            writer.close()
            up_writer.close()

    async def _pump(self, connection: object, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                if connection not in self._frozen:
                    target.write(data)
                    await target.drain()
            if connection not in self._frozen:
                target.close()
        except ConnectionError:
            target.close()


@asynccontextmanager
async def a_freezing_proxy(upstream: str) -> AsyncIterator[FreezingProxy]:
    proxy = FreezingProxy(upstream)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(proxy.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
