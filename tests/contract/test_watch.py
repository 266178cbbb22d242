"""Contract: watches."""

from __future__ import annotations

import pytest

from tests.contract.api import Api, a_bare_pod, a_binding

INITIAL_END = "k8s.io/initial-events-end"


async def _version(api: Api, resource: str = "pods") -> str:
    return (await api.get(api.path(resource))).version


async def test_a_watch_from_a_version_shows_what_happened_since(api: Api) -> None:
    since = await _version(api, "secrets")
    path = api.path("secrets")
    await api.made(path, {"metadata": {"name": "a"}})
    async with api.watch(path, resourceVersion=since) as watch:
        assert watch.status == 200
        assert await watch.take(1) == [("ADDED", "a")]
        await api.patch(api.path("secrets", "a"), {"metadata": {"labels": {"x": "y"}}})
        await api.delete(api.path("secrets", "a"))
        assert await watch.take(2) == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_objects_of_a_watch_name_their_type_and_version(api: Api) -> None:
    since = await _version(api)
    made = await api.made(api.path("pods"), a_bare_pod())
    async with api.watch(api.path("pods"), resourceVersion=since) as watch:
        obj = (await watch.next())["object"]
    assert (obj["kind"], obj["apiVersion"]) == ("Pod", "v1")
    assert obj["metadata"]["resourceVersion"] == made.version


async def test_a_watch_resumes_after_the_last_event_seen(api: Api) -> None:
    since = await _version(api, "secrets")
    path = api.path("secrets")
    for name in ("a", "b", "c"):
        await api.made(path, {"metadata": {"name": name}})
    async with api.watch(path, resourceVersion=since) as watch:
        first = await watch.next()
    async with api.watch(path, resourceVersion=first["object"]["metadata"]["resourceVersion"]) as watch:
        assert await watch.take(2) == [("ADDED", "b"), ("ADDED", "c")]


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}], ids=["no-version", "version-0"])
async def test_a_watch_without_a_version_begins_with_what_exists(api: Api, query: dict[str, str]) -> None:
    path = api.path("secrets")
    await api.made(path, {"metadata": {"name": "a"}})
    async with api.watch(path, **query) as watch:
        assert await watch.take(1) == [("ADDED", "a")]
        await api.made(path, {"metadata": {"name": "b"}})
        assert await watch.take(1) == [("ADDED", "b")]


async def test_a_deleted_object_carries_the_version_of_its_deletion(api: Api) -> None:
    made = await api.made(api.path("secrets"), {"metadata": {"name": "a"}})
    async with api.watch(api.path("secrets"), resourceVersion=made.version) as watch:
        await api.delete(api.path("secrets", "a"))
        event = await watch.next()
    assert event["type"] == "DELETED"
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(made.version)


async def test_a_label_selector_turns_changes_into_added_and_deleted(api: Api) -> None:
    path, one = api.path("secrets"), api.path("secrets", "a")
    since = await _version(api, "secrets")
    async with api.watch(path, resourceVersion=since, labelSelector="x=1") as watch:
        await api.made(path, {"metadata": {"name": "a"}})
        await api.made(path, {"metadata": {"name": "never"}})
        await api.patch(one, {"metadata": {"labels": {"x": "1"}}})
        entered = await watch.next()
        left = await api.patch(one, {"metadata": {"labels": {"x": "2"}}})
        gone = await watch.next()
        await api.delete(one)
        await api.made(path, {"metadata": {"name": "b", "labels": {"x": "1"}}})
        assert await watch.take(1) == [("ADDED", "b")]
    assert (entered["type"], entered["object"]["metadata"]["labels"]) == ("ADDED", {"x": "1"})
    assert (gone["type"], gone["object"]["metadata"]["labels"]) == ("DELETED", {"x": "1"})
    assert gone["object"]["metadata"]["resourceVersion"] == left.version


async def test_a_watch_of_unbound_pods_sees_a_bound_pod_leave(api: Api) -> None:
    since = await _version(api)
    async with api.watch(api.path("pods"), resourceVersion=since, fieldSelector="spec.nodeName=") as watch:
        await api.made(api.path("pods"), a_bare_pod())
        await api.made(api.path("pods", "a", "binding"), a_binding("a", "contract-node"))
        assert await watch.take(2) == [("ADDED", "a"), ("DELETED", "a")]


