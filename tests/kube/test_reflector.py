"""The reflector against a server that lists, watches, expires, breaks and lies."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event, Quarantined
from volcano_py.kube.reflector import Reflector, ReflectorOptions
from volcano_py.runtime.clock import FakeClock

from tests.kube.fake_api import WIDGETS, FakeApi, Widget, a_status, a_widget, until


class Recorder:
    """A handler that remembers what it was told and what it must therefore believe."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.batches: list[list[Event[Widget]]] = []
        self.quarantine: list[Quarantined] = []
        self.released: list[str] = []
        self.mirror: dict[str, int] = {}

    def on_events(self, events: list[Event[Widget]]) -> None:
        self.batches.append(events)
        for event in events:
            self.told.append(f"{event.type.value} {event.name}")
            if event.type.value == "DELETED":
                del self.mirror[event.key]
            else:
                assert event.object is not None
                self.mirror[event.key] = event.object.size

    def on_quarantine(self, entry: Quarantined) -> None:
        self.quarantine.append(entry)
        self.told.append(f"QUARANTINED {entry.name}")

    def on_release(self, entry: Quarantined) -> None:
        self.released.append(entry.name)
        self.told.append(f"RELEASED {entry.name}")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@asynccontextmanager
async def reflecting(
    client: ApiClient, recorder: Recorder, clock: FakeClock, *, optional: bool = False, **options: Any
) -> AsyncIterator[Reflector[Widget]]:
    """Run a reflector of widgets; at the end it must have been running still."""
    reflector = Reflector(
        client,
        WIDGETS,
        Widget,
        recorder,
        optional=optional,
        options=ReflectorOptions(**options),
        clock=clock,
        rng=random.Random(1),
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def woken(clock: FakeClock, seconds: float = 60.0) -> None:
    """Wait until the reflector pauses, then let the pause pass."""
    await until(lambda: clock.sleepers)
    clock.advance(seconds)


async def test_a_list_is_read_in_pages_and_delivered_before_synced(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget(f"w{i}", i + 1) for i in range(5)]
    async with reflecting(client, recorder, clock, page_size=2) as reflector:
        await asyncio.wait_for(reflector.synced(), 5)

    assert recorder.told == [f"ADDED w{i}" for i in range(5)]
    assert [query.get("continue", "") for query in api.lists] == ["", "2", "4"]
    assert all(event.listed for batch in recorder.batches for event in batch)


async def test_a_watch_starts_where_the_list_ended_and_brings_changes(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects, api.version = [a_widget("a", 3)], 7
    async with reflecting(client, recorder, clock):
        await until(lambda: api.watches)
        watch = api.watches[0]
        watch.send("ADDED", a_widget("b", 8))
        watch.send("MODIFIED", a_widget("a", 9, size=5))
        watch.send("DELETED", a_widget("b", 10))
        await until(lambda: len(recorder.told) == 4)

    assert recorder.told == ["ADDED a", "ADDED b", "MODIFIED a", "DELETED b"]
    assert recorder.mirror == {"ns/a": 5}
    assert watch.query["resourceVersion"] == "7"
    assert watch.query["allowWatchBookmarks"] == "true"
    assert 300 <= int(watch.query["timeoutSeconds"]) <= 600


async def test_events_that_arrive_together_are_handed_over_together(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock):
        await until(lambda: api.watches)
        lines = b"".join(
            b'{"type":"ADDED","object":{"metadata":{"name":"w%d","uid":"u%d","resourceVersion":"%d"}}}\n'
            % (i, i, i + 2)
            for i in range(50)
        )
        api.watches[0].send_bytes(lines)
        await until(lambda: len(recorder.mirror) == 50)

    assert [len(batch) for batch in recorder.batches] == [50]


async def test_a_watch_that_ends_is_resumed_from_the_last_version_or_bookmark(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: api.watches)
        api.watches[0].send("ADDED", a_widget("a", 5))
        api.watches[0].end()
        await until(lambda: len(api.watches) == 2)
        api.watches[1].bookmark(50)
        api.watches[1].end()
        await until(lambda: len(api.watches) == 3)

        assert [watch.query["resourceVersion"] for watch in api.watches] == ["1", "5", "50"]
        assert len(api.lists) == 1
        assert reflector.status().reconnects == 2


async def test_a_cut_connection_is_resumed_without_a_new_list(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock):
        await until(lambda: api.watches)
        api.watches[0].send("ADDED", a_widget("a", 5))
        await until(lambda: recorder.told)
        api.watches[0].abort()
        await woken(clock)
        await until(lambda: len(api.watches) == 2)

    assert api.watches[1].query["resourceVersion"] == "5"
    assert len(api.lists) == 1


async def test_an_event_said_again_is_delivered_once(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock):
        await until(lambda: api.watches)
        for _ in range(2):
            api.watches[0].send("ADDED", a_widget("a", 5))
        for _ in range(2):
            api.watches[0].send("DELETED", a_widget("a", 6))
        api.watches[0].send("ADDED", a_widget("end", 7))
        await until(lambda: "ADDED end" in recorder.told)

    assert recorder.told == ["ADDED a", "DELETED a", "ADDED end"]


@pytest.mark.parametrize("in_stream", [True, False], ids=["as-an-event", "as-the-answer"])
async def test_an_expired_version_leads_to_a_list_and_only_the_difference_is_told(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, in_stream: bool
) -> None:
    api.objects = [a_widget("same", 2), a_widget("changes", 3), a_widget("goes", 4), a_widget("replaced", 5, uid="old")]
    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: api.watches)
        recorder.told.clear()
        api.objects = [
            a_widget("same", 2),
            a_widget("changes", 8),
            a_widget("replaced", 9, uid="new"),
            a_widget("comes", 7),
        ]
        api.version = 10
        if in_stream:
            api.watches[0].send("ERROR", a_status(410, "Expired", "too old resource version: 1 (10)"))
        else:
            api.fail_next(410, "Expired")
            api.watches[0].bookmark(1)
            api.watches[0].end()
        await until(lambda: len(api.watches) == 2)

        assert recorder.told == [
            "MODIFIED changes",
            "DELETED replaced",
            "ADDED replaced",
            "ADDED comes",
            "DELETED goes",
        ]
        assert api.watches[1].query["resourceVersion"] == "10"
        assert reflector.status().lists == 2


async def test_a_deletion_noticed_by_absence_has_no_object(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 2)]
    async with reflecting(client, recorder, clock):
        await until(lambda: api.watches)
        api.objects = []
        api.watches[0].send("ERROR", a_status(410, "Expired"))
        await until(lambda: "DELETED a" in recorder.told)

    event = recorder.batches[-1][-1]
    assert (event.namespace, event.name, event.uid, event.object) == ("ns", "a", "uid-a", None)


