"""Replicas that read notes believe their watches only where no queue changes, in whatever order things happen."""

import asyncio
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import yaml

from tests.admission.server.managing import CONFIGURATIONS
from volcano_py.admission.changing_queues import ChangingQueues, closes, new_parent
from volcano_py.admission.contract import Request
from volcano_py.admission.injection import Configuration, ConfigurationView
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.admission.queue_guard import QUEUE_PATH, QueueGuard, is_complete
from volcano_py.admission.queue_notes import QueueNotes, note_after
from volcano_py.api.meta import ObjectMeta
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.runtime.clock import FakeClock


class Notes(QueueNotes):
    """Notes in memory; reads and writes take as long as the test says."""

    def __init__(self, shared: dict[str, str], clock: FakeClock, rng: random.Random, slowest_s: float) -> None:
        self._shared, self._time, self._rng, self._slowest_s = shared, clock, rng, slowest_s
        self.reads = 0

    async def _pause(self) -> None:
        await self._time.sleep(self._rng.random() * self._slowest_s)

    async def read(self) -> Mapping[str, str]:
        self.reads += 1
        await self._pause()
        found = dict(self._shared)
        await self._pause()
        return found

    async def add(self, queue: str, parent: str = "", *, closes: bool = False) -> None:
        await self._pause()
        before = self._shared.get(queue, "")
        self._shared[queue] = note_after(before, self._time.monotonic(), parent, closes=closes)
        await self._pause()


class ConfigMaps(ApiClient):
    """The one ConfigMap of the notes, in memory."""

    def __init__(self) -> None:
        super().__init__(Credentials("http://127.0.0.1:1"))
        self.data: dict[str, str] = {}

    async def get(self, *given: Any, **_: Any) -> Any:
        return msgspec.convert({"metadata": {"name": given[1]}, "data": self.data}, given[2])

    async def patch(self, *given: Any, **_: Any) -> Any:
        merged = {**self.data, **given[2]["data"]}
        self.data = {queue: text for queue, text in merged.items() if text is not None}


async def settle() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


async def run(clock: FakeClock, seconds: float, step: float = 0.02) -> None:
    for _ in range(round(seconds / step)):
        clock.advance(step)
        await settle()


def deletion(queue: str) -> Request:
    return Request("DELETE", "", queue, {}, {"metadata": {"name": queue}})


def child_of(parent: str, name: str = "child") -> Request:
    return Request("CREATE", "", name, {"metadata": {"name": name}, "spec": {"parent": parent}})


@pytest.mark.parametrize("seed", range(60))
async def test_no_replica_believes_its_watch_of_a_queue_whose_change_was_admitted(seed: int) -> None:
    """The watches never show anything here, so from the first admission on a queue must not count as stable."""
    rng, clock, shared = random.Random(seed), FakeClock(), dict[str, str]()
    slowest_s = rng.choice([0.001, 0.05, 0.3, 1.0])
    replicas = [ChangingQueues(Notes(shared, clock, rng, slowest_s), clock, lambda: True) for _ in range(3)]
    admitted: set[str] = set()
    wrong: list[str] = []
    believed = 0

    async def change() -> None:
        for _ in range(6):
            await clock.sleep(rng.random() * 2)
            queue = f"q{rng.randrange(4)}"
            request = rng.choice([deletion(queue), child_of(queue, f"child-{rng.randrange(9)}")])
            await rng.choice(replicas).announce(request)
            admitted.add(queue)

    async def ask() -> None:
        nonlocal believed
        for _ in range(40):
            await clock.sleep(rng.random() * 0.4)
            queue, asked_at = f"q{rng.randrange(4)}", set(admitted)
            if await rng.choice(replicas).stable([queue]):
                believed += 1
                if queue in asked_at:
                    wrong.append(queue)

    tasks = [asyncio.create_task(one) for one in (change(), change(), ask(), ask(), ask())]
    for _ in range(6000):
        clock.advance(0.02)
        await settle()
        if all(task.done() for task in tasks):
            break
    await asyncio.wait_for(asyncio.gather(*tasks), 5)

    assert wrong == []
    assert believed > 0 or slowest_s >= 0.3


async def test_a_replica_whose_clock_is_ahead_drops_no_note_that_is_new() -> None:
    client, late, ahead = ConfigMaps(), FakeClock(), FakeClock(datetime(2030, 1, 1, tzinfo=UTC))
    one, other = QueueNotes(client, "ns", late), QueueNotes(client, "ns", ahead)

    await one.add("closing", closes=True)
    await other.add("other", closes=True)
    assert set(await other.read()) == {"closing", "other"}

    ahead.advance(601)
    await other.add("third", closes=True)
    assert set(client.data) == {"third"}

    late.advance(601)
    await one.add("fourth", closes=True)  # it has not seen the third one for long
    assert set(client.data) == {"third", "fourth"}


async def test_notes_are_read_five_times_a_second_however_many_ask() -> None:
    clock = FakeClock()
    notes = Notes({}, clock, random.Random(1), 0.01)
    replica = ChangingQueues(notes, clock, lambda: True)
    first = asyncio.create_task(replica.stable(["q"]))
    await run(clock, 0.1)
    assert await first
    waited = 0
    for _ in range(500):
        task = asyncio.create_task(replica.stable(["q"]))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waited += not task.done()
        await run(clock, 0.02)
        assert await task

    assert waited == 0
    assert notes.reads <= 51


