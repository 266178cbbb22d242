"""Typed requests: what goes out, what comes back, who is told."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from tests.effects.waiting import until
from tests.kube.fake_api import WIDGETS, FakeApi, Meta, Widget, a_widget
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.credentials import Credentials


def answering(obj: dict[str, Any], status: int = 200) -> Any:
    """Return an answer with that object."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(obj, status=status)

    return answer


async def test_an_object_is_read_into_its_type(api: FakeApi, client: ApiClient) -> None:
    api.answers.append(answering(a_widget("a", 3, size=5)))

    widget = await client.get(WIDGETS, "a", Widget, namespace="ns")

    assert (widget.metadata.name, widget.size) == ("a", 5)
    assert api.requests[0].path == "/apis/test.example/v1/namespaces/ns/widgets/a"
    assert api.requests[0].headers["User-Agent"] == "volcano-py"


async def test_plain_json_is_given_when_a_dict_is_asked_for(api: FakeApi, client: ApiClient) -> None:
    api.answers.append(answering({"anything": [1]}))

    assert await client.get(WIDGETS, "a", dict, namespace="ns") == {"anything": [1]}


async def test_all_pages_of_a_list_are_read_with_its_selectors(api: FakeApi, client: ApiClient) -> None:
    api.objects = [a_widget(f"w{i}", i) for i in range(5)]

    pages = [
        [item.metadata.name for item in page.items]
        async for page in client.list_pages(WIDGETS, Widget, label_selector="a=b", page_size=2)
    ]

    assert pages == [["w0", "w1"], ["w2", "w3"], ["w4"]]
    assert all(query["labelSelector"] == "a=b" and "fieldSelector" not in query for query in api.lists)


async def test_a_list_without_items_is_empty(api: FakeApi, client: ApiClient) -> None:
    api.answers.append(answering({"metadata": {"resourceVersion": "1"}, "items": None}))

    assert [page.items async for page in client.list_pages(WIDGETS, Widget)] == [[]]


async def test_an_object_is_created_from_a_struct(api: FakeApi, client: ApiClient) -> None:
    api.answers.append(answering(a_widget("a", 9), 201))

    widget = await client.create(WIDGETS, Widget(Meta("a", "ns")), Widget, namespace="ns")

    assert widget.metadata.resource_version == "9"
    assert api.requests[0].method == "POST"
    assert api.requests[0].headers["Content-Type"] == "application/json"
    assert json.loads(api.bodies[0])["metadata"]["name"] == "a"


async def test_a_subresource_is_replaced(api: FakeApi, client: ApiClient) -> None:
    api.answers.append(answering(a_widget("a", 9)))

    await client.replace(WIDGETS, "a", {"x": 1}, Widget, namespace="ns", subresource="status")

    assert (api.requests[0].method, api.requests[0].path.endswith("/widgets/a/status")) == ("PUT", True)


