"""Policies about queues through the daemon: what users see of each of them on the API server."""

from typing import Any

import pytest

from tests.daemon.cluster import (
    QUEUES,
    condition,
    event_reasons,
    placed,
    put_node,
    put_pod,
    scheduler,
    set_phase,
    stays,
)
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.conf.loader import parse_conf
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import PODGROUPS, PODS, RESOURCE_QUOTAS
from volcano_py.scheduler import Policy, resolve
from volcano_py.testing import a_group, a_namespace, a_queue, a_quota, manifest
from volcano_py.writing.write_queue import WriteQueueOptions

QUICK = WriteQueueOptions(rate_per_s=1000, burst=100)


def conf(*plugins: str, actions: str = "enqueue, allocate, backfill") -> Policy:
    """Return a policy with gang in a tier of its own; a plugin is a name and flags: ``drf enableHierarchy``."""
    lines = [f'actions: "{actions}"', "tiers:", "- plugins:", "  - name: gang", "- plugins:"]
    for plugin in ("predicates", *plugins):
        name, *flags = plugin.split()
        lines += [f"  - name: {name}", *(f"    {flag}: true" for flag in flags)]
    return resolve(parse_conf("\n".join(lines), "test.conf"))


def put_queue(server: ApiServer, name: str, *, annotations: Any = None, **spec: Any) -> None:
    meta = {"annotations": annotations or {}}
    server.create(manifest(a_queue(name), metadata=meta, spec=spec, status={"state": "Open"}))


def put_job(
    server: ApiServer, name: str, tasks: int, queue: str, *, minimum: int = 1, namespace: str = "default", **spec: Any
) -> None:
    server.create(manifest(a_group(name, namespace=namespace, queue=queue, min_available=minimum), spec=spec))
    for number in range(tasks):
        put_pod(server, f"{name}-{number}", name, namespace=namespace)


def allocated(server: ApiServer, queue: str) -> dict[str, Any]:
    found = server.get(QUEUES, queue) or {}
    amounts: dict[str, Any] = found.get("status", {}).get("allocated", {})
    return amounts


def terminating(server: ApiServer) -> list[str]:
    pods = server.list("pods", "default")
    return [pod["metadata"]["name"] for pod in pods if pod["metadata"].get("deletionTimestamp")]


async def test_capacity_keeps_branches_below_their_ceilings_and_jobs_say_which(server):
    put_node(server, "n1", cpu=10)
    put_queue(server, "data", capability={"cpu": "3"})
    put_queue(server, "spark", parent="data")
    put_queue(server, "lost", parent="nowhere")
    async with scheduler(server.url, policy=conf("capacity enableHierarchy"), queue_statuses=QUICK) as running:
        put_job(server, "big", 5, "spark")
        put_job(server, "stray", 1, "lost")

        await until(lambda: len(placed(server, "big")) == 3)
        await until(lambda: condition(server, "stray-0"))
        await until(lambda: allocated(server, "data") == {"cpu": "3", "memory": "0", "pods": "3"})

        text = 'queue "lost" takes no jobs: its parent "nowhere" does not exist: create it or change spec.parent'
        assert text in condition(server, "stray-0")["message"]
        assert allocated(server, "root") == allocated(server, "spark") == allocated(server, "data")
        assert running.metric("volcano_queue_real_capacity_milli_cpu", {"queue_name": "spark"}) == 3000
        assert running.metric("volcano_py_queue_problems") == 1
        await stays(lambda: len(placed(server)) == 3)


async def test_the_status_of_a_queue_shows_its_allocation_until_it_is_released(server):
    put_node(server, "n1", cpu=10)
    async with scheduler(server.url, policy=conf("proportion"), queue_statuses=QUICK) as running:
        put_job(server, "job", 2, "default")
        await until(lambda: allocated(server, "default") == {"cpu": "2", "memory": "0", "pods": "2"})

        for name in ("job-0", "job-1"):
            await running.daemon.client.delete(PODS, name, namespace="default", grace_period_s=0)

        await until(lambda: allocated(server, "default") == {"cpu": "0", "memory": "0"})


