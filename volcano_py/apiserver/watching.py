"""WATCH: one bounded queue per watcher, which the store fills and the response drains.

The store only appends to the queue. If a client reads too slowly, its queue fills and its watch ends (the client
resumes or relists); other watchers are not affected.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable

from volcano_py.apiserver.objects import encode
from volcano_py.apiserver.selectors import Matcher
from volcano_py.apiserver.status import StatusError, expired
from volcano_py.apiserver.store import Collection, Event, EventType, Store, Stored, watch_line

_BATCH_BYTES = 256 * 1024
Render = Callable[[Stored], bytes]
"""How an object is written for a client that asked for another form than the object itself."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Watcher:
    """One watch of one collection, optionally narrowed to a key prefix and a matcher."""

    def __init__(
        self,
        collection: Collection,
        prefix: str,
        matcher: Matcher | None,
        limit: int,
        form: bytes,
        render: Render | None = None,
    ) -> None:
        self.aborted = False
        self.on_abort: Callable[[], None] | None = None
        self._duplicates = 0
        self._last_line = b""
        self._collection = collection
        self._prefix = prefix
        self._matcher = matcher
        self._limit = limit
        self._form = form
        self._render = render
        self._queue: deque[tuple[EventType, Event]] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._closed = False
        collection.watchers[self] = None

    @property
    def closed(self) -> bool:
        """Whether the watch has ended: no further events will come."""
        return self._closed

    def offer(self, event: Event) -> None:
        """Queue an event if it concerns this watcher."""
        event_type = self._visible_as(event)
        if event_type is None or self._closed:
            return
        queue = self._queue
        if len(queue) >= self._limit:
            self.abort()
            return
        queue.append((event_type, event))
        if self._duplicates > 0:
            self._duplicates -= 1
            queue.append((event_type, event))
        self._notify()

    def _visible_as(self, event: Event) -> EventType | None:
        if self._prefix and not event.stored.key.startswith(self._prefix):
            return None
        matcher = self._matcher
        if matcher is None:
            return event.type
        now = event.type != "DELETED" and matcher(event.stored.obj)
        before = event.prev is not None and matcher(event.prev.obj)
        if now:
            return "MODIFIED" if before else "ADDED"
        return "DELETED" if before else None

    def duplicate(self, count: int) -> None:
        """Deliver the next `count` events twice."""
        self._duplicates = count

    def expire(self) -> None:
        """Send ERROR 410 after what is queued, then end."""
        self._last_line = error_line(expired("too old resource version: the watch was told to expire"))
        self.close()

    def abort(self) -> None:
        """Close the connection without sending what is queued."""
        self.aborted = True
        self.close()
        if self.on_abort is not None:
            self.on_abort()

    def close(self) -> None:
        """End the stream after what is queued."""
        self._closed = True
        self._collection.watchers.pop(self, None)
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def drain(self) -> bytes:
        """The queued lines, up to a batch; empty when nothing is queued."""
        queue, form, render = self._queue, self._form, self._render
        lines: list[bytes] = []
        size = 0
        while queue and size < _BATCH_BYTES:
            event_type, event = queue.popleft()
            if render is None:
                line = event.line(event_type, form)
            else:
                line = watch_line(event_type, render(event.seen_as(event_type)))
            size += len(line)
            lines.append(line)
        if not queue and self._closed and self._last_line:
            lines.append(self._last_line)
            self._last_line = b""
        return b"".join(lines)

    async def wait(self, timeout_s: float) -> None:
        """Wait until an event is queued, the watch is closed, or the time is up."""
        if self._queue or self._closed:
            return
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        handle = loop.call_later(timeout_s, self._notify)
        try:
            await self._wake
        finally:
            handle.cancel()
            self._wake = None


def initial_lines(items: Iterable[Stored], form: bytes, render: Render | None = None) -> Iterable[bytes]:
    """ADDED lines for objects that exist already, in batches."""
    batch: list[bytes] = []
    size = 0
    for stored in items:
        line = watch_line("ADDED", stored.json(form) if render is None else render(stored))
        batch.append(line)
        size += len(line)
        if size >= _BATCH_BYTES:
            yield b"".join(batch)
            batch, size = [], 0
    if batch:
        yield b"".join(batch)


def bookmark(api_version: str, kind: str, rv: int, end_of_initial: bool) -> bytes:
    """A BOOKMARK line: everything up to `rv` has been sent."""
    meta: dict[str, object] = {"resourceVersion": str(rv), "creationTimestamp": None}
    if end_of_initial:
        meta["annotations"] = {INITIAL_EVENTS_END: "true"}
    return watch_line("BOOKMARK", encode({"kind": kind, "apiVersion": api_version, "metadata": meta}))


def error_line(error: StatusError) -> bytes:
    """An ERROR line; the stream ends after it."""
    return watch_line("ERROR", encode(error.to_status()))


async def stream(
    watcher: Watcher, store: Store, api_version: str, kind: str, *, timeout_s: float, bookmark_s: float | None
) -> AsyncIterator[bytes]:
    """Chunks of a running watch until it times out or is closed; bookmarks while nothing is queued.

    A bookmark is sent even if nothing has changed: it shows clients that the watch is alive.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    next_bookmark = loop.time() + bookmark_s if bookmark_s is not None else deadline
    marked = 0
    while not watcher.aborted:
        chunk = watcher.drain()
        if chunk:
            yield chunk
            continue
        now = loop.time()
        if watcher.closed or now >= deadline:
            break
        if bookmark_s is not None and now >= next_bookmark:
            next_bookmark = now + bookmark_s
            marked = store.rv
            yield bookmark(api_version, kind, marked, end_of_initial=False)
            continue
        await watcher.wait(min(deadline, next_bookmark) - now)
    if bookmark_s is not None and not watcher.closed and store.rv != marked:
        yield bookmark(api_version, kind, store.rv, end_of_initial=False)
