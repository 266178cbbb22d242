"""Several schedulers with one lease: one acts, the others stand by; it changes hands and nothing is done twice."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest

from tests.daemon.cluster import (
    BINDINGS,
    Running,
    a_daemon,
    condition,
    placed,
    put_job,
    put_node,
    put_pod,
    scheduler,
    serve_definitions,
    start,
    stays,
    successes,
)
from tests.daemon.freezing import a_freezing_proxy
from tests.effects.waiting import standstill, until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects.binder import BinderOptions
from volcano_py.kube.errors import ConnectionFailed
from volcano_py.kube.informer import Informers
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.resource import EVENTS, LEASES
from volcano_py.model.objects import JobKey
from volcano_py.testing import a_namespace, manifest

FIRM = LeaseOptions(duration_s=4, renew_deadline_s=3, retry_period_s=0.1)  # a pause of a busy machine does not cost it
LONG = LeaseOptions(duration_s=60, renew_deadline_s=40, retry_period_s=0.1)
SLOW = BinderOptions(start=2, highest=2)


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        serve_definitions(server)
        server.create(manifest(a_namespace("volcano-system")))
        yield server


def lease(server: ApiServer) -> dict:
    found = server.get(LEASES.label, "volcano", "volcano-system")
    return found["spec"] if found else {}


async def leads(running: Running) -> None:
    async with asyncio.timeout(10):
        await running.daemon.leading.wait()


async def take_the_lease_away(running: Running) -> None:
    body = {"spec": {"holderIdentity": "go"}}
    await running.daemon.client.patch(LEASES, "volcano", body, dict, namespace="volcano-system")


async def test_one_scheduler_leads_and_the_other_stands_by_ready_and_writes_nothing(server):
    put_node(server, "n1", cpu=40)
    async with scheduler(server.url, lease=LONG) as first:
        await leads(first)
        async with scheduler(server.url, lease=LONG) as other:
            put_job(server, "gang", 10)
            await until(lambda: len(placed(server)) == 10)
            await until(lambda: len(other.daemon.cache.store.tasks_of(("default", "gang"))) == 10)

            assert other.daemon.not_ready() == []
            assert not other.daemon.leading.is_set()
            assert other.daemon.cycles.cycles == 0
            assert (first.metric("volcano_py_leader"), other.metric("volcano_py_leader")) == (1, 0)
            assert writes(other) == 0
    assert successes(server) == 10


def writes(running: Running) -> float:
    """Count the requests of a scheduler that change something."""
    return sum(
        sample.value
        for family in running.daemon.registry.collect()
        for sample in family.samples
        if sample.name == "volcano_py_api_requests_total" and sample.labels["verb"] not in ("get", "list", "watch")
    )


async def test_after_a_leader_is_killed_the_standby_leads_and_no_pod_is_bound_twice(server):
    put_node(server, "n1", cpu=100)
    server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=0.01))
    async with AsyncExitStack() as stack:
        still = await stack.enter_async_context(standstill())
        first = await stack.enter_async_context(scheduler(server.url, lease=FIRM, binder=SLOW))
        await leads(first)
        other = await stack.enter_async_context(scheduler(server.url, lease=FIRM))
        put_job(server, "gang", 40)
        await until(lambda: successes(server) > 3)
        await first.kill()
        assert successes(server) < 40

        renewed = datetime.fromisoformat(lease(server)["renewTime"])
        await leads(other)
        took_s = (datetime.now(UTC) - renewed).total_seconds()
        busy_s = await still.seconds()
        await until(lambda: len(placed(server)) == 40)

    assert FIRM.duration_s <= took_s < FIRM.duration_s + 2.2 * FIRM.retry_period_s + 2.0 + busy_s
    assert successes(server) == 40
    assert server.requests.count(*BINDINGS, 409) == 0
    assert lease(server)["leaseTransitions"] == 1


async def test_a_new_leader_passes_the_start_barrier_again(server):
    put_node(server, "n1")
    async with scheduler(server.url, lease=LONG) as first:
        await leads(first)
        async with scheduler(server.url, lease=LONG) as other:
            before = server.requests.count("list", "pods")

            assert await first.stop() == 0
            await leads(other)

            assert server.requests.count("list", "pods") == before + 1


@pytest.mark.parametrize("reconnects", [True, False], ids=["reconnecting", "by the barrier alone"])
async def test_a_new_leader_with_silently_dead_watches_overcommits_no_node(server, monkeypatch, reconnects):
    if not reconnects:
        monkeypatch.setattr(Informers, "reconnect", lambda _: None)
    put_node(server, "n1", cpu=2)
    async with a_freezing_proxy(server.url) as proxy:
        leader = start(a_daemon(server.url, lease=FIRM))
        await leads(leader)
        standby = start(a_daemon(proxy.url, lease=FIRM, barrier_patience_s=30 if reconnects else 0.3))
        await until(lambda: standby.daemon.ready.is_set())
        refusal = server.faults.add(Fault("reply", *BINDINGS, code=429, retry_after_s=60, times=2))
        put_job(server, "new", 2)
        await until(lambda: standby.daemon.cache.store.job(JobKey("default", "new")) is not None)
        await until(lambda: refusal.hits == 2)

        assert proxy.freeze() > 10
        await leader.kill()
        for number in range(2):
            put_pod(server, f"other-{number}", node="n1", schedulerName="default-scheduler")
        await until(lambda: standby.daemon.leading.is_set(), timeout_s=30)

        assert standby.daemon.cache.bound_pods() == 2
        await stays(lambda: sorted(placed(server)) == ["other-0", "other-1"], 0.5)
        put_node(server, "n2", cpu=2)  # other watches are open again as well
        await until(lambda: len(placed(server, "new")) == 2)
        await standby.kill()


async def test_a_standby_held_by_the_start_barrier_says_what_it_waits_for(server):
    put_node(server, "n1", cpu=2)
    leader = start(a_daemon(server.url, lease=FIRM))
    await leads(leader)
    standby = start(a_daemon(server.url, lease=FIRM, barrier_patience_s=0.1))
    await until(lambda: standby.daemon.ready.is_set())
    server.faults.add(Fault("reply", verb="watch", resource="pods", code=500))
    server.faults.add(Fault("reply", verb="list", resource="pods", code=500, skip=1))
    server.faults.disconnect_watches("pods", "abrupt")
    put_pod(server, "other", node="n1", schedulerName="default-scheduler")
    await leader.kill()

    await until(lambda: any("start barrier" in reason for reason in standby.daemon.not_ready()))
    assert standby.metric("volcano_py_ready") == 0
    await stays(lambda: not standby.daemon.leading.is_set(), 1)
    server.faults.clear()
    await until(lambda: standby.daemon.leading.is_set(), timeout_s=30)
    assert standby.daemon.not_ready() == []
    await standby.kill()


async def test_a_leader_that_stops_lets_the_next_begin_at_once(server):
    put_node(server, "n1")
    async with scheduler(server.url, lease=LONG) as first:
        await leads(first)
        async with scheduler(server.url, lease=LONG) as other:
            assert await first.stop() == 0

            async with asyncio.timeout(20):
                await other.daemon.leading.wait()
            put_job(server, "gang", 2)
            await until(lambda: len(placed(server)) == 2)


async def test_binds_are_completed_before_the_lease_is_given_up(server):
    put_node(server, "n1", cpu=40)
    server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=0.02))
    async with scheduler(server.url, lease=LONG, binder=SLOW) as running:
        await leads(running)
        put_job(server, "gang", 20)
        await until(lambda: successes(server) > 2)
        running.shutdown.request("test")
        await until(lambda: not lease(server)["holderIdentity"])

        assert successes(server) == 20
        assert await running.task == 0


async def test_a_standby_that_stops_leaves_the_lease_alone(server):
    async with scheduler(server.url, lease=LONG) as first:
        await leads(first)
        holder = lease(server)["holderIdentity"]
        async with scheduler(server.url, lease=LONG) as other:
            assert await other.stop() == 0

        assert lease(server)["holderIdentity"] == holder


@pytest.mark.parametrize("how", ["taken", "not-renewed"])
async def test_a_lost_lease_ends_the_process_and_drops_what_was_decided(server, how):
    put_node(server, "n1", cpu=100)
    server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=0.25))
    async with scheduler(server.url, lease=LONG if how == "taken" else FIRM, binder=SLOW) as running:
        await leads(running)
        put_job(server, "gang", 60)
        await until(lambda: successes(server) > 3)
        if how == "taken":
            await take_the_lease_away(running)
        else:
            server.faults.add(Fault("reply", resource=LEASES.label, code=500))

        async with asyncio.timeout(20):
            assert await running.task == 1
        sent = successes(server)

        await stays(lambda: successes(server) <= sent + 2, 0.6)  # two may have been on their way
        assert sent < 60


@pytest.mark.parametrize("renewal_s", [0.0, 0.2], ids=["between renewals", "during a renewal"])
async def test_a_process_that_was_suspended_writes_nothing_before_it_holds_the_lease_again(server, renewal_s):
    put_node(server, "n1", cpu=100)
    server.faults.add(Fault("delay", verb="update", resource=LEASES.label, delay_s=renewal_s))
    server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=0.02))
    async with scheduler(server.url, lease=FIRM, binder=SLOW) as running:
        await leads(running)
        put_job(server, "gang", 12)
        await until(lambda: successes(server) > 3)

        time.sleep(FIRM.duration_s + 0.1)  # noqa: ASYNC251 - the whole process stands still
        with pytest.raises(ConnectionFailed, match="not sent: lease volcano-system/volcano is not held"):
            await running.daemon.client.create(EVENTS, {}, dict, namespace="default")

        await until(lambda: len(placed(server)) == 12)  # nobody else had it meanwhile


async def test_without_its_namespace_it_stands_by_and_begins_when_it_is_there(server):
    put_node(server, "n1")
    elsewhere = LeaseOptions(namespace="elsewhere", duration_s=60, renew_deadline_s=40, retry_period_s=0.1)
    async with scheduler(server.url, lease=elsewhere):
        put_job(server, "gang", 2)
        await stays(lambda: not placed(server), 0.2)
        assert condition(server, "gang-0") == {}

        server.create(manifest(a_namespace("elsewhere")))

        await until(lambda: len(placed(server)) == 2)


async def test_a_new_leader_is_an_event_of_the_lease(server):
    async with scheduler(server.url, lease=LONG) as running:
        await leads(running)
        await until(lambda: [e for e in server.list("events", "volcano-system") if e["reason"] == "LeaderElection"])

        (event,) = server.list("events", "volcano-system")
        assert event["message"] == f"{lease(server)['holderIdentity']} became leader"
        assert event["involvedObject"]["kind"] == "Lease"
