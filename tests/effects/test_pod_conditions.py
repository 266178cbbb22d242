import random

import pytest

from tests.effects.objects import put_node, put_pod
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects import pod_conditions
from volcano_py.effects.binding import binding_body
from volcano_py.effects.pod_conditions import PodConditionOptions, PodConditionWriter
from volcano_py.kube.resource import PODS
from volcano_py.model.decisions import Bind, SetPodCondition
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.clock import RealClock


def conditions_of(server: ApiServer, name: str) -> list[dict]:
    pod = server.get("pods", name, "default")
    assert pod is not None
    return pod["status"].get("conditions", [])


def writes(server: ApiServer) -> int:
    return server.requests.count("patch", "pods/status")


@pytest.fixture
def a_writer(server, client, supervisor, write_queue_metrics):
    def shown(name: str) -> str:
        pod = server.get("pods", name.partition("/")[2], "default")
        return "" if pod is None else pod["metadata"]["resourceVersion"]

    def make(**more) -> PodConditionWriter:
        more = {"version_of": shown, "reason": lambda _: "shown", **more}
        writer = PodConditionWriter(client, write_queue_metrics, clock=RealClock(), rng=random.Random(1), **more)
        writer.start(supervisor)
        return writer

    return make


async def written(writer: PodConditionWriter, *conditions: SetPodCondition) -> None:
    for condition in conditions:
        writer.put(condition)
    assert await writer.drained(10)


async def test_the_reason_is_written_on_the_pod(server, a_writer):
    told = []
    condition = SetPodCondition(put_pod(server, "p0"), "Unschedulable", "0/5 nodes are available")

    await written(a_writer(on_news=told.append), condition)

    (found,) = conditions_of(server, "p0")
    assert (found["type"], found["status"], found["reason"], found["message"]) == (
        "PodScheduled",
        "False",
        "Unschedulable",
        "0/5 nodes are available",
    )
    assert told == [condition]


@pytest.mark.parametrize("signals", [False, True])
async def test_autoscalers_see_pods_of_gangs_that_would_have_room_if_asked_for(server, a_writer, signals):
    condition = SetPodCondition(put_pod(server, "p0"), "Schedulable", "once minAvailable is satisfied")

    await written(a_writer(options=PodConditionOptions(50, 50, only_unschedulable=signals)), condition)

    (found,) = conditions_of(server, "p0")
    assert found["reason"] == ("Unschedulable" if signals else "Schedulable")
    assert found["message"] == "once minAvailable is satisfied"


async def test_conditions_of_others_stay(server, client, a_writer):
    task = put_pod(server, "p0")
    body = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await client.patch(PODS, "p0", body, dict, namespace="default", subresource="status")

    await written(a_writer(), SetPodCondition(task, "Unschedulable", "no"))

    assert {condition["type"] for condition in conditions_of(server, "p0")} == {"Ready", "PodScheduled"}


async def test_a_pod_that_was_bound_meanwhile_gets_no_condition(server, a_writer):
    writer = a_writer(reason=lambda _: None)

    await written(writer, SetPodCondition(put_pod(server, "p0"), "Unschedulable", "no"))

    assert writes(server) == 0


async def test_a_pod_that_is_bound_before_its_turn_costs_nothing(server, a_writer):
    writer = a_writer()
    task = put_pod(server, "p0")

    writer.put(SetPodCondition(task, "Unschedulable", "no"))
    writer.discard(task)

    assert writer.backlog == 0
    assert writes(server) == 0


async def test_the_same_text_is_not_written_again(server, a_writer):
    writer = a_writer()
    condition = SetPodCondition(put_pod(server, "p0"), "Unschedulable", "no")
    await written(writer, condition)

    await written(writer, condition)

    assert writes(server) == 1


async def test_a_condition_repeated_during_its_write_is_not_written_again(server, a_writer):
    fault = server.faults.add(Fault("delay", verb="patch", resource="pods/status", delay_s=0.05))
    told = []
    writer = a_writer(on_news=told.append, options=PodConditionOptions(rate_per_s=50, burst=50))
    condition = SetPodCondition(put_pod(server, "p0"), "Unschedulable", "no")
    writer.put(condition)
    await until(lambda: fault.hits)

    await written(writer, condition)

    assert (writes(server), told) == (1, [condition])


async def test_a_condition_is_not_written_once_its_pod_is_bound(server, client, a_writer):
    fault = server.faults.add(Fault("delay", verb="patch", resource="pods/status", delay_s=0.2))
    waits = [True]
    writer = a_writer(
        reason=lambda _: "shown" if waits[0] else None, options=PodConditionOptions(rate_per_s=50, burst=50)
    )
    put_node(server, "n1")
    task = put_pod(server, "p0")
    writer.put(SetPodCondition(task, "Unschedulable", "no"))
    await until(lambda: fault.hits)

    await client.post_bytes(
        "/api/v1/namespaces/default/pods/p0/binding", binding_body(Bind(task, "n1", JobKey("default", "g")))
    )
    waits[0] = False

    assert await writer.drained(10)
    assert [condition["status"] for condition in conditions_of(server, "p0")] == ["True"]