async def test_a_list_that_expires_between_pages_starts_again(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget(f"w{i}", i + 1) for i in range(4)]

    async def first_page(_: web.Request) -> web.Response:
        meta = {"resourceVersion": "1", "continue": "2"}
        return web.json_response({"metadata": meta, "items": api.objects[:2]})

    api.answers.append(first_page)
    api.fail_next(410, "Expired", "The provided continue parameter is too old")
    async with reflecting(client, recorder, clock, page_size=2):
        await until(lambda: api.watches)

    assert recorder.told == [f"ADDED w{i}" for i in range(4)]


async def test_a_list_whose_pages_keep_expiring_is_asked_for_in_one_piece(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 1), a_widget("b", 1)]
    for _ in range(3):
        api.fail_next(410, "Expired")
    async with reflecting(client, recorder, clock, page_size=1):
        await until(lambda: api.watches)

    assert [query.get("limit") for query in api.lists] == ["1", "1", "1", None]
    assert recorder.told == ["ADDED a", "ADDED b"]


async def test_failures_in_a_row_wait_longer_and_success_starts_anew(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    for _ in range(4):
        api.fail_next(500, "InternalError", "etcd is away")
    async with reflecting(client, recorder, clock) as reflector:
        waits = []
        for _ in range(4):
            await until(lambda: clock.sleepers)
            before = clock.monotonic()
            while clock.sleepers:
                clock.advance(0.01)
            waits.append(clock.monotonic() - before)
            await asyncio.sleep(0)
        await until(lambda: api.watches)

        assert [0.5 * 0.2 * 2**i <= wait <= 1.5 * 0.2 * 2**i + 0.02 for i, wait in enumerate(waits)] == [True] * 4
        assert "etcd is away" in reflector.status().last_error


async def test_a_server_that_asks_to_wait_is_obeyed(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.fail_next(429, "TooManyRequests", headers={"Retry-After": "7"})
    async with reflecting(client, recorder, clock):
        await until(lambda: clock.sleepers)
        clock.advance(6.9)
        assert clock.sleepers
        clock.advance(0.2)
        await until(lambda: api.watches)


async def test_a_watch_that_says_nothing_is_replaced(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock, stall_s=0.05) as reflector:
        await woken(clock)
        await until(lambda: len(api.watches) >= 2)

        assert reflector.status().stalls >= 1
        assert len(api.lists) == 1


async def test_watches_that_stay_silent_one_after_another_lead_to_a_list(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 1)]
    async with reflecting(client, recorder, clock, stall_s=0.02):
        await until(lambda: api.watches)
        api.objects, api.version = [], 7
        for _ in range(2):
            await woken(clock)
        await until(lambda: len(api.lists) == 2)
        await until(lambda: len(api.watches) == 3)

    assert [watch.query["resourceVersion"] for watch in api.watches] == ["1", "1", "7"]
    assert recorder.told == ["ADDED a", "DELETED a"]


async def test_a_malformed_line_leads_to_a_list_and_what_came_before_it_counts(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock):
        await until(lambda: api.watches)
        good = b'{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"2"}}}\n'
        api.watches[0].send_bytes(good + b"<html>\n")
        await until(lambda: recorder.told)
        assert recorder.told == ["ADDED a"]
        await woken(clock)
        await until(lambda: len(api.watches) == 2)

    assert len(api.lists) == 2


async def test_a_line_may_arrive_in_pieces_and_a_cut_line_is_asked_for_again(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"2"}}}\n'
    async with reflecting(client, recorder, clock):
        await until(lambda: api.watches)
        api.watches[0].send_bytes(line + line[:40].replace(b'"2"', b'"3"'))
        await until(lambda: recorder.told)
        api.watches[0].end()
        await until(lambda: len(api.watches) == 2)

    assert api.watches[1].query["resourceVersion"] == "2"


