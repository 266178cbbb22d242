"""Health, readiness and metrics over HTTP."""

import asyncio
import gzip
import socket
import time
from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from volcano_py.runtime.http import AddressInUse, OperatorServer, _is_loopback
from volcano_py.runtime.options import ListenAddress

LOOPBACK = ListenAddress("127.0.0.1", 0)


async def fetch(server: OperatorServer, path: str, **headers: str) -> tuple[int, str, str]:
    """Return status, text and content type."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.port}{path}", headers=headers) as response,
    ):
        return response.status, await response.text(), response.headers["Content-Type"]


async def test_a_healthy_and_ready_process_says_ok() -> None:
    async with OperatorServer(LOOPBACK) as server:
        assert (await fetch(server, "/healthz"))[:2] == (200, "ok\n")
        assert (await fetch(server, "/readyz"))[:2] == (200, "ok\n")


async def test_readiness_gives_its_reason_and_follows_the_state() -> None:
    reasons = ["pods is not listed yet", "no leader"]
    async with OperatorServer(LOOPBACK, not_ready=lambda: reasons) as server:
        assert (await fetch(server, "/readyz"))[:2] == (503, "pods is not listed yet\nno leader\n")
        assert (await fetch(server, "/healthz"))[0] == 200
        reasons.clear()
        assert (await fetch(server, "/readyz"))[0] == 200


async def test_metrics_come_from_the_given_registry_in_the_text_format() -> None:
    registry = CollectorRegistry()
    Counter("binds", "Binds.", registry=registry).inc(3)
    async with OperatorServer(LOOPBACK, registry=registry) as server:
        status, text, kind = await fetch(server, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert (status, "binds_total 3.0" in text, kind) == (200, True, "text/plain; version=0.0.4; charset=utf-8")


async def test_other_tasks_run_while_metrics_are_written() -> None:
    turns = []

    def pieces(_: CollectorRegistry) -> Iterator[bytes]:
        for number in range(5):
            asyncio.get_running_loop().call_soon(turns.append, number)
            time.sleep(0.005)
            yield b"%d %d\n" % (number, len(turns))

    async with OperatorServer(LOOPBACK, registry=CollectorRegistry(), exposition=pieces) as server:
        _, text, _ = await fetch(server, "/metrics")

    assert text == "0 0\n1 1\n2 2\n3 3\n4 4\n"


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        pytest.param("gzip", "gzip", id="gzip"),
        pytest.param("deflate, GZIP;q=0.5", "gzip", id="gzip-among-others"),
        pytest.param("gzip;q=0", None, id="gzip-refused"),
        pytest.param("gzip; q=0.000", None, id="gzip-refused-at-length"),
        pytest.param("identity", None, id="plain"),
    ],
)
async def test_metrics_are_compressed_if_the_client_asks(accepted: str, coding: str | None) -> None:
    def pieces(_: CollectorRegistry) -> Iterator[bytes]:
        yield from (b"series_%d 1\n" % number for number in range(1000))

    async with (
        OperatorServer(LOOPBACK, registry=CollectorRegistry(), exposition=pieces) as server,
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(f"http://127.0.0.1:{server.port}/metrics", headers={"Accept-Encoding": accepted}) as response,
    ):
        body = await response.read()

    assert response.headers.get("Content-Encoding") == coding
    assert response.headers["Vary"] == "Accept-Encoding"
    text = gzip.decompress(body) if coding else body
    assert text.startswith(b"series_0 1\nseries_1 1\n")
    assert text.endswith(b"series_999 1\n")
    assert (len(body) < len(text) / 3) == bool(coding)


async def test_without_a_registry_there_are_no_metrics() -> None:
    async with OperatorServer(LOOPBACK) as server:
        assert (await fetch(server, "/metrics"))[0] == 404


async def test_extra_routes_are_served() -> None:
    async def conf(_: web.Request) -> web.Response:
        return web.Response(text="tiers")

    async with OperatorServer(LOOPBACK, routes={"/debug/conf": conf}) as server:
        assert (await fetch(server, "/debug/conf"))[:2] == (200, "tiers")


@pytest.mark.parametrize(("remote", "status"), [(False, 403), (True, 200)], ids=["loopback-only", "told-otherwise"])
async def test_extra_routes_are_served_to_the_same_machine_by_default(remote: bool, status: int) -> None:
    async def conf(_: web.Request) -> web.Response:
        return web.Response(text="tiers")

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; it tells which address of ours leads outside
        ours = probe.getsockname()[0]
    if ours.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    everywhere = ListenAddress("0.0.0.0", 0)
    async with (
        OperatorServer(everywhere, routes={"/debug/conf": conf}, remote_routes=remote) as server,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"http://{ours}:{server.port}/debug/conf") as response:
            assert response.status == status
            assert ("--enable-remote-debug" in await response.text()) == (status == 403)
        async with session.get(f"http://{ours}:{server.port}/healthz") as response:
            assert response.status == 200
        assert (await fetch(server, "/debug/conf"))[0] == 200


@pytest.mark.parametrize(
    ("host", "at_home"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
    ],
)
def test_loopback_is_known_in_every_form(host: str, at_home: bool) -> None:
    assert _is_loopback(host) == at_home


async def test_a_port_in_use_is_reported_with_port_and_flag() -> None:
    async with OperatorServer(LOOPBACK) as first:
        address = ListenAddress("127.0.0.1", first.port)
        with pytest.raises(AddressInUse, match=rf"port {first.port} .* choose another with --listen-address"):
            async with OperatorServer(address, flag="--listen-address"):
                pytest.fail("two servers on one port")


async def test_an_address_that_is_not_ours_is_named() -> None:
    with pytest.raises(OSError, match=r"cannot listen on 192\.0\.2\.1:0"):
        async with OperatorServer(ListenAddress("192.0.2.1", 0)):
            pytest.fail("a foreign address was served")
