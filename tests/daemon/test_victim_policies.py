"""Policies about who goes first, who must go and who may stay, through the daemon on an embedded API server."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.daemon.cluster import GROUPS, condition, placed, scheduler, set_phase, stays
from tests.daemon.loads.servers import answering, prometheus
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.conf.loader import parse_conf
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import POD_DISRUPTION_BUDGETS, PODS
from volcano_py.scheduler import Policy, resolve
from volcano_py.testing import a_budget, a_job, a_node, a_priority_class, manifest

SCHEDULING = "scheduling.volcano.sh/v1beta1"
ZONE = "volcano.sh/revocable-zone"
PRIORITIES = {"low": 1, "high": 1000}


def a_policy(actions: str, *plugins: str | dict[str, Any], **sections: Any) -> Policy:
    entries = [{"name": one} if isinstance(one, str) else one for one in plugins]
    conf = {"actions": f"enqueue, allocate, {actions}".strip(", "), "tiers": [{"plugins": entries}], **sections}
    return resolve(parse_conf(json.dumps(conf), "test.conf"))


def put_node(server: ApiServer, name: str, cpu: int = 4, **labels: str) -> None:
    server.create(manifest(a_node(name, cpu=cpu, memory="64Gi", labels=labels)))


def put_classes(server: ApiServer) -> None:
    for name, value in PRIORITIES.items():
        server.create(manifest(a_priority_class(name, value)))


def put_job(
    server: ApiServer,
    name: str,
    tasks: int = 1,
    *,
    minimum: int | None = None,
    node: str = "",
    priority: str = "",
    notes: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    group: dict[str, Any] | None = None,
    pod: dict[str, Any] | None = None,
) -> None:
    """Create a PodGroup and its pods of one core each, on a node or waiting."""
    job = a_job(
        name,
        tasks=tasks,
        min_available=minimum,
        priority_class=priority,
        group_annotations=notes,
        cpu=1,
        node=node,
        annotations=notes,
        labels=labels,
    )
    server.create(manifest(job.group, spec=group or {}))
    for member in job.pods:
        server.create(manifest(member, spec={**({"priorityClassName": priority} if priority else {}), **(pod or {})}))


def leaving(server: ApiServer) -> set[str]:
    """Return the pods that have been told to end, or have ended so."""
    pods = server.list("pods", "default")
    there = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
    return {name for name in _ALL if name not in there}


_ALL: set[str] = set()


@pytest.fixture(autouse=True)
def nobody_yet() -> None:
    _ALL.clear()


async def run_pods(running: Any, *names: str) -> None:
    await set_phase(running, names, "Running")
    _ALL.update(names)


async def test_priority_puts_a_later_job_of_a_higher_class_first(server: ApiServer) -> None:
    put_classes(server)
    put_job(server, "a-low", priority="low")
    put_job(server, "b-high", priority="high")
    put_node(server, "n1", cpu=1)
    async with scheduler(server.url, policy=a_policy("", "priority", "gang", "predicates")):
        await until(lambda: placed(server))

        assert set(placed(server)) == {"b-high-0"}


async def test_sla_puts_the_job_with_the_shortest_waiting_time_first(server: ApiServer) -> None:
    put_job(server, "a-patient")
    put_job(server, "b-urgent", notes={"volcano.sh/sla-waiting-time": "1h"})
    put_node(server, "n1", cpu=1)
    async with scheduler(server.url, policy=a_policy("", "sla", "gang", "predicates")):
        await until(lambda: placed(server))

        assert set(placed(server)) == {"b-urgent-0"}


async def test_overcommit_enqueues_as_much_as_its_factor_allows(server: ApiServer) -> None:
    put_node(server, "n1", cpu=4)
    policy = a_policy("", "gang", "predicates", {"name": "overcommit", "arguments": {"overcommit-factor": 1.5}})
    async with scheduler(server.url, policy=policy):
        for name in ("a", "b", "c"):
            put_job(server, name, 0, minimum=1, group={"minResources": {"cpu": "3"}})

        def phases() -> list[str]:
            return [(server.get(GROUPS, name, "default") or {}).get("status", {}).get("phase") for name in "abc"]

        await until(lambda: phases() == ["Inqueue", "Inqueue", "Pending"])
        await stays(lambda: phases()[2] == "Pending")


async def test_binpack_prefers_a_node_that_is_partly_used(server: ApiServer) -> None:
    put_node(server, "n1")
    put_node(server, "n2")
    put_job(server, "old", node="n2")
    async with scheduler(server.url, policy=a_policy("", "gang", "predicates", "binpack")):
        put_job(server, "new", 2)
        await until(lambda: len(placed(server, "new")) == 2)

        assert set(placed(server).values()) == {"n2"}


async def test_backfill_places_pods_that_ask_for_nothing_beside_those_that_fill_the_node(server: ApiServer) -> None:
    put_node(server, "n1", cpu=1)
    async with scheduler(server.url, policy=a_policy("backfill", "gang", "predicates")):
        put_job(server, "busy")
        put_job(server, "idle", pod={"containers": [{"name": "main", "image": "busybox"}]})

        await until(lambda: set(placed(server)) == {"busy-0", "idle-0"})


PREEMPT = ("priority", "gang", "predicates")


async def test_preempt_takes_the_plain_pod_and_conformance_keeps_the_critical_one(server: ApiServer) -> None:
    put_classes(server)
    put_node(server, "n1", cpu=2)
    critical = {"priorityClassName": "system-cluster-critical"}
    put_job(server, "critical", minimum=0, node="n1", priority="low", pod=critical)
    put_job(server, "plain", minimum=0, node="n1", priority="low")
    async with scheduler(server.url, policy=a_policy("preempt", *PREEMPT, "conformance")) as running:
        await run_pods(running, "critical-0", "plain-0")
        put_job(server, "high", priority="high")
        await until(lambda: leaving(server))
        put_job(server, "more", priority="high")

        await stays(lambda: leaving(server) == {"plain-0"})


async def test_a_budget_keeps_a_pod_until_it_allows_a_disruption(server: ApiServer) -> None:
    put_classes(server)
    put_node(server, "n1", cpu=1)
    server.create(manifest(a_budget("web", labels={"app": "web"})))
    put_job(server, "web", minimum=0, node="n1", priority="low", labels={"app": "web"})
    async with (
        ApiClient(Credentials(server.url)) as client,
        scheduler(server.url, policy=a_policy("preempt", *PREEMPT, "pdb")) as running,
    ):
        await run_pods(running, "web-0")
        put_job(server, "high", priority="high")
        await until(lambda: condition(server, "high-0"))
        await stays(lambda: not leaving(server))

        allows = {"status": {"disruptionsAllowed": 1, "observedGeneration": 1}}
        await client.patch(POD_DISRUPTION_BUDGETS, "web", allows, dict, namespace="default", subresource="status")

        await until(lambda: leaving(server) == {"web-0"})


async def test_a_pod_that_was_placed_a_moment_ago_is_left_alone(server: ApiServer) -> None:
    put_classes(server)
    put_node(server, "n1", cpu=2)
    put_job(server, "fresh", minimum=0, node="n1", priority="low", notes={"volcano.sh/cooldown-time": "1h"})
    put_job(server, "old", minimum=0, node="n1", priority="low")
    async with scheduler(server.url, policy=a_policy("preempt", *PREEMPT, "cdp")) as running:
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        for name in ("fresh-0", "old-0"):
            body = {"status": {"phase": "Running", "conditions": [scheduled]}}
            await running.daemon.client.patch(PODS, name, body, dict, namespace="default", subresource="status")
        _ALL.update(("fresh-0", "old-0"))
        put_job(server, "high", priority="high")
        await until(lambda: leaving(server))
        put_job(server, "more", priority="high")

        await stays(lambda: leaving(server) == {"old-0"})


async def test_tdm_lends_a_node_to_tasks_with_a_revocable_zone(server: ApiServer) -> None:
    put_node(server, "lent", cpu=4, **{ZONE: "night"})
    window = {"name": "tdm", "arguments": {"tdm.revocable-zone.night": "00:00-00:00"}}
    async with scheduler(server.url, policy=a_policy("", "gang", "predicates", window)):
        put_job(server, "guest", notes={ZONE: "*"})
        put_job(server, "stays")
        await until(lambda: placed(server))
        await until(lambda: condition(server, "stays-0"))

        assert placed(server) == {"guest-0": "lent"}
        assert "not allow to dispatch to revocable node" in condition(server, "stays-0")["message"]


async def test_tdm_evicts_revocable_pods_when_the_window_is_closed(server: ApiServer) -> None:
    put_node(server, "lent", cpu=4, **{ZONE: "night"})
    hour = (datetime.now().hour + 12) % 24  # the window is in local time  # noqa: DTZ005
    window = {"name": "tdm", "arguments": {"tdm.revocable-zone.night": f"{hour}:00-{hour}:01"}}
    put_job(server, "guest", minimum=0, node="lent", notes={ZONE: "*"})
    async with scheduler(server.url, policy=a_policy("shuffle", "gang", window)) as running:
        await run_pods(running, "guest-0")

        await until(lambda: leaving(server) == {"guest-0"})


async def test_tdm_goes_on_with_evictions_while_nothing_else_happens(server: ApiServer) -> None:
    put_node(server, "lent", cpu=4, **{ZONE: "night"})
    hour = (datetime.now().hour + 12) % 24  # noqa: DTZ005
    arguments = {"tdm.revocable-zone.night": f"{hour}:00-{hour}:01", "tdm.evict.period": "1500ms"}
    put_job(server, "guest", 2, minimum=0, node="lent", notes={ZONE: "*"})
    policy = a_policy("shuffle", "gang", {"name": "tdm", "arguments": arguments})
    async with scheduler(server.url, policy=policy) as running:
        await run_pods(running, "guest-0", "guest-1")
        await until(lambda: leaving(server))
        assert len(leaving(server)) == 1

        await until(lambda: len(leaving(server)) == 2)


async def test_rescheduling_takes_a_pod_from_a_busy_node(server: ApiServer) -> None:
    put_node(server, "busy")
    put_node(server, "calm")
    put_job(server, "web", 2, minimum=0, node="busy")
    limits = {"thresholds": {"cpu": 20, "memory": 20}, "targetThresholds": {"cpu": 70, "memory": 70}}
    strategies = [{"name": "lowNodeUtilization", "params": limits}]
    entry = {"name": "rescheduling", "arguments": {"interval": "200ms", "strategies": strategies}}
    async with answering(prometheus({"busy": 90, "calm": 10}, {"busy": 10, "calm": 10})) as url:
        metrics = {"type": "prometheus", "address": url, "interval": "100ms"}
        policy = a_policy("shuffle", "gang", entry, metrics=metrics)
        async with scheduler(server.url, policy=policy) as running:
            await until(lambda: running.metric("volcano_py_node_load_nodes") == 2)
            await run_pods(running, "web-0", "web-1")
            put_job(server, "waits", pod={"nodeSelector": {"no": "node"}})  # so that cycles go on

            await until(lambda: leaving(server))

            assert len(leaving(server)) == 1


async def test_gangpreempt_makes_room_for_a_whole_gang_or_evicts_nobody(server: ApiServer) -> None:
    put_classes(server)
    put_node(server, "n1", cpu=4)
    put_job(server, "elastic", 4, minimum=2, node="n1", priority="low")
    async with scheduler(server.url, policy=a_policy("gangpreempt", *PREEMPT)) as running:
        await run_pods(running, *(f"elastic-{i}" for i in range(4)))
        put_job(server, "large", 5, priority="high")
        await until(lambda: condition(server, "large-0"))
        await stays(lambda: not leaving(server))

        put_job(server, "gang", 2, priority="high")

        await until(lambda: len(leaving(server)) == 2)
