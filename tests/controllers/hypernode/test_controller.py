"""HyperNodes on an embedded API server: numbers of nodes, and discovery that is switched while it runs."""

from typing import Any

import yaml

from tests.controllers.managing import controllers
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.controllers.hypernode.configuration import KEY
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import CONFIG_MAPS, NODES
from volcano_py.testing import a_namespace, a_node, manifest

HYPER_NODES = "hypernodes.topology.volcano.sh"
SETTINGS = "volcano-controller-configmap"


def put_hyper_node(server: ApiServer, name: str, *members: dict[str, Any]) -> None:
    written = [{"type": "Node", "selector": member} for member in members]
    head = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}}
    server.create({**head, "spec": {"tier": 1, "members": written}})


def put_node(server: ApiServer, name: str, **labels: str) -> None:
    server.create(manifest(a_node(name, labels=labels)))


def count(server: ApiServer, name: str) -> Any:
    found = server.get(HYPER_NODES, name)
    return None if found is None else found.get("status", {}).get("nodeCount")


def names(server: ApiServer) -> list[str]:
    found = server.list(HYPER_NODES)
    return sorted(one["metadata"]["name"].rpartition("-")[0] for one in found)


def settings(*labels: str, enabled: bool = True) -> dict[str, Any]:
    types = {"roce": [{"nodeLabel": label} for label in labels]}
    entry = {"source": "label", "enabled": enabled, "config": {"networkTopologyTypes": types}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SETTINGS, "namespace": "volcano-system"},
        "data": {KEY: yaml.safe_dump({"networkTopologyDiscovery": [entry]})},
    }


async def test_nodes_are_counted_again_when_they_come_and_go(server: ApiServer) -> None:
    put_node(server, "a-1", rack="r1")
    put_hyper_node(server, "by-name", {"exactMatch": {"name": "a-1"}}, {"exactMatch": {"name": "missing"}})
    put_hyper_node(server, "by-pattern", {"regexMatch": {"pattern": "^a-"}})
    put_hyper_node(server, "by-label", {"labelMatch": {"matchLabels": {"rack": "r1"}}})
    async with controllers(server.url):
        await until(lambda: [count(server, f"by-{how}") for how in ("name", "pattern", "label")] == [2, 1, 1])
        put_node(server, "a-2", rack="r1")
        put_node(server, "b-1", rack="r1")

        await until(lambda: [count(server, f"by-{how}") for how in ("name", "pattern", "label")] == [2, 2, 3])


async def test_discovery_follows_nodes_and_its_configuration(server: ApiServer) -> None:
    server.create(manifest(a_namespace("volcano-system")))
    for index in range(4):
        put_node(server, f"n-{index}", rack=f"r{index // 2}", spine="s")
    where: dict[str, Any] = {"namespace": "volcano-system"}
    async with controllers(server.url), ApiClient(Credentials(server.url)) as client:
        server.create(settings("spine", "rack", "kubernetes.io/hostname"))
        racks = ["hypernode-roce-tier1"] * 2
        await until(lambda: names(server) == [*racks, "hypernode-roce-tier2"])
        put_node(server, "n-5", rack="r5")
        await until(lambda: names(server) == [*racks, "hypernode-roce-tier1", "hypernode-roce-tier2"])
        data = settings("rack", "kubernetes.io/hostname")["data"]
        await client.patch(CONFIG_MAPS, SETTINGS, {"data": data}, dict, **where)
        await until(lambda: names(server) == [*racks, "hypernode-roce-tier1"])
        await client.delete(CONFIG_MAPS, SETTINGS, **where)  # what was found stays

        assert names(server) == [*racks, "hypernode-roce-tier1"]


async def test_a_hyper_node_that_is_refused_holds_up_no_others(server: ApiServer) -> None:
    server.create(manifest(a_namespace("volcano-system")))
    put_node(server, "a", rack="r1")
    put_node(server, "b", rack="r1")
    server.create(settings("rack", "kubernetes.io/hostname"))
    async with controllers(server.url):
        await until(lambda: names(server) == ["hypernode-roce-tier1"])
        server.faults.add(Fault("reply", "create", HYPER_NODES, code=403, message="a policy"))

        await move(server, "b", "r2")

        await until(lambda: len(server.list(HYPER_NODES)[0]["spec"]["members"]) == 1)


async def move(server: ApiServer, node: str, rack: str) -> None:
    """Give a node another rack."""
    async with ApiClient(Credentials(server.url)) as user:
        await user.patch(NODES, node, {"metadata": {"labels": {"rack": rack}}}, dict[str, Any])
