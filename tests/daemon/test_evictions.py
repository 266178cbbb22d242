"""Plans to evict on their way through the daemon: a stub cycle decides, everything else is real."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.daemon.cluster import (
    Running,
    condition,
    event_reasons,
    placed,
    put_group,
    put_node,
    put_pod,
    scheduler,
    set_phase,
    stays,
)
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.conf.loader import parse_conf
from volcano_py.effects.evictor import EvictorOptions
from volcano_py.framework.state.report import CycleReport
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import POD_DISRUPTION_BUDGETS, PODS
from volcano_py.model.decisions import Decision, Evict, Nominate
from volcano_py.model.objects import JobKey, TaskRef
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import resolve
from volcano_py.snapshot.columns import Snapshot
from volcano_py.testing import a_budget, a_group, a_priority_class, as_json, manifest

LOW, HIGH = JobKey("default", "low"), JobKey("default", "high")
QUICK = EvictorOptions(attempts=3, retry_first_s=0.02, retry_cap_s=0.1)


def seen(snapshot: Snapshot) -> dict[str, tuple[TaskStatus, TaskRef, str]]:
    """Return what a snapshot says of pods, by name."""
    rows = [(row, record) for row, record in enumerate(snapshot.tasks.records) if record is not None]
    return {
        record.name: (TaskStatus(int(snapshot.tasks.status[row])), record.ref, record.nominated) for row, record in rows
    }


class OnePlan:
    """A cycle that evicts the pod ``low-0`` for the pod ``high-0`` as long as nothing says that it goes already."""

    def __init__(self) -> None:
        self.pictures: list[dict[str, tuple[TaskStatus, TaskRef, str]]] = []
        self.plans = 0
        self.before_deciding: Callable[[], object] = lambda: None

    def __call__(self, snapshot, policy, clock, seed, memory, emit: Callable[[tuple[Decision, ...]], None]) -> Any:
        pods = seen(snapshot)
        self.pictures.append(pods)
        if {"low-0", "high-0"} <= pods.keys() and pods["low-0"][0] is TaskStatus.RUNNING:
            self.plans += 1
            self.before_deciding()
            emit((Evict(pods["low-0"][1], "n1", LOW, "preempt", "", HIGH), Nominate(pods["high-0"][1], "n1")))
        return memory.next(), CycleReport(pending_tasks=1, preemption_attempts=1)

    @property
    def last(self) -> dict[str, tuple[TaskStatus, TaskRef, str]]:
        return self.pictures[-1]


def terminating(server: ApiServer, name: str) -> bool:
    pod = server.get("pods", name, "default")
    return pod is not None and "deletionTimestamp" in pod["metadata"]


def nominated(server: ApiServer, name: str) -> str:
    pod = server.get("pods", name, "default")
    assert pod is not None
    node: str = pod["status"].get("nominatedNodeName", "")
    return node


@asynccontextmanager
async def planning(
    server: ApiServer, cycle: OnePlan, *, before: Callable[[], Awaitable[None]] | None = None, **options: Any
) -> AsyncIterator[Running]:
    """Run a daemon whose cycle is this one, with a pod that runs and one that waits for its room."""
    put_node(server, "n1", cpu=1)
    put_group(server, "low", 0)
    put_group(server, "high", 1)
    put_pod(server, "low-0", "low", node="n1")
    put_pod(server, "high-0", "high")
    if before is not None:
        await before()
    async with scheduler(server.url, cycle=cycle, evictor=QUICK, **options) as running:
        await set_phase(running, ["low-0"], "Running")
        yield running


async def test_a_victim_is_evicted_and_its_preemptor_is_nominated(server):
    cycle = OnePlan()
    async with planning(server, cycle) as running:
        await until(lambda: terminating(server, "low-0"))
        await until(lambda: nominated(server, "high-0") == "n1")
        await until(lambda: not len(running.daemon.cache.evictions.ledger))
        await until(lambda: cycle.last["high-0"][2] == "n1")

        assert cycle.last["low-0"][0] is TaskStatus.RELEASING
        assert cycle.plans == 1
        assert running.metric("volcano_eviction_transactions_total", {"action": "preempt"}) == 1
        assert running.metric("volcano_pod_preemption_victims") == 1
        assert running.metric("volcano_py_evictions_total", {"result": "evicted"}) == 1
        assert running.metric("volcano_total_preemption_attempts") >= 1


async def test_the_victim_and_both_groups_get_events(server):
    async with planning(server, OnePlan()):
        await until(lambda: "Evict" in event_reasons(server, "Pod", "low-0"))
        await until(lambda: "Evict" in event_reasons(server, "PodGroup", "low"))
        await until(lambda: "Preempting" in event_reasons(server, "PodGroup", "high"))


async def test_a_victim_counts_as_terminating_before_the_server_has_answered(server):
    server.faults.add(Fault("delay", verb="patch", resource="pods/status", name="low-0", skip=1, delay_s=30))
    cycle = OnePlan()
    async with planning(server, cycle):
        await until(lambda: cycle.plans and cycle.last["low-0"][0] is TaskStatus.RELEASING)

        assert not terminating(server, "low-0")
        assert cycle.last["high-0"][2] == "n1"


async def test_nothing_is_evicted_twice_however_often_cycles_run(server):
    server.faults.add(Fault("delay", verb="delete", resource="pods", delay_s=0.3))
    cycle = OnePlan()
    async with planning(server, cycle, period_s=0.02):
        await until(lambda: terminating(server, "low-0"))
        seen_then = len(cycle.pictures)
        await until(lambda: len(cycle.pictures) > seen_then + 3)

        assert cycle.plans == 1
        assert server.requests.count("delete", "pods") == 1


async def test_a_refused_eviction_leaves_the_victim_running_and_is_planned_again_later(server):
    fault = server.faults.add(Fault("reply", verb="delete", resource="pods", code=403, times=2))
    cycle = OnePlan()
    async with planning(server, cycle, period_s=0.1) as running:
        await until(lambda: terminating(server, "low-0"))

        assert fault.hits == 2
        assert server.requests.count("delete", "pods") == 3
        assert cycle.plans < 60  # one per period, no more: the same plan would be refused again
        assert running.metric("volcano_py_evictions_total", {"result": "failed"}) == 2


async def test_an_outdated_plan_is_not_carried_out(server):
    cycle, overtaken = OnePlan(), threading.Event()
    cycle.before_deciding = lambda: overtaken.wait(10)  # in the cycle's thread: the watch goes on meanwhile
    async with planning(server, cycle) as running:
        await until(lambda: cycle.plans == 1)
        await running.daemon.client.delete(PODS, "high-0", namespace="default")
        await until(lambda: "high-0" not in seen(running.daemon.cache.snapshot()))
        overtaken.set()

        await until(lambda: running.metric("volcano_py_evictions_total", {"result": "refused"}) == 1)
        await stays(lambda: not terminating(server, "low-0"), 0.2)


async def test_a_nomination_outlives_the_process(server):
    cycle = OnePlan()
    async with planning(server, cycle):
        await until(lambda: nominated(server, "high-0") == "n1")
    again = OnePlan()

    async with scheduler(server.url, cycle=again):
        await until(lambda: again.pictures)

        assert again.pictures[0]["high-0"][2] == "n1"


async def test_a_scheduler_recognizes_its_own_nomination_after_a_restart(server):
    async with planning(server, OnePlan(), before=lambda: record_owners(server, "high-0")):
        await until(lambda: nominated(server, "high-0") == "n1")
    pod = server.get("pods", "high-0", "default")
    assert pod is not None
    fields = {entry["manager"]: entry["fieldsV1"] for entry in pod["metadata"]["managedFields"]}
    assert "f:nominatedNodeName" in fields["volcano-py"]["f:status"]

    async with scheduler(server.url, cycle=OnePlan()) as running:
        place = running.daemon.cache.store.task(pod["metadata"]["uid"])
        assert place is not None
        assert place.record.nominated_by_us


async def record_owners(server: ApiServer, pod: str) -> None:
    """Let the embedded server record who writes a pod; a real one records it for every object."""
    body = {"apiVersion": PODS.api_version, "kind": PODS.kind, "metadata": {"name": pod, "labels": {"app": "x"}}}
    async with ApiClient(Credentials(server.url)) as client:
        await client.patch(PODS, pod, body, dict, kind=PatchType.APPLY, namespace="default", apply_as="kubectl")


async def test_evictions_that_were_decided_are_completed_at_the_end(server):
    server.faults.add(Fault("delay", verb="delete", resource="pods", delay_s=0.3))
    async with planning(server, OnePlan()) as running:
        await until(lambda: running.daemon.evictor.backlog)

        assert await running.stop() == 0

    assert terminating(server, "low-0")


PREEMPTING = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: pdb
  - name: predicates
"""


