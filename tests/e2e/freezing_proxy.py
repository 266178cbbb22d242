"""A TCP proxy that can freeze its connections: they stay open, but the proxy drops all data.

It may stand before several servers, which get connections in turn.

with FreezingProxy(host, port) as proxy:
    proxy.freeze()  # like a load balancer that has lost its connection table; new connections work
"""

from __future__ import annotations

import asyncio
import threading
from itertools import cycle
from types import TracebackType

START_S = 10.0
GOODBYE_S = 0.1


class FreezingProxy:
    """One proxy, on a thread and an event loop of its own."""

    def __init__(self, host: str, *ports: int) -> None:
        self.port = 0
        self._upstreams = cycle((host, port) for port in ports)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="freezing proxy", daemon=True)
        self._open: set[object] = set()
        self._frozen: set[object] = set()

    def __enter__(self) -> FreezingProxy:
        """Begin to listen."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(START_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Break every connection and end."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(START_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._loop.close()

    def freeze(self) -> int:
        """Freeze all open connections, and return their number."""

        async def now() -> int:
            self._frozen |= self._open
            return len(self._open)

        return asyncio.run_coroutine_threadsafe(now(), self._loop).result(START_S)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        while left := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(GOODBYE_S)  # the loop closes the connections a moment later

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()  # a reference: the loop keeps none to idle connections
        to_reader, to_writer = await asyncio.open_connection(*next(self._upstreams))
        self._open.add(connection)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(2**16):
                    if connection not in self._frozen:
                        sink.write(data)
                        await sink.drain()
            except ConnectionError:
                pass  # one side has closed; the code below closes the other one, unless it is frozen
            if connection not in self._frozen:
                sink.close()

        try:
            await asyncio.gather(pump(reader, to_writer), pump(to_reader, writer))
        except asyncio.CancelledError:
            pass  # the test has ended; asyncio's streams fail on a cancelled task
        finally:
            self._open.discard(connection)
            writer.close()
            to_writer.close()
