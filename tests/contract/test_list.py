"""Contract: lists, pages, versions and selectors."""

from __future__ import annotations

import pytest

from tests.contract.api import MERGE, Api, a_bare_pod, a_binding, a_config

CONFIGS = "configmaps"


async def _labelled(api: Api) -> None:
    for name, labels in {
        "a": {"app": "web", "tier": "1"},
        "b": {"app": "db", "tier": "2"},
        "c": {"app": "web"},
        "d": {},
    }.items():
        await api.made(api.path("secrets"), {"metadata": {"name": name, "labels": labels}})


async def test_a_list_has_kind_version_and_items_in_name_order(api: Api) -> None:
    for name in ("b", "c", "a"):
        await api.made(api.path("pods"), a_bare_pod(name))
    answer = await api.get(api.path("pods"))
    assert (answer.status, answer.body["kind"], answer.body["apiVersion"]) == (200, "PodList", "v1")
    assert answer.names == ["a", "b", "c"]
    assert int(answer.version) >= max(int(item["metadata"]["resourceVersion"]) for item in answer.body["items"])
    assert "continue" not in answer.meta


async def test_items_of_a_built_in_list_do_not_repeat_their_type(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    [item] = (await api.get(api.path("pods"))).body["items"]
    assert "kind" not in item
    assert "apiVersion" not in item


async def test_a_list_over_all_namespaces_holds_every_namespace(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.get("/api/v1/pods", fieldSelector=f"metadata.namespace={api.namespace}")
    assert answer.names == ["a"]


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("app=web", ["a", "c"]),
        ("app==db", ["b"]),
        ("app!=web", ["b", "d"]),
        ("app in (web,db)", ["a", "b", "c"]),
        ("app notin (web)", ["b", "d"]),
        ("tier", ["a", "b"]),
        ("!app", ["d"]),
        ("app=web,tier", ["a"]),
        ("tier>1", ["b"]),
        ("tier<2", ["a"]),
        ("app in (web), tier notin (1)", ["c"]),
        ("app=", []),
    ],
)
async def test_labels_select(api: Api, selector: str, names: list[str]) -> None:
    await _labelled(api)
    assert (await api.get(api.path("secrets"), labelSelector=selector)).names == names


@pytest.mark.parametrize("selector", ["a b", "a in", "a in (b", "a,,", "a>x", "(a)"])
async def test_a_label_selector_that_cannot_be_read_is_a_bad_request(api: Api, selector: str) -> None:
    answer = await api.get(api.path("secrets"), labelSelector=selector)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_pods_are_selected_by_node_phase_and_scheduler(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod("free", schedulerName="contract"))
    await api.made(api.path("pods"), a_bare_pod("bound"))
    await api.made(api.path("pods", "bound", "binding"), a_binding("bound", "contract-node"))

    async def select(selector: str) -> list[str]:
        return (await api.get(api.path("pods"), fieldSelector=selector)).names

    assert await select("spec.nodeName=contract-node") == ["bound"]
    assert await select("spec.nodeName=") == ["free"]
    assert await select("spec.nodeName!=") == ["bound"]
    assert await select("status.phase=Pending") == ["bound", "free"]
    assert await select("status.phase!=Pending") == []
    assert await select("spec.schedulerName=contract") == ["free"]
    assert await select("metadata.name=free,status.phase=Pending") == ["free"]


async def test_events_are_selected_by_what_they_are_about(api: Api) -> None:
    for name in ("one", "two"):
        about = {"kind": "Pod", "name": name, "namespace": api.namespace, "uid": f"uid-{name}"}
        event = {"metadata": {"name": f"{name}.1"}, "involvedObject": about, "reason": name.title(), "type": "Normal"}
        await api.made(api.path("events"), event)
    for selector in (
        "involvedObject.name=one",
        "involvedObject.uid=uid-one",
        "involvedObject.kind=Pod,reason=One",
        "involvedObject.name!=two,type=Normal",
    ):
        assert (await api.get(api.path("events"), fieldSelector=selector)).names == ["one.1"]


@pytest.mark.parametrize("selector", ["spec.foo=x", "garbage"])
async def test_a_field_that_cannot_select_is_a_bad_request(api: Api, selector: str) -> None:
    answer = await api.get(api.path("pods"), fieldSelector=selector)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def _five(api: Api) -> None:
    for index in range(5):
        await api.made(api.path("secrets"), {"metadata": {"name": f"s{index}", "labels": {"x": "y"}}})


async def test_pages_together_are_the_whole_list(api: Api) -> None:
    await _five(api)
    names: list[str] = []
    query = {"limit": "2"}
    remaining = []
    while True:
        page = await api.get(api.path("secrets"), **query)
        names += page.names
        remaining.append(page.meta.get("remainingItemCount"))
        if not page.meta.get("continue"):
            break
        query["continue"] = page.meta["continue"]
    assert names == ["s0", "s1", "s2", "s3", "s4"]
    assert remaining == [3, 1, None]


