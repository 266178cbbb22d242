import asyncio
import random
from typing import Any

import pytest

from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects.queue_status import QueueStatusWriter
from volcano_py.kube import errors
from volcano_py.runtime.clock import RealClock
from volcano_py.testing import a_queue, manifest
from volcano_py.writing.write_queue import WriteQueueOptions

QUEUES = "queues.scheduling.volcano.sh"
QUICK = WriteQueueOptions(rate_per_s=1000, burst=100)


@pytest.fixture
def shown() -> dict[str, dict[str, float]]:
    return {"q": {}}


@pytest.fixture
def versions() -> dict[str, str]:
    """Versions that the watch shows; without one it shows the present version."""
    return {}


@pytest.fixture
async def writer(server, client, supervisor, write_queue_metrics, shown, versions) -> QueueStatusWriter:
    def version_of(name: str) -> str:
        queue = server.get(QUEUES, name)
        return versions.get(name) or (queue["metadata"]["resourceVersion"] if queue else "")

    found = QueueStatusWriter(
        client,
        write_queue_metrics,
        clock=RealClock(),
        rng=random.Random(1),
        shown=shown.get,
        version_of=version_of,
        options=QUICK,
    )
    found.start(supervisor)
    return found


def put_queue(server: ApiServer, name: str = "q") -> None:
    server.create(manifest(a_queue(name)))


def allocated(server: ApiServer, name: str = "q") -> dict[str, Any]:
    queue = server.get(QUEUES, name)
    assert queue is not None
    found: dict[str, Any] = queue.get("status", {}).get("allocated", {})
    return found


def writes(server: ApiServer) -> int:
    return server.requests.count("patch", f"{QUEUES}/status")


async def hold(writer: QueueStatusWriter, **queues: dict[str, float]) -> None:
    writer.put(queues)
    assert await writer.drained(10)


async def test_what_a_queue_holds_is_written_as_quantities(server, writer):
    put_queue(server)

    await hold(writer, q={"cpu": 1500.0, "memory": 2.0 * 1024**3, "pods": 3.0, "nvidia.com/gpu": 2000.0})

    assert allocated(server) == {"cpu": "1500m", "memory": "2Gi", "pods": "3", "nvidia.com/gpu": "2"}


async def test_it_is_written_once_whether_or_not_the_watch_has_shown_it(server, writer, shown, versions):
    put_queue(server)
    held = {"cpu": 1000.0}

    versions["q"] = "1"
    await hold(writer, q=held)
    await hold(writer, q=held)
    shown["q"] = held
    del versions["q"]
    await hold(writer, q=held)

    assert writes(server) == 1


async def test_a_queue_gets_back_what_the_watch_still_shows(server, writer, versions):
    put_queue(server)
    versions["q"] = "1"  # the watch says nothing from now on
    await hold(writer, q={"cpu": 1000.0})

    await hold(writer, q={})
    assert allocated(server) == {"cpu": "0", "memory": "0"}

    await hold(writer, q={})
    assert writes(server) == 2


async def test_a_status_repeated_during_its_write_is_not_written_again(server, writer, versions):
    put_queue(server)
    versions["q"] = "1"  # the watch shows the write later
    fault = server.faults.add(Fault("delay", verb="patch", resource=f"{QUEUES}/status", delay_s=0.05))
    writer.put({"q": {"cpu": 1000.0}})
    await until(lambda: fault.hits)

    await hold(writer, q={"cpu": 1000.0})

    assert writes(server) == 1


async def test_resources_no_longer_held_are_removed(server, writer, shown):
    put_queue(server)
    await hold(writer, q={"cpu": 1000.0, "nvidia.com/gpu": 1000.0})
    shown["q"] = {"cpu": 1000.0, "nvidia.com/gpu": 1000.0}

    await hold(writer, q={})

    assert allocated(server) == {"cpu": "0", "memory": "0"}


async def test_a_queue_that_never_held_anything_costs_no_write(server, writer):
    put_queue(server)

    await hold(writer, q={})

    assert writes(server) == 0


async def test_a_status_changed_by_another_writer_is_corrected(server, writer, shown):
    put_queue(server)
    await hold(writer, q={"cpu": 1000.0})
    shown["q"] = {"cpu": 1000.0}
    await hold(writer, q={"cpu": 1000.0})

    shown["q"] = {"cpu": 7000.0}
    await hold(writer, q={"cpu": 1000.0})

    assert writes(server) == 2


async def test_a_watch_that_was_late_is_compared_with_what_the_last_cycle_said(server, writer, shown):
    """No other cycle comes (seed 23008223)."""
    put_queue(server)
    shown["q"] = {"cpu": 1000.0}
    writer.put({"q": {"cpu": 1000.0}})

    for name, amounts in (("q", {"cpu": 1000.0}), ("other", {"cpu": 1.0}), ("q", {"cpu": 3000.0})):
        shown[name] = amounts
        writer.compare(name)
        assert await writer.drained(10)

    assert writes(server) == 1
    assert allocated(server)["cpu"] == "1"


async def test_queues_that_the_api_server_does_not_have_are_left_alone(server, writer):
    await hold(writer, unknown={"cpu": 1000.0}, q={"cpu": 1000.0})

    assert writes(server) == 1  # it was shown and is gone by now


async def test_a_pushed_back_request_is_retried(server, writer):
    put_queue(server)
    server.faults.add(Fault("reply", verb="patch", code=429, times=1, retry_after_s=0))

    await hold(writer, q={"cpu": 1000.0})

    assert allocated(server) == {"cpu": "1", "memory": "0"}


async def test_what_is_not_so_any_more_is_not_tried_again(server, writer, client, monkeypatch):
    """The first attempt is under way, and will fail, when the queue holds again what the watch shows of it."""
    put_queue(server)
    begun, ends = asyncio.Event(), asyncio.Event()
    patch = client.patch

    async def fails_once(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(client, "patch", patch)
        begun.set()
        await ends.wait()
        raise errors.ServerError("patch", "queues/q", "not now")

    monkeypatch.setattr(client, "patch", fails_once)
    writer.put({"q": {"cpu": 2000.0}})
    await begun.wait()
    writer.put({"q": {}})
    ends.set()

    assert await writer.drained(10)
    assert allocated(server) == {}


async def test_what_was_true_when_its_write_began_is_corrected_after_it(server, writer, versions):
    """No cycle runs while nothing waits, so nobody else would ask for it."""
    put_queue(server)
    server.faults.add(Fault("delay", delay_s=0.2, verb="patch", times=1))
    writer.put({"q": {"cpu": 2000.0}})
    await until(lambda: writer._write_queue.backlog)
    await asyncio.sleep(0.1)
    versions["q"] = "1"  # the watch is late

    writer.put({"q": {}})

    assert await writer.drained(10)
    assert allocated(server) == {"cpu": "0", "memory": "0"}
