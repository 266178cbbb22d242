"""Requests to servers other than Kubernetes: with a deadline, a bound on the answer, and one kind of error."""

import json
from base64 import b64encode
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import aiohttp

MOST_BYTES: Final = 64 * 2**20
_CHUNK: Final = 2**16
_SHOWN: Final = 200  # of an answer that is an error


class FetchError(Exception):
    """There is no usable answer; the message names the server and says why."""


def _basic(username: str, password: str) -> str:
    return "Basic " + b64encode(f"{username}:{password}".encode()).decode()


class Fetcher:
    """Sends requests and returns bodies; use it as an asynchronous context manager."""

    def __init__(
        self, *, timeout_s: float, verify: bool = True, username: str = "", password: str = "", most: int = MOST_BYTES
    ) -> None:
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._timeout_s = timeout_s
        self._verify = verify
        self._headers = {"Authorization": _basic(username, password)} if username else {}
        self._most = most
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Get ready; connections are made when they are needed."""
        connector = aiohttp.TCPConnector(ssl=self._verify, limit=4)
        self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout, headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def get(self, url: str, query: Mapping[str, str]) -> bytes:
        """Return a server's answer to a query; raise FetchError."""
        return await self._send("GET", url, params=dict(query))

    async def post(self, url: str, body: Any) -> bytes:
        """Return a server's answer to a JSON body; raise FetchError."""
        headers = {"Content-Type": "application/json"}
        return await self._send("POST", url, data=json.dumps(body).encode(), headers=headers)

    async def _send(self, method: str, url: str, **options: Any) -> bytes:
        if self._session is None:
            raise RuntimeError("the Fetcher is not open: use it in `async with`")
        server = urlsplit(url).netloc.rpartition("@")[2]  # without a user and a password
        try:
            async with self._session.request(method, url, **options) as response:
                body = await self._body(response, server)
                if response.status >= 300:
                    said = body[:_SHOWN].decode("utf-8", "replace")
                    raise FetchError(f"{server} answered {response.status}: {said}")
                return body
        except TimeoutError as error:
            raise FetchError(f"{server} did not answer within {self._timeout_s:g} s") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise FetchError(f"the request to {server} failed: {error}") from error

    async def _body(self, response: aiohttp.ClientResponse, server: str) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_chunked(_CHUNK):
            body += chunk
            if len(body) > self._most:
                raise FetchError(f"{server} answered with more than {self._most} bytes")
        return bytes(body)
