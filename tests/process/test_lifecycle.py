"""How any process starts, stands by, works and ends, with a work that only notes what it is asked for."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.informer import Informers
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.resource import LEASES
from volcano_py.process.context import ProcessContext
from volcano_py.process.lifecycle import Lifecycle
from volcano_py.process.operator_pages import OperatorPages
from volcano_py.runtime.options import ListenAddress
from volcano_py.runtime.signals import Shutdown
from volcano_py.runtime.supervisor import Supervisor, TaskFailed
from volcano_py.testing import a_namespace, manifest

NOBODY = "http://127.0.0.1:1"
LEASE = LeaseOptions("third-process", duration_s=60, renew_deadline_s=40, retry_period_s=0.05)
FREE_PORT = ListenAddress("127.0.0.1", 0)


class Noted:
    """A work; what happens to it stands in ``happened``."""

    def __init__(self, drained: bool = True) -> None:
        self.happened: list[str] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        self._drained = drained

    def start(self, services: Supervisor) -> None:
        self.happened.append("start")

    async def lead(self, workers: Supervisor, services: Supervisor) -> None:
        self.happened.append("lead")
        services.start("service", self._run("service"))
        workers.start("worker", self._run("worker"))
        await asyncio.sleep(0)  # both have begun

    def stop(self, why_lost: str | None) -> None:
        self.happened.append("stop" if why_lost is None else "lost")

    async def drain(self) -> bool:
        self.happened.append("drain")
        await self.may_end.wait()
        return self._drained

    async def _run(self, name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.happened.append(f"{name} ended")


class Process:
    """A process without watches, and the task it runs in."""

    def __init__(self, work: Any, url: str = NOBODY, lease: LeaseOptions | None = None) -> None:
        context = ProcessContext.build(Credentials(url), user_agent="test", lease=lease)
        self.client = context.client
        self.life = Lifecycle(context, Informers(context.client))
        self.shutdown = Shutdown()
        pages = OperatorPages(None, None, not_ready=tuple)
        self.task = asyncio.create_task(self.life.run(work, pages, self.shutdown))

    async def end(self) -> int:
        self.shutdown.request("test")
        async with asyncio.timeout(5):
            return await self.task


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        server.create(manifest(a_namespace(LEASE.namespace)))
        yield server


def holder(server: ApiServer) -> str:
    found = server.get(LEASES.label, LEASE.name, LEASE.namespace)
    return "" if found is None else str(found["spec"].get("holderIdentity", ""))


async def test_a_process_without_a_lease_and_without_watches_works_at_once_and_ends_in_order() -> None:
    work = Noted()
    process = Process(work)
    async with asyncio.timeout(5):
        await process.life.leading.wait()

    assert await process.end() == 0
    assert work.happened == ["start", "lead", "stop", "worker ended", "drain", "service ended"]


async def test_a_second_request_does_not_wait_for_what_has_begun() -> None:
    work = Noted()
    work.may_end.clear()
    process = Process(work)
    async with asyncio.timeout(5):
        await process.life.leading.wait()
    process.shutdown.request("first")
    await until(lambda: "drain" in work.happened)
    assert not process.task.done()

    assert await process.end() == 1
    assert work.happened[-1] == "service ended"


async def test_a_failure_while_it_begins_ends_the_process() -> None:
    class Broken(Noted):
        async def lead(self, workers: Supervisor, services: Supervisor) -> None:
            raise ValueError("a bug")

    process = Process(Broken())

    with pytest.raises(TaskFailed, match="a bug"):
        await process.task


async def test_a_failure_at_the_end_is_not_an_orderly_end() -> None:
    class Broken(Noted):
        async def drain(self) -> bool:
            raise ValueError("a bug")

    process = Process(Broken())
    async with asyncio.timeout(5):
        await process.life.leading.wait()

    with pytest.raises(ValueError, match="a bug"):
        await process.end()


async def test_a_process_that_stands_by_is_ready_and_follows_when_the_lease_is_released(server: ApiServer) -> None:
    first, second = Noted(), Noted()
    leader = Process(first, server.url, LEASE)
    await until(leader.life.leading.is_set)
    follower = Process(second, server.url, LEASE)
    await until(follower.life.ready.is_set)
    assert second.happened == ["start"]

    assert await leader.end() == 0
    await until(follower.life.leading.is_set)

    assert await follower.end() == 0
    assert holder(server) == ""


async def test_the_lease_is_kept_while_a_request_may_still_take_effect(server: ApiServer) -> None:
    process = Process(Noted(drained=False), server.url, LEASE)
    await until(process.life.leading.is_set)

    assert await process.end() == 0
    assert holder(server)


async def test_a_process_that_loses_its_lease_completes_nothing_and_returns_1(server: ApiServer) -> None:
    work = Noted()
    process = Process(work, server.url, LEASE)
    await until(process.life.leading.is_set)
    taken = {"spec": {"holderIdentity": "another"}}
    await process.client.patch(LEASES, LEASE.name, taken, dict, namespace=LEASE.namespace)

    async with asyncio.timeout(5):
        assert await process.task == 1
    assert work.happened == ["start", "lead", "lost", "worker ended", "service ended"]


async def test_only_the_first_address_serves_metrics_and_both_say_what_is_missing() -> None:
    pages = OperatorPages(FREE_PORT, ListenAddress("localhost", 0), not_ready=lambda: ["no list yet"])
    metrics, health = pages.servers(CollectorRegistry())
    async with metrics, health, aiohttp.ClientSession() as session:
        answers = {}
        for server in (metrics, health):
            for path in ("/metrics", "/readyz", "/healthz"):
                async with session.get(f"http://127.0.0.1:{server.port}{path}") as answer:
                    answers[server is metrics, path] = answer.status

    assert answers == {
        (True, "/metrics"): 200,
        (True, "/readyz"): 503,
        (True, "/healthz"): 200,
        (False, "/metrics"): 404,
        (False, "/readyz"): 503,
        (False, "/healthz"): 200,
    }


def test_one_address_for_both_is_one_server() -> None:
    assert len(list(OperatorPages(FREE_PORT, FREE_PORT, not_ready=tuple).servers(CollectorRegistry()))) == 1
