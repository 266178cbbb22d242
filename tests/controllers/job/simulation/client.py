"""The controller's way to the fake API server: every request has a fate, and every write is audited."""

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

import msgspec

from tests.controllers.job.simulation.server import Obj, Server
from tests.controllers.job.simulation.stepping import StepLoop
from volcano_py.kube import errors
from volcano_py.kube.client import PatchType
from volcano_py.kube.outage import Outage
from volcano_py.kube.resource import Resource

T = TypeVar("T")


class Fate(Enum):
    """What becomes of a request."""

    DONE = auto()
    CONFLICT = auto()
    FAILED = auto()
    """Refused by a server that has trouble."""
    LOST = auto()
    """Carried out, but the answer never comes."""
    LATE = auto()
    """Carried out at once, answered later."""
    SLOW = auto()
    """Carried out and answered later."""
    CRASH_BEFORE = auto()
    """The controller ends before the request reaches the server."""
    CRASH_AFTER = auto()
    """The controller ends before the answer reaches it."""


class Audit(Protocol):
    """Sees every write of the controller that reaches the server."""

    def sent(self) -> None:
        """See that the controller sends a write."""
        ...

    def before(self, verb: str, resource: Resource, name: str, body: Any) -> None:
        """See a write that is about to be carried out."""
        ...

    def after(self, verb: str, resource: Resource, name: str, before: Obj | None, answer: Obj | None) -> None:
        """See a write that was carried out."""
        ...


class Client:
    """Stands in for `ApiClient` in one incarnation of the controller."""

    outage: Outage | None = None
    """Every failure is logged."""

    def __init__(
        self, server: Server, loop: StepLoop, fate: Callable[[str, Resource], Fate], audit: Audit | None
    ) -> None:
        self._server = server
        self._loop = loop
        self._fate = fate
        self._audit = audit
        self.held: list[tuple[asyncio.Future[None], Callable[[], object] | None]] = []
        """Requests that are not answered yet; with what is left to do at the server."""
        self.writes = 0
        """Writes sent."""
        self.crashed = False
        self.dead = False
        """Whether the process is gone: no request leaves it any more."""
        self.unsure = False
        """Whether a write was carried out that the controller does not know about."""

    async def get(self, resource: Resource, name: str, into: type[T], **how: Any) -> T:
        """Read an object."""
        namespace = how.get("namespace", "")

        def apply() -> Any:
            found = self._server.find(resource, name, namespace)
            if found is None:
                raise errors.NotFound("get", resource.item(name, namespace), f"{name} does not exist")
            return found

        found = await self._request("get", resource, apply)
        return found if into == dict[str, Any] else msgspec.convert(found, into)  # type: ignore[return-value]

    async def create(self, resource: Resource, body: Mapping[str, Any], _: object, **how: Any) -> msgspec.Raw:
        """Create an object."""
        name = str(body["metadata"]["name"])
        return await self._write(
            "create", resource, name, body, lambda: self._server.create(resource, how.get("namespace", ""), body)
        )

    async def patch(self, resource: Resource, name: str, body: Any, _: object, **how: Any) -> msgspec.Raw:
        """Change an object."""
        namespace, subresource = how.get("namespace", ""), how.get("subresource", "")
        if how["kind"] is PatchType.JSON:
            return await self._write(
                "patch", resource, name, body, lambda: self._server.json_patch(resource, namespace, name, body)
            )
        verb = "patch status" if subresource else "patch"
        return await self._write(
            verb, resource, name, body, lambda: self._server.merge(resource, namespace, name, body, subresource)
        )

    async def delete(self, resource: Resource, name: str, **how: Any) -> None:
        """Delete an object."""
        namespace, uid, propagation = how.get("namespace", ""), how.get("uid", ""), how.get("propagation", "")
        await self._write(
            "delete", resource, name, uid, lambda: self._server.delete(resource, namespace, name, uid, propagation)
        )

    async def _write(
        self, verb: str, resource: Resource, name: str, body: Any, apply: Callable[[], Obj | None]
    ) -> msgspec.Raw:
        def audited() -> Obj | None:
            before = self._server.find(resource, name)
            if self._audit is not None:
                self._audit.before(verb, resource, name, body)
            answer = apply()
            if self._audit is not None:
                self._audit.after(verb, resource, name, before, answer)
            return answer

        if self._audit is not None:
            self._audit.sent()
        answer = await self._request(verb, resource, audited)
        return msgspec.Raw(b"" if answer is None else msgspec.json.encode(answer))

    async def _request(self, verb: str, resource: Resource, apply: Callable[[], Obj | None]) -> Obj | None:
        if self.dead:
            raise asyncio.CancelledError
        fate = self._fate(verb, resource)
        self.writes += verb != "get"
        path = resource.root
        match fate:
            case Fate.FAILED:
                raise errors.ServerError(verb, path, "the server has trouble", status=500)
            case Fate.CONFLICT if verb not in ("get", "create"):
                raise errors.Conflict(verb, path, "the object changed", status=409)
            case Fate.LOST:
                self.unsure = True
                apply()
                raise errors.Timeout(verb, path, "no answer", maybe_applied=True)
            case Fate.CRASH_BEFORE | Fate.CRASH_AFTER:
                self.crashed = True
                if fate is Fate.CRASH_AFTER:
                    apply()
                await self._loop.create_future()
            case Fate.SLOW:
                await self._hold(apply)
                return apply()
            case Fate.LATE:
                failure: errors.ApiError | None = None
                answer = None
                try:
                    answer = apply()
                except errors.ApiError as error:
                    failure = error
                await self._hold(None)
                if failure is not None:
                    raise failure
                return answer
        return apply()

    async def _hold(self, rest: Callable[[], object] | None) -> None:
        future = self._loop.create_future()
        self.held.append((future, rest))
        await future

    def release(self, position: int) -> None:
        """Answer a request that is held."""
        future, _ = self.held.pop(position)
        if not future.done():
            future.set_result(None)

    def die(self, keep: Callable[[], bool]) -> None:
        """End with the process; ``keep`` says whether a request that is still on its way is carried out."""
        self.dead = True
        for _, rest in self.held:
            if rest is not None and keep():
                try:
                    rest()
                except errors.ApiError:
                    continue  # the server refuses it, and nobody hears of that
        self.held.clear()