async def test_proportion_divides_between_queues_by_weight_and_drf_between_jobs_of_one(server):
    put_node(server, "n1", cpu=16)
    put_queue(server, "heavy", weight=3)
    put_queue(server, "light", weight=1)
    for name, queue in (("a", "heavy"), ("b", "heavy"), ("c", "light")):
        put_job(server, name, 10, queue)
    async with scheduler(server.url, policy=conf("drf", "proportion")):
        await until(lambda: len(placed(server)) == 16)

        assert [len(placed(server, f"{name}-")) for name in "abc"] == [6, 6, 4]


async def test_a_fair_tree_of_drf_shares_by_weight_of_branches(server):
    put_node(server, "n1", cpu=8)
    for name, weight in (("eng", 3), ("sci", 1)):
        notes = {"volcano.sh/hierarchy": f"root/{name}", "volcano.sh/hierarchy-weights": f"1/{weight}"}
        put_queue(server, name, annotations=notes)
        put_job(server, f"j-{name}", 10, name)
    async with scheduler(server.url, policy=conf("drf enableHierarchy")):
        await until(lambda: len(placed(server)) == 8)

        assert (len(placed(server, "j-eng")), len(placed(server, "j-sci"))) == (6, 2)


async def test_a_quota_keeps_a_job_out_until_it_is_raised(server):
    put_node(server, "n1", cpu=8)
    server.create(manifest(a_quota("q", cpu=2)))
    async with ApiClient(Credentials(server.url)) as client:

        async def allow(cpu: str) -> None:
            """Do what the quota controller does."""
            body = {"status": {"hard": {"cpu": cpu}, "used": {"cpu": "1"}}}
            await client.patch(RESOURCE_QUOTAS, "q", body, dict, namespace="default", subresource="status")

        await allow("2")
        async with scheduler(server.url, policy=conf("resourcequota")):
            put_job(server, "job", 2, "default", minResources={"cpu": "2"})
            await until(lambda: "Unschedulable" in event_reasons(server, "PodGroup", "job"))
            assert placed(server) == {}

            await allow("3")

            await until(lambda: len(placed(server)) == 2)


async def test_a_queue_in_strict_order_waits_for_its_first_job(server):
    put_node(server, "n1", cpu=4)
    put_queue(server, "strict", dequeueStrategy="fifo")
    put_job(server, "a-big", 5, "strict", minimum=5)
    put_job(server, "b-small", 1, "strict")
    async with scheduler(server.url, policy=conf()) as running:
        await until(lambda: condition(server, "b-small-0"))

        assert "serves in order (dequeueStrategy fifo)" in condition(server, "b-small-0")["message"]
        await stays(lambda: placed(server) == {})
        await running.daemon.client.delete(PODGROUPS, "a-big", namespace="default")

        await until(lambda: set(placed(server)) == {"b-small-0"})


@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
async def test_a_queue_takes_back_what_it_deserves_from_one_that_has_borrowed(server, action):
    put_node(server, "n1", cpu=2)
    for name in ("one", "two"):
        put_queue(server, name, deserved={"cpu": "1"})
    policy = conf("capacity", actions=f"enqueue, allocate, {action}")
    async with scheduler(server.url, policy=policy) as running:
        for row in range(2):
            put_job(server, f"one-{row}", 1, "one")
        await until(lambda: len(placed(server)) == 2)
        await set_phase(running, ("one-0-0", "one-1-0"), "Running")

        put_job(server, "two", 1, "two")

        await until(lambda: terminating(server))
        await stays(lambda: len(terminating(server)) == 1)


async def test_namespaces_of_a_queue_share_it_by_the_weight_of_their_quotas(server):
    put_node(server, "n1", cpu=8)
    for namespace, weight in (("a", "3"), ("b", "1")):
        server.create(manifest(a_namespace(namespace)))
        server.create(manifest(a_quota("weight", namespace=namespace, weight=weight)))
        put_job(server, f"j-{namespace}", 10, "default", namespace=namespace)
    async with scheduler(server.url, policy=conf("drf enableNamespaceOrder")):
        await until(lambda: len(placed(server, namespace="a")) + len(placed(server, namespace="b")) == 8)

        assert (len(placed(server, namespace="a")), len(placed(server, namespace="b"))) == (6, 2)
