"""Binds with steps in a whole scheduler, on a server with a volume controller and a provisioner that can refuse.

A cycle made for these tests decides the steps, so that they concern only what becomes of decisions.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.daemon.cluster import (
    Running,
    condition,
    events,
    placed,
    put_job,
    put_node,
    put_pod,
    scheduler,
    stays,
    successes,
)
from tests.effects.storage import (
    CLAIMS,
    DYNAMIC,
    VolumeControllers,
    claim,
    is_bound,
    promised,
    put_claim,
    put_classes,
    put_volume,
)
from tests.effects.waiting import until
from volcano_py.api import keys
from volcano_py.api.storage import SELECTED_NODE
from volcano_py.apiserver import ApiServer
from volcano_py.effects.pod_conditions import PodConditionOptions
from volcano_py.effects.preparer import PreparerOptions
from volcano_py.framework.state.report import CycleReport
from volcano_py.kube.resource import NODES, PERSISTENT_VOLUME_CLAIMS, PODS
from volcano_py.model.decisions import Bind, BindClaim, PrepareStep, ProvisionClaim
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import TaskStatus

SOON = PodConditionOptions(rate_per_s=50, burst=50, delay_s=0.01)
Decide = Callable[[str], tuple[str, tuple[PrepareStep, ...]]]
"""Says for the name of a pod its node and steps."""


def deciding(decide: Decide) -> Any:
    def cycle(snapshot, policy, clock, seed, memory, emit):
        tasks = snapshot.tasks
        gangs: dict[Any, list[Bind]] = {}
        pending = 0
        for record, status, traits in zip(tasks.records, tasks.status, tasks.traits, strict=False):
            if record and status == TaskStatus.PENDING and not record.foreign:
                pending += 1
                if not traits & np.uint8(TaskTrait.BACKING_OFF):
                    node, steps = decide(record.name)
                    gangs.setdefault(record.key, []).append(Bind(record.ref, node, record.key, steps))
        for binds in gangs.values():
            if len(binds) == pending:  # a gang is placed as a whole
                emit(tuple(binds))
        return memory.next(), CycleReport(pending_tasks=pending)

    return cycle


class Storage:
    def __init__(self, server: ApiServer) -> None:
        put_classes(server)
        self.controllers = VolumeControllers(server, random.Random(1))
        self._server = server

    def steps(self, pod: str) -> tuple[PrepareStep, ...]:
        """Return what the claim with the name of a pod still needs."""
        return () if is_bound(self._server, pod) else (self.step(pod),)

    def step(self, pod: str) -> PrepareStep:
        """Return the step of the claim with the name of a pod."""
        found = claim(self._server, pod)
        assert found is not None
        uid = found["metadata"]["uid"]
        if found["spec"]["storageClassName"] == DYNAMIC:
            return ProvisionClaim("default", pod, uid, "n1")
        return BindClaim("default", pod, uid, f"volume-of-{pod}")


@pytest.fixture
def storage(server: ApiServer) -> Storage:
    put_node(server, "n1", cpu=16)
    return Storage(server)


def put_gang(server: ApiServer, name: str, size: int, storage_class: str = DYNAMIC) -> list[str]:
    """Create a gang whose pods have a claim each, of the pod's name."""
    pods = [f"{name}-{number}" for number in range(size)]
    for pod in pods:
        put_claim(server, pod, storage_class)
        if storage_class != DYNAMIC:
            put_volume(server, f"volume-of-{pod}", "n1")
    put_job(server, name, size)
    return pods


async def test_pods_follow_their_claims(server, storage):
    pods = put_gang(server, "gang", 4, "static")

    async with scheduler(server.url, cycle=deciding(lambda pod: ("n1", storage.steps(pod)))) as running:
        await until(lambda: len(placed(server)) == 4)

        assert all(is_bound(server, pod) for pod in pods)
        assert promised(server) == []
        assert running.metric("volcano_py_prepare_seconds_count", {"result": "prepared"}) == 4
        await until(lambda: not running.daemon.cache.binds.ledger)


async def test_a_gang_of_which_one_claim_is_refused_is_planned_again(server, storage):
    put_gang(server, "gang", 3)
    storage.controllers.refuses = lambda one, node: (
        one["metadata"]["name"] == "gang-1" and not storage.controllers.refused
    )
    storage.controllers.provisions = lambda one: (
        one["metadata"]["name"] == "gang-1" or bool(storage.controllers.refused)
    )

    async with scheduler(
        server.url, cycle=deciding(lambda pod: ("n1", storage.steps(pod))), pod_conditions=SOON
    ) as running:
        await until(lambda: storage.controllers.refused)
        await until(lambda: condition(server, "gang-1").get("reason") == "SchedulerError")
        assert placed(server) == {}
        assert promised(server) == []
        why = condition(server, "gang-1")["message"]
        assert "claim default/gang-1 gets no volume for node n1" in why

        await until(lambda: len(placed(server)) == 3)

        assert successes(server) == 3
        (event,) = [one for one in events(server, "PodGroup", "gang") if one["reason"] == "FailedScheduling"]
        assert "3 pods are placed again" in event["message"]
        assert "claim default/gang-1" in event["message"]
        assert "node n1" in event["message"]
        assert running.metric("volcano_py_prepare_steps_total", {"step": "ProvisionClaim", "result": "refused"}) == 1