async def test_an_unreadable_object_is_quarantined_and_stops_nothing(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 2), a_widget("bad", 3, size="big"), a_widget("c", 4)]
    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: api.watches)
        api.watches[0].send("ADDED", a_widget("worse", 6, parts={"x": "y"}))
        api.watches[0].end()
        await until(lambda: len(api.watches) == 2)

        assert set(recorder.mirror) == {"ns/a", "ns/c"}
        bad, worse = recorder.quarantine
        assert (bad.name, bad.field, bad.value, bad.delivered) == ("bad", "size", '"big"', False)
        assert bad.message == (
            'widgets.test.example ns/bad cannot be read: Expected `int`, got `str` at size, which is "big"; '
            "it is left out until it is corrected"
        )
        assert (worse.field, worse.value) == ("parts[...]", '{"x":"y"}')
        assert b'"worse"' in worse.raw
        assert api.watches[1].query["resourceVersion"] == "6"
        assert reflector.status().quarantined == 2


async def test_a_quarantined_object_is_released_by_a_good_version_or_its_deletion(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("mended", 2, size="big"), a_widget("goes", 3, size="big")]
    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: api.watches)
        recorder.told.clear()
        api.watches[0].send("MODIFIED", a_widget("mended", 4, size=1))
        api.watches[0].send("DELETED", a_widget("goes", 5, size="big"))
        await until(lambda: len(recorder.released) == 2)

        assert recorder.told == ["RELEASED mended", "ADDED mended", "RELEASED goes"]
        assert reflector.status().quarantined == 0


