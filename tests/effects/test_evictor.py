"""The evictor against the embedded API server: what it writes, what it repeats, what it reports."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.effects.objects import put_node, put_pod
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.effects.evictor import Evictor, EvictorOptions
from volcano_py.kube.resource import PODS
from volcano_py.metrics.evictions import EvictionMetrics
from volcano_py.model.decisions import Evict
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.runtime.clock import RealClock

QUICK = EvictorOptions(attempts=4, retry_first_s=0.01, retry_cap_s=0.02)
DELETE, PATCH = ("delete", "pods"), ("patch", "pods/status")


class Outcomes:
    """Remembers what became of evictions."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.evicted_: list[str] = []
        self.failed: list[tuple[str, str]] = []
        self.unknown: list[str] = []

    def evicting(self, evict):
        self.sent.append(evict.task.name)

    def evicted(self, evict):
        self.evicted_.append(evict.task.name)

    def eviction_failed(self, evict, why):
        self.failed.append((evict.task.name, why))

    def eviction_unknown(self, evict):
        self.unknown.append(evict.task.name)


@pytest.fixture
def outcomes() -> Outcomes:
    return Outcomes()


@pytest.fixture
def an_evictor(client, supervisor, outcomes, registry):
    def make(options: EvictorOptions = QUICK, objection: Callable[[Evict], str] = lambda _: "") -> Evictor:
        evictor = Evictor(
            client,
            outcomes,
            EvictionMetrics(registry),
            scheduler_name="volcano",
            clock=RealClock(),
            rng=random.Random(1),
            objection=objection,
            options=options,
        )
        evictor.start(supervisor)
        return evictor

    return make


async def running(server: ApiServer, client: Any, name: str) -> TaskRef:
    """Create a pod that is on a node: it takes a grace period to go."""
    if server.get("nodes", "n1") is None:
        put_node(server, "n1")
    task = put_pod(server, name)
    binding = b'{"apiVersion":"v1","kind":"Binding","metadata":{"name":"%s"},"target":{"name":"n1"}}' % name.encode()
    await client.post_bytes(PODS.item(name, "default", "binding"), binding)
    return task


def an_eviction(task: TaskRef, message: str = "room for default/high") -> Evict:
    return Evict(task, "n1", JobKey("default", "low"), "preempt", message)


async def carried_out(evictor: Evictor, *evictions: Evict) -> None:
    evictor.submit(evictions)
    assert await evictor.drained(10)
    assert evictor.backlog == 0


def conditions(server: ApiServer, name: str) -> dict[str, tuple[str, str, str]]:
    pod = server.get("pods", name, "default")
    assert pod is not None
    return {one["type"]: (one["status"], one.get("reason"), one.get("message")) for one in pod["status"]["conditions"]}


async def test_a_victim_carries_the_reason_and_terminates_with_its_own_grace(server, client, an_evictor, outcomes):
    task = await running(server, client, "p0")

    await carried_out(an_evictor(), an_eviction(task))

    pod = server.get("pods", "p0", "default")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    found = conditions(server, "p0")
    assert found["Ready"] == ("False", "Evict", "Pod is evicted, because of preempt: room for default/high")
    assert found["DisruptionTarget"] == (
        "True",
        "PreemptionByScheduler",
        "volcano: preempting to accommodate a higher priority pod",
    )
    assert (outcomes.sent, outcomes.evicted_, outcomes.failed) == (["p0"], ["p0"], [])


async def test_a_victim_that_already_has_the_condition_is_deleted_as_well(server, client, an_evictor):
    task = await running(server, client, "p0")
    reason = {"type": "Ready", "status": "False", "reason": "Evict", "message": "Pod is evicted, because of preempt"}
    body = {"status": {"conditions": [reason]}}
    await client.patch(PODS, "p0", body, dict, namespace="default", subresource="status")

    await carried_out(an_evictor(), an_eviction(task, ""))

    assert "deletionTimestamp" in server.get("pods", "p0", "default")["metadata"]


async def test_each_victim_is_deleted_once(server, client, an_evictor, outcomes):
    victims = [await running(server, client, f"p{number}") for number in range(40)]

    await carried_out(an_evictor(), *map(an_eviction, victims))

    assert server.requests.count(*DELETE) == server.requests.count(*PATCH) == 40
    assert len(outcomes.evicted_) == 40


async def test_another_pod_of_the_same_name_is_left_alone(server, client, an_evictor, outcomes):
    task = await running(server, client, "p0")
    before = TaskRef("default", "p0", "an-earlier-uid")

    await carried_out(an_evictor(), an_eviction(before))

    pod = server.get("pods", "p0", "default")
    assert pod["metadata"]["uid"] == task.uid
    assert "deletionTimestamp" not in pod["metadata"]
    assert "Ready" not in conditions(server, "p0")
    assert outcomes.evicted_ == ["p0"]