async def test_a_condition_of_a_pod_that_was_changed_meanwhile_is_written_at_its_new_version(server, client, a_writer):
    fault = server.faults.add(Fault("delay", verb="patch", resource="pods/status", delay_s=0.2, times=1))
    writer = a_writer(options=PodConditionOptions(rate_per_s=50, burst=50))
    task = put_pod(server, "p0")
    writer.put(SetPodCondition(task, "Unschedulable", "no"))
    await until(lambda: fault.hits)

    await client.patch(PODS, "p0", {"metadata": {"annotations": {"a": "b"}}}, dict, namespace="default")

    assert await writer.drained(10)
    assert [condition["message"] for condition in conditions_of(server, "p0")] == ["no"]


async def test_another_pod_of_the_same_name_is_left_alone(server, a_writer):
    put_pod(server, "p0")

    await written(a_writer(), SetPodCondition(TaskRef("default", "p0", "uid-of-the-old-one"), "Unschedulable", "no"))

    assert conditions_of(server, "p0") == []


async def test_a_deleted_pod_causes_no_error(server, a_writer, registry):
    await written(a_writer(), SetPodCondition(TaskRef("default", "ghost", "uid"), "Unschedulable", "no"))

    labels = {"lane": "pod condition", "result": "obsolete"}
    assert registry.get_sample_value("volcano_py_lane_writes_total", labels) == 1


async def test_a_server_error_is_tried_again(server, a_writer):
    server.faults.add(Fault("reply", verb="patch", resource="pods/status", code=500, times=1))

    await written(a_writer(), SetPodCondition(put_pod(server, "p0"), "Unschedulable", "no"))

    assert conditions_of(server, "p0")[0]["message"] == "no"


async def test_a_first_reason_does_not_wait_behind_changed_ones(server, a_writer):
    """One changed reason is written in ten seconds."""
    slow = PodConditionOptions(rate_per_s=0.1, burst=1)
    tasks = [put_pod(server, f"p{number}") for number in range(4)]
    writer = a_writer(options=slow, reason=lambda task: "" if task.name == "p3" else "shown")

    for task in tasks:
        writer.put(SetPodCondition(task, "Unschedulable", "no"))

    await until(lambda: conditions_of(server, "p3"))
    assert sum(bool(conditions_of(server, f"p{number}")) for number in range(3)) <= 1


async def test_the_reasons_of_a_pod_are_written_in_order(server, a_writer):
    """The reason of the first write shows at once, while the second one is decided."""
    fault = server.faults.add(Fault("delay", verb="patch", resource="pods/status", delay_s=0.2, times=1))
    shows = [False]
    writer = a_writer(
        options=PodConditionOptions(rate_per_s=50, burst=50), reason=lambda _: "shown" if shows[0] else ""
    )
    task = put_pod(server, "p0")
    writer.put(SetPodCondition(task, "Unschedulable", "first"))
    await until(lambda: fault.hits)
    shows[0] = True

    writer.put(SetPodCondition(task, "Unschedulable", "second"))

    assert writer.backlog == 1  # one turn after the other
    assert await writer.drained(10)
    assert [condition["message"] for condition in conditions_of(server, "p0")] == ["second"]


async def test_binds_delay_a_first_reason_by_seconds_only(server, a_writer, monkeypatch):
    monkeypatch.setattr(pod_conditions, "_FIRST_EACH_S", 0.1)
    tasks = [put_pod(server, f"p{number}") for number in range(5)]
    options = PodConditionOptions(rate_per_s=50, burst=50, patience_s=60.0)
    writer = a_writer(options=options, hold=lambda: True, reason=lambda task: "shown" if task.name == "p4" else "")

    for task in tasks:
        writer.put(SetPodCondition(task, "Unschedulable", "no"))

    await until(lambda: all(conditions_of(server, f"p{number}") for number in range(4)))
    assert not conditions_of(server, "p4")  # a changed reason waits as long as its queue allows


async def test_new_numbers_are_written_without_an_event(server, a_writer):
    told = []
    writer = a_writer(on_news=told.append, reason=lambda _: "0/5 nodes are available: 5 Insufficient cpu")
    task = put_pod(server, "p0")

    await written(writer, SetPodCondition(task, "Unschedulable", "0/6 nodes are available: 6 Insufficient cpu"))
    assert (writes(server), told) == (1, [])

    other = SetPodCondition(task, "Unschedulable", "0/6 nodes are available: 6 Insufficient memory")
    await written(writer, other)
    assert (writes(server), told) == (2, [other])


async def test_a_reason_whose_answer_was_lost_is_told_although_the_watch_shows_it(server, a_writer):
    server.faults.add(Fault("drop_after", verb="patch", resource="pods/status", times=1))
    told = []

    def shown(_):
        return next((one["message"] for one in conditions_of(server, "p0")), "")

    writer = a_writer(on_news=told.append, reason=shown)
    condition = SetPodCondition(put_pod(server, "p0"), "Unschedulable", "no")
    await written(writer, condition)

    assert told == [condition]