def put_important_pod(server: ApiServer) -> None:
    server.create(manifest(a_priority_class("important", 1000)))
    server.create(manifest(a_group("high", priority_class="important")))
    put_pod(server, "high-0", "high", priority=1000, priorityClassName="important")


async def test_preemption_as_configured_respects_budgets_and_waits_for_its_victim(server):
    put_node(server, "n1", cpu=1)
    put_group(server, "low", 0)
    put_pod(server, "low-0", "low", node="n1")
    server.faults.inject(as_json(a_budget("all"), spec={"minAvailable": 1}))
    async with scheduler(server.url, policy=resolve(parse_conf(PREEMPTING, "test.conf"))) as running:
        await set_phase(running, ["low-0"], "Running")
        put_important_pod(server)
        await until(lambda: condition(server, "high-0"))
        await stays(lambda: not terminating(server, "low-0"), 0.3)

        await running.daemon.client.delete(POD_DISRUPTION_BUDGETS, "all", namespace="default")
        await until(lambda: terminating(server, "low-0"))
        await until(lambda: nominated(server, "high-0") == "n1")
        await stays(lambda: not placed(server, "high"), 0.2)
        await running.daemon.client.delete(PODS, "low-0", namespace="default", grace_period_s=0)

        await until(lambda: placed(server, "high") == {"high-0": "n1"})
