"""Terms between pods, through the daemon on an embedded API server."""

from collections import Counter
from typing import Any

from tests.daemon.cluster import condition, placed, put_group, scheduler
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.testing import a_node, a_pod, manifest

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def put_zoned_node(server: ApiServer, name: str, zone: str) -> None:
    server.create(manifest(a_node(name, cpu=8, memory="64Gi", labels={ZONE: zone})))


def put_gang(server: ApiServer, name: str, tasks: int, spec: dict[str, Any]) -> None:
    put_group(server, name, tasks)
    for number in range(tasks):
        labels = {"app": name, "index": str(number)}
        server.create(manifest(a_pod(f"{name}-{number}", group=name, cpu=1, labels=labels), spec=spec))


def likes(name: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": name}}}


async def test_gangs_with_anti_affinity_and_spread_are_placed_and_one_without_enough_nodes_is_not(server):
    for number in range(4):
        put_zoned_node(server, f"n{number}", "ab"[number % 2])
    apart = {"podAntiAffinity": {REQUIRED: [{**likes("apart"), "topologyKey": HOST}]}}
    crowd = {"podAntiAffinity": {REQUIRED: [{**likes("crowd"), "topologyKey": HOST}]}}
    even = {**likes("even"), "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    async with scheduler(server.url):
        put_gang(server, "apart", 4, {"affinity": apart})
        put_gang(server, "even", 6, {"topologySpreadConstraints": [even]})
        put_gang(server, "crowd", 5, {"affinity": crowd})

        await until(lambda: len(placed(server)) == 10)
        await until(lambda: all(condition(server, f"crowd-{number}") for number in range(5)))

        assert sorted(placed(server, "apart").values()) == ["n0", "n1", "n2", "n3"]
        zones = Counter(int(node[1]) % 2 for node in placed(server, "even").values())
        assert sorted(zones.values()) == [3, 3]
        assert placed(server, "crowd") == {}
        said = [condition(server, f"crowd-{number}")["message"] for number in range(5)]
        assert "0/4 nodes are unavailable: 4 node(s) didn't match pod anti-affinity rules." in said
