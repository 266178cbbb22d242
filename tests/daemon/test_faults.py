"""A scheduler whose API server loses answers, says no, goes away, comes back, or lacks half of what it needs."""

import asyncio
import math
from collections import Counter

import pytest
from structlog.testing import capture_logs

from tests.controlplane.ports import free_port
from tests.daemon.cluster import (
    BINDINGS,
    GROUPS,
    QUEUES,
    a_daemon,
    condition,
    event_reasons,
    group,
    placed,
    put_job,
    put_node,
    put_pod,
    scheduler,
    serve_definitions,
    set_phase,
    start,
    stays,
    successes,
)
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, ApiServerOptions, Fault
from volcano_py.effects.binder import BinderOptions
from volcano_py.effects.pod_conditions import PodConditionOptions
from volcano_py.framework.state.report import CycleReport
from volcano_py.kube.resource import NODES, PODS
from volcano_py.model.objects import JobKey
from volcano_py.writing.write_queue import WriteQueueOptions

QUICK = BinderOptions(retry_first_s=0.02, retry_cap_s=0.1)


def used_cpus(server: ApiServer) -> Counter[str]:
    return Counter(placed(server).values())


async def test_dropped_answers_never_bind_a_pod_twice(server):
    for number in range(10):
        put_node(server, f"n{number}", cpu=10)
    server.faults.add(Fault("drop_after", verb="create", resource="pods/binding", probability=0.2, seed=3))
    server.faults.add(Fault("drop_before", verb="create", resource="pods/binding", probability=0.2, seed=4))
    async with scheduler(server.url, binder=QUICK):
        for number in range(10):
            put_job(server, f"gang{number}", 10)

        await until(lambda: len(placed(server)) == 100)
        await until(lambda: successes(server) >= 1)

        assert server.requests.count(*BINDINGS, 409) == 0
        assert all(count <= 10 for count in used_cpus(server).values())


async def test_a_failed_bind_is_placed_again_and_the_gang_completed(server):
    put_node(server, "n1", cpu=8)
    server.faults.add(Fault("reply", verb="create", resource="pods/binding", name="gang-1", code=403, times=2))
    async with scheduler(server.url, period_s=0.1) as running:
        put_job(server, "gang", 3)

        await until(lambda: len(placed(server)) == 3)

        assert running.metric("volcano_py_gangs_bound_in_part_total") >= 1
        await until(lambda: "FailedScheduling" in event_reasons(server, "PodGroup", "gang"))


async def test_a_bind_that_is_always_refused_backs_off_and_the_pod_says_why(server):
    put_node(server, "n1", cpu=8)
    fault = server.faults.add(Fault("reply", verb="create", resource="pods/binding", name="gang-1", code=403))
    soon = PodConditionOptions(rate_per_s=50, burst=50, delay_s=0.01)
    async with scheduler(server.url, period_s=0.2, pod_conditions=soon):
        put_job(server, "gang", 2)
        await until(lambda: condition(server, "gang-1").get("reason") == "SchedulerError")
        before = fault.hits

        await until(lambda: fault.hits > before)
        started = asyncio.get_running_loop().time()
        await until(lambda: fault.hits >= before + 3)

        assert asyncio.get_running_loop().time() - started > 0.3


async def test_a_gang_whose_binds_are_denied_is_tried_less_and_less_often_whatever_else_arrives(server):
    put_node(server, "n1", cpu=64)
    denied = server.faults.add(Fault("reply", verb="create", resource="pods/binding", name="bad-*", code=403))
    async with scheduler(server.url, period_s=0.2):
        begin = asyncio.get_running_loop().time()
        put_job(server, "bad", 20)
        await until(lambda: denied.hits == 20)
        for number in range(40):
            put_job(server, f"x{number}", 1, cpu="10m")
            await asyncio.sleep(0.05)
        await until(lambda: len(placed(server)) == 40)

        # At 0, 1, 3 and 7 seconds, each half as long either way; it was 20 per arrival. A busy machine needs longer.
        elapsed_s = asyncio.get_running_loop().time() - begin
        assert denied.hits <= max(80, 20 * (1 + math.floor(math.log2(1 + 2 * elapsed_s))))
        assert condition(server, "bad-0")["reason"] == "SchedulerError"


async def test_a_bind_that_waits_is_not_sent_to_a_node_that_is_gone(server):
    put_node(server, "n1")
    server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=429, retry_after_s=4, times=2))
    async with scheduler(server.url) as running:
        put_job(server, "gang", 2)
        await until(lambda: len(running.daemon.cache.binds.ledger) == 2)
        await running.daemon.client.delete(NODES, "n1")
        await until(lambda: not running.daemon.cache.store.nodes.names())
        put_node(server, "n2")

        await until(lambda: set(placed(server).values()) == {"n2"} and len(placed(server)) == 2)

        assert server.requests.count(*BINDINGS) == 4  # two that had to wait, and those to the other node