async def test_later_pages_show_the_state_of_the_first(api: Api) -> None:
    for index in range(5):
        await api.made(api.path("secrets"), {"metadata": {"name": f"s{index}"}, "stringData": {"v": "old"}})
    first = await api.get(api.path("secrets"), limit="2")
    await api.patch(api.path("secrets", "s2"), {"metadata": {"labels": {"new": "yes"}}})
    await api.delete(api.path("secrets", "s3"))
    await api.made(api.path("secrets"), {"metadata": {"name": "s33"}})
    rest = await api.get(api.path("secrets"), **{"continue": first.meta["continue"]})
    assert rest.names == ["s2", "s3", "s4"]
    assert "labels" not in rest.body["items"][0]["metadata"]
    assert rest.version == first.version
    assert (await api.get(api.path("secrets"))).names == ["s0", "s1", "s2", "s33", "s4"]


async def test_pages_go_with_selectors_and_then_count_nothing(api: Api) -> None:
    await _five(api)
    await api.made(api.path("secrets"), {"metadata": {"name": "other"}})
    page = await api.get(api.path("secrets"), limit="3", labelSelector="x=y")
    assert page.names == ["s0", "s1", "s2"]
    assert "remainingItemCount" not in page.meta
    query = {"limit": "3", "labelSelector": "x=y", "continue": page.meta["continue"]}
    assert (await api.get(api.path("secrets"), **query)).names == ["s3", "s4"]


async def test_a_token_that_cannot_be_read_is_a_bad_request(api: Api) -> None:
    answer = await api.get(api.path("secrets"), **{"continue": "garbage"})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_token_and_a_version_exclude_each_other(api: Api) -> None:
    await _five(api)
    page = await api.get(api.path("secrets"), limit="2")
    answer = await api.get(api.path("secrets"), resourceVersion="5", **{"continue": page.meta["continue"]})
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_an_exact_version_shows_the_past(api: Api) -> None:
    await api.made(api.path(CONFIGS), a_config("past", {"v": "1"}))
    then = await api.get(api.path(CONFIGS))
    await api.patch(api.path(CONFIGS, "past"), {"data": {"v": "2"}})
    await api.made(api.path(CONFIGS), a_config("later"))
    query = {"resourceVersion": then.version, "resourceVersionMatch": "Exact"}
    answer = await api.get(api.path(CONFIGS), **query)
    assert answer.version == then.version
    assert "later" not in answer.names
    assert {"v": "1"} in [item.get("data") for item in answer.body["items"]]


async def test_version_zero_and_an_older_version_show_the_present(api: Api) -> None:
    await api.made(api.path("secrets"), {"metadata": {"name": "a"}})
    version = (await api.made(api.path("secrets"), {"metadata": {"name": "b"}})).version
    for asked in ("0", "1", version):
        assert (await api.get(api.path("secrets"), resourceVersion=asked)).names[-1] in ("a", "b")
    answer = await api.get(api.path("secrets"), resourceVersion=version, resourceVersionMatch="NotOlderThan")
    assert answer.names == ["a", "b"]


async def test_a_version_that_is_no_number_is_a_bad_request(api: Api) -> None:
    answer = await api.get(api.path("pods"), resourceVersion="abc")
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_version_of_the_future_times_out(api: Api) -> None:
    answer = await api.get(api.path("pods"), resourceVersion="99999999999")
    assert (answer.status, answer.reason) == (504, "Timeout")
    assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        pytest.param({"resourceVersionMatch": "Exact"}, "resourceVersionMatch", id="match-without-version"),
        pytest.param(
            {"resourceVersionMatch": "Foo", "resourceVersion": "1"}, "resourceVersionMatch", id="unknown-match"
        ),
        pytest.param(
            {"resourceVersionMatch": "Exact", "resourceVersion": "0"}, "resourceVersionMatch", id="exact-zero"
        ),
        pytest.param({"sendInitialEvents": "true"}, "sendInitialEvents", id="initial-events-of-a-list"),
    ],
)
async def test_options_that_contradict_each_other_are_invalid(api: Api, query: dict[str, str], field: str) -> None:
    answer = await api.get(api.path("pods"), **query)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert field in answer.fields


async def test_a_deleted_collection_takes_what_the_selector_matches(api: Api) -> None:
    await _labelled(api)
    answer = await api.delete(api.path("secrets"), labelSelector="app=web")
    assert (answer.status, answer.body["kind"], answer.names) == (200, "SecretList", ["a", "c"])
    assert (await api.get(api.path("secrets"))).names == ["b", "d"]


async def test_a_label_given_later_is_found(api: Api) -> None:
    await _labelled(api)
    await api.patch(api.path("secrets", "d"), {"metadata": {"labels": {"app": "late"}}}, MERGE)
    assert (await api.get(api.path("secrets"), labelSelector="app=late")).names == ["d"]
