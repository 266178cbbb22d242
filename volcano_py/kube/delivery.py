"""Turns lists and watches of any quality into a correct stream of events for one handler.

A watch repeats events after a reconnect. A list after a break does not name the objects deleted meanwhile. An object
may be replaced by another of the same name. One object in ten thousand does not fit its type. :class:`Delivery` keeps
only UID and version per object, and turns all of that into ADDED, MODIFIED and DELETED, once each, in order.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from volcano_py.kube.decoding import Undecodable

log = structlog.get_logger()


class ObjectMetadata(Protocol):
    """The metadata that every object must have."""

    @property
    def name(self) -> str: ...  # noqa: D102 - names of the wire
    @property
    def namespace(self) -> str: ...  # noqa: D102
    @property
    def uid(self) -> str: ...  # noqa: D102
    @property
    def resource_version(self) -> str: ...  # noqa: D102


class KubernetesObject(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMetadata: ...  # noqa: D102


T = TypeVar("T", bound=KubernetesObject)


class EventType(Enum):
    """How an object changed."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Event(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """One change of one object.

    ``object`` is the state after the change, for DELETED the last state. It is None for a DELETED whose last state
    could not be decoded, or that was noticed only because a later list lacks the object; the handler knows what it had.
    """

    type: EventType
    key: str
    """``namespace/name``, or the name of an object without a namespace."""
    uid: str
    object: T | None
    received_at: float
    """Monotonic time at which the bytes that brought the event were received."""
    listed: bool
    """Whether a list brought it; the age of the object then says nothing about the delay of the watch."""

    @property
    def namespace(self) -> str:
        """The namespace, empty for an object that has none."""
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The name."""
        return self.key.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """An object that does not fit its type and is left out until it is corrected or deleted."""

    resource: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    field: str
    """Where, such as ``spec.containers[0].ports[1].hostPort``; empty if unknown."""
    value: str
    """What is there, as short JSON; empty if unknown."""
    problem: str
    delivered: bool
    """Whether an earlier state of this object was delivered; the handler still has it."""
    raw: bytes = dataclasses.field(default=b"", repr=False)
    """The whole object, for handlers that can use a part of it; passed on once, not kept here."""

    @property
    def message(self) -> str:
        """A sentence that names object, field, value and remedy."""
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name or "(without a name)"
        at = f" at {self.field}" if self.field else ""
        has = f", which is {self.value}" if self.value else ""
        return f"{self.resource} {where} cannot be read: {self.problem}{at}{has}; it is left out until it is corrected"


class EventHandler(Protocol[T]):
    """Receives changes; its methods are called on the event loop, one at a time, and must be quick.

    An exception from a handler is a bug; `setting_aside` confines it to one object.
    """

    def on_events(self, events: list[Event[T]]) -> None:
        """Receive the changes that arrived together, in order."""
        ...

    def on_quarantine(self, entry: Quarantined) -> None:
        """Receive an object that cannot be read, and every later version of it that cannot be read."""
        ...

    def on_release(self, entry: Quarantined) -> None:
        """Receive a quarantined object that is readable again (its event follows) or gone."""
        ...