async def test_a_watch_can_be_narrowed_to_one_name(api: Api) -> None:
    since = await _version(api, "secrets")
    async with api.watch(api.path("secrets"), resourceVersion=since, fieldSelector="metadata.name=b") as watch:
        for name in ("a", "b"):
            await api.made(api.path("secrets"), {"metadata": {"name": name}})
        assert await watch.take(1) == [("ADDED", "b")]


async def test_a_watch_of_a_namespace_sees_only_that_namespace(api: Api) -> None:
    since = await _version(api, "secrets")
    name = f"stranger-of-{api.namespace}"
    async with api.watch(api.path("secrets"), resourceVersion=since) as watch:
        await api.made("/api/v1/namespaces/default/secrets", {"metadata": {"name": name}})
        await api.made(api.path("secrets"), {"metadata": {"name": "own"}})
        assert await watch.take(1) == [("ADDED", "own")]
    await api.delete(f"/api/v1/namespaces/default/secrets/{name}")


async def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    path = api.path("secrets")
    for name in ("a", "b"):
        await api.made(path, {"metadata": {"name": name}})
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(path, **query) as watch:
        assert await watch.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        mark = await watch.next()
        await api.made(path, {"metadata": {"name": "c"}})
        assert await watch.take(1) == [("ADDED", "c")]
    assert (mark["type"], mark["object"]["kind"]) == ("BOOKMARK", "Secret")
    assert mark["object"]["metadata"]["annotations"] == {INITIAL_END: "true"}
    assert int(mark["object"]["metadata"]["resourceVersion"]) > 0


async def test_initial_events_of_an_empty_collection_are_only_the_bookmark(api: Api) -> None:
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with api.watch(api.path("secrets"), **query) as watch:
        assert (await watch.next())["type"] == "BOOKMARK"


async def test_initial_events_need_a_version_match(api: Api) -> None:
    answer = await api.get(api.path("secrets"), watch="true", sendInitialEvents="true")
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["resourceVersionMatch"])


async def test_a_bookmark_comes_before_the_timeout_to_resume_from(api: Api) -> None:
    path = api.path("secrets")
    made = await api.made(path, {"metadata": {"name": "a"}})
    since = str(int(made.version) - 1)
    async with api.watch(path, resourceVersion=since, allowWatchBookmarks="true", timeoutSeconds="10") as watch:
        events = [await watch.next(), await watch.next()]
    assert [event["type"] for event in events] == ["ADDED", "BOOKMARK"]
    assert set(events[1]["object"]["metadata"]) <= {"resourceVersion", "creationTimestamp"}
    assert int(events[1]["object"]["metadata"]["resourceVersion"]) >= int(made.version)


async def test_without_asking_there_are_no_bookmarks(api: Api) -> None:
    since = await _version(api, "secrets")
    async with api.watch(api.path("secrets"), resourceVersion=since, timeoutSeconds="1") as watch:
        assert await watch.rest() == []


async def test_a_watch_from_a_version_that_is_no_number_is_refused(api: Api) -> None:
    answer = await api.get(api.path("secrets"), watch="true", resourceVersion="abc")
    assert (answer.status, answer.body["status"]) == (500, "Failure")
    assert 'Invalid value: "abc"' in answer.message


async def test_every_step_of_a_graceful_deletion_is_seen(api: Api) -> None:
    since = await _version(api)
    await api.made(api.path("pods"), a_bare_pod())
    await api.made(api.path("pods", "a", "binding"), a_binding("a", "contract-node"))
    async with api.watch(api.path("pods"), resourceVersion=since) as watch:
        await api.delete(api.path("pods", "a"))
        await api.delete(api.path("pods", "a"), {"gracePeriodSeconds": 0})
        events = [await watch.next() for _ in range(5)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
    grace = [event["object"]["metadata"].get("deletionGracePeriodSeconds") for event in events]
    assert grace == [None, None, 30, 0, 0]


async def test_an_unbound_pod_is_marked_before_it_vanishes(api: Api) -> None:
    made = await api.made(api.path("pods"), a_bare_pod())
    async with api.watch(api.path("pods"), resourceVersion=made.version) as watch:
        await api.delete(api.path("pods", "a"))
        events = [await watch.next() for _ in range(2)]
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
    assert events[0]["object"]["metadata"]["deletionGracePeriodSeconds"] == 0
