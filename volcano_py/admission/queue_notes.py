"""Notes about queues that are about to change, in a ConfigMap that every replica reads and writes.

A watch is late, and a list that shows every write costs an API server up to 100 ms, because its cache first asks etcd
how far it is. A read of one object costs a few. So the replica that lets a queue be closed, be deleted or get a parent
writes its name into a ConfigMap before it answers. A note is dropped when a replica has seen it for ten minutes, so
that every watch shows the queue as it is. Clocks of replicas need not agree.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import structlog

from volcano_py.api.meta import ObjectMeta, Wire
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import CONFIG_MAPS
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

CONFIG_MAP: Final = "volcano-admission-notes"
_KEPT_S: Final = 600.0
_TIMEOUT_S: Final = 5.0
_ATTEMPTS: Final = 10  # replicas that write at the same time repeat their writes
_MOST_PARENTS: Final = 16
_FIRST_PAUSE_S: Final = 0.005
_LONGEST_PAUSE_S: Final = 0.2


class Note(msgspec.Struct, frozen=True):
    """What is about to change of one queue."""

    at: float
    """Seconds since 1970."""
    parents: tuple[str, ...] = ()
    """The parents that it got lately, the latest first."""
    closes: bool = False
    """Whether it ends to take work: it is closed or deleted."""


def note_after(before: str, now: float, parent: str = "", *, closes: bool = False) -> str:
    """Return the text of a note that also says what the one before it says, "" for none.

    A replica may read only the last of several notes.
    """
    former = read_note(before) or Note(now)
    parents = tuple(dict.fromkeys(([parent] if parent else []) + list(former.parents)))[:_MOST_PARENTS]
    return msgspec.json.encode(Note(now, parents, closes or former.closes)).decode()


class _Notes(Wire, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


def read_note(text: str) -> Note | None:
    """Return a note, None for a text that is none."""
    try:
        return msgspec.json.decode(text, type=Note)
    except msgspec.DecodeError:
        return None


@dataclass(slots=True)
class _Batch:
    changes: dict[str, tuple[str, bool]] = field(default_factory=dict)
    written: bool = False

    def put(self, queue: str, parent: str, closes: bool) -> None:
        before = self.changes.get(queue, ("", False))
        self.changes[queue] = (parent or before[0], closes or before[1])


class QueueNotes:
    """The notes of all replicas, by queue."""

    def __init__(self, client: ApiClient, namespace: str, clock: Clock) -> None:
        self._client, self._namespace, self._clock = client, namespace, clock
        self._next = _Batch()
        self._writing = asyncio.Lock()
        self._seen: dict[str, tuple[str, float]] = {}  # note of each queue, and since when it was seen

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
        """Return the text of each note, by queue."""
        return (await self._get())[1]

    async def add(self, queue: str, parent: str = "", *, closes: bool = False) -> None:
        """Note that a queue changes; return when every replica can read that.

        Notes that are added at the same time are written together. Raises ApiError if
        they cannot be written, also if others write all the time.
        """
        batch = self._next
        batch.put(queue, parent, closes)
        async with self._writing:
            if batch.written:
                return
            if self._next is batch:
                self._next = _Batch()
            await self._write(batch.changes)
            batch.written = True

    async def _write(self, changes: Mapping[str, tuple[str, bool]]) -> None:
        for attempt in range(_ATTEMPTS):
            version, data = await self._get()
            now = self._clock.now().timestamp()
            old = {name: None for name, text in data.items() if self._is_old(name, text)}
            new = {
                queue: note_after(data.get(queue, ""), now, parent, closes=closes)
                for queue, (parent, closes) in changes.items()
            }
            try:
                return await self._patch({"metadata": {"resourceVersion": version}, "data": {**old, **new}})
            except (errors.NotFound, errors.Conflict) as error:
                if attempt == _ATTEMPTS - 1:
                    raise
                if isinstance(error, errors.NotFound):
                    with contextlib.suppress(errors.AlreadyExists):
                        await self._create()
                await self._clock.sleep(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**attempt))
        return None

    async def _create(self) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP}}
        await self._client.create(CONFIG_MAPS, body, _Notes, namespace=self._namespace, timeout_s=_TIMEOUT_S)

    async def _patch(self, body: Mapping[str, Any]) -> None:
        where: dict[str, Any] = {"namespace": self._namespace, "timeout_s": _TIMEOUT_S}
        await self._client.patch(CONFIG_MAPS, CONFIG_MAP, body, _Notes, **where)

    async def _get(self) -> tuple[str | None, Mapping[str, str]]:
        """Return the version of the ConfigMap, None if there is none, and its notes."""
        try:
            found = await self._client.get(
                CONFIG_MAPS, CONFIG_MAP, _Notes, namespace=self._namespace, timeout_s=_TIMEOUT_S
            )
        except errors.NotFound:
            return None, {}
        data = found.data or {}
        now = self._clock.monotonic()
        before, self._seen = self._seen, {name: (text, now) for name, text in data.items()}
        self._seen.update((name, seen) for name, seen in before.items() if data.get(name) == seen[0])
        return found.metadata.resource_version, data

    def _is_old(self, name: str, text: str) -> bool:
        return read_note(text) is None or self._clock.monotonic() - self._seen[name][1] > _KEPT_S
