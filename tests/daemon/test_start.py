"""What happens before the first cycle: the queues and the barrier; and the second look at overdue binds."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.daemon.cluster import (
    QUEUES,
    placed,
    put_group,
    put_job,
    put_node,
    put_pod,
    scheduler,
    serve_definitions,
    successes,
)
from tests.effects.waiting import until
from volcano_py.api.core import Node, Pod
from volcano_py.api.scheduling import PodGroup
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.cache.binds import Assumed
from volcano_py.cache.cluster import ClusterCache
from volcano_py.daemon import barrier as barrier_module
from volcano_py.daemon.barrier import StartBarrier
from volcano_py.daemon.recheck import recheck_overdue
from volcano_py.daemon.required_queues import ensure_queues
from volcano_py.effects.binding import binding_body
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.delivery import Delivery
from volcano_py.kube.outage import Outage
from volcano_py.kube.resource import NODES, PODGROUPS, PODS
from volcano_py.ledger.ledger import Patience
from volcano_py.metrics.state import StateMetrics
from volcano_py.model.decisions import Bind, Nominate
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock, FakeClock, RealClock


@pytest.fixture
async def client(server) -> AsyncIterator[ApiClient]:
    async with ApiClient(Credentials(server.url)) as client:
        yield client


async def show(cache: ClusterCache, client: ApiClient) -> None:
    """Do once what informers do."""
    kinds = ((NODES, Node, cache.nodes), (PODGROUPS, PodGroup, cache.groups), (PODS, Pod, cache.pods))
    for resource, kind, handler in kinds:
        delivery = Delivery(resource.label, handler)
        async for page in client.list_pages(resource, kind):
            for item in page.items:
                delivery.put(item, 0.0)
        delivery.flush()


# Queues


def queues(server: ApiServer) -> dict[str, bool]:
    return {queue["metadata"]["name"]: queue["spec"]["reclaimable"] for queue in server.list(QUEUES)}


async def ensure(client: ApiClient, default_queue: str = "default", shown: Collection[str] = ()) -> None:
    backoff = Backoff(random.Random(1), first_s=0.01, cap_s=0.02)
    options = {"backoff": backoff, "absent_retry_s": 0.02, "exists": shown.__contains__}
    async with asyncio.timeout(5):
        await ensure_queues(client, default_queue, clock=RealClock(), **options)


async def test_missing_queues_are_created(server, client):
    await ensure(client, default_queue="batch")

    assert queues(server) == {"root": False, "batch": True}


async def test_queues_that_exist_stay_as_they_are(server, client):
    await ensure(client)
    versions = {queue["metadata"]["resourceVersion"] for queue in server.list(QUEUES)}

    await ensure(client)

    assert {queue["metadata"]["resourceVersion"] for queue in server.list(QUEUES)} == versions


async def test_queues_that_the_watch_shows_are_not_created_while_no_webhook_answers(server, client):
    fault = server.faults.add(Fault("reply", verb="create", resource=QUEUES, code=500))

    await ensure(client, shown={"root", "default"})

    assert fault.hits == 0


async def test_a_server_that_is_busy_is_asked_again(server, client):
    server.faults.add(Fault("reply", verb="create", resource=QUEUES, code=503, times=2))

    await ensure(client)

    assert set(queues(server)) == {"root", "default"}


async def test_a_refused_creation_of_queues_is_logged_and_not_repeated(server, client):
    fault = server.faults.add(Fault("reply", verb="create", resource=QUEUES, code=403))

    await ensure(client)

    assert fault.hits == 2  # one for each queue


async def test_queues_are_created_when_their_definition_arrives():
    async with ApiServer() as server, ApiClient(Credentials(server.url)) as client:
        waiting = asyncio.create_task(ensure(client))
        await asyncio.sleep(0.05)
        assert not waiting.done()

        serve_definitions(server)
        await waiting

        assert set(queues(server)) == {"root", "default"}


# Barrier


def barrier(
    client: ApiClient,
    cache: ClusterCache,
    patience_s: float = 5.0,
    relist: Callable[[], None] = lambda: None,
    delivered: Callable[[], str] = lambda: "",
    clock: Clock | None = None,
) -> StartBarrier:
    clock = clock or RealClock()
    return StartBarrier(
        client,
        cache,
        relist=relist,
        delivered=delivered,
        outage=Outage(client.server, clock),
        clock=clock,
        rng=random.Random(1),
        patience_s=patience_s,
    )


@asynccontextmanager
async def passing(one: StartBarrier) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(one.passed())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_barrier_opens_when_every_bound_pod_is_counted(server, client):
    put_node(server, "n1")
    put_pod(server, "bound", node="n1")
    put_pod(server, "free")
    cache = ClusterCache()
    one = barrier(client, cache)
    async with passing(one) as task:
        await until(lambda: "1 bound pods are not counted yet, among them default/bound" in one.waits_for)
        assert not one.blocked

        await show(cache, client)

        async with asyncio.timeout(20):
            await task
    assert one.waits_for == ""


async def test_a_bound_pod_that_vanishes_does_not_hold_the_barrier_for_ever(server, client):
    put_node(server, "n1")
    put_pod(server, "bound", node="n1")
    async with passing(barrier(client, ClusterCache(), patience_s=0.3)) as task:
        await until(lambda: server.requests.count("list", "pods"))

        await client.delete(PODS, "bound", namespace="default", grace_period_s=0)

        async with asyncio.timeout(5):
            await task


async def test_a_pod_that_ends_after_the_list_does_not_hold_the_barrier(server, client):
    put_node(server, "n1")
    put_pod(server, "ends", node="n1")
    put_pod(server, "goes", node="n1")
    cache, relists, delivered = ClusterCache(), [], [""]
    one = barrier(client, cache, relist=lambda: relists.append(1), delivered=lambda: delivered[0])
    async with passing(one) as task:
        await until(lambda: "2 bound pods are not counted yet" in one.waits_for)
        ended = {"status": {"phase": "Succeeded"}}
        await client.patch(PODS, "ends", ended, Pod, namespace="default", subresource="status")
        await client.delete(PODS, "goes", namespace="default", grace_period_s=0)
        await show(cache, client)
        await until(lambda: "1 bound pods are not counted yet, among them default/goes" in one.waits_for)

        delivered[0] = str(10**9)

        async with asyncio.timeout(20):
            await task
    assert relists == []


async def test_a_cache_that_has_all_changes_but_shows_a_bound_pod_without_node_is_not_trusted(server, client):
    put_node(server, "n1")
    put_pod(server, "bound")
    cache = ClusterCache()
    await show(cache, client)
    uid = server.get("pods", "bound", "default")["metadata"]["uid"]
    bind = Bind(TaskRef("default", "bound", uid), "n1", JobKey("default", "g1"))
    await client.post_bytes(PODS.item("bound", "default", "binding"), binding_body(bind))
    one = barrier(client, cache, patience_s=0.1, delivered=lambda: str(10**9))
    async with passing(one) as task:
        await until(lambda: one.blocked)

        assert not task.done()


async def test_the_barrier_lists_missing_pods_again_and_never_opens_without_them(server, client):
    put_node(server, "n1")
    put_pod(server, "bound", node="n1")
    relists: list[float] = []
    clock = FakeClock()
    cache = ClusterCache()
    one = barrier(client, cache, patience_s=10, relist=lambda: relists.append(clock.monotonic()), clock=clock)
    with capture_logs() as lines:
        async with passing(one) as task:
            for _ in range(600):
                await until(lambda: clock.sleepers)
                clock.advance(0.5)
            assert not task.done()
            assert one.blocked
            assert "default/bound" in one.waits_for
            warnings = [line for line in lines if line["log_level"] == "warning"]

            await show(cache, client)
            while not task.done():
                clock.advance(1)
                await asyncio.sleep(0.001)
            await task

    assert relists[0] == pytest.approx(10, abs=1)
    pauses = [later - earlier for earlier, later in pairwise(relists)]
    assert pauses[0] < 13
    assert 24 < max(pauses) < 57  # patience and a pause that grows to a cap
    assert len(warnings) == len(relists)
    assert {line["event"] for line in warnings} == {
        "bound pods that the watch does not show: pods are listed anew, nothing is scheduled before"
    }
    assert warnings[0]["pods"] == ["default/bound"]
    assert (one.blocked, one.waits_for) == (False, "")


async def test_a_list_of_the_barrier_that_hangs_is_made_again_over_another_connection(server, client, monkeypatch):
    monkeypatch.setattr(barrier_module, "_TIMEOUT_S", 0.1)
    put_node(server, "n1")
    hanging = server.faults.add(Fault("delay", verb="list", resource="pods", delay_s=60, times=1))
    one = barrier(client, ClusterCache())
    async with asyncio.timeout(5):
        await one.passed()

    assert hanging.hits == 1


async def test_a_list_that_fails_is_made_again(server, client):
    server.faults.add(Fault("reply", verb="list", resource="pods", code=500, times=1))

    one = barrier(client, ClusterCache())
    async with passing(one) as task, asyncio.timeout(5):
        await until(lambda: "cannot be listed" in one.waits_for)
        await task


# Overdue binds


class NothingHeld:
    def holds(self, uid: object) -> bool:
        return False

    def put(self, nomination: Nominate) -> None:
        raise AssertionError(nomination)


class Overdue:
    """A cache with one assumed bind whose confirmation never comes, and the second look at it."""

    def __init__(self, server: ApiServer, client: ApiClient) -> None:
        put_node(server, "n1")
        put_group(server, "g1", 1)
        pod = put_pod(server, "p0", "g1")
        self.task = TaskRef("default", "p0", pod["metadata"]["uid"])
        self.cache = ClusterCache(patience=Patience(unsent_s=0.01, unconfirmed_s=0.01))
        self._client = client
        self.metrics = StateMetrics(CollectorRegistry())

    async def assume(self) -> None:
        await show(self.cache, self._client)
        bind = Bind(self.task, "n1", JobKey("default", "g1"))
        assert self.cache.binds.assume((bind,), self.cache.token) == [Assumed(bind)]

    async def look_until(self, condition) -> None:
        look = recheck_overdue(
            self._client,
            self.cache,
            NothingHeld(),
            NothingHeld(),
            NothingHeld(),
            self.metrics,
            clock=RealClock(),
            every_s=0.02,
        )
        task = asyncio.create_task(look)
        try:
            await until(condition)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def status(self) -> TaskStatus | None:
        place = self.cache.store.task(self.task.uid)
        return None if place is None else place.status


async def test_an_overdue_bind_that_did_not_happen_is_forgotten(server, client):
    overdue = Overdue(server, client)
    await overdue.assume()

    await overdue.look_until(lambda: not len(overdue.cache.binds.ledger))

    assert overdue.status() is TaskStatus.PENDING


async def test_an_overdue_bind_that_did_happen_counts(server, client):
    overdue = Overdue(server, client)
    await overdue.assume()
    bind = Bind(overdue.task, "n1", JobKey("default", "g1"))
    await client.post_bytes(PODS.item("p0", "default", "binding"), binding_body(bind))
    assert successes(server) == 1

    await overdue.look_until(lambda: not len(overdue.cache.binds.ledger))

    assert overdue.status() is TaskStatus.BOUND


async def test_an_overdue_bind_of_a_pod_that_is_gone_ends_with_the_pod(server, client):
    overdue = Overdue(server, client)
    await overdue.assume()
    await client.delete(PODS, "p0", namespace="default")

    await overdue.look_until(lambda: not len(overdue.cache.binds.ledger))

    assert overdue.status() is None


async def test_an_overdue_bind_stays_while_the_server_cannot_be_asked(server, client):
    overdue = Overdue(server, client)
    await overdue.assume()
    fault = server.faults.add(Fault("reply", verb="get", resource="pods", code=503))

    await overdue.look_until(lambda: fault.hits >= 2)

    assert overdue.status() is TaskStatus.BINDING


@pytest.mark.parametrize("resource", ["namespaces", "resourcequotas", "poddisruptionbudgets.policy"])
async def test_the_scheduler_runs_without_optional_objects_that_it_may_not_read(server, resource):
    server.faults.add(Fault("reply", verb="list", resource=resource, code=403))
    put_node(server, "n1")
    async with scheduler(server.url):
        put_job(server, "gang", 2)

        await until(lambda: len(placed(server)) == 2)
