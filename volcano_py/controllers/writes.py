"""The writes of controllers as values, and the writer that carries them out at a limited rate."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog

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
    body: Mapping[str, Any]


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
class Delete:
    """Delete the object with this uid, but not a later one with the same name."""

    resource: Resource
    namespace: str
    name: str
    uid: str


Write = Create | Patch | Delete


class _Answer(msgspec.Struct):
    """An answer whose content is not needed."""


class Writer:
    """Carries out the writes of all controllers, with a limit per second."""

    def __init__(self, client: ApiClient, *, rate_per_s: float, burst: int, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._bucket = TokenBucket(rate_per_s, burst, clock.monotonic())
        self._turn = asyncio.Lock()  # first come, first served

    async def write(self, write: Write) -> bool:
        """Carry out a write; return False if it is not needed: the object exists, is gone, or its namespace ends.

        Raises ApiError.
        """
        await self._paced()
        try:
            match write:
                case Create(resource, namespace, body):
                    await self._client.create(resource, body, _Answer, namespace=namespace, timeout_s=_TIMEOUT_S)
                case Patch():
                    await self._patch(write)
                case Delete(resource, namespace, name, uid):
                    await self._client.delete(resource, name, namespace=namespace, uid=uid, timeout_s=_TIMEOUT_S)
        except (errors.AlreadyExists, errors.NotFound, errors.NamespaceTerminating) as error:
            if isinstance(write, Create) and isinstance(error, errors.NotFound):
                raise  # its namespace or its resource definition is missing
            log.debug("write not needed", error=str(error))
            return False
        return True

    async def _patch(self, write: Patch) -> None:
        await self._client.patch(
            write.resource,
            write.name,
            write.body,
            _Answer,
            kind=write.kind,
            namespace=write.namespace,
            subresource=write.subresource,
            timeout_s=_TIMEOUT_S,
        )

    async def _paced(self) -> None:
        async with self._turn:
            while wait_s := self._bucket.take(self._clock.monotonic()):
                await self._clock.sleep(wait_s)