async def test_a_queue_counts_as_changing_for_minutes_and_not_for_ever() -> None:
    clock, shared = FakeClock(), dict[str, str]()
    one, other = (ChangingQueues(Notes(shared, clock, random.Random(1), 0), clock, lambda: True) for _ in range(2))
    task = asyncio.create_task(one.announce(deletion("q")))
    await run(clock, 1)
    await task

    for replica in (one, other):
        assert not await replica.stable(["q"])
        assert await replica.stable(["another"])
    await run(clock, 150, step=1)
    assert not await other.stable(["q"])
    await run(clock, 60, step=1)
    assert await other.stable(["q"])
    assert await one.stable(["q"])


async def test_a_second_change_of_the_same_queue_need_not_wait() -> None:
    clock, shared = FakeClock(), dict[str, str]()
    replica = ChangingQueues(Notes(shared, clock, random.Random(1), 0), clock, lambda: True)
    began = clock.monotonic()
    task = asyncio.create_task(replica.announce(child_of("p", "a")))
    await run(clock, 1, step=0.01)
    await task
    waited = clock.sleepers
    task = asyncio.create_task(replica.announce(child_of("p", "b")))
    await settle()

    assert (waited, clock.sleepers, task.done()) == (0, 0, True)
    assert clock.monotonic() - began < 1.1
    assert sorted(shared) == ["a", "b"]


async def test_a_replica_that_api_servers_do_not_tell_of_every_change_believes_no_watch() -> None:
    clock = FakeClock()
    notes = Notes({}, clock, random.Random(1), 0)
    replica = ChangingQueues(notes, clock, lambda: False)

    assert not await replica.stable(["q"])
    assert notes.reads == 0


@pytest.mark.parametrize(
    ("request_", "parent", "closing"),
    [
        (child_of("p"), "p", False),
        (child_of("root"), "", False),
        (Request("UPDATE", "", "q", {"spec": {"parent": "b"}}, {"spec": {"parent": "a"}}), "b", False),
        (Request("UPDATE", "", "q", {"spec": {"parent": "a"}}, {"spec": {"parent": "a"}}), "", False),
        (deletion("q"), "", True),
        (Request("UPDATE", "", "q", {"status": {"state": "Closing"}}, {"status": {"state": "Open"}}), "", True),
        (Request("UPDATE", "", "q", {}, {"status": {"state": "Open"}}), "", True),
        (Request("UPDATE", "", "q", {"status": {"state": "Open"}}, {"status": {"state": "Closed"}}), "", False),
        (
            Request("UPDATE", "", "q", {"status": {"state": "Open", "running": 1}}, {"status": {"state": "Open"}}),
            "",
            False,
        ),
    ],
)
def test_what_is_noted_of_a_change(request_: Request, parent: str, closing: bool) -> None:
    assert (new_parent(request_), closes(request_)) == (parent, closing)


# Whether API servers tell of every change


def written() -> dict[str, Any]:
    documents = yaml.safe_load_all((CONFIGURATIONS / "configurations.yaml").read_text())
    name = WEBHOOKS[QUEUE_PATH].configuration
    return next(document for document in documents if document["metadata"]["name"] == name)


def configuration(webhooks: list[dict[str, Any]]) -> Configuration:
    return Configuration(ObjectMeta(name=WEBHOOKS[QUEUE_PATH].configuration), webhooks)


def test_the_manifests_have_every_change_reviewed() -> None:
    assert is_complete(configuration(written()["webhooks"]))


@pytest.mark.parametrize(
    ("index", "change"),
    [
        (0, {"failurePolicy": "Ignore"}),
        (1, {"failurePolicy": "Ignore"}),
        (0, {"objectSelector": {"matchLabels": {"a": "b"}}}),
        (0, {"matchConditions": [{"name": "x", "expression": "true"}]}),
        (1, {"matchConditions": [{"name": "x", "expression": "object.status.state == 'Closed'"}]}),
        (0, {"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]}]}),
        (1, {"rules": []}),
        (1, {"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]}),
    ],
)
def test_a_configuration_that_lets_a_change_through_is_not_complete(index: int, change: dict[str, Any]) -> None:
    webhooks = written()["webhooks"]
    webhooks[index].update(change)

    assert not is_complete(configuration(webhooks))
    assert not is_complete(configuration(written()["webhooks"][:1]))


def test_a_guard_holds_a_second_after_the_configuration_was_complete() -> None:
    clock, view = FakeClock(), ConfigurationView()
    guard = QueueGuard(view, clock)

    def put(webhooks: list[dict[str, Any]]) -> None:
        view.by_name[WEBHOOKS[QUEUE_PATH].configuration] = configuration(webhooks)
        guard.look()

    guard.look()
    assert not guard.holds()
    put(written()["webhooks"])
    assert not guard.holds()
    clock.advance(0.6)
    put(written()["webhooks"])  # such as with another certificate
    clock.advance(0.6)
    assert guard.holds()
    put(written()["webhooks"][:1])
    assert not guard.holds()
