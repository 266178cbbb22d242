"""The HTTP session under the client: connections, headers, deadlines, one retry after a refused token.

Every request is reported to an observer and ends in its answer or in an :class:`~volcano_py.kube.errors.ApiError`.
Watches use connections of their own, so that they never wait behind writes.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple
from urllib.parse import urlencode

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from volcano_py.kube import errors
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import target_of

READ_BUFFER = 2**21  # a watch line holds one whole object, and etcd allows 1.5 MiB
STREAM_GRACE_S = 30.0  # a watch is ended by the server; this much later we end it

RequestObserver = Callable[[str, str, int, float], None]
"""Told of every request: verb, resource, HTTP status (0: no answer), seconds (of a watch: until it is open)."""


class Call(NamedTuple):
    """A request before it has a connection."""

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
        """Return what has arrived, waiting for something to; empty at the end.

        Raises Timeout when nothing arrives for the stall time, ConnectionFailed when the connection breaks.
        """
        try:
            return await self._response.content.readany()
        except TimeoutError as error:
            message = f"nothing received from {self._server} for {self._stall_s:g} s"
            raise errors.Timeout("watch", self._call.path, message) from error
        except aiohttp.ClientError as error:
            raise errors.from_transport("watch", self._call.path, error, self._stall_s, self._server) from error


class Transport:
    """Sessions to one API server; use it as an asynchronous context manager."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections: int,
        user_agent: str,
        compress: bool,
        observer: RequestObserver | None,
    ) -> None:
        self._credentials = credentials
        self._connections = connections
        self._common = {
            "User-Agent": user_agent,
            "Accept": "application/json",
            # Compressing lists costs the API server more than sending them costs a network inside the cluster.
            "Accept-Encoding": "gzip" if compress else "identity",
        }
        self._observer = observer
        self._session: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._headers: dict[str, CIMultiDict[str]] = {}
        self._authorization: str | None = None  # what self._headers were built with
        self._route: dict[str, Any] = {"allow_redirects": False}  # a redirect could carry the token elsewhere
        if credentials.proxy:
            self._route["proxy"] = credentials.proxy
        if credentials.tls_server_name:
            self._route["server_hostname"] = credentials.tls_server_name

    @property
    def server(self) -> str:
        """The address requests go to."""
        return self._credentials.server

    async def __aenter__(self) -> "Transport":
        """Open the sessions; connections are made when they are needed."""
        self._session = self._new_session(self._connections)
        self._streams = self._new_session(0)  # unlimited: as many as there are reflectors
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection."""
        for session in (self._session, self._streams):
            if session is not None:
                await session.close()
        self._session = self._streams = None

    async def send(self, call: Call, timeout_s: float) -> bytes:
        """Send a request and return the body of its successful answer."""
        started = perf_counter()
        status = 0
        try:
            async with await self._respond(self._session, call, _total(timeout_s), timeout_s) as response:
                answer = await response.read()
                status = response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            raise errors.from_transport(call.verb, call.path, error, timeout_s, self.server) from error
        finally:
            self._observe(call, status, started)
        if status >= 300:
            raise errors.from_answer(call.verb, call.path, status, answer, response.headers)
        return answer

    @asynccontextmanager
    async def stream(self, call: Call, *, open_s: float, lasts_s: float, stall_s: float) -> AsyncIterator[Stream]:
        """Open a watch that the server ends after ``lasts_s`` and that must not be silent longer than ``stall_s``."""
        timeout = aiohttp.ClientTimeout(total=lasts_s + STREAM_GRACE_S, sock_connect=open_s, sock_read=stall_s)
        started = perf_counter()
        status = 0
        try:
            response = await self._respond(self._streams, call, timeout, stall_s)
            status = response.status
        except (aiohttp.ClientError, TimeoutError) as error:
            raise errors.from_transport(call.verb, call.path, error, stall_s, self.server) from error
        finally:
            self._observe(call, status, started)
        stream = Stream(response, call, stall_s, self.server)
        try:
            if status != 200:
                raise errors.from_answer(call.verb, call.path, status, await stream.read(), response.headers)
            yield stream
        finally:
            response.close()  # the rest of the body is not wanted, so the connection cannot be used again

    async def _respond(
        self, session: aiohttp.ClientSession | None, call: Call, timeout: aiohttp.ClientTimeout, timeout_s: float
    ) -> aiohttp.ClientResponse:
        """Return the response, its body unread; after a 401 ask once more with a fresh token if there is one."""
        if session is None:
            raise RuntimeError("the API client is not open: use it in `async with`")
        if self._credentials.due:
            await self._credentials.refresh()
        text = self._credentials.server + call.path
        url = URL(f"{text}?{urlencode(call.query)}" if call.query else text, encoded=True)
        headers = self._headers_for(call)
        response = await session.request(
            call.method, url, data=call.body, headers=headers, timeout=timeout, **self._route
        )
        if response.status != 401 or not await self._credentials.refresh_after_refusal(self._authorization):
            return response
        response.release()
        return await session.request(
            call.method, url, data=call.body, headers=self._headers_for(call), timeout=timeout, **self._route
        )

    def _headers_for(self, call: Call) -> CIMultiDict[str]:
        """Return the headers of such a request, built once per content type and token."""
        if self._authorization != self._credentials.authorization:
            self._authorization = self._credentials.authorization
            self._headers.clear()
        content_type = call.content_type if call.body is not None else ""
        headers = self._headers.get(content_type)
        if headers is None:
            headers = CIMultiDict(self._common)
            if content_type:
                headers["Content-Type"] = content_type
            if self._authorization:
                headers["Authorization"] = self._authorization
            self._headers[content_type] = headers
        return headers

    def _observe(self, call: Call, status: int, started: float) -> None:
        if self._observer is not None:
            self._observer(call.verb, target_of(call.path).resource, status, perf_counter() - started)

    def _new_session(self, limit: int) -> aiohttp.ClientSession:
        tls: Any = self._credentials.tls if self._credentials.tls is not None else True
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limit, ssl=tls),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,  # True looks for proxies and netrc at every request: 4.5 times the cost
            read_bufsize=READ_BUFFER,
        )


@lru_cache(maxsize=64)
def _total(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds)
