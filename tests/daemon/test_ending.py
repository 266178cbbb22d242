"""How a scheduler ends: in order when asked, at once when told twice, and by itself only for a reason."""

import asyncio

import pytest

from tests.controlplane.ports import free_port
from tests.daemon.cluster import a_daemon, event_reasons, group, placed, put_job, put_node, scheduler, start, successes
from tests.effects.waiting import until
from volcano_py.apiserver import Fault
from volcano_py.effects.binder import BinderOptions
from volcano_py.runtime.http import AddressInUse
from volcano_py.runtime.options import ListenAddress
from volcano_py.runtime.supervisor import TaskFailed

SLOW = BinderOptions(start=2, highest=2)


async def test_binds_that_have_begun_are_completed(server):
    put_node(server, "n1", cpu=40)
    server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=0.02))
    async with scheduler(server.url, binder=SLOW) as running:
        put_job(server, "gang", 20)
        await until(lambda: successes(server) > 2)
        assert successes(server) < 20

        assert await running.stop() == 0

    assert len(placed(server)) == successes(server) == 20


async def test_no_cycle_starts_after_the_request(server):
    put_node(server, "n1", cpu=40)
    async with scheduler(server.url) as running:
        running.shutdown.request("test")
        put_job(server, "late", 2)

        assert await running.task == 0

    assert placed(server) == {}


async def test_a_second_request_ends_it_at_once(server):
    put_node(server, "n1", cpu=40)
    server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=60))
    async with scheduler(server.url, binder=SLOW, stop_patience_s=60) as running:
        put_job(server, "gang", 4)
        await until(lambda: running.daemon.binder.in_flight)
        running.shutdown.request("first")
        await asyncio.sleep(0.05)
        assert not running.task.done()

        running.shutdown.request("second")

        async with asyncio.timeout(20):
            assert await running.task == 1


async def test_waiting_for_binds_at_the_end_has_a_limit(server):
    put_node(server, "n1", cpu=40)
    server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=5))
    async with scheduler(server.url, binder=SLOW, stop_patience_s=0.1, flush_patience_s=0.1) as running:
        put_job(server, "gang", 4)
        await until(lambda: running.daemon.binder.in_flight)

        assert await running.stop() == 0


async def test_statuses_are_flushed_before_the_end(server):
    put_node(server, "n1", cpu=1)
    async with scheduler(server.url) as running:
        server.faults.add(Fault("delay", verb="patch", resource="podgroups.scheduling.volcano.sh", delay_s=0.5))
        put_job(server, "gang", 2)
        await until(lambda: "Unschedulable" in event_reasons(server, "PodGroup", "gang"))
        assert running.daemon.statuses_waiting

        assert await running.stop() == 0

    assert group(server, "gang")["status"]["conditions"]


async def test_it_can_be_ended_before_it_is_ready(server):
    server.faults.add(Fault("delay", verb="list", resource="nodes", delay_s=30))
    async with scheduler(server.url, wait=False) as running:
        await asyncio.sleep(0.1)

        assert await running.stop() == 0


async def test_a_port_in_use_is_reported_before_anything_starts(server):
    address = ListenAddress("127.0.0.1", free_port())
    async with scheduler(server.url, health_address=address):
        second = start(a_daemon(server.url, health_address=address))

        with pytest.raises(AddressInUse, match=f"port {address.port} .* --healthz-address"):
            await second.task


async def test_a_part_that_dies_of_a_bug_ends_the_process_with_its_name(server, monkeypatch):
    put_node(server, "n1")
    async with scheduler(server.url) as running:

        def broken(bind):
            raise RuntimeError("a bug")

        monkeypatch.setattr(running.daemon.cache.binds, "sent", broken)
        put_job(server, "gang", 1)

        with pytest.raises(TaskFailed, match="bind"):
            await running.task