async def test_a_provisioner_that_always_refuses_is_asked_less_and_less_often(server, storage):
    put_gang(server, "gang", 2)
    storage.controllers.refuses = lambda one, node: one["metadata"]["name"] == "gang-0"

    async with scheduler(server.url, period_s=0.05, cycle=deciding(lambda pod: ("n1", storage.steps(pod)))):
        await until(lambda: len(storage.controllers.refused) == 2)

        before = server.requests.count("patch", CLAIMS)
        await stays(lambda: len(storage.controllers.refused) <= 4, 2.0)
        assert server.requests.count("patch", CLAIMS) - before < 20


async def test_a_node_that_goes_away_ends_the_preparation_for_it(server, storage):
    put_node(server, "n2", cpu=16)
    put_gang(server, "gang", 2)
    storage.controllers.provisions = lambda one: False
    node = ["n1"]

    def decide(pod: str) -> tuple[str, tuple[PrepareStep, ...]]:
        step = storage.step(pod)
        return node[0], (ProvisionClaim(step.namespace, step.claim, step.claim_uid, node[0]),)

    async with scheduler(server.url, cycle=deciding(decide)) as running:
        await until(lambda: len(promised(server)) == 2)
        node[0] = "n2"

        await running.daemon.client.delete(NODES, "n1")
        await until(lambda: {selected(server, "gang-0"), selected(server, "gang-1")} == {"n2"})

        storage.controllers.provisions = lambda one: True
        storage.controllers.look_again()
        await until(lambda: len(placed(server)) == 2)


async def test_claims_of_pods_that_are_gone_are_taken_back(server, storage):
    pods = put_gang(server, "gang", 2)
    storage.controllers.provisions = lambda one: False
    async with scheduler(server.url, cycle=deciding(lambda pod: ("n1", storage.steps(pod)))) as running:
        await until(lambda: len(promised(server)) == 2)

        for pod in pods:
            await running.daemon.client.delete(PODS, pod, namespace="default", grace_period_s=0)

        await until(lambda: not promised(server))


async def test_status_and_events_of_others_do_not_wait_for_preparations(server, storage):
    put_gang(server, "slow", 1)
    storage.controllers.provisions = lambda one: False
    async with scheduler(server.url, cycle=deciding(lambda pod: ("n1", storage.steps(pod)))) as running:
        await until(lambda: promised(server))

        assert not running.daemon._writers.backpressure.under_way()


async def test_an_orderly_end_leaves_nothing_promised(server, storage):
    put_gang(server, "gang", 3)
    storage.controllers.provisions = lambda one: one["metadata"]["name"] == "gang-0"
    async with scheduler(
        server.url, cycle=deciding(lambda pod: ("n1", storage.steps(pod))), stop_patience_s=2.0
    ) as running:
        await until(lambda: len(promised(server)) == 2)

        assert await running.stop() == 0

    assert promised(server) == []
    assert placed(server) == {}


async def test_what_a_killed_scheduler_has_promised_is_undone_by_the_next_before_it_decides(server, storage):
    put_gang(server, "gang", 3)
    storage.controllers.provisions = lambda one: False
    decide = deciding(lambda pod: ("n1", storage.steps(pod)))
    async with scheduler(server.url, cycle=decide) as running:
        await until(lambda: len(promised(server)) == 3)
        await running.kill()
    assert len(promised(server)) == 3

    async with scheduler(server.url, cycle=deciding(lambda pod: ("no such node", ()))) as running:
        assert promised(server) == []
        assert running.metric("volcano_py_promises_recovered_total") == 3


async def test_promises_that_are_found_later_are_undone_and_those_of_others_are_left_alone(server, storage):
    storage.controllers.provisions = lambda one: False
    # A claim without the mark may be a promise to a waiting pod of another scheduler, which nobody shows us.
    for name, pod_scheduler in (
        ("ours", keys.SCHEDULER_NAME),
        ("unmarked", keys.SCHEDULER_NAME),
        ("theirs", "default-scheduler"),
    ):
        put_claim(server, name, DYNAMIC)
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        put_pod(server, name, "gang", schedulerName=pod_scheduler, volumes=volumes)
    put_claim(server, "unused", DYNAMIC)
    put_job(server, "gang", 0)

    idle = deciding(lambda pod: ("no such node", ()))
    async with scheduler(server.url, cycle=idle, preparer=PreparerOptions(recover_every_s=0.1)) as running:
        await select(running, "ours", "n1", by=keys.SCHEDULER_NAME)
        for name in ("unmarked", "theirs", "unused"):
            await select(running, name, "n1")

        await until(lambda: not selected(server, "ours"))

        left_alone = ("unmarked", "theirs", "unused")
        await stays(lambda: {selected(server, name) for name in left_alone} == {"n1"}, 0.5)


async def select(running: Running, name: str, node: str, by: str | None = None) -> None:
    body = {"metadata": {"annotations": {SELECTED_NODE: node, keys.PROMISED_BY: by}}}
    await running.daemon.client.patch(PERSISTENT_VOLUME_CLAIMS, name, body, dict, namespace="default")


def selected(server: ApiServer, name: str) -> str:
    found = claim(server, name)
    assert found is not None
    annotations = found["metadata"].get("annotations") or {}
    node: str = annotations.get(SELECTED_NODE, "")
    return node
