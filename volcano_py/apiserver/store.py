"""The store: collections of immutable objects under one global resourceVersion, with bounded history.

Everything here is synchronous and runs on one event loop, so each write is atomic. A write appends one event
to its collection's history and offers it to the collection's watchers. The store never waits: it closes a watcher
that cannot keep up. History beyond the bound (or compacted on request) is gone; a request for it gets 410 Expired.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

from volcano_py.apiserver.objects import Obj, encode
from volcano_py.apiserver.status import expired, too_large_version

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Stored:
    """One revision of one object, with its JSON encoded at most once."""

    __slots__ = ("_body", "key", "obj", "rv")

    def __init__(self, key: str, obj: Obj, rv: int) -> None:
        self.key = key
        self.obj = obj
        self.rv = rv
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The JSON without kind and apiVersion: `{"metadata":...}`. All forms are made from it."""
        body = self._body
        if body is None:
            obj = self.obj
            body = encode({key: obj[key] for key in obj if key != "kind" and key != "apiVersion"})
            self._body = body
        return body

    def json(self, prefix: bytes) -> bytes:
        """The whole JSON; `prefix` opens it with kind and apiVersion (see `type_prefix`)."""
        return prefix + self.body[1:]


def type_prefix(api_version: str, kind: str) -> bytes:
    """Opening bytes of an object of this type, ready to be followed by `Stored.body[1:]`."""
    return encode({"kind": kind, "apiVersion": api_version})[:-1] + b","


class Event:
    """One change of one object; `prev` is the revision before it. Lines are encoded once and shared."""

    __slots__ = ("_lines", "prev", "rv", "stored", "type")

    def __init__(self, event_type: EventType, stored: Stored, prev: Stored | None) -> None:
        self.type: EventType = event_type
        self.stored = stored
        self.prev = prev
        self.rv = stored.rv
        self._lines: dict[tuple[EventType, bytes], bytes] = {}

    def line(self, event_type: EventType, prefix: bytes) -> bytes:
        """The watch line of this event for one version of the object.

        A watcher whose selector stops matching gets DELETED, with the last revision it knew and the
        resourceVersion of the change.
        """
        key = (event_type, prefix)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = watch_line(event_type, self.seen_as(event_type).json(prefix))
        return line

    def seen_as(self, event_type: EventType) -> Stored:
        """The revision to show to a watcher for which this event is an `event_type`."""
        if event_type == "DELETED" and self.type != "DELETED" and self.prev is not None:
            return _at_version(self.prev, self.rv)
        return self.stored


def watch_line(event_type: str, body: bytes) -> bytes:
    """One line of a watch stream."""
    return b'{"type":"%s","object":%s}\n' % (event_type.encode(), body)


def _at_version(stored: Stored, rv: int) -> Stored:
    meta = {**stored.obj["metadata"], "resourceVersion": str(rv)}
    return Stored(stored.key, {**stored.obj, "metadata": meta}, rv)


class Watching(Protocol):
    """What the store needs of a watcher."""

    def offer(self, event: Event) -> None:
        """Take one event; must not block."""

    def close(self) -> None:
        """End the stream after what is queued."""

    def abort(self) -> None:
        """Close the connection at once."""

    def expire(self) -> None:
        """Send ERROR 410 after what is queued."""

    def duplicate(self, count: int) -> None:
        """Deliver the next events twice."""