async def test_an_initial_list_by_watch_ends_with_its_bookmark(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock, watch_list=True) as reflector:
        await until(lambda: api.watches)
        watch = api.watches[0]
        watch.send("ADDED", a_widget("a", 9))
        await until(lambda: recorder.told)
        assert not reflector.status().synced
        watch.bookmark(12, **{"k8s.io/initial-events-end": "true"})
        await asyncio.wait_for(reflector.synced(), 5)
        watch.end()
        await until(lambda: len(api.watches) == 2)

    assert watch.query["sendInitialEvents"] == "true"
    assert watch.query["resourceVersionMatch"] == "NotOlderThan"
    assert api.watches[1].query["resourceVersion"] == "12"
    assert api.lists == []


async def test_an_initial_list_by_watch_that_breaks_begins_again(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock, watch_list=True):
        await until(lambda: api.watches)
        api.watches[0].send("ADDED", a_widget("a", 9))
        api.watches[0].end()
        await until(lambda: len(api.watches) == 2)
        api.watches[1].send("ADDED", a_widget("b", 10))
        api.watches[1].bookmark(12, **{"k8s.io/initial-events-end": "true"})
        await until(lambda: recorder.told == ["ADDED a", "ADDED b", "DELETED a"])

    assert "resourceVersion" not in api.watches[1].query


@pytest.mark.parametrize("code", [400, 405, 422])
async def test_a_server_that_cannot_list_by_watch_is_listed(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, code: int
) -> None:
    api.objects = [a_widget("a", 1)]
    api.fail_next(
        code, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    )
    async with reflecting(client, recorder, clock, watch_list=True):
        await until(lambda: len(api.watches) == 1)

    assert recorder.told == ["ADDED a"]
    assert api.watches[0].query["resourceVersion"] == "1"


@pytest.mark.parametrize("watch_list", [False, True])
async def test_an_optional_resource_that_is_not_served_counts_as_empty_until_it_is(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, watch_list: bool
) -> None:
    api.objects = [a_widget("a", 1)]
    api.fail_next(404, "NotFound", "the server could not find the requested resource")
    async with reflecting(client, recorder, clock, optional=True, watch_list=watch_list) as reflector:
        await asyncio.wait_for(reflector.synced(), 5)
        assert reflector.status().absent
        await woken(clock)
        await until(lambda: api.watches)
        if watch_list:
            api.watches[0].send("ADDED", a_widget("a", 1))
            api.watches[0].bookmark(2, **{"k8s.io/initial-events-end": "true"})
        await until(lambda: recorder.told == ["ADDED a"])

        await until(lambda: not reflector.status().absent)


async def test_an_optional_resource_that_disappears_takes_its_objects_with_it(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 1)]
    async with reflecting(client, recorder, clock, optional=True) as reflector:
        await until(lambda: api.watches)
        api.watches[0].bookmark(2)
        for _ in range(2):
            api.fail_next(404, "NotFound", "the server could not find the requested resource")
        api.watches[0].end()
        await woken(clock)
        await until(lambda: recorder.told == ["ADDED a", "DELETED a"])

        assert reflector.status().absent


async def test_a_required_resource_that_is_not_served_is_not_synced(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.fail_next(404, "NotFound", "the server could not find the requested resource")
    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: clock.sleepers)

        assert not reflector.status().synced
        assert "could not find" in reflector.status().last_error


async def test_a_version_from_the_future_leads_to_a_list(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async def too_large(_: web.Request) -> web.Response:
        details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
        return web.json_response(a_status(504, "Timeout", details=details), status=504)

    async with reflecting(client, recorder, clock):
        await until(lambda: api.watches)
        api.answers.append(too_large)
        api.watches[0].bookmark(99)
        api.watches[0].end()
        await woken(clock)
        await until(lambda: len(api.watches) == 2)

    assert api.watches[1].query["resourceVersion"] == "1"
    assert len(api.lists) == 2


async def test_an_exception_of_the_handler_ends_the_reflector(
    api: FakeApi, client: ApiClient, clock: FakeClock
) -> None:
    class Broken(Recorder):
        def on_events(self, events: list[Event[Widget]]) -> None:
            raise RuntimeError("a bug")

    api.objects = [a_widget("a", 1)]
    reflector = Reflector(client, WIDGETS, Widget, Broken(), clock=clock)
    with pytest.raises(RuntimeError, match="a bug"):
        await asyncio.wait_for(reflector.run(), 5)
