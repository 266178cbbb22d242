import random

import pytest

from tests.effects.objects import put_pod
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects.nominations import NominationWriter
from volcano_py.model.decisions import Nominate
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import RealClock
from volcano_py.writing.write_queue import WriteQueueOptions


@pytest.fixture
def refused() -> list[TaskRef]:
    return []


@pytest.fixture
def a_writer(client, supervisor, write_queue_metrics, refused):
    def make(**more) -> NominationWriter:
        more = {"waits": lambda _: True, "on_refused": refused.append, **more}
        writer = NominationWriter(client, write_queue_metrics, clock=RealClock(), rng=random.Random(1), **more)
        writer.start(supervisor)
        return writer

    return make


def nominated(server: ApiServer, name: str) -> str:
    pod = server.get("pods", name, "default")
    assert pod is not None
    node: str = pod["status"].get("nominatedNodeName", "")
    return node


async def written(writer: NominationWriter, *nominations: Nominate) -> None:
    for nomination in nominations:
        writer.put(nomination)
    assert await writer.drained(10)


async def test_the_nomination_is_on_the_pod_until_it_is_removed(server, a_writer):
    task, writer = put_pod(server, "p0"), a_writer()

    await written(writer, Nominate(task, "n1"))
    assert nominated(server, "p0") == "n1"
    await written(writer, Nominate(task, ""))

    assert nominated(server, "p0") == ""


async def test_another_pod_of_the_same_name_is_left_alone(server, a_writer, refused):
    put_pod(server, "p0")
    before = TaskRef("default", "p0", "an-earlier-uid")

    await written(a_writer(), Nominate(before, "n1"))

    assert nominated(server, "p0") == ""
    assert refused == [before]


async def test_who_asks_is_told_what_was_written(server, a_writer):
    told: list[TaskRef] = []
    task = put_pod(server, "p0")

    await written(
        a_writer(on_written=told.append), Nominate(task, "n1"), Nominate(TaskRef("default", "gone", "u"), "n1")
    )

    assert told == [task]


async def test_a_pod_bound_meanwhile_costs_no_write(server, a_writer):
    await written(a_writer(waits=lambda _: False), Nominate(put_pod(server, "p0"), "n1"))

    assert server.requests.count("patch", "pods/status") == 0


async def test_a_pushed_back_request_is_retried(server, a_writer):
    task = put_pod(server, "p0")
    server.faults.add(Fault("reply", verb="patch", resource="pods/status", code=429, times=1, retry_after_s=0))

    await written(a_writer(), Nominate(task, "n1"))

    assert nominated(server, "p0") == "n1"


async def test_a_withdrawal_that_no_longer_counts_is_not_written(server, a_writer):
    task, writer = put_pod(server, "p0"), a_writer(still_counts=lambda _, node: bool(node))

    await written(writer, Nominate(task, "n1"))
    await written(writer, Nominate(task, ""))

    assert nominated(server, "p0") == "n1"


async def test_a_nomination_beyond_the_capacity_counts_until_it_expires(server, a_writer, refused):
    """Its victims may be gone already; somebody else could get their room."""
    full = WriteQueueOptions(rate_per_s=1, burst=1, capacity=1, delay_s=60)
    writer = a_writer(options=full)
    first, second = (Nominate(put_pod(server, name), "n1") for name in ("p0", "p1"))

    writer.put(first)
    writer.put(second)

    assert refused == []
    assert writer.holds(first.task)
    assert not writer.holds(second.task)
