import asyncio
import random

import pytest

from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.kube import errors
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import RealClock
from volcano_py.writing.events import EventRecorder
from volcano_py.writing.write_queue import WriteQueueOptions

SCHEDULED = RecordEvent(
    "Pod", "default", "p0", "uid-p0", "Normal", "Scheduled", "Successfully assigned default/p0 to n1"
)
UNREADY = RecordEvent("PodGroup", "default", "g1", "uid-g1", "Warning", "Unschedulable", "1/6 tasks")


@pytest.fixture
def a_recorder(client, supervisor, write_queue_metrics):
    def make(**more) -> EventRecorder:
        recorder = EventRecorder(
            client, write_queue_metrics, component="volcano", clock=RealClock(), rng=random.Random(1), **more
        )
        recorder.start(supervisor)
        return recorder

    return make


async def recorded(recorder: EventRecorder, *events: RecordEvent) -> None:
    for event in events:
        recorder.record(event)
    assert await recorder.drained(10)


def events(server: ApiServer) -> list[dict]:
    return server.list("events", "default")


async def test_an_event_has_reason_object_and_source(server, a_recorder):
    await recorded(a_recorder(), SCHEDULED)

    (event,) = events(server)
    assert (event["type"], event["reason"], event["count"]) == ("Normal", "Scheduled", 1)
    assert event["message"] == "Successfully assigned default/p0 to n1"
    assert event["source"] == {"component": "volcano"}
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "p0",
        "uid": "uid-p0",
    }


async def test_the_group_version_of_a_podgroup_is_its_own(server, a_recorder):
    await recorded(a_recorder(), UNREADY)

    assert events(server)[0]["involvedObject"]["apiVersion"] == "scheduling.volcano.sh/v1beta1"


async def test_a_repeat_raises_the_count(server, a_recorder):
    recorder = a_recorder()
    await recorded(recorder, UNREADY)

    await recorded(recorder, UNREADY)
    await recorded(recorder, UNREADY)

    (event,) = events(server)
    assert event["count"] == 3


class Forgetful:
    """A server that answers patches late, and knows none of the events."""

    outage = None

    def __init__(self):
        self.created = 0

    async def patch(self, *args, **options):
        await asyncio.sleep(0.1)
        raise errors.NotFound("patch", "/api/v1/namespaces/default/events/e", "gone", status=404)

    async def post_bytes(self, *args, **options):
        self.created += 1
        return b""


async def test_an_event_evicted_from_memory_during_its_repeat_is_written_as_new(
    monkeypatch, supervisor, write_queue_metrics
):
    monkeypatch.setattr("volcano_py.writing.events._REMEMBERED", 1)
    client = Forgetful()
    recorder = EventRecorder(client, write_queue_metrics, component="volcano", clock=RealClock(), rng=random.Random(1))
    recorder.start(supervisor)
    await recorded(recorder, SCHEDULED)

    await recorded(recorder, SCHEDULED, UNREADY)

    assert client.created == 3


async def test_repeats_that_wait_are_one_write(server, a_recorder):
    await recorded(a_recorder(), UNREADY, UNREADY, UNREADY)

    (event,) = events(server)
    assert event["count"] in (2, 3)  # the first may have been on its way
    assert server.requests.count(resource="events") <= 2


async def test_a_repeat_of_an_event_that_is_gone_is_written_anew(server, a_recorder):
    recorder = a_recorder()
    await recorded(recorder, UNREADY)
    server.registry.delete(server.resources.named("events"), "default", events(server)[0]["metadata"]["name"])

    await recorded(recorder, UNREADY)

    assert len(events(server)) == 1


async def test_too_many_events_are_dropped_and_counted(server, a_recorder, registry):
    recorder = a_recorder(options=WriteQueueOptions(rate_per_s=100, burst=100, capacity=2, delay_s=0.05))

    await recorded(recorder, SCHEDULED, UNREADY, RecordEvent("Pod", "default", "p2", "u", "Normal", "Scheduled", "x"))

    assert len(events(server)) == 2
    assert registry.get_sample_value("volcano_py_events_dropped_total") == 1


async def test_an_eviction_does_not_wait_behind_a_thousand_pods_without_room(server, a_recorder):
    recorder = a_recorder(options=WriteQueueOptions(rate_per_s=1, burst=1, capacity=3))
    for number in range(5):
        recorder.record(RecordEvent("Pod", "default", f"p{number}", "u", "Warning", "FailedScheduling", "no room"))

    recorder.record(RecordEvent("Pod", "default", "victim", "u", "Warning", "Evict", "by preempt"))

    await until(lambda: "Evict" in {event["reason"] for event in events(server)}, 0.9)


async def test_an_event_has_the_time_at_which_it_happened_and_not_that_of_its_write(server, a_recorder):
    recorder = a_recorder(options=WriteQueueOptions(rate_per_s=100, burst=100, delay_s=1.1))

    recorder.record(UNREADY)
    await until(lambda: events(server))

    (event,) = events(server)
    assert event["firstTimestamp"] == event["lastTimestamp"] < event["metadata"]["creationTimestamp"]


async def test_a_long_message_is_cut(server, a_recorder):
    await recorded(a_recorder(), RecordEvent("Pod", "default", "p0", "u", "Warning", "FailedScheduling", "x" * 2000))

    message = events(server)[0]["message"]
    assert (len(message), message[-3:]) == (1024, "...")


async def test_events_about_objects_without_a_namespace_are_kept_in_default(server, a_recorder):
    await recorded(a_recorder(), RecordEvent("Node", "", "n1", "u", "Warning", "Closed", "a pod cannot be read"))

    assert events(server)[0]["involvedObject"]["name"] == "n1"


async def test_a_server_error_is_tried_again(server, a_recorder):
    server.faults.add(Fault("reply", verb="create", resource="events", code=503, times=1))

    await recorded(a_recorder(), SCHEDULED)

    assert len(events(server)) == 1
