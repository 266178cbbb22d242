"""An HTTP proxy in front of a real API server; it misbehaves as loaded servers and broken networks do.

    with FaultyProxy(plane.server_url, plane.ssl_context_without_certificate()) as proxy:
        proxy.faults = Faults(too_many=0.15, lost_answers=0.02, watch_s=(0.2, 2.0))
        held = proxy.hold_binding("train-0")

It listens on loopback over plain HTTP, passes credentials through, and counts its faults and every Binding.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import threading
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType

import aiohttp
from aiohttp import web
from yarl import URL

START_S = 10.0
TLS_GOODBYE_S = 0.5
UPSTREAM_S = 30.0
HELD_S = 30.0  # the longest time that a request is held
HOP_BY_HOP = frozenset({"connection", "host", "keep-alive", "transfer-encoding", "content-length", "content-encoding"})
BINDING = "/binding"


@dataclass(frozen=True)
class Faults:
    """Which faults to inject; `too_many` and `lost_answers` are shares of requests."""

    too_many: float = 0.0
    """Requests that are answered with 429 and Retry-After, and not carried out; watches and lists, too."""
    lost_answers: float = 0.0
    """Bindings that are carried out, but whose connection breaks before the answer."""
    watch_s: tuple[float, float] | None = None
    """Each watch is cut in the middle of a chunk, after a random time between these two."""
    silent: str = ""
    """A resource whose watches begin as usual and deliver nothing."""
    code: int = 0
    """The status with which every request is answered instead of being carried out; 0 for none."""
    garbage: bool = False
    """Every request is answered with an HTML page, or with bytes that are not HTTP, and not carried out."""


class Held:
    """A Binding that the proxy forwards only after its release."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        self.uid: Future[str] = Future()
        """The uid of its pod, once the Binding has arrived."""
        self._release = threading.Event()

    def release(self) -> None:
        """Let it be forwarded."""
        self._release.set()

    async def pass_on(self, uid: str) -> None:
        """Note that it has arrived, and wait for its release."""
        self.uid.set_result(uid)
        if not await asyncio.to_thread(self._release.wait, HELD_S):
            raise TimeoutError(f"the binding of {self.pod} was held for {HELD_S:g} s and never released")


class FaultyProxy:
    """One proxy, on a thread and an event loop of its own; every choice comes from one seeded generator."""

    def __init__(self, upstream: str, context: ssl.SSLContext, seed: int = 0) -> None:
        self.faults = Faults()
        self.done: Counter[str] = Counter()
        """Counts of too_many, lost_answers, cut_watches, and left_watches (those that the scheduler ended)."""
        self.bindings: dict[int, Counter[str]] = {}
        """Answers of the API server to Bindings: counts by status code and pod uid."""
        self.url = ""
        self._upstream = upstream
        self._context = context
        self._random = random.Random(seed)
        self._held: dict[str, Held] = {}  # by pod, until its Binding arrives
        self._ever_held: list[Held] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty proxy", daemon=True)

    def __enter__(self) -> FaultyProxy:
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

    def hold_binding(self, pod: str) -> Held:
        """Hold the next Binding of a pod of this name."""
        held = self._held[pod] = Held(pod)
        self._ever_held.append(held)
        return held

    async def _start(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._context)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        for held in self._ever_held:  # a failed test may not have released it
            held.release()
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}  # watches that still run
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._session.close()
        await asyncio.sleep(TLS_GOODBYE_S)  # the session does not wait until its TLS connections are closed

    def _befalls(self, share: float) -> bool:
        return share > 0 and self._random.random() < share

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._befalls(self.faults.too_many):
            self.done["too_many"] += 1
            return _refusal(429, "TooManyRequests")
        if self.faults.code:
            self.done[str(self.faults.code)] += 1
            return _refusal(self.faults.code, "Refused")
        if self.faults.garbage:
            self.done["garbage"] += 1
            if self._befalls(0.5) and request.transport is not None:
                request.transport.write(b"\x16\x03\x01 no HTTP\r\n\r\n")
                _break(request)
            return web.Response(text="<html>please log in</html>", content_type="text/html")
        body = await request.read()
        binding = request.method == "POST" and request.path.endswith(BINDING)
        uid = ""
        if binding:
            uid = str(json.loads(body)["metadata"]["uid"])
            held = self._held.pop(request.path.split("/")[-2], None)
            if held is not None:
                await held.pass_on(uid)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=UPSTREAM_S)
        url = URL(self._upstream + request.raw_path, encoded=True)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        async with self._session.request(request.method, url, data=body, headers=headers, timeout=timeout) as answer:
            if request.query.get("watch") in ("true", "1"):
                return await self._watch(request, answer)
            content = await answer.read()
        if binding:
            self.bindings.setdefault(answer.status, Counter())[uid] += 1
            if self._befalls(self.faults.lost_answers):
                self.done["lost_answers"] += 1
                _break(request)
        return web.Response(status=answer.status, body=content, headers=_end_to_end(answer))

    async def _watch(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=_end_to_end(answer))
        response.enable_chunked_encoding()
        await response.prepare(request)
        silent = request.path.rpartition("/")[2] == self.faults.silent
        lasts_s = None if self.faults.watch_s is None else self._random.uniform(*self.faults.watch_s)
        try:
            async with asyncio.timeout(lasts_s):
                async for chunk in answer.content.iter_any():
                    if not silent:
                        await response.write(chunk)
        except TimeoutError:
            self.done["cut_watches"] += 1
            _break(request)
        except ConnectionResetError:
            self.done["left_watches"] += 1  # the scheduler has ended
        return response


def _end_to_end(answer: aiohttp.ClientResponse) -> dict[str, str]:
    kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
    if encoding := answer.headers.get("Content-Encoding"):
        kept["Content-Encoding"] = encoding  # the body is forwarded unchanged
    return kept


def _break(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _refusal(code: int, reason: str) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": "the proxy refuses; please try again later",
    }
    return web.json_response(status, status=code, headers={"Retry-After": "1"} if code == 429 else {})
