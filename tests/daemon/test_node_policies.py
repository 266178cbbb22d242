"""What node groups, strategies, task topology and real load change, through the daemon on an embedded API server."""

import json
from collections import Counter
from typing import Any

from tests.daemon.cluster import condition, placed, scheduler
from tests.daemon.loads.servers import answering, prometheus
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.conf.loader import parse_conf
from volcano_py.scheduler import Policy, resolve
from volcano_py.testing import a_group, a_node, a_pod, a_queue, manifest

GROUP_LABEL = "volcano.sh/nodegroup-name"


def a_policy(plugin: dict[str, Any] | None, **sections: Any) -> Policy:
    """Return a policy that spreads pods, and what one more plugin makes of it."""
    plugins = [{"name": name} for name in ("gang", "predicates", "nodeorder")]
    tiers = [{"plugins": [*plugins, *([plugin] if plugin else [])]}]
    return resolve(parse_conf(json.dumps({"actions": "enqueue, allocate", "tiers": tiers, **sections}), "test.conf"))


def put_node(server: ApiServer, name: str, group: str = "any") -> None:
    server.create(manifest(a_node(name, memory="64Gi", labels={GROUP_LABEL: group})))


def put_job(server: ApiServer, name: str, roles: dict[str, int], queue: str = "default", **notes: str) -> None:
    """Create a gang; its annotations are those of task topology without their prefix."""
    annotations = {f"volcano.sh/task-topology-{key.replace('_', '-')}": text for key, text in notes.items()}
    group = a_group(name, queue=queue, min_available=sum(roles.values()), annotations=annotations)
    server.create(manifest(group))
    for role, count in roles.items():
        for number in range(count):
            put_pod(server, f"{name}-{role}-{number}", name, role)


def put_pod(server: ApiServer, name: str, group: str, role: str = "", node: str = "") -> None:
    server.create(manifest(a_pod(name, group=group, role=role, cpu=1, node=node)))


async def test_a_queue_uses_its_node_groups_and_jobs_of_one_without_groups_say_why_they_wait(server: ApiServer) -> None:
    for name, group in (("n1", "cpu"), ("n2", "gpu"), ("n3", "gpu")):
        put_node(server, name, group)
    affinity = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["gpu"]}}
    limits = {"volcano.sh/nodegroup-resource-limits": '{"gpu": {"cpu": "5"}}'}
    server.create(manifest(a_queue("ml"), metadata={"annotations": limits}, spec={"affinity": affinity}))
    async with scheduler(server.url, policy=a_policy({"name": "nodegroup"})):
        put_job(server, "big", {"worker": 4}, queue="ml")
        put_job(server, "small", {"worker": 2}, queue="ml")
        put_job(server, "lost", {"worker": 1})

        await until(lambda: len(placed(server)) == 4)
        await until(lambda: condition(server, "lost-worker-0") and condition(server, "small-worker-1"))

        assert set(placed(server, "big").values()) == {"n2", "n3"}
        assert "node group affinity not specified" in condition(server, "lost-worker-0")["message"]
        assert "node group resource limit exceeded" in condition(server, "small-worker-1")["message"]


async def test_nodeorder_spreads_and_predicates_keep_a_cordoned_node_out(server: ApiServer) -> None:
    for name in ("n1", "n2", "n3"):
        put_node(server, name)
    server.create(manifest(a_node("n0", cpu=64, unschedulable=True)))
    async with scheduler(server.url, policy=a_policy(None)):
        put_job(server, "spread", {"worker": 3})

        await until(lambda: len(placed(server)) == 3)

        assert set(placed(server).values()) == {"n1", "n2", "n3"}


async def test_most_allocated_packs_what_nodeorder_would_spread(server: ApiServer) -> None:
    for name in ("n1", "n2", "n3"):
        put_node(server, name)
    strategy = {"resources": {"cpu": {"type": "MostAllocated", "weight": 1}}}
    async with scheduler(server.url, policy=a_policy({"name": "resource-strategy-fit", "arguments": strategy})):
        put_job(server, "packed", {"worker": 4})

        await until(lambda: len(placed(server)) == 4)

        assert len(set(placed(server).values())) == 1


async def test_task_topology_packs_servers_and_workers_that_nodeorder_would_spread(server: ApiServer) -> None:
    for number in range(6):
        put_node(server, f"n{number}")
    topology = {"name": "task-topology", "arguments": {"task-topology.weight": 10}}
    async with scheduler(server.url, policy=a_policy(topology)):
        put_job(server, "tf", {"ps": 2, "worker": 4}, affinity="ps,worker", anti_affinity="ps")

        await until(lambda: len(placed(server)) == 6)

        roles = Counter((node, name.split("-")[1]) for name, node in placed(server).items())
        assert sorted(roles.values()) == [1, 1, 2, 2]
        assert len({node for node, _ in roles}) == 2


async def test_a_node_that_prometheus_says_is_busy_takes_nothing(server: ApiServer) -> None:
    for name in ("n1", "n2"):
        put_node(server, name)
    async with answering(prometheus({"n1": 95, "n2": 20}, {"n1": 10, "n2": 20})) as url:
        policy = a_policy({"name": "usage"}, metrics={"type": "prometheus", "address": url, "interval": "100ms"})
        async with scheduler(server.url, policy=policy) as running:
            await until(lambda: running.metric("volcano_py_node_load_nodes") == 2)
            put_job(server, "first", {"worker": 3})
            await until(lambda: len(placed(server)) == 3)
            put_job(server, "second", {"worker": 2})
            await until(lambda: condition(server, "second-worker-1"))

            assert set(placed(server).values()) == {"n2"}
            said = condition(server, "second-worker-1")["message"]
            assert "the CPU load of the node exceeds the upper limit" in said