@pytest.mark.parametrize("kind", list(PatchType))
async def test_a_patch_has_its_content_type(api: FakeApi, client: ApiClient, kind: PatchType) -> None:
    api.answers.append(answering(a_widget("a", 9)))

    await client.patch(WIDGETS, "a", b"[]", Widget, namespace="ns", kind=kind)

    assert (api.requests[0].method, api.requests[0].headers["Content-Type"]) == ("PATCH", kind.value)
    assert api.bodies == [b"[]"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, {}, id="plain"),
        pytest.param({"uid": "u"}, {"preconditions": {"uid": "u"}}, id="only-that-object"),
        pytest.param(
            {"resource_version": "5", "grace_period_s": 0, "propagation": "Background"},
            {"preconditions": {"resourceVersion": "5"}, "gracePeriodSeconds": 0, "propagationPolicy": "Background"},
            id="everything",
        ),
    ],
)
async def test_a_deletion_carries_its_preconditions(
    api: FakeApi, client: ApiClient, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    await client.delete(WIDGETS, "a", namespace="ns", **options)

    assert api.requests[0].method == "DELETE"
    assert json.loads(api.bodies[0]) == {"kind": "DeleteOptions", "apiVersion": "v1", **expected}


async def test_the_observer_sees_every_request_with_or_without_an_answer(api: FakeApi) -> None:
    seen: list[tuple[str, str, int]] = []

    def observe(verb: str, resource: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        seen.append((verb, resource, status))

    async with ApiClient(Credentials(api.url), observer=observe) as client:
        await client.post_bytes(WIDGETS.item("a", "ns", "binding"), b"{}")
        api.fail_next(409, "Conflict")
        with pytest.raises(errors.Conflict):
            await client.delete(WIDGETS, "a", namespace="ns")

        async def cut(request: web.Request) -> web.Response:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        api.answers.append(cut)
        with pytest.raises(errors.ConnectionFailed):
            await client.post_bytes(WIDGETS.item("a", "ns"), b"{}")

    assert seen == [
        ("create", "widgets.test.example/binding", 201),
        ("delete", "widgets.test.example", 409),
        ("create", "widgets.test.example", 0),
    ]


async def test_a_redirect_is_not_followed_because_it_could_leak_the_token(api: FakeApi, client: ApiClient) -> None:
    async def away(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": f"{api.url}/elsewhere"})

    api.answers.append(away)
    with pytest.raises(errors.ApiError):
        await client.get(WIDGETS, "a", Widget, namespace="ns")

    assert len(api.requests) == 1


async def test_a_large_object_fits(api: FakeApi, client: ApiClient) -> None:
    api.answers.append(answering(a_widget("a", 3, padding="x" * 1_500_000, size=5)))

    assert (await client.get(WIDGETS, "a", Widget, namespace="ns")).size == 5


async def test_a_client_that_is_not_open_says_so(api: FakeApi) -> None:
    with pytest.raises(RuntimeError, match="async with"):
        await ApiClient(Credentials(api.url)).list_bytes(WIDGETS, {})


@pytest.mark.parametrize("compress", [False, True], ids=["own-connections", "of-the-library"])
async def test_no_write_is_sent_while_an_obstacle_exists(api: FakeApi, compress: bool) -> None:
    obstacle = ["the lease is lost"]
    async with ApiClient(Credentials(api.url), obstacle=lambda: obstacle[0], compress=compress) as client:
        api.answers.append(answering(a_widget("a", 3)))
        await client.get(WIDGETS, "a", dict, namespace="ns")

        with pytest.raises(errors.ConnectionFailed, match="not sent: the lease is lost") as refusal:
            await client.create(WIDGETS, {}, dict, namespace="ns")
        assert not refusal.value.maybe_applied
        assert len(api.requests) == 1

        obstacle[0] = ""
        api.answers.append(answering(a_widget("a", 3), 201))
        await client.create(WIDGETS, {}, dict, namespace="ns")
        assert len(api.requests) == 2


@pytest.mark.parametrize("compress", [False, True], ids=["own-connections", "of-the-library"])
async def test_a_write_that_waits_for_a_connection_is_not_sent_if_an_obstacle_appears(
    api: FakeApi, compress: bool
) -> None:
    obstacle = ""

    async def slowly(_: web.Request) -> web.Response:
        await asyncio.sleep(0.2)
        return web.json_response(a_widget("a", 3), status=201)

    api.answers += [slowly, slowly]
    async with ApiClient(Credentials(api.url), connections=1, obstacle=lambda: obstacle, compress=compress) as client:
        creating = [
            asyncio.create_task(client.create(WIDGETS, {}, dict, namespace="ns"), name=str(number)) for number in "ab"
        ]
        await until(lambda: api.requests)
        obstacle = "the lease is lost"
        first, second = await asyncio.gather(*creating, return_exceptions=True)

    assert isinstance(first, dict)
    assert isinstance(second, errors.ConnectionFailed)
    assert str(second).endswith("not sent: the lease is lost")
    assert not second.maybe_applied
    assert len(api.requests) == 1