class Delivery(Generic[T]):
    """Turns the server's lists and watches into a correct stream for one handler."""

    def __init__(self, resource: str, handler: EventHandler[T]) -> None:
        self._resource = resource
        self._handler = handler
        self._versions: dict[str, tuple[str, str]] = {}  # key -> (uid, resourceVersion) of what was delivered
        self._quarantined: dict[str, Quarantined] = {}
        self._listed: set[str] | None = None  # keys seen by the list under way
        self._batch: list[Event[T]] = []
        self.events = 0
        """How many events were delivered."""

    @property
    def quarantined(self) -> Mapping[str, Quarantined]:
        """What is in quarantine now, by key."""
        return self._quarantined

    @property
    def known(self) -> Mapping[str, tuple[str, str]]:
        """UID and resourceVersion of every object that was delivered and not deleted, by key."""
        return self._versions

    def begin_list(self) -> None:
        """Start a list; objects that it does not name count as deleted when it ends."""
        self._listed = set()

    def end_list(self, received_at: float) -> None:
        """Finish the list; deliver a deletion for each known object that it did not name.

        Deletions come last on purpose, so that a node may briefly look fuller than it is but never emptier.
        """
        listed = self._listed or set()
        self._listed = None
        for key in [key for key in self._versions if key not in listed]:
            self._drop(key, None, received_at, listed=True)
        for key in [key for key in self._quarantined if key not in listed]:
            self._release(key)
        self.flush()

    def put(self, obj: T, received_at: float) -> None:
        """Take an object that was listed, added or modified."""
        meta = obj.metadata
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        listed = self._listed is not None
        if self._listed is not None:
            self._listed.add(key)
        if self._quarantined and key in self._quarantined:
            self._release(key)
        uid = meta.uid
        had = self._versions.get(key)
        if had is None:
            change = EventType.ADDED
        elif had[0] != uid:
            self._drop(key, None, received_at, listed=listed)
            change = EventType.ADDED
        elif had[1] == meta.resource_version:
            return  # repeated after a reconnect
        else:
            change = EventType.MODIFIED
        self._versions[key] = (uid, meta.resource_version)
        self._batch.append(Event(change, key, uid, obj, received_at, listed))

    def delete(self, obj: T, received_at: float) -> None:
        """Take an object that was deleted, in its last state."""
        meta = obj.metadata
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        self._delete(key, meta.uid, obj, received_at)

    def refuse(self, bad: Undecodable, received_at: float) -> None:
        """Take an object that cannot be decoded."""
        identity = bad.identity
        key = f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name
        if bad.type == EventType.DELETED.value:
            self._delete(key, identity.uid, None, received_at)
            return
        listed = self._listed is not None
        if self._listed is not None:
            self._listed.add(key)
        before = self._quarantined.get(key)
        if before is not None and (before.uid, before.resource_version) == (identity.uid, identity.resource_version):
            return
        if before is not None and before.uid != identity.uid:
            self._release(key)
        had = self._versions.get(key)
        if had is not None and had[0] != identity.uid:
            self._drop(key, None, received_at, listed=listed)
            had = None
        if had is not None:  # the handler may have dropped what it had, so that version would be news again
            self._versions[key] = (identity.uid, identity.resource_version)
        entry = Quarantined(
            resource=self._resource,
            namespace=identity.namespace,
            name=identity.name,
            uid=identity.uid,
            resource_version=identity.resource_version,
            field=bad.field,
            value=bad.value,
            problem=bad.problem,
            delivered=had is not None,
            raw=bad.raw,
        )
        self.flush()  # earlier changes are delivered first
        if identity.name:  # nothing could ever release an object without a name
            self._quarantined[key] = dataclasses.replace(entry, raw=b"")
        if before is None or (before.uid, before.message) != (entry.uid, entry.message):  # not for each version
            log.warning("object cannot be read, going on without it", problem=entry.message)
        self._handler.on_quarantine(entry)

    def flush(self) -> None:
        """Hand the events gathered so far to the handler."""
        if self._batch:
            batch, self._batch = self._batch, []
            self.events += len(batch)
            self._handler.on_events(batch)

    def _delete(self, key: str, uid: str, last: T | None, received_at: float) -> None:
        # A deletion with another UID repeats that of an earlier object of this name.
        entry = self._quarantined.get(key)
        if entry is not None and entry.uid == uid:
            self._release(key)
        had = self._versions.get(key)
        if had is not None and had[0] == uid:
            self._drop(key, last, received_at, listed=False)

    def _drop(self, key: str, last: T | None, received_at: float, *, listed: bool) -> None:
        had = self._versions.pop(key, None)
        if had is not None:
            self._batch.append(Event(EventType.DELETED, key, had[0], last, received_at, listed))

    def _release(self, key: str) -> None:
        self.flush()
        self._handler.on_release(self._quarantined.pop(key))
