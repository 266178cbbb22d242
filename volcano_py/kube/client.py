"""Typed requests to the API server: get, list, create, replace, patch, delete, watch."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Any, TypeVar

import msgspec

from volcano_py.api import keys
from volcano_py.api.nesting import decoded
from volcano_py.kube import errors
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.decoding import Page, PageDecoder, decoder_for
from volcano_py.kube.outage import Outage
from volcano_py.kube.resource import Resource
from volcano_py.kube.transport import Call, RequestObserver, Stream, Transport
from volcano_py.runtime.clock import RealClock

T = TypeVar("T")

DEFAULT_TIMEOUT_S = 30.0
DEFAULT_CONNECTIONS = 64  # the scheduler has its own number: for binds in flight, and for other requests
DEFAULT_PAGE_SIZE = 500


class _Named(msgspec.Struct):
    name: str


class _ResourceList(msgspec.Struct):
    resources: list[_Named] | None  # a Go server writes null for none


class _GroupVersion(msgspec.Struct, rename="camel"):
    group_version: str


class _Group(msgspec.Struct):
    versions: list[_GroupVersion]


class _GroupList(msgspec.Struct):
    groups: list[_Group] | None


class PatchType(Enum):
    """How the server reads a patch."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"
    """Server-side apply. JSON is YAML."""


