"""What does not fit its type is told apart and described."""

from typing import Any

import msgspec
import pytest

from tests.kube.fake_api import Widget, a_status, a_widget
from volcano_py.api.answers import Status
from volcano_py.api.core import Node, Pod
from volcano_py.kube.decoding import Bookmark, LineDecoder, MalformedLine, PageDecoder, Undecodable, WatchChange
from volcano_py.kube.errors import UnexpectedAnswer


def line(kind: str, obj: object) -> bytes:
    """Return a line of a watch."""
    return msgspec.json.encode({"type": kind, "object": obj})


def test_a_change_is_decoded_into_its_type() -> None:
    change = LineDecoder(Widget).decode(line("MODIFIED", a_widget("a", 2, size=3)))

    assert isinstance(change, WatchChange)
    assert (change.type, change.object.size) == ("MODIFIED", 3)


def test_fields_may_come_in_any_order() -> None:
    change = LineDecoder(Widget).decode(b'{"object":{"size":3,"metadata":{"name":"a"}},"type":"ADDED"}')

    assert isinstance(change, WatchChange)


@pytest.mark.parametrize("annotations", [None, {}, {"k8s.io/initial-events-end": "true"}])
def test_a_bookmark_has_its_version_and_the_end_of_initial_events(annotations: dict[str, str] | None) -> None:
    metadata: dict[str, object] = {"resourceVersion": "7"}
    if annotations is not None:
        metadata["annotations"] = annotations

    bookmark = LineDecoder(Widget).decode(line("BOOKMARK", {"metadata": metadata}))

    assert bookmark == Bookmark("7", bool(annotations))


def test_an_error_is_a_status() -> None:
    status = LineDecoder(Widget).decode(line("ERROR", a_status(410, "Expired", "too old")))

    assert isinstance(status, Status)
    assert (status.code, status.reason, status.message) == (410, "Expired", "too old")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"type":"ADDED","obj', id="cut"),
        pytest.param(b"<html>", id="no-json"),
        pytest.param(b'{"kind":"Status","code":500}', id="no-event"),
        pytest.param(b'{"type":"SURPRISE","object":{}}', id="unknown-type"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', id="no-utf8"),
        pytest.param(b'{"type":"BOOKMARK","object":{"metadata":{}}}', id="bookmark-without-version"),
    ],
)
def test_an_invalid_watch_line_is_malformed(data: bytes) -> None:
    with pytest.raises(MalformedLine):
        LineDecoder(Widget).decode(data)


@pytest.mark.parametrize(
    ("fields", "field", "value"),
    [
        pytest.param({"size": "big"}, "size", '"big"', id="wrong-type"),
        pytest.param({"parts": {"a": 1, "b": "x"}}, "parts[...]", '{"a":1,"b":"x"}', id="in-a-map"),
        pytest.param({"parts": "x" * 500}, "parts", '"' + "x" * 199 + "...", id="long-value"),
    ],
)
def test_an_unreadable_object_is_named_with_field_and_value(fields: dict[str, Any], field: str, value: str) -> None:
    bad = LineDecoder(Widget).decode(line("MODIFIED", a_widget("a", 2, **fields)))

    assert isinstance(bad, Undecodable)
    assert (bad.identity.namespace, bad.identity.name, bad.identity.uid) == ("ns", "a", "uid-a")
    assert (bad.field, bad.value, bad.type, bad.identity.resource_version) == (field, value, "MODIFIED", "2")


def test_a_field_deep_in_a_pod_is_found() -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{}, {"ports": [{"hostPort": "many"}]}]}}

    bad = LineDecoder(Pod).decode(line("ADDED", pod))

    assert isinstance(bad, Undecodable)
    assert (bad.field, bad.value) == ("spec.containers[1].ports[0].hostPort", '"many"')


@pytest.mark.parametrize("obj", [{"metadata": 5}, {}, {"metadata": {"name": 1}}, [], None])
def test_an_object_without_usable_metadata_is_still_identified(obj: object) -> None:
    bad = LineDecoder(Widget).decode(line("ADDED", obj))

    assert isinstance(bad, Undecodable)
    assert bad.identity.name == ""


def test_unreadable_objects_of_a_page_are_separated_from_the_rest() -> None:
    body = msgspec.json.encode(
        {
            "metadata": {"resourceVersion": "9", "continue": "more"},
            "items": [a_widget("a", 1), a_widget("b", 2, size=[]), a_widget("c", 3)],
        }
    )

    page = PageDecoder(Widget).decode(body, "/apis/test.example/v1/widgets")

    assert [item.metadata.name for item in page.items] == ["a", "c"]
    assert [(bad.identity.name, bad.field) for bad in page.undecodable] == [("b", "size")]
    assert (page.resource_version, page.continue_token) == ("9", "more")


@pytest.mark.parametrize("body", [b"<html>", b'{"items":5}', b"[]"])
def test_a_page_that_is_no_list_is_an_unexpected_answer(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswer, match="list pods: the answer is not a list"):
        PageDecoder(Pod).decode(body, "/api/v1/pods")


def a_deep_pod(levels: int) -> bytes:
    deep = b'{"f:spec":' * levels + b"{}" + b"}" * levels
    return b'{"metadata":{"name":"deep","uid":"u","managedFields":[{"fieldsV1":%s}]},"spec":{"nodeName":"n"}}' % deep


def test_an_object_may_be_nested_as_deeply_as_the_api_server_allows() -> None:
    pod = a_deep_pod(9_000)

    change = LineDecoder(Pod).decode(b'{"type":"ADDED","object":%s}' % pod)
    page = PageDecoder(Pod).decode(b'{"metadata":{"resourceVersion":"5"},"items":[%s]}' % pod, "/api/v1/pods")

    assert isinstance(change, WatchChange)
    assert change.object.spec.node_name == page.items[0].spec.node_name == "n"


def test_a_deep_object_that_does_not_fit_its_type_is_identified() -> None:
    pod = a_deep_pod(9_000).replace(b'"nodeName":"n"', b'"nodeName":7')

    page = PageDecoder(Pod).decode(b'{"items":[%s]}' % pod, "/api/v1/pods")

    assert [(one.identity.name, one.field, one.value) for one in page.undecodable] == [("deep", "spec.nodeName", "7")]


def test_null_in_place_of_a_list_is_an_empty_list_as_in_go() -> None:
    nothing = {"names": None, "sizeBytes": 7}
    node = {"metadata": {"name": "n1", "labels": None}, "status": {"images": [nothing], "conditions": None}}
    listed = msgspec.json.encode({"metadata": {"resourceVersion": "5"}, "items": [node]})

    change = LineDecoder(Node).decode(line("MODIFIED", node))
    page = PageDecoder(Node).decode(listed, "/api/v1/nodes")

    assert isinstance(change, WatchChange)
    assert change.object == page.items[0]
    assert change.object.status.images[0].names == []
    assert page.undecodable == []


def test_what_is_wrong_beside_a_null_is_reported() -> None:
    node = {"metadata": {"name": "n1"}, "status": {"images": [{"names": None, "sizeBytes": "many"}]}}

    found = LineDecoder(Node).decode(line("ADDED", node))

    assert isinstance(found, Undecodable)
    assert found.identity.name == "n1"
