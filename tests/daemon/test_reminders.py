"""A pod that waits for hours still shows an event that says why; the events of many pods are spread over time."""

import asyncio

import msgspec

from volcano_py.daemon import reminders
from volcano_py.daemon.reminders import ROUND_S, Reminders
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import a_cluster, a_node, a_pod, deleted, modified

WHY = "0/1 nodes are unavailable: 1 Insufficient cpu."


class Night:
    """A cluster whose pods wait, and a clock."""

    def __init__(self, *objects):
        self.clock = FakeClock()
        self.cache = a_cluster(a_node("n1", cpu=1), *objects, clock=self.clock)
        self.recorded: list[RecordEvent] = []
        self.reminders = Reminders(self.cache.store, self.recorded.append, clock=self.clock)

    def passes(self, seconds):
        """Look every ten seconds, and return the names of the pods that were told about."""
        found = []
        for _ in range(int(seconds / 10)):
            self.clock.advance(10)
            found += [event.name for event in self.reminders.due()]
        return found


def waiting(name, **more):
    return a_pod(name, cpu=2, why_pending=WHY, **more)


def nominated(pod):
    """Return a pod for which its scheduler has evicted others on n1."""
    return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name="n1"))


def test_a_pod_that_waits_is_told_about_once_in_a_round():
    night = Night(waiting("p0"), waiting("p1"))

    assert night.passes(ROUND_S - 10) == []  # their first events are still there
    assert sorted(night.passes(ROUND_S)) == ["p0", "p1"]
    assert sorted(night.passes(ROUND_S)) == ["p0", "p1"]


def test_the_event_says_what_the_condition_says():
    night = Night(waiting("p0"))
    night.clock.advance(ROUND_S)

    (event,) = night.reminders.due()

    assert (event.kind, event.name, event.type, event.reason) == ("Pod", "p0", "Warning", "FailedScheduling")
    assert event.message == WHY


def test_only_pods_that_wait_for_us_are_told_about():
    gates = {"schedulingGates": [{"name": "example.com/later"}]}
    night = Night(
        waiting("gated", spec=gates),
        waiting("foreign", scheduler="default-scheduler"),
        nominated(waiting("foreign-nominated", scheduler="default-scheduler")),
        waiting("placed", node="n1"),
        a_pod("nothing-shown", cpu=2),
        waiting("new", created=2 * ROUND_S - 60),
        waiting("bound-meanwhile"),
        waiting("removed-meanwhile"),
    )
    night.passes(ROUND_S)
    modified(night.cache, a_pod("bound-meanwhile", cpu=2, node="n1"))
    deleted(night.cache, waiting("removed-meanwhile"))

    assert night.passes(ROUND_S) == []


def test_the_events_of_many_pods_are_spread_over_the_round():
    night = Night(*(waiting(f"p{number}") for number in range(1000)))
    night.passes(ROUND_S)

    told = [len(night.passes(10)) for _ in range(int(ROUND_S / 10) + 1)]

    assert (sum(told), max(told)) == (1000, 4)


def test_with_too_many_pods_a_round_takes_longer():
    night = Night(*(waiting(f"p{number}") for number in range(300)))
    night.passes(ROUND_S)
    night.reminders.due()  # the next round begins
    night.clock.advance(ROUND_S)

    assert [len(night.reminders.due()) for _ in range(4)] == [100, 100, 100, 0]


async def test_it_looks_every_ten_seconds():
    night = Night(waiting("p0"))
    running = asyncio.create_task(night.reminders.run())
    for _ in range(int(ROUND_S / 10) + 1):
        await asyncio.sleep(0)
        night.clock.advance(10)
    await asyncio.sleep(0)
    running.cancel()

    assert [event.name for event in night.recorded] == ["p0"]


def test_after_a_long_pause_a_look_is_bounded(monkeypatch):
    monkeypatch.setattr(reminders, "_ROWS_AT_ONCE", 20)
    night = Night(*(waiting(f"p{number}") for number in range(50)))
    night.clock.advance(ROUND_S)  # the process was stopped

    assert [len(night.reminders.due()) for _ in range(4)] == [20, 20, 10, 0]
