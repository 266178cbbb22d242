"""Gangs from creation to binding, with a real scheduler on an embedded API server."""

import asyncio
import time

import pytest

from tests.daemon.cluster import (
    CONF,
    GROUPS,
    QUEUES,
    comes_to_rest,
    condition,
    event_reasons,
    events,
    group,
    placed,
    put_group,
    put_job,
    put_node,
    put_pod,
    scheduler,
    set_phase,
    stays,
    successes,
)
from tests.effects.waiting import until
from volcano_py.conf.loader import parse_conf
from volcano_py.daemon import dispatch
from volcano_py.effects.pod_conditions import PodConditionOptions
from volcano_py.effects.podgroup_status import STARTING_S
from volcano_py.scheduler import resolve
from volcano_py.testing import a_pod, as_json


async def test_a_gang_that_fits_is_bound_whole_and_once(server):
    put_node(server, "n1", cpu=4)
    put_node(server, "n2", cpu=4)
    async with scheduler(server.url):
        put_job(server, "gang", 6)

        await until(lambda: len(placed(server)) == 6)

        assert successes(server) == 6


async def test_a_gang_that_is_enqueued_and_bound_at_once_is_written_once(server):
    put_node(server, "n1", cpu=8)
    async with scheduler(server.url):
        put_job(server, "gang", 6)

        await until(lambda: group(server, "gang").get("status", {}).get("phase") == "Running")

        assert server.requests.count("patch", GROUPS, 200) == 1


async def test_a_gang_whose_pods_start_one_after_another_is_written_once(server):
    put_node(server, "n1", cpu=8)
    async with scheduler(server.url) as running:
        put_job(server, "gang", 6)
        await until(lambda: len(placed(server)) == 6)
        begin = time.monotonic()
        for number in range(6):
            await asyncio.sleep(0.15)
            await set_phase(running, [f"gang-{number}"], "Running")

        await until(lambda: group(server, "gang").get("status", {}).get("running") == 6)
        elapsed_s = time.monotonic() - begin

        assert group(server, "gang")["status"]["phase"] == "Running"
        # On a busy machine the pods start more slowly than the write waits for them.
        assert server.requests.count("patch", GROUPS, 200) <= 1 + elapsed_s // (STARTING_S / 2)


@pytest.fixture
def statuses_wait(monkeypatch):
    """Let every status of a group that may wait do so for longer than a test waits for it."""
    for name in ("SETTLES_S", "BINDING_S", "STARTING_S", "NEW_TEXT_S"):
        monkeypatch.setattr(dispatch, name, 60.0)


@pytest.mark.usefixtures("statuses_wait")
async def test_a_gang_that_is_enqueued_and_waits_for_its_pods_is_written_at_once(server):
    put_node(server, "n1", cpu=8)
    async with scheduler(server.url):
        put_group(server, "gang", 6)

        await until(lambda: group(server, "gang").get("status", {}).get("phase") == "Inqueue")


@pytest.mark.usefixtures("statuses_wait")
async def test_without_the_enqueue_action_a_group_is_enqueued_before_it_has_pods(server):
    put_node(server, "n1", cpu=8)
    policy = resolve(parse_conf(CONF.replace("enqueue, ", ""), "test.conf"))
    async with scheduler(server.url, policy=policy):
        put_group(server, "gang", 6)

        await until(lambda: group(server, "gang").get("status", {}).get("phase") == "Inqueue")


async def test_a_gang_that_does_not_fit_waits_and_says_why(server):
    put_node(server, "n1", cpu=5)
    async with scheduler(server.url):
        put_job(server, "gang", 6)

        await until(lambda: group(server, "gang").get("status", {}).get("conditions"))
        await until(lambda: condition(server, "gang-0"))

        (unschedulable,) = group(server, "gang")["status"]["conditions"]
        assert (unschedulable["type"], unschedulable["status"]) == ("Unschedulable", "True")
        assert "6" in unschedulable["message"]
        assert condition(server, "gang-0")["status"] == "False"
        await until(lambda: "Unschedulable" in event_reasons(server, "PodGroup", "gang"))
        await until(lambda: "FailedScheduling" in event_reasons(server, "Pod", "gang-0"))
        assert placed(server) == {}


async def test_a_gang_whose_pods_arrive_one_by_one_is_announced_once_without_waiting_for_a_period(server):
    put_node(server, "n1", cpu=4)
    async with scheduler(server.url, period_s=60.0):
        put_group(server, "gang", 6)
        for number in range(6):
            put_pod(server, f"gang-{number}", "gang")
            await asyncio.sleep(0.15)  # longer than the debounce: each pod has a cycle of its own

        await until(lambda: "Unschedulable" in event_reasons(server, "PodGroup", "gang"))
        await until(lambda: all(condition(server, f"gang-{number}") for number in range(6)))
        await comes_to_rest(server.requests.writes, seconds=0.3)

        said = [event["message"] for event in events(server, "PodGroup", "gang") if event["reason"] == "Unschedulable"]
        assert len(said) == 1
        assert said[0].startswith("6/6 tasks in gang unschedulable")
        assert server.requests.count("create", "events", 201) == 7  # of the group, and one of each pod
        assert server.requests.count("patch", "pods/status", 200) == 6


