"""Prometheus, its adapter and Elasticsearch: what they answer becomes loads, and what they refuse an explanation."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from tests.controlplane.ports import free_port
from tests.daemon.loads.servers import Answer, answering, prometheus
from volcano_py.conf.node_metrics import NodeMetricsConf
from volcano_py.daemon.loads.keeper import source_of
from volcano_py.daemon.loads.source import LoadSource, Measured, Unmeasured
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.runtime.fetch import Fetcher, FetchError


@asynccontextmanager
async def a_source(kind: str, answer: Answer, **conf: str) -> AsyncIterator[LoadSource]:
    async with (
        answering(answer) as url,
        ApiClient(Credentials(url)) as client,
        source_of(NodeMetricsConf(kind, url, **conf), client) as source,  # type: ignore[arg-type]
    ):
        yield source


async def test_prometheus_is_asked_twice_for_all_nodes() -> None:
    async with a_source("prometheus", prometheus({"n1": 12.5, "n2": 150}, {"n1": 40, "n2": 50})) as source:
        assert await source.loads(["n1", "n2"]) == {"n1": Measured(12.5, 40), "n2": Measured(150, 50)}


async def test_the_port_is_cut_from_an_instance_and_unknown_instances_are_ignored() -> None:
    cpu: dict[str, float | str] = {"n1__9100": 1, "other": 2}

    async with a_source("prometheus", prometheus(cpu, cpu)) as source:
        assert await source.loads(["n1"]) == {"n1": Measured(1, 1)}


async def test_an_invalid_number_and_one_without_its_counterpart_are_ignored() -> None:
    async with a_source("prometheus", prometheus({"n1": "NaN", "n2": 5, "n3": -0.5}, {"n1": 1, "n3": 2})) as source:
        assert await source.loads(["n1", "n2", "n3"]) == {"n3": Measured(0, 2)}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (web.Response(status=503, text="overloaded"), r"127\.0\.0\.1:\d+ answered 503: overloaded"),
        (web.Response(text="<html>"), "the answer is not that of a query"),
        (web.json_response({"status": "error", "error": "parse error"}), "parse error"),
        (web.json_response({"status": "success", "data": {"resultType": "matrix"}}), "a matrix instead of a vector"),
    ],
)
async def test_an_error_of_prometheus_is_reported(answer: web.Response, message: str) -> None:
    async def say(request: web.Request) -> web.Response:
        return web.Response(status=answer.status, body=answer.body, content_type=answer.content_type)

    async with a_source("prometheus", say) as source:
        with pytest.raises(Unmeasured, match=message):
            await source.loads(["n1"])


async def test_an_unreachable_server_is_named() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    async with (
        ApiClient(Credentials(nowhere)) as client,
        source_of(NodeMetricsConf("prometheus", nowhere), client) as source,
    ):
        with pytest.raises(Unmeasured, match=r"request to 127\.0\.0\.1:\d+ failed"):
            await source.loads(["n1"])


async def test_the_adapter_is_asked_behind_the_api_server_in_the_version_that_it_serves() -> None:
    paths: list[str] = []

    async def say(request: web.Request) -> web.Response:
        paths.append(request.path)
        if "v1beta2" in request.path:
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        metric = request.path.rpartition("/")[2]
        item = {
            "describedObject": {"kind": "Node", "name": "n1"},
            "timestamp": "2026-01-01T00:00:10Z" if "cpu" in metric else "2026-01-01T00:00:00Z",
            "value": "250m" if "cpu" in metric else "0.5",
        }
        return web.json_response({"kind": "MetricValueList", "items": [item]})

    async with a_source("prometheus_adaptor", say) as source:
        assert await source.loads(["n1", "n2"]) == {"n1": Measured(25, 50, 1767225600.0)}
    assert paths[1] == "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/node_cpu_usage_avg"


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no right"}, "no right"),
        (404, {"kind": "Status", "code": 404, "reason": "NotFound"}, "node_cpu_usage_avg is not served"),
        (200, {"items": [{"value": "much"}]}, "node_cpu_usage_avg: .*much"),
        (200, {"items": [{"value": "1", "timestamp": "0001-01-01T00:00:00"}]}, "node_cpu_usage_avg: .*timezone"),
    ],
)
async def test_an_error_of_the_adapter_is_reported(status: int, body: dict[str, object], message: str) -> None:
    async def say(request: web.Request) -> web.Response:
        return web.json_response(body, status=status)

    async with a_source("prometheus_adaptor", say) as source:
        with pytest.raises(Unmeasured, match=message):
            await source.loads(["n1"])


async def test_elasticsearch_is_asked_once_for_all_nodes_as_a_user() -> None:
    asked: list[web.Request] = []
    bodies: list[dict[str, object]] = []

    async def say(request: web.Request) -> web.Response:
        asked.append(request)
        bodies.append(json.loads(await request.text()))
        buckets = [
            {"key": "n1", "cpu": {"value": 0.25}, "mem": {"value": 0.5}},
            {"key": "n2", "cpu": {"value": None}, "mem": {"value": 0.5}},
        ]
        return web.json_response({"aggregations": {"nodes": {"buckets": buckets}}})

    conf = {"index": "beats-*", "username": "u", "password": "p", "host_field": "host.name"}
    async with a_source("elasticsearch", say, **conf) as source:
        assert await source.loads(["n2", "n1"]) == {"n1": Measured(25, 50)}
        assert await source.loads([]) == {}

    (request,), (body,) = asked, bodies
    assert request.path == "/beats-*/_search"
    assert request.headers["Authorization"] == "Basic dTpw"
    assert {"terms": {"host.name": ["n1", "n2"]}} in body["query"]["bool"]["must"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("prometheus", '"status": "success", "data": {"resultType": "vector", "result": []}'),
        ("prometheus_adaptor", '"items": []'),
        ("elasticsearch", '"aggregations": {"nodes": {"buckets": []}}'),
    ],
)
async def test_an_answer_that_is_nested_deeply_ends_nothing(kind: str, fields: str) -> None:
    async def say(request: web.Request) -> web.Response:
        return web.Response(text=f'{{"more": {"[" * 20_000}{"]" * 20_000}, {fields}}}', content_type="application/json")

    async with a_source(kind, say) as source:
        assert await source.loads(["n1"]) == {}


@pytest.mark.parametrize("answer", ["{", '{"aggregations": {"nodes": {"buckets": [{}]}}}'])
async def test_an_error_of_elasticsearch_is_reported(answer: str) -> None:
    async def say(request: web.Request) -> web.Response:
        return web.Response(text=answer)

    async with a_source("elasticsearch", say) as source:
        with pytest.raises(Unmeasured, match="the answer is not that of a search"):
            await source.loads(["n1"])


async def test_a_slow_server_is_not_waited_for() -> None:
    async def say(request: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    async with answering(say) as url, Fetcher(timeout_s=0.05) as fetcher:
        with pytest.raises(FetchError, match=r"did not answer within 0\.05 s"):
            await fetcher.get(url, {})


async def test_a_password_in_an_address_is_not_told() -> None:
    async def say(request: web.Request) -> web.Response:
        return web.Response(status=500)

    async with answering(say) as url, Fetcher(timeout_s=5.0) as fetcher:
        with pytest.raises(FetchError, match=r"^127\.0\.0\.1:\d+ answered 500"):
            await fetcher.get(url.replace("://", "://me:hush@"), {})


async def test_an_endless_answer_is_cut_off() -> None:
    async def say(request: web.Request) -> web.Response:
        return web.Response(text="x" * 1000)

    async with answering(say) as url, Fetcher(timeout_s=5, most=999) as fetcher:
        with pytest.raises(FetchError, match="more than 999 bytes"):
            await fetcher.post(url, {})
