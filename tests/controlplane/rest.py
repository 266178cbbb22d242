"""A small synchronous JSON client for one API server, safe to use from several threads."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from typing import Any
from urllib.parse import urlsplit

IDLE_S = 30.0  # the server drops idle connections after a while; older ones are not used again


class ApiFailure(Exception):
    """The API server refused a request: its status code, reason and message."""

    def __init__(self, method: str, path: str, code: int, body: bytes) -> None:
        self.code = code
        try:
            status = json.loads(body)
        except ValueError:
            status = {}
        self.reason: str = status.get("reason", "") if isinstance(status, dict) else ""
        message = status.get("message") if isinstance(status, dict) else None
        super().__init__(f"{method} {path}: {code} {self.reason}: {message or body[:500]!r}")


class Http:
    """Connections to one API server, one per thread, kept open."""

    def __init__(self, url: str, ssl_context: ssl.SSLContext, token: str | None = None) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._secure = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._ssl_context = ssl_context
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._lock = threading.Lock()
        self._connections: dict[int, tuple[http.client.HTTPConnection, float]] = {}

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        timeout: float = 30.0,
    ) -> Any:
        """Send one request and return the decoded answer (text if it is not JSON); raise ApiFailure from 400 on."""
        headers = {**self._headers, "Accept": "application/json"}
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            headers["Content-Type"] = content_type
        connection = self._take(timeout)
        try:
            connection.request(method, path, payload, headers)
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        if response.status >= 400:
            raise ApiFailure(method, path, response.status, content)
        if "json" in (response.getheader("Content-Type") or ""):
            return json.loads(content)
        return content.decode()

    def close(self) -> None:
        """Close every connection; the next request opens a new one."""
        with self._lock:
            connections, self._connections = self._connections, {}
        for connection, _ in connections.values():
            connection.close()

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        with self._lock:
            kept = self._connections.pop(threading.get_ident(), None)
        if kept is not None:
            connection, used = kept
            if time.monotonic() - used < IDLE_S:
                connection.timeout = timeout
                if connection.sock is not None:
                    connection.sock.settimeout(timeout)
                return connection
            connection.close()
        if self._secure:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._ssl_context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            self._connections[threading.get_ident()] = (connection, time.monotonic())