class Collection:
    """All objects of one resource, in key order, with their recent history and watchers."""

    def __init__(self, store: Store, name: str, history_limit: int) -> None:
        self.name = name
        self.keys: list[str] = []
        self.items: dict[str, Stored] = {}
        self.history: deque[Event] = deque()
        self.compacted_rv = max(store.compacted_rv, store.dropped.get(name, 0))
        self.watchers: dict[Watching, None] = {}  # a dict keeps the order of arrival
        self._store = store
        self._history_limit = history_limit

    def get(self, key: str) -> Stored | None:
        """The current revision of one object."""
        return self.items.get(key)

    def put(self, key: str, obj: Obj) -> Stored:
        """Store a new object or a new revision; the object now belongs to the store."""
        prev = self.items.get(key)
        stored = self._stamp(key, obj)
        self.items[key] = stored
        if prev is None:
            insort(self.keys, key)
        self._publish(Event("ADDED" if prev is None else "MODIFIED", stored, prev))
        return stored

    def remove(self, key: str) -> Stored:
        """Remove an object; returns its last revision, stamped with the version of the removal."""
        prev = self.items.pop(key)
        del self.keys[bisect_left(self.keys, key)]
        stored = self._stamp(key, {**prev.obj, "metadata": dict(prev.obj["metadata"])})
        self._publish(Event("DELETED", stored, prev))
        return stored

    def _stamp(self, key: str, obj: Obj) -> Stored:
        rv = self._store.next_rv()
        obj["metadata"]["resourceVersion"] = str(rv)
        return Stored(key, obj, rv)

    def _publish(self, event: Event) -> None:
        history = self.history
        history.append(event)
        if len(history) > self._history_limit:
            self.compacted_rv = history.popleft().rv
        for watcher in tuple(self.watchers):
            watcher.offer(event)
        for listener in self._store.listeners:
            listener(self, event)

    def compact(self, rv: int) -> None:
        """Forget every event up to and including `rv`."""
        while self.history and self.history[0].rv <= rv:
            self.history.popleft()
        self.compacted_rv = max(self.compacted_rv, rv)

    def events_after(self, rv: int) -> list[Event]:
        """Events newer than `rv`, oldest first; 410 if some of them are forgotten."""
        self._require(rv, f"too old resource version: {rv} ({self.compacted_rv})")
        events: list[Event] = []
        for event in reversed(self.history):
            if event.rv <= rv:
                break
            events.append(event)
        events.reverse()
        return events

    def _require(self, rv: int, message: str) -> None:
        if rv < self.compacted_rv:
            raise expired(message)

    def scan(self, prefix: str = "", after: str = "") -> Iterator[Stored]:
        """Current objects whose key starts with `prefix`, beyond key `after`, in key order.

        The keys are fixed when the scan starts; objects that vanish while it runs are skipped.
        """
        start = bisect_left(self.keys, max(prefix, after))
        for key in self._keys_from(start, prefix):
            stored = self.items.get(key)
            if stored is not None and key > after:
                yield stored

    def unchanged_since(self, rv: int) -> bool:
        """Whether the collection is unchanged since a version."""
        return not self.history or self.history[-1].rv <= rv

    def count(self, prefix: str, after: str) -> int:
        """How many objects :meth:`scan` yields."""
        end = bisect_left(self.keys, prefix + "\U0010ffff") if prefix else len(self.keys)
        return max(end - bisect_right(self.keys, max(prefix, after)), 0)

    def _keys_from(self, start: int, prefix: str) -> list[str]:
        if not prefix:
            return self.keys[start:]
        return self.keys[start : bisect_left(self.keys, prefix + "\U0010ffff")]

    def scan_at(self, rv: int, prefix: str = "", after: str = "", too_old: str = "") -> Iterator[Stored]:
        """The same as `scan` at version `rv`: current objects with newer events undone."""
        if rv > self._store.rv:
            raise too_large_version(rv, self._store.rv)
        self._require(rv, too_old or "The resourceVersion for the provided list is too old.")
        before: dict[str, Stored | None] = {}
        for event in reversed(self.history):
            if event.rv <= rv:
                break
            before[event.stored.key] = event.prev
        if not before:
            return self.scan(prefix, after)
        return self._overlaid(before, prefix, after)

    def _overlaid(self, before: dict[str, Stored | None], prefix: str, after: str) -> Iterator[Stored]:
        keys = self._keys_from(bisect_left(self.keys, max(prefix, after)), prefix)
        lost = [key for key, old in before.items() if old is not None and key not in self.items]
        if lost:
            keys = sorted([*keys, *(key for key in lost if key.startswith(prefix))])
        for key in keys:
            stored = before[key] if key in before else self.items[key]
            if stored is not None and key > after:
                yield stored


Listener = Callable[[Collection, Event], None]


class Store:
    """Every collection, one version counter, and the listeners, which see every event within the write."""

    def __init__(self, history_limit: int = 16384) -> None:
        self.rv = 1
        self.compacted_rv = 0
        self.collections: dict[str, Collection] = {}
        self.dropped: dict[str, int] = {}
        """The version at which a collection was dropped: what happened before is forgotten."""
        self.listeners: list[Listener] = []
        self._history_limit = history_limit

    def next_rv(self) -> int:
        """Advance the global version."""
        self.rv += 1
        return self.rv

    def collection(self, name: str) -> Collection:
        """The collection of that name (`pods`, `queues.scheduling.volcano.sh`), made on first use."""
        collection = self.collections.get(name)
        if collection is None:
            collection = self.collections[name] = Collection(self, name, self._history_limit)
        return collection

    def drop(self, name: str) -> None:
        """Forget a collection and end its watches."""
        collection = self.collections.pop(name, None)
        if collection is not None:
            self.dropped[name] = self.rv
            for watcher in tuple(collection.watchers):
                watcher.close()

    def compact(self, rv: int | None = None) -> None:
        """Forget the history up to `rv` (by default: all of it) in every collection."""
        rv = self.rv if rv is None else rv
        self.compacted_rv = max(self.compacted_rv, rv)
        for collection in self.collections.values():
            collection.compact(rv)
