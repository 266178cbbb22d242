"""The reflector against servers that fail, fall silent or lie."""

import asyncio
import random

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from tests.effects.waiting import until
from tests.kube.fake_api import WIDGETS, FakeApi, Widget, a_server, a_status, a_widget
from tests.kube.reflecting import Recorder, reflecting, woken
from volcano_py.kube import transport
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.delivery import Event
from volcano_py.kube.reflector import Reflector, ReflectorOptions
from volcano_py.runtime.clock import FakeClock


async def test_failures_in_a_row_wait_longer_and_a_success_resets_the_delay(
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


async def test_retry_after_is_respected(api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock) -> None:
    api.fail_next(429, "TooManyRequests", headers={"Retry-After": "7"})
    async with reflecting(client, recorder, clock):
        await until(lambda: clock.sleepers)
        clock.advance(6.9)
        assert clock.sleepers
        clock.advance(0.2)
        await until(lambda: api.watches)


async def test_a_silent_watch_is_replaced(
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


# Connections that die without a word


def test_a_dead_watch_goes_unnoticed_for_less_than_45_seconds() -> None:
    options = ReflectorOptions()

    assert options.watch_max_s + transport.STREAM_GRACE_S <= 45
    assert options.stall_s <= 45
    assert options.stall_s >= options.watch_max_s  # or a watch to which nothing happens would count as dead


async def test_a_watch_that_the_server_does_not_end_counts_as_dead_although_it_spoke(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "STREAM_GRACE_S", 0.5)
    async with reflecting(client, recorder, clock, watch_min_s=2.5, watch_max_s=2.5, stall_s=30) as reflector:
        await until(lambda: api.watches)
        api.watches[0].send("ADDED", a_widget("a", 5))
        await woken(clock)
        await until(lambda: len(api.watches) == 2)

        assert reflector.status().stalls == 1
        assert "has not ended the watch" in reflector.status().last_error
    assert [watch.query["resourceVersion"] for watch in api.watches] == ["1", "5"]
    assert len(api.lists) == 1


async def test_a_silent_watch_makes_idle_connections_suspect(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    distrusted: list[bool] = []
    monkeypatch.setattr(client, "distrust_idle", lambda: distrusted.append(True))
    async with reflecting(client, recorder, clock, stall_s=0.05):
        await until(lambda: clock.sleepers)

    assert distrusted == [True]


async def test_distrusted_connections_are_not_used_again() -> None:
    peers: list[object] = []

    async def answer(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.json_response({})

    async with a_server(answer) as url, ApiClient(Credentials(url)) as client:
        for distrust in (False, False, True):
            if distrust:
                client.distrust_idle()
            await client.get_bytes("/healthz", timeout_s=5)

    assert peers[0] == peers[1] != peers[2]


# Listing anew on demand


async def test_a_list_that_is_asked_for_is_made_at_once_and_ends_the_watch(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 2)]
    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: api.watches)
        api.objects, api.version = [a_widget("b", 8)], 9
        reflector.relist()
        reflector.relist()
        await until(lambda: len(api.watches) == 2)
        await until(api.watches[0].closed.is_set)

        assert recorder.told == ["ADDED a", "ADDED b", "DELETED a"]
        assert api.watches[1].query["resourceVersion"] == "9"
        assert (len(api.lists), clock.sleepers) == (2, 0)


async def test_a_list_that_is_asked_for_cuts_a_pause_short(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.fail_next(500, "InternalError")
    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: clock.sleepers)
        reflector.relist()
        await until(lambda: api.watches)


async def test_a_list_that_was_asked_for_is_not_cut_short_by_asking_again(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        begun.set()
        await go.wait()
        return web.json_response({"metadata": {"resourceVersion": "9"}, "items": []})

    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: api.watches)
        api.answers.append(slow)
        reflector.relist()
        await asyncio.wait_for(begun.wait(), 5)
        reflector.relist()
        go.set()
        await until(lambda: len(api.watches) == 2)

    assert len(api.lists) == 2


async def test_a_list_that_hangs_is_given_up_for_one_that_is_asked_for(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    begun = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        begun.set()
        await asyncio.sleep(60)
        raise AssertionError("never answered")

    api.answers.append(hang)
    async with reflecting(client, recorder, clock) as reflector:
        await asyncio.wait_for(begun.wait(), 5)
        reflector.relist()
        await until(lambda: api.watches)


async def test_a_reconnected_watch_goes_on_where_it_was(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    async with reflecting(client, recorder, clock) as reflector:
        await until(lambda: api.watches)
        api.watches[0].send("ADDED", a_widget("a", 5))
        await until(lambda: recorder.told)
        reflector.reconnect()
        await until(lambda: len(api.watches) == 2)

    assert [watch.query["resourceVersion"] for watch in api.watches] == ["1", "5"]
    assert len(api.lists) == 1


async def test_a_time_out_of_the_handler_is_a_bug_like_others(
    api: FakeApi, client: ApiClient, clock: FakeClock
) -> None:
    class Broken(Recorder):
        def on_events(self, events: list[Event[Widget]]) -> None:
            raise TimeoutError("a bug")

    api.objects = [a_widget("a", 1)]
    reflector = Reflector(client, WIDGETS, Widget, Broken(), clock=clock, rng=random.Random(1))
    with pytest.raises(TimeoutError, match="a bug"):
        await asyncio.wait_for(reflector.run(), 5)


# What the log says


async def test_other_failures_are_logged_one_by_one(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    for _ in range(3):
        api.fail_next(405, "MethodNotAllowed", "not here")
    with capture_logs() as lines:
        async with reflecting(client, recorder, clock):
            for _ in range(3):
                await woken(clock)
            await until(lambda: api.watches)

    assert [line["event"] for line in lines if line["log_level"] == "warning"] == ["list failed"] * 3


@pytest.mark.parametrize(("code", "reason"), [(429, "TooManyRequests"), (500, "InternalError")])
async def test_a_busy_server_is_worth_a_warning_only_when_it_is_busy_for_long(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, code: int, reason: str
) -> None:
    for _ in range(4):
        api.fail_next(code, reason, "storage is (re)initializing")
    with capture_logs() as lines:
        async with reflecting(client, recorder, clock):
            for _ in range(4):
                await woken(clock)
            await until(lambda: api.watches)

    failures = [line["log_level"] for line in lines if line["event"] == "list failed"]
    assert failures == ["debug", "debug", "warning", "warning"]
