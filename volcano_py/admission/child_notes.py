"""Notes about queues that get a parent, which every replica reads before it calls a queue a leaf.

A list that shows every write costs an API server up to 100 ms, because its cache first asks etcd how far it is; a read
of one object costs a few. So the replica that admits a queue below another one writes its name into a ConfigMap before
it answers. Whoever then asks for the children of a queue reads the ConfigMap and each queue that it or the watch names.
A note is dropped after ten minutes, when every watch shows the queue.
"""

import contextlib
from collections.abc import Mapping
from typing import Any, Final

import structlog

from volcano_py.admission.contract import CREATE, Obj, Request
from volcano_py.api import keys
from volcano_py.api.meta import ObjectMeta, Wire
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import CONFIG_MAPS
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

CONFIG_MAP: Final = "volcano-admission-children"
QUEUE_PATH: Final = "/queues/validate"
_KEPT_S: Final = 600.0
_TIMEOUT_S: Final = 5.0


class _Notes(Wire, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


def new_parent(request: Request) -> str:
    """Return the parent that a queue gets by this request, "" if it gets none that could be a leaf until now."""
    after, before = _parent(request.object), _parent(request.old)
    changed = request.operation == CREATE or after != before
    return after if changed and after != keys.ROOT_QUEUE else ""


class ChildNotes:
    """The notes of all replicas."""

    def __init__(self, client: ApiClient, namespace: str, clock: Clock) -> None:
        self._client, self._namespace, self._clock = client, namespace, clock

    async def prepare(self) -> bool:
        """Make sure that there is a place for notes; return whether there is."""
        try:
            await self._create()
        except errors.AlreadyExists:
            return True
        except (errors.Forbidden, errors.NotFound) as error:
            log.warning("queues cannot be noted; reviews of jobs list all queues, which takes longer", why=str(error))
            return False
        return True

    async def read(self) -> Mapping[str, str]:
        """Return parent by queue."""
        return {child: text.partition(" ")[0] for child, text in (await self._data()).items()}

    async def add(self, child: str, parent: str) -> None:
        """Note that a queue gets a parent; return when every replica can read that."""
        if not child:
            return
        now = self._clock.now().timestamp()
        old = {name: None for name, text in (await self._data()).items() if _is_old(text, now)}
        data: dict[str, str | None] = {**old, child: f"{parent} {now:.0f}"}
        where: dict[str, Any] = {"namespace": self._namespace, "timeout_s": _TIMEOUT_S}
        try:
            await self._client.patch(CONFIG_MAPS, CONFIG_MAP, {"data": data}, _Notes, **where)
        except errors.NotFound:
            with contextlib.suppress(errors.AlreadyExists):
                await self._create()
            await self._client.patch(CONFIG_MAPS, CONFIG_MAP, {"data": data}, _Notes, **where)

    async def _create(self) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}}
        await self._client.create(CONFIG_MAPS, body, _Notes, namespace=self._namespace, timeout_s=_TIMEOUT_S)

    async def _data(self) -> Mapping[str, str]:
        try:
            found = await self._client.get(
                CONFIG_MAPS, CONFIG_MAP, _Notes, namespace=self._namespace, timeout_s=_TIMEOUT_S
            )
        except errors.NotFound:
            return {}
        return found.data or {}


def _parent(queue: Obj) -> str:
    spec = queue.get("spec")
    parent = spec.get("parent") if isinstance(spec, Mapping) else None
    return parent if isinstance(parent, str) else ""


def name_of(request: Request) -> str:
    """Return the name of a queue; a generated one stands in the object alone."""
    metadata = request.object.get("metadata")
    name = request.name or (metadata.get("name") if isinstance(metadata, Mapping) else "")
    return name if isinstance(name, str) else ""


def _is_old(text: str, now: float) -> bool:
    written = text.rpartition(" ")[2]
    return not written.isdigit() or now - int(written) > _KEPT_S
