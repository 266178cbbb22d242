"""Reflectors of resources that a server does not serve, or that nobody may read."""

import asyncio

import pytest
from aiohttp import web

from tests.effects.waiting import until
from tests.kube.fake_api import Answer, FakeApi, Widget, a_widget, away, serving
from tests.kube.reflecting import Recorder, reflecting, woken
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event
from volcano_py.runtime.clock import FakeClock

NOT_LISTED = {"kind": "APIResourceList", "resources": [{"name": "gadgets"}, {"name": "widgets/status"}]}
NO_GROUPS = {"kind": "APIGroupList", "groups": [{"name": "other.example", "versions": [{"groupVersion": "other/v1"}]}]}
OUR_GROUP = {"groups": [{"name": "test.example", "versions": [{"groupVersion": "test.example/v1"}]}]}


async def not_listed(_: web.Request) -> web.Response:
    return await serving(NOT_LISTED)


async def forbidden(_: web.Request) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden"}
    return web.json_response(status, status=403)


async def no_groups(_: web.Request) -> web.Response:
    return await serving(NO_GROUPS)


async def our_group(_: web.Request) -> web.Response:
    return await serving(OUR_GROUP)


async def not_found(_: web.Request) -> web.Response:
    return web.Response(status=404, text="404 page not found")


async def a_page(_: web.Request) -> web.Response:
    return web.Response(text="<html>nothing of that kind</html>")


@pytest.mark.parametrize("discovery", [[not_listed], [not_found, no_groups]], ids=["listed", "version"])
@pytest.mark.parametrize("watch_list", [False, True])
async def test_an_optional_resource_that_is_not_served_counts_as_empty_until_it_is(
    api: FakeApi,
    client: ApiClient,
    recorder: Recorder,
    clock: FakeClock,
    watch_list: bool,
    discovery: list[Answer],
) -> None:
    api.objects = [a_widget("a", 1)]
    api.discovery = list(discovery)
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


async def test_a_resource_that_is_back_counts_as_served_before_its_first_objects_are_delivered(
    api: FakeApi, client: ApiClient, clock: FakeClock
) -> None:
    """Found by simulation: controllers leave out what is not served, so they forgot jobs that came before."""
    api.objects = [a_widget(f"w{i:03}", i + 1) for i in range(250)]
    api.discovery = [not_listed]
    api.fail_next(404, "NotFound", "the server could not find the requested resource")
    absent: list[bool] = []

    class Asks(Recorder):
        def on_events(self, events: list[Event[Widget]]) -> None:
            super().on_events(events)
            absent.append(reflector.status().absent)

    recorder = Asks()
    async with reflecting(client, recorder, clock, optional=True) as reflector:
        await asyncio.wait_for(reflector.synced(), 5)
        assert reflector.status().absent
        await woken(clock)
        await until(lambda: len(recorder.mirror) == 250)

    assert absent == [False, False, False]


async def test_an_optional_resource_that_disappears_takes_its_objects_with_it(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 1)]
    async with reflecting(client, recorder, clock, optional=True) as reflector:
        await until(lambda: api.watches)
        api.watches[0].bookmark(2)
        for _ in range(2):
            api.fail_next(404, "NotFound", "the server could not find the requested resource")
        api.discovery = [not_listed]
        api.watches[0].end()
        await woken(clock)
        await until(lambda: recorder.told == ["ADDED a", "DELETED a"])

        assert reflector.status().absent


UNCLEAR: list[list[Answer]] = [[], [away], [not_found, our_group], [not_found, not_found], [a_page]]


@pytest.mark.parametrize("discovery", UNCLEAR, ids=["listed", "away", "group listed", "404 to everything", "a page"])
async def test_a_stray_404_that_discovery_does_not_confirm_empties_nothing(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, discovery: list[Answer]
) -> None:
    api.objects = [a_widget("a", 1)]
    async with reflecting(client, recorder, clock, optional=True) as reflector:
        await until(lambda: api.watches)
        api.watches[0].bookmark(2)
        for _ in range(2):
            api.fail_next(404, "NotFound", "the server could not find the requested resource")
        api.discovery = list(discovery)
        api.watches[0].end()
        await woken(clock)
        await until(lambda: api.discovered and not api.discovery)
        await woken(clock, 1.0)  # the second failure in a row waits for 0.6 s at most
        await until(lambda: len(api.watches) == 2)

        assert recorder.told == ["ADDED a"]
        assert not reflector.status().absent


async def test_a_stray_404_to_the_first_list_is_tried_again_in_seconds(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget("a", 1)]
    api.fail_next(404, "NotFound", "the server could not find the requested resource")
    async with reflecting(client, recorder, clock, optional=True) as reflector:
        await until(lambda: clock.sleepers)
        assert not reflector.status().synced
        await woken(clock, 0.5)
        await until(lambda: recorder.told == ["ADDED a"])


async def test_without_a_right_to_discovery_some_404_in_a_row_are_believed_at_the_start(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    for _ in range(6):
        api.fail_next(404, "NotFound", "the server could not find the requested resource")
    api.discovery = [forbidden] * 6
    async with reflecting(client, recorder, clock, optional=True) as reflector:
        for _ in range(3):
            await woken(clock, 3.0)
        await until(lambda: reflector.status().synced)

        assert reflector.status().absent


@pytest.mark.parametrize(("code", "reason"), [(404, "NotFound"), (403, "Forbidden")])
async def test_a_dispensable_resource_that_may_not_be_read_counts_as_empty_until_it_may(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock, code: int, reason: str
) -> None:
    api.objects = [a_widget("a", 1)]
    api.discovery = [not_listed, not_listed]
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