async def test_a_bind_that_waits_is_not_sent_for_a_pod_that_is_gone(server):
    put_node(server, "n1")
    server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=429, retry_after_s=4, times=2))
    async with scheduler(server.url) as running:
        put_job(server, "pair", 2)
        await until(lambda: len(running.daemon.cache.binds.ledger) == 2)
        await running.daemon.client.delete(PODS, "pair-1", namespace="default", grace_period_s=0)

        await until(lambda: placed(server) == {"pair-0": "n1"})
        await until(lambda: not running.daemon.binder.busy)

        assert server.requests.count(*BINDINGS, 404) == 0


async def test_binds_go_on_while_the_server_pushes_back(server):
    put_node(server, "n1", cpu=100, pods=200)
    server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=429, times=60, retry_after_s=0))
    async with scheduler(server.url, binder=QUICK) as running:
        put_job(server, "gang", 60)

        await until(lambda: running.daemon.binder.limit < 64)
        await until(lambda: len(placed(server)) == 60)

        assert successes(server) == 60


async def test_a_status_conflict_is_merged(server):
    put_node(server, "n1", cpu=5)
    fault = server.faults.add(Fault("reply", verb="patch", resource=GROUPS, code=409, times=2))
    async with scheduler(server.url):
        put_job(server, "gang", 6)

        await until(lambda: group(server, "gang").get("status", {}).get("conditions"))

        assert fault.hits == 2


async def test_a_status_that_was_given_up_is_written_although_nothing_else_happens(server):
    """Found by simulation: no cycle runs while nothing waits, so nothing decided the status again."""
    put_node(server, "n1", cpu=4)
    once = WriteQueueOptions(rate_per_s=50, burst=50, attempts=1)
    async with scheduler(server.url, group_statuses=once, queue_statuses=once) as running:
        put_job(server, "gang", 2)
        await until(lambda: len(placed(server)) == 2)
        await set_phase(running, ["gang-0", "gang-1"], "Running")
        await until(lambda: group(server, "gang").get("status", {}).get("running") == 2)
        await until(lambda: server.get(QUEUES, "default")["status"]["allocated"].get("cpu") == "2")
        refused = [server.faults.add(Fault("reply", verb="patch", resource=GROUPS, code=503, times=1))]
        refused.append(server.faults.add(Fault("reply", verb="patch", resource=f"{QUEUES}/status", code=503, times=1)))

        await set_phase(running, ["gang-0", "gang-1"], "Succeeded")

        await until(lambda: group(server, "gang")["status"].get("succeeded") == 2)
        await until(lambda: server.get(QUEUES, "default")["status"]["allocated"].get("cpu") == "0")
        assert [fault.hits for fault in refused] == [1, 1]


@pytest.mark.parametrize("code", [422, 404])
async def test_a_condition_that_is_always_refused_is_sent_less_and_less_often(server, code):
    """Found by simulation: a policy that refused a status with 422 got it again with every cycle.

    So did 404, about objects whose deletion a silent watch did not show.
    """
    refused = server.faults.add(Fault("reply", verb="patch", resource="pods/status", code=code))
    at_once = PodConditionOptions(rate_per_s=100, burst=100)
    async with scheduler(server.url, period_s=0.02, pod_conditions=at_once) as running:
        put_job(server, "gang", 1)
        cycles = running.daemon.cycles
        # Nothing changes, so that the scheduler rests; these cycles are asked for.
        while cycles.cycles <= 100:
            cycles.wake("pod_pending")
            await asyncio.sleep(0.02)

        assert 2 <= refused.hits < 12


async def test_a_restart_in_the_middle_of_binding_binds_no_pod_twice(server):
    for number in range(10):
        put_node(server, f"n{number}", cpu=10)
    slow = server.faults.add(Fault("delay", verb="create", resource="pods/binding", delay_s=0.02))
    first = start(a_daemon(server.url, binder=BinderOptions(start=4, highest=4)))
    await first.ready()
    for number in range(10):
        put_job(server, f"gang{number}", 10)
    await until(lambda: successes(server) > 20)

    await first.kill()
    server.faults.remove(slow)
    assert len(placed(server)) < 100
    async with scheduler(server.url) as second:
        await until(lambda: len(placed(server)) == 100)
        await until(lambda: not len(second.daemon.cache.binds.ledger))

        assert successes(server) == 100
        assert all(count <= 10 for count in used_cpus(server).values())


async def test_the_first_cycle_waits_for_bound_pods_that_the_watch_has_not_shown(server):
    put_node(server, "n1", cpu=1)
    put_pod(server, "old", node="n1")
    listed = server.faults.add(Fault("delay", verb="list", resource="pods", skip=1, times=1, delay_s=0.3))
    async with scheduler(server.url, wait=False) as running:
        await until(lambda: listed.hits == 1)
        assert not running.daemon.ready.is_set()

        await running.ready()

        assert running.daemon.cache.bound_pods() == 1


