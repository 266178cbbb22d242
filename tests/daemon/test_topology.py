"""HyperNodes on their way through the daemon: watched from the start, and a change of one starts a cycle at once."""

from typing import Any

from tests.daemon.cluster import placed, put_job, put_node, put_pod, scheduler, stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.conf.loader import parse_conf
from volcano_py.kube.resource import HYPER_NODES
from volcano_py.local.manifests import definitions
from volcano_py.scheduler import resolve
from volcano_py.testing import a_group, a_hyper_node, manifest

CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: network-topology-aware
"""
NEVER_S = 600.0


def put_gang(server: ApiServer, name: str, tasks: int, tier: int) -> None:
    topology = {"mode": "hard", "highestTierAllowed": tier}
    server.create(manifest(a_group(name, min_available=tasks, spec={"networkTopology": topology})))
    for index in range(tasks):
        put_pod(server, f"{name}-{index}", name)


def topology_scheduler(server: ApiServer) -> Any:
    """Return a scheduler that runs a cycle only when something changes."""
    return scheduler(server.url, policy=resolve(parse_conf(CONF, "test.conf")), period_s=NEVER_S)


async def test_a_gang_is_placed_as_soon_as_a_hyper_node_has_room_for_it(server: ApiServer) -> None:
    put_node(server, "n1", cpu=2)
    put_node(server, "n2", cpu=2)
    server.create(manifest(a_hyper_node("rack", 1, ["n1"])))
    server.create(manifest(a_hyper_node("row", 2, ["n2"], children=["rack"])))
    async with topology_scheduler(server) as running:
        put_gang(server, "train", 4, tier=1)
        await stays(lambda: placed(server) == {}, seconds=0.5)

        larger = {"spec": manifest(a_hyper_node("rack", 1, ["n1", "n2"]))["spec"]}
        await running.daemon.client.patch(HYPER_NODES, "rack", larger, dict)

        await until(lambda: len(placed(server)) == 4)


async def test_a_cluster_without_the_definition_of_hyper_nodes_schedules_gangs() -> None:
    async with ApiServer() as server:
        for definition in definitions():
            if definition["spec"]["names"]["kind"] != HYPER_NODES.kind:
                server.create(definition)
        put_node(server, "n1", cpu=2)
        async with topology_scheduler(server) as running:
            put_job(server, "train", 2)

            await until(lambda: len(placed(server)) == 2)
            assert running.daemon.not_ready() == []
