"""The reflector lists, watches, resumes and lists again; its handler sees one correct stream."""

import asyncio

import pytest
from aiohttp import web

from tests.effects.waiting import until
from tests.kube.fake_api import FakeApi, a_status, a_widget
from tests.kube.reflecting import Recorder, reflecting, woken
from volcano_py.kube.client import ApiClient
from volcano_py.runtime.clock import FakeClock


async def test_a_list_is_read_in_pages_and_delivered_before_synced(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget(f"w{i}", i + 1) for i in range(5)]
    async with reflecting(client, recorder, clock, page_size=2) as reflector:
        await asyncio.wait_for(reflector.synced(), 5)

    assert recorder.told == [f"ADDED w{i}" for i in range(5)]
    assert [query.get("continue", "") for query in api.lists] == ["", "2", "4"]
    assert all(event.listed for batch in recorder.batches for event in batch)


async def test_a_large_page_is_delivered_in_batches_between_which_the_loop_runs_other_tasks(
    api: FakeApi, client: ApiClient, recorder: Recorder, clock: FakeClock
) -> None:
    api.objects = [a_widget(f"w{i:03}", i + 1) for i in range(250)]
    async with reflecting(client, recorder, clock) as reflector:
        async with asyncio.timeout(5):
            while not recorder.batches:  # noqa: ASYNC110 - the next turn of the loop is meant
                await asyncio.sleep(0)
        seen_between = len(recorder.mirror)
        await asyncio.wait_for(reflector.synced(), 5)

    assert [len(batch) for batch in recorder.batches] == [100, 100, 50]
    assert 0 < seen_between < 250


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
    assert 25 <= int(watch.query["timeoutSeconds"]) <= 35


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
        await until(lambda: reflector.status().reconnects == 2)

        assert [watch.query["resourceVersion"] for watch in api.watches] == ["1", "5", "50"]
        assert len(api.lists) == 1


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


async def test_a_repeated_event_is_delivered_once(
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
async def test_an_expired_version_leads_to_a_list_and_only_differences_are_delivered(
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
        await until(lambda: len(api.watches) == 2)

    assert watch.query["sendInitialEvents"] == "true"
    assert int(watch.query["timeoutSeconds"]) == 60  # a long list takes its time; what follows is a watch like others
    assert 25 <= int(api.watches[1].query["timeoutSeconds"]) <= 35
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
