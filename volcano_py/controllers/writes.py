"""The writes of controllers as values, and the writer that carries them out."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog

from volcano_py.controllers.in_flight import AT_ONCE, InFlight
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.resource import Resource
from volcano_py.runtime.clock import Clock
from volcano_py.writing.rate import TokenBucket

log = structlog.get_logger()

_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Create:
    """Create an object, unless one with its name exists."""

    resource: Resource
    namespace: str
    body: Mapping[str, Any] | msgspec.Raw
    """The object, or its JSON."""

    @property
    def name(self) -> str:
        """The name of the object; "" if the API server chooses it, or if only the JSON knows it."""
        return "" if isinstance(self.body, msgspec.Raw) else str(self.body["metadata"].get("name", ""))


@dataclass(frozen=True, slots=True)
class Patch:
    """Change an object; a uid or resourceVersion in the body is a precondition."""

    resource: Resource
    namespace: str
    name: str
    body: Mapping[str, Any]
    kind: PatchType = PatchType.MERGE
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """Change an object by operations (RFC 6902); an operation ``test`` is a precondition."""

    resource: Resource
    namespace: str
    name: str
    operations: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the object with this uid, but not a later one with the same name."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    propagation: str = ""
    """``Background``, ``Foreground`` or ``Orphan``; empty leaves it to the API server."""
    resource_version: str = ""
    """If given, the object is deleted only in this version, else the write fails with Conflict."""


@dataclass(frozen=True, slots=True)
class ApplyStatus:
    """Apply fields of the status of an object as a field manager that other programs use, too.

    A field that another manager owns changes its owner. A uid or resourceVersion in the metadata is a precondition.
    """

    resource: Resource
    name: str
    metadata: Mapping[str, Any]
    status: Mapping[str, Any]
    manager: str
    namespace: str = ""

    def body(self) -> dict[str, Any]:
        """Return the object to apply."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"name": self.name, **self.metadata},
            "status": dict(self.status),
        }


Write = Create | Patch | JsonPatch | ApplyStatus | Delete

REFUSED_FOR_GOOD: Final = (errors.Forbidden, errors.Invalid, errors.BadRequest)
"""What does not go away by itself: somebody has to change rights, a policy or the object."""


def says_it_stays(command: Delete, whose: str, error: errors.ApiError) -> str:
    """Return what users are told about a Command that was answered and cannot be deleted."""
    return (
        f"Command {command.namespace}/{command.name} was answered, but cannot be deleted, and later Commands for this "
        f"{whose} wait until it is gone: {error}"
    )


IN_FLIGHT: Final = 32
"""Requests of all controllers that may be under way at once."""


class Writer:
    """Carries out the writes of all controllers: a limited number at once and, if asked for, a limited rate."""

    def __init__(
        self, client: ApiClient, *, rate_per_s: float | None, burst: int, clock: Clock, in_flight: int = IN_FLIGHT
    ) -> None:
        self._client = client
        self._clock = clock
        self._bucket = None if rate_per_s is None else TokenBucket(rate_per_s, burst, clock.monotonic())
        self._pacing = asyncio.Lock()  # first come, first served
        self._in_flight = InFlight(in_flight)

    def new_turn(self) -> int:
        """Return a turn for writes that come in large numbers: earlier turns, and writes without one, go first."""
        return self._in_flight.new_turn()

    async def write(self, write: Write) -> bool:
        """Carry out a write; return False if it is not needed: the object exists, is gone, or its namespace ends.

        Raises ApiError.
        """
        return await self.answered(write) is not None

    async def answered(self, write: Write, turn: int = AT_ONCE) -> bytes | None:
        """Carry out a write and return the object that the server answers, b"" for a deletion.

        Returns None if the write is not needed. Raises ApiError.
        """
        try:
            return await self.sent(write, turn)
        except errors.ApiError as error:
            if is_needed(write, error):
                raise
            log.debug("write not needed", error=str(error))
            return None

    async def sent(self, write: Write, turn: int = AT_ONCE) -> bytes:
        """Carry out a write and return the object that the server answers, b"" for a deletion.

        Raises ApiError, also where `is_needed` says that the write is not needed.
        """
        async with self._in_flight.one(turn):
            await self._paced()
            return await self._send(write)

    async def _send(self, write: Write) -> bytes:
        match write:
            case Create():
                return await self._create(write)
            case Patch(body=body, kind=kind, subresource=subresource):
                return await self._patch(write, body, kind, subresource)
            case JsonPatch(operations=operations):
                return await self._patch(write, operations, PatchType.JSON)
            case ApplyStatus(manager=manager):
                return await self._patch(write, write.body(), PatchType.APPLY, "status", manager)
            case Delete(resource, namespace, name, uid, propagation, version):
                await self._client.delete(
                    resource,
                    name,
                    namespace=namespace,
                    uid=uid,
                    resource_version=version,
                    propagation=propagation,
                    timeout_s=_TIMEOUT_S,
                )
                return b""

    async def _create(self, write: Create) -> bytes:
        resource, namespace = write.resource, write.namespace
        try:
            return await self._client.create(
                resource, write.body, msgspec.Raw, namespace=namespace, timeout_s=_TIMEOUT_S
            )
        except errors.AlreadyExists as error:
            if errors.names_another(error, write.name):  # a webhook passes on what it was told about something else
                raise errors.Conflict(error.verb, error.path, error.server_message, status=error.status) from error
            raise

    async def _patch(
        self,
        write: Patch | JsonPatch | ApplyStatus,
        body: object,
        kind: PatchType,
        subresource: str = "",
        apply_as: str = "",
    ) -> bytes:
        return await self._client.patch(
            write.resource,
            write.name,
            body,
            msgspec.Raw,
            kind=kind,
            namespace=write.namespace,
            subresource=subresource,
            **({"apply_as": apply_as} if apply_as else {}),
            timeout_s=_TIMEOUT_S,
        )

    async def _paced(self) -> None:
        if self._bucket is None:
            return
        async with self._pacing:
            while wait_s := self._bucket.take(self._clock.monotonic()):
                await self._clock.sleep(wait_s)


def is_needed(write: Write, error: errors.ApiError) -> bool:
    """Say whether a refused write is still needed: not if the object exists, is gone, or its namespace ends."""
    if isinstance(error, errors.NotFound):
        return isinstance(write, Create)  # its namespace or its resource definition is missing
    return not isinstance(error, errors.AlreadyExists | errors.NamespaceTerminating)