async def test_a_new_node_is_noticed_at_once(server):
    put_node(server, "n1", cpu=5)
    async with scheduler(server.url, period_s=60.0):
        put_job(server, "gang", 6)
        await until(lambda: group(server, "gang").get("status", {}).get("conditions"))

        put_node(server, "n2", cpu=1)

        await until(lambda: len(placed(server)) == 6)


async def test_a_waiting_gang_costs_no_writes_once_its_condition_is_set(server):
    put_node(server, "n1", cpu=5)
    async with scheduler(server.url, period_s=0.05) as running:
        put_job(server, "gang", 3, cpu="2")
        await until(lambda: all(condition(server, f"gang-{number}") for number in range(3)))
        await until(lambda: "FailedScheduling" in event_reasons(server, "Pod", "gang-2"))
        await comes_to_rest(server.requests.writes, seconds=0.3)
        before, cycles = server.requests.writes(), running.daemon.cycles.cycles

        await until(lambda: running.daemon.cycles.cycles > cycles + 10)

        assert server.requests.writes() == before


async def test_nothing_pending_means_no_cycles(server):
    put_node(server, "n1")
    async with scheduler(server.url, period_s=0.05) as running:
        put_job(server, "gang", 2)
        await until(lambda: len(placed(server)) == 2 and not len(running.daemon.cache.binds.ledger))
        await until(lambda: group(server, "gang").get("status", {}).get("phase") == "Running")
        # Six periods without a cycle, once what the binds have changed is written.
        await comes_to_rest(lambda: running.daemon.cycles.cycles, seconds=0.3)


async def test_scheduled_pods_have_an_event(server):
    put_node(server, "n1")
    async with scheduler(server.url):
        put_job(server, "gang", 2)

        await until(lambda: event_reasons(server, "Pod", "gang-1") == {"Scheduled"})

        assert condition(server, "gang-1").get("status") != "False"


async def test_pods_of_other_schedulers_are_left_alone_and_counted(server):
    put_node(server, "n1", cpu=4)
    put_pod(server, "theirs", cpu="3", node="n1", schedulerName="default-scheduler")
    put_pod(server, "waiting", cpu="1", schedulerName="default-scheduler")
    async with scheduler(server.url):
        put_job(server, "gang", 2, minimum=1)

        await until(lambda: len(placed(server, "gang")) == 1)
        await stays(lambda: len(placed(server)) == 2, seconds=0.3)


async def test_queues_that_must_exist_are_created(server):
    async with scheduler(server.url):
        await until(lambda: server.get(QUEUES, "root") and server.get(QUEUES, "default"))


async def test_the_phase_follows_the_pods(server):
    put_node(server, "n1")
    async with scheduler(server.url) as running:
        put_job(server, "gang", 2)
        await until(lambda: len(placed(server)) == 2)

        await set_phase(running, ["gang-0", "gang-1"], "Running")
        await until(lambda: group(server, "gang").get("status", {}).get("running") == 2)
        await set_phase(running, ["gang-0", "gang-1"], "Succeeded")

        await until(lambda: group(server, "gang").get("status", {}).get("phase") == "Completed")


async def test_an_unreadable_pod_blocks_nobody_and_its_owner_gets_an_event(server):
    put_node(server, "n1")
    async with scheduler(server.url):
        put_group(server, "bad", 1)
        server.faults.inject(as_json(a_pod("bad-0", group="bad", cpu="a lot")))
        put_job(server, "good", 2)

        await until(lambda: len(placed(server, "good")) == 2)
        await until(lambda: "Unreadable" in event_reasons(server, "Pod", "bad-0"))


async def test_unreadable_objects_are_counted(server):
    put_node(server, "n1")
    async with scheduler(server.url) as running:
        put_node(server, "bad", cpu=1)
        node = server.get("nodes", "bad")
        assert node is not None
        status = {"allocatable": {"cpu": "many"}}
        server.faults.inject({**node, "metadata": {**node["metadata"]}, "status": status})

        await until(lambda: running.metric("volcano_py_quarantined_objects", {"resource": "nodes"}) == 1)


async def test_pods_that_wait_since_before_are_signalled_to_autoscalers_once_that_is_asked_for(server):
    put_node(server, "n1", cpu=4)
    put_job(server, "gang", 2, cpu="3")

    def reasons() -> set[str]:
        return {condition(server, f"gang-{number}").get("reason", "") for number in range(2)}

    async with scheduler(server.url):
        await until(lambda: "Schedulable" in reasons())
    asked = PodConditionOptions(50, 50, only_unschedulable=True)
    async with scheduler(server.url, pod_conditions=asked):
        await until(lambda: reasons() == {"Unschedulable"})
        before = server.requests.count("patch", "pods/status")

        await stays(lambda: server.requests.count("patch", "pods/status") == before, seconds=2)
