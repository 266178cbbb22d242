"""Lists, then watches, for ever: keeps one handler up to date with one resource and recovers from every failure.

    list pages ──▶ watch from their version ──▶ ended, silent or broken: watch again from the last version seen
        ▲                                        │
        └──── 410, malformed line, 400, 404 ◀────┘   (list again; the handler receives only the difference)

The pause grows with the number of failures in a row (:class:`~volcano_py.kube.backoff.Backoff`). A watch that brought
something or stayed open for a while resets it.

A connection may die silently, and a watch over it then looks like a watch without events. Therefore watches are short:
the server is asked to end each after about half a minute, and a watch that it does not end counts as dead.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic

import structlog

from volcano_py.api.answers import Status
from volcano_py.kube import errors
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import DEFAULT_PAGE_SIZE, ApiClient, selectors
from volcano_py.kube.decoding import Bookmark, LineDecoder, MalformedLine, Page, PageDecoder, Undecodable, WatchChange
from volcano_py.kube.delivery import Delivery, EventHandler, Quarantined, T
from volcano_py.kube.lines import LineSplitter
from volcano_py.kube.outage import Outage
from volcano_py.kube.refusals import Refusals
from volcano_py.kube.resource import Resource
from volcano_py.kube.setting_aside import SettingAside, Told
from volcano_py.runtime.clock import Clock, RealClock

log = structlog.get_logger()

_MAX_BATCH = 256  # events decoded before the event loop may run other tasks: about 3 ms
_MAX_LISTED = 100  # the same for objects of a list, all of which are new to the handler
_LIVELY_S = 5.0  # a watch that stayed open this long worked, even without events
_LIST_RESTARTS = 2  # paged lists that may expire half-way before the list is requested in one piece
_MAX_SILENCES = 2  # watches in a row without even a bookmark: this server may be older than our version
_OFTEN = 3  # failures in a row after which a busy server is worth a warning
_UNCONFIRMED = 3  # 404 in a row that count as "not served" without discovery, before anything has been listed
_LOST_POSITION = frozenset({400, 404, 405, 410, 422})  # answers to a watch after which a new list is needed
_DISCOVERY_S = 10.0
_NO_WATCH_LIST = frozenset({400, 405, 422})  # answers of a server that does not know sendInitialEvents


@dataclass(frozen=True, slots=True)
class ReflectorOptions:
    """Page sizes and time limits of a reflector."""

    page_size: int = DEFAULT_PAGE_SIZE
    list_timeout_s: float = 60.0
    """Per page."""
    watch_min_s: float = 25.0
    watch_max_s: float = 35.0
    """The server ends each watch after a random time between these, so that reflectors do not reconnect together.

    It sends a bookmark shortly before. A watch that it has not ended 5 s later counts as dead; a dead connection is
    noticed at that time at the latest. To resume a watch costs one small request.
    """
    stall_s: float = 40.0
    """Silence after which a watch counts as dead."""
    watch_list: bool = False
    """Ask for the initial state as watch events (sendInitialEvents); list if the server does not support that."""
    absent_retry_s: float = 30.0
    """Pause between attempts to read an optional resource that the server does not serve, as discovery confirms."""


@dataclass(slots=True)
class ReflectorStatus:
    """State and counts of a reflector, for readiness and metrics."""

    resource: str
    synced: bool = False
    """The first list was delivered; stays True."""
    absent: bool = False
    """The server does not serve the resource (only if optional), or forbids to read it (only if dispensable)."""
    watching: bool = False
    events: int = 0
    known: int = 0
    quarantined: int = 0
    lists: int = 0
    """Complete lists; all after the first are relists."""
    reconnects: int = 0
    """Watches opened after the first."""
    stalls: int = 0
    last_received_at: float | None = None
    """Monotonic time at which the watch last brought something, bookmarks included."""
    last_error: str = ""


class Reflector(Generic[T]):
    """Keeps one handler up to date with one resource; run :meth:`run` as a supervised task."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        into: type[T],
        handler: EventHandler[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        optional: bool = False,
        dispensable: bool = False,
        options: ReflectorOptions | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        outage: Outage | None = None,
        refusals: Refusals | None = None,
        name: str = "",
        told: Told = lambda _: None,
    ) -> None:
        """Prepare to follow a resource.

        An ``optional`` resource counts as empty if the server does not serve it, a ``dispensable`` one also if it may
        not be read. Objects that were read once are kept while reading is forbidden, and until discovery confirms that
        the resource is gone. Reflectors that share ``outage`` and ``refusals`` log them together; a ``name`` tells
        those of one resource apart. ``told`` is called for each object that cannot be read, once per problem.
        """
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._selectors = selectors(label_selector, field_selector)
        self._done_without = {404, 403} if dispensable else {404} if optional else set()
        self._options = options or ReflectorOptions()
        self._clock: Clock = clock or RealClock()
        self._rng = rng or random.Random()
        self._backoff = Backoff(self._rng)
        self._lines = LineDecoder(into)
        self._pages = PageDecoder(into)
        self._net = SettingAside(resource.label, handler, self._clock, told)
        self._delivery = Delivery(resource.label, self._net)
        self._version = ""  # where the next watch starts; empty: list first
        self._watch_list = self._options.watch_list
        self._progress = False  # whether the current attempt brought something
        self._synced = asyncio.Event()
        self._status = ReflectorStatus(resource.label)
        self._watched = False  # whether a watch was ever open
        self._gone_before = False  # since the last progress
        self._silences = 0  # watches in a row that stalled without bringing anything
        self._name = name or resource.label
        self._outage = outage or client.outage
        self._refusals = refusals or Refusals(self._clock)
        self._attempt: asyncio.Timeout | None = None  # ended by relist and reconnect
        self._relist_asked = False
        self._relisting = False  # whether the list that relist asked for is under way

    @property
    def delivery(self) -> Delivery[T]:
        """The delivered objects and those in quarantine."""
        return self._delivery

    def unreadable(self) -> list[Quarantined]:
        """Return the objects that do not fit their type, and those set aside after an exception, sorted by key."""
        return [entry for _, entry in sorted({**self._net.aside, **self._delivery.quarantined}.items())]

    def status(self) -> ReflectorStatus:
        """Return the current state; the object is updated in place."""
        self._status.events = self._delivery.events
        self._status.known = len(self._delivery.known)
        self._status.quarantined = len(self._delivery.quarantined) + len(self._net.aside)
        return self._status

    async def synced(self) -> None:
        """Wait until the handler has taken the whole first list; bound it by a timeout."""
        await self._synced.wait()

    def relist(self) -> None:
        """List again at once, over new connections, because the watch cannot be trusted.

        This ends a pause. A list that an earlier call has started goes on.
        """
        if not self._relisting:
            self._relist_asked = True
            self._backoff.reset()
            self._client.distrust_idle()
            self._interrupt()

    def reconnect(self) -> None:
        """Close the watch, if one is open, and resume it at once from its last position."""
        if self._status.watching:
            self._interrupt()

    def _interrupt(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.reschedule(0.0)  # a time in the past

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            attempt = asyncio.timeout(None)
            try:
                async with attempt:
                    self._attempt = attempt
                    pause_s = await self._try()
                    if pause_s is not None:
                        await self._clock.sleep(pause_s)
            except TimeoutError:
                if not attempt.expired():
                    raise
            finally:
                self._attempt = None

    async def _try(self) -> float | None:
        """List if necessary, watch until the watch ends, and return how long to wait (None: not at all)."""
        self._progress = False
        if self._relist_asked:
            self._relist_asked, self._relisting = False, True
            self._version = ""
        try:
            await self._list_and_watch()
            return None if self._progress else self._backoff.next()
        except MalformedLine as error:
            self._version = ""
            return self._failed("watch line malformed, listing again", error)
        except errors.Gone as error:
            self._version = ""
            # This usually ends a long silence; a pause follows only if it happens twice without progress.
            pause_s = self._backoff.next() if self._gone_before else None
            self._gone_before = True
            self._answered()
            log.debug("watch position expired, listing again", resource=self._resource.label, error=str(error))
            return pause_s
        except errors.ApiError as error:
            return await self._after(error)
        finally:
            self._status.watching = False
            self._relisting = False

    def _answered(self) -> None:
        self._outage.answered(self._name)
        self._refusals.answered(self._resource.label)

    async def _list_and_watch(self) -> None:
        if not self._version and not self._watch_list:
            await self._list()
        await self._watch()

    async def _list(self) -> None:
        """Deliver the difference between the known objects and those the server has now."""
        page_size = self._options.page_size
        for attempt in range(_LIST_RESTARTS + 2):
            try:
                version = await self._list_in_pages(page_size)
                break
            except errors.Gone:
                if attempt > _LIST_RESTARTS:
                    raise
                if attempt == _LIST_RESTARTS:
                    page_size = 0  # reading all pages takes longer than continue tokens are valid
        self._list_delivered(version)

    async def _list_in_pages(self, page_size: int) -> str:
        query = {**self._selectors, **({"limit": str(page_size)} if page_size else {})}
        self._delivery.begin_list()
        body = await self._read_page(query)
        while True:
            received_at = self._clock.monotonic()
            page = self._pages.decode(body, self._path)
            if not page.resource_version:
                raise errors.UnexpectedAnswer("list", self._path, "the list has no resourceVersion to watch from")
            self._status.absent = False  # before any object is delivered: handlers may ask
            if not page.continue_token:
                await self._take_page(page, received_at)
                return page.resource_version
            query["continue"] = page.continue_token
            # The server prepares the next page while this one is processed.
            following = asyncio.create_task(self._read_page(query), name=f"next page of {self._resource.label}")
            try:
                await asyncio.sleep(0)  # lets the request go out
                await self._take_page(page, received_at)
                body = await following
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    async def _read_page(self, query: Mapping[str, str]) -> bytes:
        return await self._client.list_bytes(
            self._resource, query, namespace=self._namespace, timeout_s=self._options.list_timeout_s
        )

    async def _take_page(self, page: Page[T], received_at: float) -> None:
        """Deliver a page in batches between which the event loop may run other tasks."""
        for start in range(0, len(page.items), _MAX_LISTED):
            if start:
                self._delivery.flush()
                await asyncio.sleep(0)
            for item in page.items[start : start + _MAX_LISTED]:
                self._delivery.put(item, received_at)
        for bad in page.undecodable:
            self._delivery.refuse(bad, received_at)
        self._delivery.flush()

    @property
    def position(self) -> str:
        """The resourceVersion up to which everything was delivered, "" while that is not known."""
        return self._version

    def _list_delivered(self, version: str) -> None:
        self._delivery.end_list(self._clock.monotonic())
        self._version = version
        self._status.lists += 1
        self._status.synced = True
        self._synced.set()
        self._relisting = False

    async def _watch(self) -> None:
        """Deliver changes until the server ends the watch; raises when it fails."""
        query = {**self._selectors, "allowWatchBookmarks": "true"}
        lasts_s = self._rng.uniform(self._options.watch_min_s, self._options.watch_max_s)
        listing = not self._version
        if listing:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
            lasts_s = max(lasts_s, self._options.list_timeout_s)
            self._delivery.begin_list()
        else:
            query["resourceVersion"] = self._version
        watch = self._client.watch(
            self._resource, query, namespace=self._namespace, lasts_s=lasts_s, stall_s=self._options.stall_s
        )
        async with watch as stream:
            opened_at = self._clock.monotonic()
            self._status.watching = True
            self._status.absent = False
            self._status.reconnects += self._watched
            self._watched = True
            self._answered()
            lines = LineSplitter()
            try:
                while data := await stream.read():
                    await self._take(lines.feed(data))
                    if listing and self._version:
                        return  # a shorter watch follows
            finally:
                if self._clock.monotonic() - opened_at >= _LIVELY_S:
                    self._note_progress()

    async def _take(self, lines: list[bytes]) -> None:
        """Deliver the lines that arrived together, in batches between which the event loop may run other tasks."""
        received_at = self._status.last_received_at = self._clock.monotonic()
        for start in range(0, len(lines), _MAX_BATCH):
            try:
                for line in lines[start : start + _MAX_BATCH]:
                    self._take_line(line, received_at)
            finally:
                self._delivery.flush()  # also the events before a line that ends the watch
            await asyncio.sleep(0)

    def _take_line(self, line: bytes, received_at: float) -> None:
        item = self._lines.decode(line)
        if isinstance(item, WatchChange):
            version = item.object.metadata.resource_version
            if item.type == "DELETED":
                self._delivery.delete(item.object, received_at)
            else:
                self._delivery.put(item.object, received_at)
        elif isinstance(item, Undecodable):
            version = item.identity.resource_version
            self._delivery.refuse(item, received_at)
        elif isinstance(item, Bookmark):
            version = item.resource_version
            if item.initial_events_end and not self._version:
                self._list_delivered(version)
        else:
            raise self._error_in_watch(item)
        # The initial events of a watch-list come in any order, so there is no position to resume from until they end.
        if self._version and version:
            self._version = version
        self._silences = 0
        self._note_progress()

    def _note_progress(self) -> None:
        self._progress = True
        self._gone_before = False
        self._backoff.reset()

    def _error_in_watch(self, said: Status) -> errors.ApiError:
        if said.code != 429:
            self._version = ""  # the server has given up this watch; only a list can show what was missed
        return errors.from_status("watch", self._path, said)

    async def _after(self, error: errors.ApiError) -> float | None:
        """Handle a failed request and return how long to wait (None: not at all)."""
        if not self._version and error.status in self._done_without and await self._counts_as_absent(error):
            self._answered()
            return self._absent(error)
        if not self._version and error.verb == "watch" and error.status in _NO_WATCH_LIST:
            log.info("server cannot send initial events, listing instead", resource=self._resource.label)
            self._watch_list = False
            return None
        if self._status.watching and isinstance(error, errors.Timeout) and not error.status:
            self._status.stalls += 1
            self._silences += 1
            self._client.distrust_idle()  # other connections have most likely gone silent, too
        if error.status in _LOST_POSITION or _server_is_older(error) or self._silences >= _MAX_SILENCES:
            self._version = ""
            self._silences = 0
        return self._failed(f"{error.verb} failed", error, error.retry_after_s)

    def _failed(self, event: str, error: Exception, at_least_s: float | None = None) -> float:
        self._status.last_error = str(error)
        pause_s = self._backoff.next(at_least_s)
        quiet = False
        if isinstance(error, errors.ApiError) and not _server_is_older(error):
            label = self._resource.label
            quiet = (
                self._outage.failed(self._name, error) or self._refusals.failed(label, error) or self._may_pass(error)
            )
        write = log.debug if quiet else log.warning
        write(event, resource=self._resource.label, error=str(error), retry_in_s=round(pause_s, 2))
        return pause_s

    def _may_pass(self, error: errors.ApiError) -> bool:
        """Say whether a server that is busy, such as with a new definition, is likely to answer soon."""
        return (error.status == 429 or error.status >= 500) and self._backoff.failures < _OFTEN

    async def _counts_as_absent(self, error: errors.ApiError) -> bool:
        """Say whether an answer means that the resource counts as empty.

        A lost right may come back in a moment, so a 403 counts only before the first list. A single 404 proves nothing,
        and a mistake would delete objects that others rely on, so discovery has to confirm it. Before the first list
        there is nothing to delete; if discovery is forbidden, some 404 in a row are then enough.
        """
        if error.status != 404:
            return not self._status.synced or self._status.absent
        try:
            return not await self._client.serves(self._resource, timeout_s=_DISCOVERY_S)
        except errors.ApiError as problem:
            log.debug("discovery failed", resource=self._resource.label, error=str(problem))
            forbidden = isinstance(problem, errors.Forbidden | errors.Unauthorized)
            return forbidden and not self._status.synced and self._backoff.failures >= _UNCONFIRMED

    def _absent(self, error: errors.ApiError) -> float:
        """Treat a resource that cannot be read as empty; return how long to wait before the next attempt."""
        if not self._status.absent:
            self._refusals.left_out(self._resource.label, error)
        self._delivery.begin_list()
        self._delivery.end_list(self._clock.monotonic())
        self._status.absent = True
        self._status.synced = True
        self._synced.set()
        return self._options.absent_retry_s * self._rng.uniform(0.5, 1.5)

    @property
    def _path(self) -> str:
        return self._resource.collection(self._namespace)


def _server_is_older(error: errors.ApiError) -> bool:
    """Say whether the server has not reached our version yet, because it was restored from an older state."""
    causes = error.details.causes if error.details else []
    return any(cause.reason == "ResourceVersionTooLarge" for cause in causes)