async def test_a_victim_that_is_gone_counts_as_evicted(server, an_evictor, outcomes):
    await carried_out(an_evictor(), an_eviction(TaskRef("default", "gone", "uid")))

    assert outcomes.evicted_ == ["gone"]


@pytest.mark.parametrize("code", [429, 500, 503])
@pytest.mark.parametrize("request_", [DELETE, PATCH])
async def test_a_pushed_back_request_is_retried(server, client, an_evictor, outcomes, registry, request_, code):
    task = await running(server, client, "p0")
    verb, resource = request_
    server.faults.add(Fault("reply", verb=verb, resource=resource, code=code, times=2, retry_after_s=0))

    await carried_out(an_evictor(), an_eviction(task))

    assert outcomes.evicted_ == ["p0"]
    assert registry.get_sample_value("volcano_py_eviction_retries_total") == 2
    assert "deletionTimestamp" in server.get("pods", "p0", "default")["metadata"]


async def test_a_lost_answer_leads_to_no_second_victim(server, client, an_evictor, outcomes):
    task = await running(server, client, "p0")
    server.faults.add(Fault("drop_after", verb="delete", resource="pods", times=1))

    await carried_out(an_evictor(), an_eviction(task))

    assert (outcomes.evicted_, outcomes.unknown) == (["p0"], [])


async def test_a_refusal_for_good_is_reported_at_once(server, client, an_evictor, outcomes):
    task = await running(server, client, "p0")
    server.faults.add(Fault("reply", verb="delete", resource="pods", code=403, message="no"))

    await carried_out(an_evictor(), an_eviction(task))

    ((name, why),) = outcomes.failed
    assert name == "p0"
    assert why.startswith("no; grant the verb")
    assert server.requests.count(*DELETE) == 1


async def test_a_victim_is_evicted_even_if_its_condition_may_not_be_written(server, client, an_evictor, outcomes):
    task = await running(server, client, "p0")
    server.faults.add(Fault("reply", verb="patch", resource="pods/status", code=403))

    await carried_out(an_evictor(), an_eviction(task))

    assert outcomes.evicted_ == ["p0"]


async def test_attempts_are_limited(server, client, an_evictor, outcomes):
    task = await running(server, client, "p0")
    server.faults.add(Fault("reply", verb="delete", resource="pods", code=429, retry_after_s=0))

    await carried_out(an_evictor(), an_eviction(task))

    assert [name for name, _ in outcomes.failed] == ["p0"]
    assert server.requests.count(*DELETE) == QUICK.attempts


async def test_an_outcome_that_stays_unclear_is_left_to_the_ledger(server, client, an_evictor, outcomes):
    task = await running(server, client, "p0")
    server.faults.add(Fault("drop_before", verb="delete", resource="pods"))

    await carried_out(an_evictor(), an_eviction(task))

    assert (outcomes.unknown, outcomes.failed) == (["p0"], [])


async def test_the_evictor_reports_its_free_capacity(an_evictor):
    evictor = an_evictor(EvictorOptions(capacity=3))

    assert evictor.room == 3


async def test_an_eviction_that_waits_for_another_attempt_is_not_sent_if_its_pod_has_ended(
    server, client, an_evictor, outcomes
):
    task = await running(server, client, "p0")
    why = iter(["", "it has ended"])
    server.faults.add(Fault("reply", verb="patch", code=503, times=1))

    await carried_out(an_evictor(objection=lambda _: next(why)), an_eviction(task))

    assert outcomes.failed == [("p0", "it has ended")]
    assert "deletionTimestamp" not in server.get("pods", "p0", "default")["metadata"]


async def test_an_eviction_whose_outcome_is_unclear_is_not_given_up_because_its_pod_has_ended(
    server, client, an_evictor, outcomes
):
    task = await running(server, client, "p0")
    why = iter(["", "", "it has ended"])
    server.faults.add(Fault("drop_after", verb="delete", times=1))

    await carried_out(an_evictor(objection=lambda _: next(why)), an_eviction(task))

    assert (outcomes.evicted_, outcomes.failed) == (["p0"], [])


async def test_an_eviction_that_is_not_needed_any_more_when_its_reason_is_written_goes_no_further(
    server, client, an_evictor, outcomes
):
    task = await running(server, client, "p0")
    why = iter(["", "nobody waits"])

    await carried_out(an_evictor(objection=lambda _: next(why)), an_eviction(task))

    assert (outcomes.sent, outcomes.failed) == ([], [("p0", "nobody waits")])
    assert "deletionTimestamp" not in server.get("pods", "p0", "default")["metadata"]
