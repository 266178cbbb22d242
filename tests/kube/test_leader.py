"""Leader election on a clock that is moved by hand, over a Lease of the embedded API server."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.leader import LeaderElector, new_identity
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.resource import LEASES
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import a_namespace, manifest

NAMESPACE = "volcano-system"
OPTIONS = LeaseOptions()
RESOURCE = LEASES.label


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        server.create(manifest(a_namespace(NAMESPACE)))
        yield server


@pytest.fixture
async def client(server) -> AsyncIterator[ApiClient]:
    async with ApiClient(Credentials(server.url)) as client:
        yield client


def an_elector(client: ApiClient, clock: FakeClock, identity: str = "a", **more: Any) -> LeaderElector:
    return LeaderElector(client, OPTIONS, clock=clock, rng=random.Random(1), identity=identity, **more)


def spec(server: ApiServer) -> dict[str, Any]:
    lease = server.get(RESOURCE, OPTIONS.name, NAMESPACE)
    assert lease is not None
    return lease["spec"]


def put_lease(server: ApiServer, holder: str, seconds: int = 15, **more: Any) -> None:
    """Write a lease as a Go program would have."""
    stamp = "2023-12-31T23:59:58.000000Z"
    server.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": OPTIONS.name, "namespace": NAMESPACE},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": seconds,
                "acquireTime": stamp,
                "renewTime": stamp,
                "leaseTransitions": 4,
                **more,
            },
        }
    )


async def patch_lease(client: ApiClient, **changes: Any) -> None:
    await client.patch(LEASES, OPTIONS.name, {"spec": changes}, dict, namespace=NAMESPACE)


async def acquired(elector: LeaderElector) -> None:
    async with asyncio.timeout(5):
        await elector.acquire()


@asynccontextmanager
async def background(work: Any) -> AsyncIterator["asyncio.Task[Any]"]:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def asleep(clock: FakeClock) -> None:
    """Wait until the elector waits for the clock."""
    await until(lambda: clock.sleepers)


async def pass_time(clock: FakeClock, seconds: float, task: "asyncio.Task[Any]", step: float = 0.5) -> None:
    """Move the clock in steps; after each the elector may act until it sleeps again or ends."""
    for _ in range(round(seconds / step)):
        await until(lambda: task.done() or clock.sleepers)
        clock.advance(step)
    await until(lambda: task.done() or clock.sleepers)


# Getting it


async def test_a_lease_that_does_not_exist_is_created(server, client, clock):
    elector = an_elector(client, clock)

    await acquired(elector)

    assert elector.holds()
    assert spec(server) == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2024-01-01T00:00:00.000000Z",
        "renewTime": "2024-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }


async def test_a_released_lease_is_taken_at_once_and_counts_a_transition(server, client, clock):
    put_lease(server, holder="", seconds=1)
    elector = an_elector(client, clock)

    await acquired(elector)

    assert (spec(server)["holderIdentity"], spec(server)["leaseTransitions"]) == ("a", 5)


async def test_anothers_lease_is_left_alone_while_it_is_renewed(server, client, clock):
    put_lease(server, holder="go")
    elector = an_elector(client, clock)

    async with background(elector.acquire()) as waiting:
        for second in range(4):
            await pass_time(clock, 10, waiting)
            await patch_lease(client, renewTime=f"2023-12-31T23:59:5{second}.500000Z")
        await pass_time(clock, 10, waiting)

        assert not waiting.done()
    assert spec(server)["holderIdentity"] == "go"


async def test_anothers_lease_is_taken_when_it_has_not_changed_for_its_duration(server, client, clock):
    put_lease(server, holder="go", seconds=7)  # its duration counts, not ours
    elector = an_elector(client, clock)

    async with background(elector.acquire()) as waiting:
        await pass_time(clock, 6.5, waiting)
        assert not waiting.done()

        await pass_time(clock, 1, waiting)
        await waiting

    assert (spec(server)["holderIdentity"], spec(server)["leaseTransitions"]) == ("a", 5)


async def test_the_wall_clock_of_the_holder_does_not_matter(server, client, clock):
    put_lease(server, holder="go", renewTime="1999-01-01T00:00:00.000000Z")
    elector = an_elector(client, clock)

    async with background(elector.acquire()) as waiting:
        await pass_time(clock, 14, waiting)

        assert not waiting.done()


async def test_other_fields_of_the_lease_are_kept(server, client, clock):
    put_lease(server, holder="", preferredHolder="b")
    elector = an_elector(client, clock)

    await acquired(elector)

    assert spec(server)["preferredHolder"] == "b"


async def test_of_two_candidates_one_leads(server, client, clock):
    first, second = an_elector(client, clock, "a"), an_elector(client, clock, "b")

    async with background(first.acquire()) as one, background(second.acquire()) as other:
        await until(lambda: one.done() or other.done())
        await asleep(clock)
        await asyncio.sleep(0.02)

        assert one.done() != other.done()
    assert first.holds() != second.holds()


async def test_a_candidate_that_loses_the_race_for_a_free_lease_waits(server, client, clock):
    put_lease(server, holder="")
    elector = an_elector(client, clock)
    server.faults.add(Fault("reply", verb="update", resource=RESOURCE, code=409, times=1))

    async with background(elector.acquire()) as waiting:
        await asleep(clock)

        assert not waiting.done()


async def test_a_standby_knows_the_leader(server, client, clock):
    put_lease(server, holder="go")
    leaders: list[str] = []
    elector = an_elector(client, clock, on_leader=leaders.append)

    async with background(elector.acquire()):
        await asleep(clock)

    assert leaders == ["go"]
    assert elector.holder == "go"


# Keeping it


async def test_renewals_keep_the_acquire_time(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)

    async with background(elector.renew()) as renewing:
        await pass_time(clock, 60, renewing)

        assert not renewing.done()
    assert elector.holds()
    record = spec(server)
    assert (record["acquireTime"], record["leaseTransitions"]) == ("2024-01-01T00:00:00.000000Z", 0)
    assert record["renewTime"] > "2024-01-01T00:00:57"


async def test_a_renewal_is_one_request(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    before = server.requests.count("get", RESOURCE)

    async with background(elector.renew()) as renewing:
        await pass_time(clock, 10, renewing)

    assert server.requests.count("get", RESOURCE) == before
    assert server.requests.count("update", RESOURCE) == 5


async def test_a_write_that_keeps_the_holder_does_not_lose_the_lease(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    await client.patch(LEASES, OPTIONS.name, {"metadata": {"labels": {"x": "y"}}}, dict, namespace=NAMESPACE)

    async with background(elector.renew()) as renewing:
        await pass_time(clock, 20, renewing)

        assert not renewing.done()


async def test_a_short_outage_does_not_lose_the_lease(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    fault = server.faults.add(Fault("reply", verb="*", resource=RESOURCE, code=500))

    async with background(elector.renew()) as renewing:
        await pass_time(clock, 8, renewing)
        server.faults.remove(fault)
        await pass_time(clock, 10, renewing)

        assert not renewing.done()
    assert elector.holds()


async def test_a_lease_that_cannot_be_renewed_is_lost_after_the_deadline(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    server.faults.add(Fault("reply", verb="*", resource=RESOURCE, code=500, message="etcd is gone"))

    async with background(elector.renew()) as renewing:
        await pass_time(clock, 11.5, renewing)
        assert not renewing.done()  # it began to try after 2 s

        await pass_time(clock, 1, renewing)
        why = await renewing

    assert "was not renewed within 10 s" in why
    assert "etcd is gone" in why
    assert not elector.holds()


async def test_a_process_that_was_suspended_during_a_failing_renewal_tries_again(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    fault = server.faults.add(Fault("reply", verb="*", resource=RESOURCE, code=500))

    async with background(elector.renew()) as renewing:
        await pass_time(clock, 4, renewing)
        server.faults.remove(fault)
        await pass_time(clock, 60, renewing, step=60)

        assert not renewing.done()
    assert elector.holds()


async def test_a_lease_that_another_took_is_lost_at_once(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    await patch_lease(client, holderIdentity="go", leaseTransitions=1)

    async with background(elector.renew()) as renewing:
        await pass_time(clock, 2, renewing)

        assert await renewing == "lease volcano-system/volcano is held by go now"
    assert not elector.holds()
    assert spec(server)["holderIdentity"] == "go"


async def test_a_leader_past_its_lease_duration_does_not_hold_the_lease(client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)

    clock.advance(14.9)
    assert elector.holds()
    clock.advance(0.2)

    assert not elector.holds()


async def test_a_lease_that_ran_out_while_nobody_took_it_is_still_ours(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    clock.advance(30)

    async with background(elector.renew()) as renewing:
        await pass_time(clock, 2, renewing)

        assert not renewing.done()
    assert elector.holds()
    assert spec(server)["leaseTransitions"] == 0


# Giving it up


async def test_a_lease_that_is_released_is_free_for_the_next(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)

    assert await elector.release()

    record = spec(server)
    assert (record["holderIdentity"], record["leaseDurationSeconds"]) == ("", 1)
    assert not elector.holds()
    await acquired(an_elector(client, clock, "b"))
    assert spec(server)["leaseTransitions"] == 1


async def test_a_lease_that_was_written_meanwhile_is_released_as_well(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    await client.patch(LEASES, OPTIONS.name, {"metadata": {"labels": {"x": "y"}}}, dict, namespace=NAMESPACE)

    assert await elector.release()

    assert spec(server)["holderIdentity"] == ""


async def test_anothers_lease_is_not_released(server, client, clock):
    elector = an_elector(client, clock)
    await acquired(elector)
    await patch_lease(client, holderIdentity="go")

    assert not await elector.release()

    assert spec(server)["holderIdentity"] == "go"


async def test_a_candidate_that_never_led_releases_nothing(client, clock):
    assert not await an_elector(client, clock).release()


# Trouble


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        pytest.param(None, "create the namespace elsewhere", id="no-namespace"),
        pytest.param(
            Fault("reply", resource=RESOURCE, code=403), "needs get, create and update on leases", id="no-right"
        ),
    ],
)
async def test_an_obstacle_to_leadership_is_logged_once_with_a_remedy(server, client, clock, fault, remedy):
    options = LeaseOptions(namespace="elsewhere")
    if fault is not None:
        server.faults.add(fault)
    elector = LeaderElector(client, options, clock=clock, rng=random.Random(1))

    with capture_logs() as lines:
        async with background(elector.acquire()) as waiting:
            await pass_time(clock, 20, waiting)
            assert not waiting.done()

    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert len(warnings) == 1
    assert remedy in warnings[0]["problem"]
    assert remedy in elector.problem


async def test_an_obstacle_is_logged_as_soon_as_the_outage_is_over_that_withheld_it(server, client, clock):
    elector = LeaderElector(client, LeaseOptions(namespace="elsewhere"), clock=clock, rng=random.Random(1))
    client.outage.failed("pods", errors.ConnectionFailed("watch", "/api/v1/pods", "cut"))

    with capture_logs() as lines:
        server.faults.add(Fault("reply", resource=RESOURCE, code=503))
        async with background(elector.acquire()) as waiting:
            await pass_time(clock, 20, waiting)
            assert not [line for line in lines if line["log_level"] == "warning"]
            client.outage.answered("pods")
            await pass_time(clock, 10, waiting)

    assert [line["event"] for line in lines if line["log_level"] == "warning"] == [
        "the lease cannot be read or written; trying again"
    ]


async def test_the_lease_is_acquired_once_its_namespace_exists(server, client, clock):
    elector = LeaderElector(client, LeaseOptions(namespace="late"), clock=clock, rng=random.Random(1))

    async with background(elector.acquire()) as waiting:
        await asleep(clock)
        server.create(manifest(a_namespace("late")))
        await pass_time(clock, 5, waiting)

        await waiting
    assert elector.problem == ""


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        pytest.param({"renew_deadline_s": 15.0}, "longer than the renew deadline", id="deadline-too-long"),
        pytest.param({"retry_period_s": 9.0}, "longer than 1.2 retry periods", id="retry-too-long"),
        pytest.param({"retry_period_s": 0.0}, "retry period must be", id="no-retry"),
        pytest.param({"duration_s": 0.5}, "at least 1s", id="too-short"),
        pytest.param({"name": ""}, "needs a name", id="no-name"),
        pytest.param({}, "", id="volcanos"),
    ],
)
def test_inconsistent_lease_times_are_refused(times, problem):
    found = LeaseOptions(**times).problem()

    assert problem in found
    assert bool(found) == bool(problem)


def test_every_process_has_an_identity_of_its_own():
    first, second = new_identity(random.Random()), new_identity(random.Random())

    assert first != second
    assert first.partition("_")[0] == second.partition("_")[0]
