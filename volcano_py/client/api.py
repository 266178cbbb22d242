"""Requests to the API server, one at a time, over one connection.

Each request has a time limit. An answer that is not 2xx becomes an `ApiProblem` with the server's own sentence.
"""

import base64
import http.client
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit

from volcano_py.api.nesting import decoded
from volcano_py.client.access import Access
from volcano_py.client.problem import ApiProblem, Problem, Unreachable
from volcano_py.kube.proxy import objection, without_password
from volcano_py.kube.resource import Resource

Obj = dict[str, Any]
"""An object as the API server sends it."""
Objs = list[Obj]

REQUEST_S: Final = 30.0
WATCH_S: Final = 240
_APART_S: Final = 1.0  # between the beginnings of two watches: a server, or a proxy before it, may end each at once
_PAGE: Final = 500
_LIST: Any = list
_MERGE: Final = "application/merge-patch+json"
_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_read: Final = partial(decoded, json.loads)


class Api:
    """The API server; the connection opens at the first request."""

    def __init__(
        self,
        access: Callable[[], Access],
        timeout_s: float = REQUEST_S,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare; ``warn`` is called with each warning of the API server, once."""
        self._find = access
        self._warn = warn
        self._warned: set[str] = set()
        self._access: Access | None = None
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self._watched_at = float("-inf")
        self.version = ""
        """The resource version of the list that was read last; watches go on from there."""

    @property
    def access(self) -> Access:
        """The server and our identity there; looked up once."""
        if self._access is None:
            self._access = self._find()
        return self._access

    def another(self) -> "Api":
        """Return the same server with a connection of its own, for a second thread."""
        access = self.access
        return Api(lambda: access, self._timeout_s)

    def get(self, kind: Resource, name: str, namespace: str = "") -> Obj:
        """Return one object; raise ApiProblem."""
        return self._object("GET", kind.item(name, namespace))

    def list(self, kind: Resource, namespace: str = "", **query: str) -> Objs:
        """Return the objects of a kind, page by page; a list has no kinds, so each object gets its own."""
        found = self._pages(kind, namespace, query, _read)
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in found]

    def list_of(self, shape: Any, kind: Resource, namespace: str = "", **query: str) -> Objs:
        """Return only those parts of the objects that a shape names: faster, and with a tenth of the memory."""
        import msgspec  # lists that print objects do without it, because they start sooner then

        fields = [("items", _LIST[shape] | None, None), ("metadata", dict[str, Any] | None, None)]
        decoder = msgspec.json.Decoder(msgspec.defstruct("Page", fields))

        def read(content: bytes) -> Obj:
            page: Any = decoded(decoder.decode, content)  # MsgspecError is a ValueError, as JSONDecodeError is
            return {"items": page.items, "metadata": page.metadata}

        return self._pages(kind, namespace, query, read)

    def pages(self, kind: Resource, namespace: str = "", **query: str) -> Iterator[Objs]:
        """Yield the objects of a kind page by page, for lists that are too long to be kept.

        If the server forgets the list half-way, the rest is read from a new one, without what was yielded already.
        """
        more, seen = {**query, "limit": str(_PAGE)}, set[tuple[str, str]]()
        while True:
            try:
                answer = self._object("GET", kind.collection(namespace), query=more)
            except ApiProblem as problem:
                if problem.status != 410 or "continue" not in more:
                    raise
                more = dict(query)
                continue
            page = [one for one in answer.get("items") or () if _identity(one) not in seen]
            seen.update(map(_identity, page))
            yield page
            metadata = answer.get("metadata") or {}
            self.version = metadata.get("resourceVersion", "")
            if not metadata.get("continue"):
                return
            more["continue"] = metadata["continue"]

    def _pages(self, kind: Resource, namespace: str, query: Mapping[str, str], read: Callable[[bytes], Any]) -> Objs:
        found: Objs = []
        more = {**query, "limit": str(_PAGE)}
        while True:
            try:
                answer = self._object("GET", kind.collection(namespace), query=more, read=read)
            except ApiProblem as problem:
                if problem.status != 410 or "continue" not in more:
                    raise
                found, more = [], dict(query)  # the list is too old to be continued: once more, in one piece
                continue
            found += answer.get("items") or ()
            metadata = answer.get("metadata") or {}
            self.version = metadata.get("resourceVersion", "")
            if not metadata.get("continue"):
                return found
            more["continue"] = metadata["continue"]

    def create(self, kind: Resource, obj: Obj, namespace: str = "") -> Obj:
        """Create an object and return it as it was stored."""
        typed = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        return self._object("POST", kind.collection(namespace), typed)

    def delete(self, kind: Resource, name: str, namespace: str = "") -> None:
        """Delete an object; what it owns goes with it."""
        self._object("DELETE", kind.item(name, namespace), {"propagationPolicy": "Background"})

    def patch(self, kind: Resource, name: str, change: Obj, namespace: str = "") -> Obj:
        """Change some fields of an object."""
        return self._object("PATCH", kind.item(name, namespace), change, content=_MERGE)

    def watch(self, kind: Resource, namespace: str = "", **query: str) -> Iterator[tuple[str, Obj]]:
        """Yield changes (ADDED, MODIFIED, DELETED) after `version`, for ever; reconnect when the server ends a watch.

        Every connection has a time limit; the caller decides when it has seen enough.
        """
        version = self.version
        while True:
            wanted = {
                **query,
                "watch": "1",
                "resourceVersion": version,
                "allowWatchBookmarks": "true",
                "timeoutSeconds": query.get("timeoutSeconds", str(WATCH_S)),
            }
            for change in self._changes(kind, namespace, wanted):
                what, obj = str(change.get("type")), change.get("object") or {}
                if what == "ERROR":
                    raise ApiProblem(int(obj.get("code", 500)), str(obj.get("reason", "")), _said(obj))
                version = (obj.get("metadata") or {}).get("resourceVersion", version)
                if what != "BOOKMARK":
                    yield what, obj
            if "timeoutSeconds" in query:
                return

    def text(self, path: str, query: Mapping[str, str] | None = None, timeout_s: float | None = None) -> Iterator[str]:
        """Yield an answer that is text, line by line; other requests may be sent meanwhile."""
        answer = self._send("GET", path, None, query or {}, "application/json", timeout_s)
        connection, self._connection = self._connection, None
        try:
            while line := answer.readline():
                yield line.decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from error
        finally:
            if connection is not None:
                connection.close()

    def exists(self, kind: Resource, name: str) -> bool:
        """Say whether there is such an object; an object that must not be read counts as there."""
        try:
            self.get(kind, name)
        except ApiProblem as problem:
            return problem.status != 404
        return True

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _changes(self, kind: Resource, namespace: str, query: Mapping[str, str]) -> Iterator[Obj]:
        time.sleep(max(0.0, self._watched_at + _APART_S - time.monotonic()))
        self._watched_at = time.monotonic()
        limit = float(query["timeoutSeconds"]) + self._timeout_s
        for line in self.text(kind.collection(namespace), query, limit):
            try:
                change = _read(line.encode())
            except ValueError as error:
                if line.endswith("\n"):
                    raise self._strange(error) from error
                raise Unreachable("the answer of the API server broke off") from error
            if not isinstance(change, dict):
                raise self._strange()
            yield change

    def _strange(self, error: Exception | None = None) -> Problem:
        why = f": {error}" if error is not None else ""
        return Problem(f"{self.access.server} does not answer like a Kubernetes API server{why}")

    def _object(
        self,
        method: str,
        path: str,
        body: Obj | None = None,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
        read: Callable[[bytes], Any] = _read,
    ) -> Obj:
        answer = self._send(method, path, body, query or {}, content, None, encoding="gzip")
        try:
            found = read(_unpacked(answer))
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise _broken(error) from error
        except ValueError as error:
            self.close()
            raise self._strange(error) from error
        if not isinstance(found, dict):
            raise self._strange()
        return found

    def _send(
        self,
        method: str,
        path: str,
        body: Obj | None,
        query: Mapping[str, str],
        content: str,
        timeout_s: float | None,
        encoding: str = "identity",
    ) -> http.client.HTTPResponse:
        """Send a request, and once more when a server that has too much to do, or just begins, asks for that."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._send_once(method, path, body, query, content, timeout_s, encoding)
            except ApiProblem as problem:
                wait_s = problem.retry_after_s
                if not wait_s or time.monotonic() + wait_s > deadline:
                    raise
            time.sleep(wait_s)

    def _send_once(
        self,
        method: str,
        path: str,
        body: Obj | None,
        query: Mapping[str, str],
        content: str,
        timeout_s: float | None,
        encoding: str,
    ) -> http.client.HTTPResponse:
        access = self.access
        base = urlsplit(access.server).path.rstrip("/")
        target = f"{base}{path}?{urlencode(query)}" if query else f"{base}{path}"
        headers = {"Accept": "application/json", "Accept-Encoding": encoding, "User-Agent": "vcctl"}
        if body is not None:
            headers["Content-Type"] = content
        if access.authorization:
            headers["Authorization"] = access.authorization
        try:
            connection = self._connection = self._connection or _connect(access, self._timeout_s)
            connection.timeout = timeout_s or self._timeout_s
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            connection.request(method, target, None if body is None else json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            for text in _warnings(answer):
                if text not in self._warned:
                    self._warned.add(text)
                    self._warn(text)
            if answer.status >= 300:
                refusal = _refusal(answer)
                self.close()
                raise refusal
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Unreachable(_unreachable(access, error)) from error
        return answer


def _identity(obj: Obj) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


class _NamedTls(http.client.HTTPSConnection):
    """A connection whose server shows a certificate for another name than its host's."""

    def __init__(self, host: str, port: int | None, name: str, **how: Any) -> None:
        super().__init__(host, port, **how)
        self._name = name
        self._context: ssl.SSLContext = how["context"]

    def connect(self) -> None:
        """Connect, and check the other name."""
        plain = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        plain.connect()
        self.sock = self._context.wrap_socket(plain.sock, server_hostname=self._name)


def _connect(access: Access, timeout_s: float) -> http.client.HTTPConnection:
    parts = urlsplit(access.server)
    host, port = parts.hostname or "", parts.port
    if access.proxy:
        return _through_proxy(access, access.proxy, host, port or 443, timeout_s)
    if access.tls is None:
        return http.client.HTTPConnection(host, port, timeout=timeout_s)
    if access.tls_server_name:
        return _NamedTls(host, port, access.tls_server_name, timeout=timeout_s, context=access.tls)
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=access.tls)


def _through_proxy(access: Access, proxy: str, host: str, port: int, timeout_s: float) -> http.client.HTTPConnection:
    shown, parts = without_password(proxy), urlsplit(proxy)
    if why := objection(proxy):
        raise Problem(why)
    if parts.scheme != "http":
        raise Problem(f"proxy {shown} cannot be used: vcctl takes only http:// proxies; choose one or set NO_PROXY")
    if access.tls is None:
        raise Problem(f"{access.server} is behind proxy {shown}; use https, or set NO_PROXY for it")
    headers = {}
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        headers["Proxy-Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
    through = _Tunnel(parts.hostname or "", parts.port, access.tls, access.tls_server_name or host, timeout_s)
    through.set_tunnel(host, port, headers)
    return through


class _Tunnel(http.client.HTTPConnection):
    """TLS to the server inside of a tunnel through a plain proxy."""

    def __init__(self, host: str, port: int | None, tls: ssl.SSLContext, name: str, timeout_s: float) -> None:
        super().__init__(host, port or 80, timeout=timeout_s)
        self._tls, self._name = tls, name

    def connect(self) -> None:
        """Connect to the proxy, ask for the tunnel, and begin TLS in it."""
        super().connect()
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


def _warnings(answer: http.client.HTTPResponse) -> Iterator[str]:
    """Yield the texts of headers such as ``Warning: 299 - "unknown field \\"spec.queeu\\""``."""
    for given in answer.headers.get_all("Warning", ()):
        found = _WARNING.match(given)
        if found:
            yield re.sub(r"\\(.)", r"\1", found[1])


def _unpacked(answer: http.client.HTTPResponse) -> bytes:
    """Return the body; servers pack what is large, which saves nineteen of twenty bytes on the way."""
    content = answer.read()
    if answer.headers.get("Content-Encoding") != "gzip":
        return content
    import zlib

    try:
        return zlib.decompress(content, wbits=31)
    except zlib.error as error:
        raise ValueError(f"its answer cannot be unpacked: {error}") from error


def _refusal(answer: http.client.HTTPResponse) -> ApiProblem:
    content = b""
    try:
        content = _unpacked(answer)
        status = _read(content)
    except ValueError:
        status = None
    given = answer.headers.get("Retry-After", "")
    again_s = float(given) if answer.status in (429, 503) and given.isdecimal() else 0.0
    if isinstance(status, dict) and status.get("kind") == "Status":
        return ApiProblem(answer.status, str(status.get("reason", "")), _said(status), again_s, _about(status))
    told = " ".join(content.decode(errors="replace").split())[:200]
    if told and not told.startswith("<"):
        return ApiProblem(answer.status, "", told, again_s)
    who = "a proxy before the API server, or another server," if told else "the API server"  # a page for a browser
    return ApiProblem(answer.status, "", f"{who} answered {answer.status} {answer.reason}", again_s)


def _said(status: Mapping[str, Any]) -> str:
    return str(status.get("message") or status.get("reason") or "the API server gave no reason")


def _about(status: Mapping[str, Any]) -> str:
    details = status.get("details") or {}
    return ".".join(str(details[name]) for name in ("kind", "group") if details.get(name))


def _broken(error: Exception) -> Unreachable:
    return Unreachable(f"the answer of the API server broke off: {error or type(error).__name__}")


def _unreachable(access: Access, error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        what = f"shows a certificate that cannot be trusted ({error.verify_message})"
    elif isinstance(error, ssl.SSLError):
        what = f"refuses the connection ({error.reason or error})"
    elif isinstance(error, TimeoutError):
        what = "does not answer in time"
    elif isinstance(error, socket.gaierror):
        what = "has a name that cannot be resolved"
    else:
        what = f"cannot be reached ({getattr(error, 'strerror', None) or error or type(error).__name__})"
    return f"the API server {access.server} {what}; check --master, --kubeconfig and $KUBECONFIG ({access.origin})"