async def test_scheduling_continues_after_an_outage_of_the_api_server():
    options = ApiServerOptions(port=free_port())
    server = ApiServer(options)
    await server.start()
    serve_definitions(server)
    put_node(server, "n1", cpu=8)
    async with scheduler(server.url, binder=QUICK) as running:
        put_job(server, "before", 2)
        await until(lambda: len(placed(server)) == 2)

        await server.stop()
        put_job(server, "after", 2)
        await asyncio.sleep(0.2)
        assert not running.task.done()
        await server.start()

        await until(lambda: len(placed(server)) == 4, timeout_s=15)
    await server.stop()


async def test_an_outage_is_one_warning_for_all_watches():
    server = ApiServer(ApiServerOptions(port=free_port()))
    await server.start()
    serve_definitions(server)
    put_node(server, "n1", cpu=8)
    try:
        async with scheduler(server.url) as running:
            with capture_logs() as lines:
                begin = asyncio.get_running_loop().time()
                await server.stop()
                await until(lambda: any("does not answer" in line["event"] for line in lines), timeout_s=15)
                await server.start()
                outage = running.daemon._watches.informers.outage
                await until(lambda: not outage.lasts and any("again" in line["event"] for line in lines), timeout_s=15)
                elapsed_s = asyncio.get_running_loop().time() - begin
    finally:
        await server.stop()

    informers = [line for line in lines if line["log_level"] in ("warning", "error") and "lease" not in line["event"]]
    assert [line["event"] for line in informers] == ["the API server does not answer"]
    back = next(line for line in lines if line["event"] == "the API server answers again")
    assert back["failed_attempts"] >= 12  # each of the watches, at least once
    assert 1 <= back["away_s"] <= max(10, elapsed_s)


async def test_one_stray_404_does_not_remove_groups_and_queues(server):
    put_node(server, "n1", cpu=4)
    async with scheduler(server.url) as running:
        put_job(server, "run", 2)
        await until(lambda: len(placed(server)) == 2)
        faults = [
            server.faults.add(Fault("reply", verb=verb, resource=resource, code=404, times=1))
            for resource in (GROUPS, QUEUES)
            for verb in ("list", "watch")
        ]
        for resource in (GROUPS, QUEUES):
            server.faults.disconnect_watches(resource, "abrupt")
        store = running.daemon.cache.store
        deadline = asyncio.get_running_loop().time() + 10
        while not all(fault.hits for fault in faults) or not store.queues:
            assert asyncio.get_running_loop().time() < deadline
            assert store.job(JobKey("default", "run")) is not None
            assert "default" in store.queues
            await asyncio.sleep(0.005)
        put_job(server, "new", 2)

        await until(lambda: len(placed(server)) == 4)
        assert "default" in store.queues


async def test_without_definitions_it_is_ready_and_goes_on_when_they_come():
    async with ApiServer() as server:
        put_node(server, "n1")
        async with scheduler(server.url) as running:
            assert running.daemon.not_ready() == []
            serve_definitions(server)
            put_job(server, "gang", 2)

            await until(lambda: len(placed(server)) == 2)


async def test_a_cycle_that_raises_does_not_end_the_loop(server):
    calls = []

    def cycle(snapshot, policy, clock, seed, memory, emit):
        calls.append(memory.cycle)
        if len(calls) == 1:
            raise ZeroDivisionError("a bug")
        return memory.next(), CycleReport()

    async with scheduler(server.url, cycle=cycle) as running:
        await until(lambda: len(calls) >= 2)

        assert running.metric("volcano_py_cycles_total", {"result": "failed"}) == 1
        assert calls[1] == 0  # nothing is remembered of a cycle that raised


async def test_a_scheduler_whose_cycles_all_fail_is_healthy_and_not_ready(server, monkeypatch):
    async with scheduler(server.url) as running:
        monkeypatch.setattr(type(running.daemon.cycles), "broken", "the last 5 cycles have failed")

        assert running.daemon.not_ready() == ["the last 5 cycles have failed"]
        assert running.daemon.not_healthy() == []
        assert running.metric("volcano_py_ready") == 0.0


async def test_a_pod_deleted_under_the_decision_is_not_bound(server):
    put_node(server, "n1", cpu=8)
    async with scheduler(server.url, period_s=0.1):
        server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=404, name="gang-0", times=1))
        put_job(server, "gang", 2)

        await until(lambda: len(placed(server)) == 2)


async def test_a_bind_with_unknown_outcome_keeps_its_room(server):
    put_node(server, "n1", cpu=1)
    server.faults.add(Fault("drop_after", verb="create", resource="pods/binding", times=1))
    server.faults.add(Fault("reply", verb="get", resource="pods", code=503))
    async with scheduler(server.url, binder=BinderOptions(attempts=2, retry_first_s=0.01, retry_cap_s=0.01)):
        put_job(server, "one", 1)
        put_job(server, "two", 1)

        await until(lambda: len(placed(server)) == 1)
        await stays(lambda: successes(server) <= 1 and len(placed(server)) == 1, seconds=0.3)