class ApiClient:
    """Requests to one API server; use it as an asynchronous context manager.

    Bodies are structs, plain JSON values or prepared bytes. ``into`` is the type an answer is decoded as; ``dict``
    gives plain JSON. Every request has a deadline: ``timeout_s`` of the call, else of the client.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        connections: int = DEFAULT_CONNECTIONS,
        user_agent: str = keys.PROGRAM,
        compress: bool = False,
        observer: RequestObserver | None = None,
        obstacle: Callable[[], str] | None = None,
        outage: Outage | None = None,
    ) -> None:
        """Prepare a client; ``obstacle`` says why writes must not be sent at present, "" if they may.

        Clients of one process share an ``outage``, which logs their failures together.
        """
        self._timeout_s = timeout_s
        self.outage = outage or Outage(credentials.server, RealClock())
        """Withholds what only follows from an outage of the API server."""
        self._observer = observer
        self._transport = Transport(
            credentials,
            connections=connections,
            user_agent=user_agent,
            compress=compress,
            observer=self._observe,
            obstacle=obstacle,
        )

    @property
    def server(self) -> str:
        """The address requests go to."""
        return self._transport.server

    async def __aenter__(self) -> "ApiClient":
        """Open the sessions; connections are made when they are needed."""
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close every connection."""
        await self._transport.__aexit__(*exc_info)

    async def get(
        self, resource: Resource, name: str, into: type[T], *, namespace: str = "", timeout_s: float | None = None
    ) -> T:
        """Read one object."""
        return await self._typed(Call("GET", "get", resource.item(name, namespace)), into, timeout_s)

    async def list_pages(
        self,
        resource: Resource,
        into: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = DEFAULT_PAGE_SIZE,
        timeout_s: float | None = None,
    ) -> AsyncIterator[Page[T]]:
        """Read all objects page by page; the deadline is per page.

        Raises Gone if the list took too long; the caller then starts again.
        """
        decoder = PageDecoder(into)
        query = {"limit": str(page_size), **selectors(label_selector, field_selector)}
        while True:
            call = Call("GET", "list", resource.collection(namespace), query=query)
            page = decoder.decode(await self._send(call, timeout_s), call.path)
            yield page
            if not page.continue_token:
                return
            query["continue"] = page.continue_token

    async def list_bytes(
        self, resource: Resource, query: Mapping[str, str], *, namespace: str = "", timeout_s: float | None = None
    ) -> bytes:
        """Return one page of a list as the server wrote it."""
        return await self._send(Call("GET", "list", resource.collection(namespace), query=query), timeout_s)

    async def create(
        self, resource: Resource, body: Any, into: type[T], *, namespace: str = "", timeout_s: float | None = None
    ) -> T:
        """Create an object and return it as the server stored it."""
        return await self._typed(Call("POST", "create", resource.collection(namespace), _encode(body)), into, timeout_s)

    async def replace(
        self,
        resource: Resource,
        name: str,
        body: Any,
        into: type[T],
        *,
        namespace: str = "",
        subresource: str = "",
        timeout_s: float | None = None,
    ) -> T:
        """Replace an object; with a resourceVersion in the body, only if it is still that version (else Conflict)."""
        path = resource.item(name, namespace, subresource)
        return await self._typed(Call("PUT", "update", path, _encode(body)), into, timeout_s)

    async def patch(
        self,
        resource: Resource,
        name: str,
        body: Any,
        into: type[T],
        *,
        kind: PatchType = PatchType.MERGE,
        namespace: str = "",
        subresource: str = "",
        apply_as: str = "",
        timeout_s: float | None = None,
    ) -> T:
        """Change parts of an object and return the result.

        ``apply_as`` is the field manager of an apply, which takes fields from other managers.
        """
        path = resource.item(name, namespace, subresource)
        if apply_as:
            path += f"?fieldManager={apply_as}&force=true"
        return await self._typed(Call("PATCH", "patch", path, _encode(body), kind.value), into, timeout_s)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
        propagation: str = "",
        timeout_s: float | None = None,
    ) -> None:
        """Delete an object; if a UID or version is given, only that one (else Conflict)."""
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid or resource_version:
            given = {"uid": uid, "resourceVersion": resource_version}
            options["preconditions"] = {key: value for key, value in given.items() if value}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        if propagation:
            options["propagationPolicy"] = propagation
        await self._send(Call("DELETE", "delete", resource.item(name, namespace), _encode(options)), timeout_s)

    async def post_bytes(self, path: str, body: bytes, *, timeout_s: float | None = None) -> bytes:
        """Post prepared JSON to a path from :meth:`Resource.item`: the short way for bindings and events."""
        return await self._send(Call("POST", "create", path, body), timeout_s)

    async def get_bytes(self, path: str, *, timeout_s: float | None = None) -> bytes:
        """Return what the server has at a path outside the resources, such as an aggregated API."""
        return await self._send(Call("GET", "get", path), timeout_s)

    async def serves(self, resource: Resource, *, timeout_s: float | None = None) -> bool:
        """Say whether discovery names a resource; raise ApiError where discovery gives no clear answer.

        A version that is not found counts as not served only if the list of groups does not name it either. A 404 to
        everything, such as that of a proxy without its server, says nothing about the resource.
        """
        try:
            listed = await self._typed(Call("GET", "get", resource.root), _ResourceList, timeout_s)
        except errors.NotFound:
            if not resource.group:
                raise
            found = await self._typed(Call("GET", "get", "/apis"), _GroupList, timeout_s)
            versions = (version.group_version for group in found.groups or () for version in group.versions)
            return resource.api_version in versions
        return any(entry.name == resource.plural for entry in listed.resources or ())

    def distrust_idle(self) -> None:
        """Close idle connections, so that the next requests are made over new ones."""
        self._transport.distrust_idle()

    def watch(
        self,
        resource: Resource,
        query: Mapping[str, str],
        *,
        namespace: str = "",
        lasts_s: float,
        stall_s: float,
        open_s: float | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        """Open a watch that the server is asked to end after about ``lasts_s``.

        The watch breaks off after ``stall_s`` of silence, and when the server has not ended it some seconds after its
        time, because the connection is then dead. The stream is the server's bytes;
        :class:`~volcano_py.kube.reflector.Reflector` makes events of them.
        """
        query = {**query, "watch": "1", "timeoutSeconds": str(int(lasts_s))}
        call = Call("GET", "watch", resource.collection(namespace), query=query)
        return self._transport.stream(call, open_s=open_s or self._timeout_s, lasts_s=lasts_s, stall_s=stall_s)

    def _observe(self, verb: str, resource: str, status: int, seconds: float) -> None:
        self.outage.heard(status)
        if self._observer is not None:
            self._observer(verb, resource, status, seconds)

    async def _send(self, call: Call, timeout_s: float | None) -> bytes:
        return await self._transport.send(call, timeout_s or self._timeout_s)

    async def _typed(self, call: Call, into: type[T], timeout_s: float | None) -> T:
        answer = await self._send(call, timeout_s)
        try:
            return decoded(decoder_for(into).decode, answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise errors.UnexpectedAnswer(
                call.verb,
                call.path,
                f"the answer is not a {into.__name__}: {error}",
                maybe_applied=call.method != "GET",
            ) from error


def selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    """Return the query parameters of the selectors that are not empty."""
    given = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in given.items() if value}


def _encode(body: Any) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
