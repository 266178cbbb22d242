import random

import pytest

from tests.effects.objects import put_pod
from volcano_py.api import keys
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects.queue_gates import GateLifter
from volcano_py.model.decisions import LiftGate
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import RealClock

GATES = [{"name": "example.com/data"}, {"name": keys.QUEUE_GATE}]


@pytest.fixture
def a_writer(client, supervisor, write_queue_metrics):
    def make(**more) -> GateLifter:
        more = {"waits": lambda _: True, **more}
        writer = GateLifter(client, write_queue_metrics, clock=RealClock(), rng=random.Random(1), **more)
        writer.start(supervisor)
        return writer

    return make


def gates(server: ApiServer, name: str) -> list[str]:
    pod = server.get("pods", name, "default")
    assert pod is not None
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


async def lifted(writer: GateLifter, task: TaskRef) -> None:
    writer.put(LiftGate(task))
    assert await writer.drained(10)


async def test_the_gate_is_replaced_by_an_annotation_and_other_gates_stay(server, a_writer):
    task = put_pod(server, "p0", schedulingGates=GATES)

    await lifted(a_writer(), task)

    assert gates(server, "p0") == ["example.com/data"]
    assert server.get("pods", "p0", "default")["metadata"]["annotations"][keys.QUEUE_GATE] == "true"


async def test_another_pod_of_the_same_name_is_left_alone(server, a_writer):
    put_pod(server, "p0", schedulingGates=GATES)

    await lifted(a_writer(), TaskRef("default", "p0", "an-earlier-uid"))

    assert keys.QUEUE_GATE in gates(server, "p0")


async def test_a_conflict_is_tried_again(server, a_writer):
    server.faults.add(Fault("reply", verb="patch", resource="pods", code=409, times=1))
    task = put_pod(server, "p0", schedulingGates=[{"name": keys.QUEUE_GATE}])

    writer = a_writer()
    writer.put(LiftGate(task))
    assert await writer.drained(10)

    assert server.get("pods", "p0", "default")["spec"].get("schedulingGates", []) == []


async def test_a_pod_that_no_longer_waits_costs_no_write(server, a_writer):
    task = put_pod(server, "p0", schedulingGates=GATES)

    await lifted(a_writer(waits=lambda _: False), task)

    assert server.requests.count("patch", "pods") == 0


async def test_a_pushed_back_request_is_retried(server, a_writer):
    task = put_pod(server, "p0", schedulingGates=GATES)
    server.faults.add(Fault("reply", verb="patch", resource="pods", code=429, times=1, retry_after_s=0))

    await lifted(a_writer(), task)

    assert keys.QUEUE_GATE not in gates(server, "p0")
