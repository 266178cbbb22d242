"""Several controller managers with one lease: one works, the others stand by."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.controllers.managing import controllers, group_of, put_pod
from tests.daemon.cluster import serve_definitions, stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import ManagerOptions
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.resource import EVENTS, LEASES
from volcano_py.runtime.signals import Shutdown
from volcano_py.testing import a_namespace, manifest

NAME = "vc-controller-manager"
SHORT = LeaseOptions(NAME, duration_s=4, renew_deadline_s=3, retry_period_s=0.1)
LONG = LeaseOptions(NAME, duration_s=60, renew_deadline_s=40, retry_period_s=0.1)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        serve_definitions(server)
        server.create(manifest(a_namespace("volcano-system")))
        yield server


async def leads(manager: ControllerManager) -> None:
    async with asyncio.timeout(10):
        await manager.leading.wait()


def lease(server: ApiServer) -> dict[str, Any]:
    found = server.get(LEASES.label, NAME, "volcano-system")
    assert found is not None
    return dict(found["spec"])


def led(manager: ControllerManager) -> float | None:
    return manager.registry.get_sample_value("volcano_py_leader")


async def test_one_manager_works_and_the_other_stands_by_ready_and_writes_nothing(server: ApiServer) -> None:
    async with controllers(server.url, lease=LONG) as first:
        await leads(first)
        async with controllers(server.url, lease=LONG) as other:
            put_pod(server, "p1")
            await until(lambda: group_of(server, "p1"))

            assert other.not_ready() == []
            assert not other.leading.is_set()
            assert (led(first), led(other)) == (1, 0)
            assert {verb for verb, _ in requests(other)} <= {"get", "list", "watch"}
        await until(lambda: any(event["reason"] == "LeaderElection" for event in server.list(EVENTS.label)))


def requests(manager: ControllerManager) -> set[tuple[str, str]]:
    """Return verb and resource of every request that a manager has made."""
    samples = (sample for metric in manager.registry.collect() for sample in metric.samples)
    named = (sample.labels for sample in samples if sample.name == "volcano_py_api_requests_total")
    return {(labels["verb"], labels["resource"]) for labels in named}


async def test_a_manager_that_stops_releases_the_lease_and_the_next_continues_its_work(
    server: ApiServer,
) -> None:
    async with controllers(server.url, lease=LONG) as first:
        await leads(first)
        standby = controllers(server.url, lease=LONG)
        second = await standby.__aenter__()
    put_pod(server, "p1")

    await leads(second)

    await until(lambda: group_of(server, "p1"))
    await standby.__aexit__(None, None, None)


async def test_the_standby_follows_a_killed_manager_once_its_lease_has_expired(server: ApiServer) -> None:
    first = ControllerManager(
        Credentials(server.url), ManagerOptions(metrics_address=None, health_address=None, lease=SHORT)
    )
    running = asyncio.create_task(first.run(Shutdown()), name="first")
    await leads(first)
    async with controllers(server.url, lease=SHORT) as second:
        running.cancel()  # as SIGKILL would: the lease is not given up
        await asyncio.gather(running, return_exceptions=True)
        put_pod(server, "p1")

        await until(lambda: group_of(server, "p1"))

        assert second.leading.is_set()
        assert lease(server)["leaseTransitions"] == 1


async def test_a_manager_that_loses_its_lease_ends_with_code_1_and_stops_writing(server: ApiServer) -> None:
    async with controllers(server.url, code=1, lease=LONG) as manager:
        await leads(manager)
        await manager.client.patch(LEASES, NAME, {"spec": {"holderIdentity": "go"}}, dict, namespace="volcano-system")

        await until(lambda: not led(manager))
        put_pod(server, "p1")
        await stays(lambda: not group_of(server, "p1"), 0.1)

    assert lease(server)["holderIdentity"] == "go"
