"""The store: versions, order, history, the past, and watchers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.store import Collection, Event, Store, type_prefix

PREFIX = type_prefix("v1", "ConfigMap")


def _obj(name: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, **fields}


class _Listener:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def offer(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def expire(self) -> None: ...

    def duplicate(self, count: int) -> None: ...


def _keys(collection: Collection, prefix: str = "", after: str = "") -> list[str]:
    return [stored.key for stored in collection.scan(prefix, after)]


def test_versions_grow_over_all_collections() -> None:
    store = Store()
    versions = [store.collection(name).put("a", _obj("a")).rv for name in ("one", "two", "one", "three")]
    assert versions == sorted(set(versions))
    assert store.rv == versions[-1]


def test_objects_are_listed_in_key_order_by_prefix() -> None:
    collection = Store().collection("x")
    for key in ("b/z", "a/y", "ab/x", "a/x", "a-b/x"):
        collection.put(key, _obj(key))
    assert _keys(collection) == ["a-b/x", "a/x", "a/y", "ab/x", "b/z"]
    assert _keys(collection, "a/") == ["a/x", "a/y"]
    assert _keys(collection, "a/", after="a/x") == ["a/y"]


def test_a_removed_object_carries_the_version_of_its_removal() -> None:
    collection = Store().collection("x")
    made = collection.put("a", _obj("a"))
    removed = collection.remove("a")
    assert removed.obj["metadata"]["resourceVersion"] == str(removed.rv)
    assert removed.rv > made.rv
    assert made.obj["metadata"]["resourceVersion"] == str(made.rv)
    assert collection.get("a") is None


def test_history_is_bounded_and_what_is_older_has_expired() -> None:
    collection = Store(history_limit=3).collection("x")
    versions = [collection.put("a", _obj("a", n=n)).rv for n in range(6)]
    assert [event.rv for event in collection.events_after(versions[2])] == versions[3:]
    with pytest.raises(StatusError, match=r"too old resource version: \d+ \(\d+\)") as caught:
        collection.events_after(versions[1])
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_compaction_forgets_every_collection_also_those_to_come() -> None:
    store = Store()
    old = store.collection("x").put("a", _obj("a")).rv
    store.collection("x").put("a", _obj("a", n=1))
    store.compact()
    for name in ("x", "new"):
        with pytest.raises(StatusError, match="too old"):
            store.collection(name).events_after(old - 1)
    assert store.collection("x").events_after(store.rv) == []


def test_the_past_cannot_be_listed_once_it_is_forgotten() -> None:
    store = Store()
    rv = store.collection("x").put("a", _obj("a")).rv
    store.collection("x").put("b", _obj("b"))
    store.compact()
    with pytest.raises(StatusError, match="too old"):
        store.collection("x").scan_at(rv)


def test_the_future_is_a_timeout() -> None:
    store = Store()
    with pytest.raises(StatusError) as caught:
        store.collection("x").scan_at(store.rv + 1)
    assert (caught.value.code, caught.value.retry_after_s) == (504, 1)


_OPERATIONS = st.lists(st.tuples(st.sampled_from("pd"), st.sampled_from(["a/1", "a/2", "b/1", "b/2"])), max_size=25)


@given(_OPERATIONS, st.sampled_from(["", "a/", "b/"]), st.sampled_from(["", "a/1", "b/1"]))
def test_every_version_of_the_past_is_listed_as_it_was(
    operations: list[tuple[str, str]], prefix: str, after: str
) -> None:
    store = Store()
    collection = store.collection("x")
    snapshots = {store.rv: [(stored.key, stored.rv) for stored in collection.scan(prefix, after)]}
    for operation, key in operations:
        if operation == "p":
            collection.put(key, _obj(key))
        elif collection.get(key) is not None:
            collection.remove(key)
        snapshots[store.rv] = [(stored.key, stored.rv) for stored in collection.scan(prefix, after)]
    for rv, expected in snapshots.items():
        assert [(stored.key, stored.rv) for stored in collection.scan_at(rv, prefix, after)] == expected


@given(_OPERATIONS)
def test_a_state_and_the_events_since_make_the_present(operations: list[tuple[str, str]]) -> None:
    store = Store()
    collection = store.collection("x")
    half = len(operations) // 2
    start = store.rv
    state: dict[str, int] = {}
    for index, (operation, key) in enumerate(operations):
        if index == half:
            start, state = store.rv, {stored.key: stored.rv for stored in collection.scan()}
        if operation == "p":
            collection.put(key, _obj(key))
        elif collection.get(key) is not None:
            collection.remove(key)
    for event in collection.events_after(start):
        assert (event.type == "ADDED") == (event.stored.key not in state)
        if event.type == "DELETED":
            del state[event.stored.key]
        else:
            state[event.stored.key] = event.rv
    assert state == {stored.key: stored.rv for stored in collection.scan()}


def test_watchers_and_listeners_see_every_event_with_what_was_before() -> None:
    store = Store()
    collection, watcher = store.collection("x"), _Listener()
    seen: list[str] = []
    collection.watchers[watcher] = None
    store.listeners.append(lambda collection, event: seen.append(f"{collection.name} {event.type}"))
    first = collection.put("a", _obj("a"))
    second = collection.put("a", _obj("a", n=1))
    collection.remove("a")
    assert [event.type for event in watcher.events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [event.prev for event in watcher.events] == [None, first, second]
    assert seen == ["x ADDED", "x MODIFIED", "x DELETED"]


def test_an_event_is_encoded_once_for_all_watchers_of_a_form() -> None:
    collection, watcher = Store().collection("x"), _Listener()
    collection.watchers[watcher] = None
    collection.put("a", _obj("a"))
    [event] = watcher.events
    line = event.line("ADDED", PREFIX)
    assert line is event.line("ADDED", PREFIX)
    assert line == (
        b'{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1",'
        b'"metadata":{"name":"a","resourceVersion":"2"}}}\n'
    )
    other = event.line("ADDED", type_prefix("example.com/v2", "Other"))
    assert other.startswith(b'{"type":"ADDED","object":{"kind":"Other","apiVersion":"example.com/v2","metadata"')
