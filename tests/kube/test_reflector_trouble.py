"""The reflector against servers that fail, fall silent, lie, or lack the resource."""

import asyncio

import pytest
from aiohttp import web

from tests.kube.fake_api import WIDGETS, FakeApi, Widget, a_status, a_widget, until
from tests.kube.reflecting import Recorder, reflecting, woken
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event
from volcano_py.kube.reflector import Reflector
from volcano_py.runtime.clock import FakeClock


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


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (403, "Forbidden")])
async def test_a_dispensable_resource_that_cannot_be_read_counts_as_empty_until_it_can(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, code: int, reason: str
) -> None:
    api.objects = [a_widget("a", 1)]
    for _ in range(2):
        api.fail_next(code, reason, "not for you")
    async with reflecting(client, recorder, clock, dispensable=True) as reflector:
        await asyncio.wait_for(reflector.synced(), 5)
        assert reflector.status().absent
        await woken(clock)
        await woken(clock)
        await until(lambda: recorder.told == ["ADDED a"])

        await until(lambda: not reflector.status().absent)


async def test_what_was_read_of_a_dispensable_resource_is_kept_while_reading_is_forbidden(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 1)]
    async with reflecting(client, recorder, clock, dispensable=True) as reflector:
        await until(lambda: api.watches)
        api.watches[0].bookmark(2)
        api.fail_next(410, "Expired", "too old")
        api.fail_next(403, "Forbidden", "not for you, for a moment")
        api.watches[0].end()
        await until(lambda: "not for you" in reflector.status().last_error)
        await woken(clock)
        await until(lambda: len(api.watches) == 2)

        assert not reflector.status().absent
        assert recorder.told == ["ADDED a"]


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
