"""Nodes divided among schedulers, through the daemon: where pods go, what our NodeShard says, which rights it takes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.daemon.cluster import Running, condition, placed, put_job, put_node, scheduler
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.daemon.options import ShardOptions
from volcano_py.kube.resource import NODE_SHARDS
from volcano_py.testing import a_shard, manifest

MANIFESTS = Path(__file__).parents[2] / "manifests" / "sharding"
SHARDS = "nodeshards.shard.volcano.sh"


@pytest.fixture
def shards(server: ApiServer) -> ApiServer:
    """A server with three nodes of one CPU each, on which nodes can be divided."""
    for name in ("n1", "n2", "n3"):
        put_node(server, name, cpu=1)
    return server


def put_shard(server: ApiServer, name: str, nodes: list[str]) -> None:
    server.create(manifest(a_shard(name, nodes)))


def status(server: ApiServer, name: str) -> dict[str, Any]:
    found = server.get(SHARDS, name)
    assert found is not None
    return dict(found.get("status") or {})


async def change(running: Running, name: str, body: dict[str, Any], subresource: str = "") -> None:
    await running.daemon.client.patch(NODE_SHARDS, name, body, dict, subresource=subresource)


async def test_pods_stay_on_the_nodes_of_our_shard_and_go_to_one_that_becomes_ours(shards: ApiServer) -> None:
    put_shard(shards, "ours", ["n1"])
    put_shard(shards, "theirs", ["n2", "n3"])
    put_job(shards, "j", tasks=3, minimum=1)

    async with scheduler(shards.url, shard=ShardOptions("ours", strict=True)) as running:
        await until(lambda: placed(shards))
        waits = min({"j-0", "j-1"} - set(placed(shards)))  # of pods of one second the one with the least uid goes first
        await until(lambda: "2 node isn't in scheduler node shard" in condition(shards, waits).get("message", ""))
        assert set(placed(shards).values()) == {"n1"}
        assert status(shards, "ours")["nodesInUse"] == ["n1"]

        await change(running, "theirs", {"status": {"nodesInUse": ["n2", "n3"]}}, subresource="status")
        await change(running, "ours", {"spec": {"nodesDesired": ["n1", "n2"]}})
        await until(lambda: status(shards, "ours")["nodesToAdd"] == ["n2"])
        assert set(placed(shards).values()) == {"n1"}

        await change(running, "theirs", {"status": {"nodesInUse": ["n3"]}}, subresource="status")
        await until(lambda: set(placed(shards).values()) == {"n1", "n2"})
        await until(lambda: status(shards, "ours")["nodesInUse"] == ["n1", "n2"])


async def test_a_status_that_could_not_be_written_is_written_later(shards: ApiServer) -> None:
    put_shard(shards, "ours", ["n1"])
    fault = shards.faults.add(Fault("reply", verb="patch", resource=f"{SHARDS}/status", code=503, times=5))

    async with scheduler(shards.url, shard=ShardOptions("ours", strict=True)):
        await until(lambda: status(shards, "ours").get("nodesInUse") == ["n1"], 60.0)

    assert fault.hits == 5


async def test_a_soft_shard_uses_other_nodes_only_second(shards: ApiServer) -> None:
    put_shard(shards, "ours", ["n3"])
    async with scheduler(shards.url, shard=ShardOptions("ours")):
        put_job(shards, "first", tasks=1)
        await until(lambda: placed(shards, "first") == {"first-0": "n3"})

        put_job(shards, "second", tasks=2)
        await until(lambda: set(placed(shards, "second").values()) == {"n1", "n2"})


async def test_without_a_node_shard_nothing_is_placed_and_the_log_says_what_to_create(
    shards: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    put_job(shards, "j", tasks=1)

    async with scheduler(shards.url, shard=ShardOptions("ours", strict=True)):
        await until(lambda: "3 node isn't in scheduler node shard" in condition(shards, "j-0").get("message", ""))

        put_shard(shards, "ours", ["n2"])
        await until(lambda: placed(shards) == {"j-0": "n2"})

    assert "our NodeShard does not exist" in capsys.readouterr().out


def used(running: Running) -> set[tuple[str, str]]:
    """Return verbs and resources of the requests about NodeShards."""
    samples = [sample for metric in running.daemon.registry.collect() for sample in metric.samples]
    named = (one.labels for one in samples if one.name == "volcano_py_api_requests_total")
    return {
        (one["verb"], one["resource"].replace(".shard.volcano.sh", ""))
        for one in named
        if one["resource"].startswith("nodeshards")
    }


async def test_the_rights_of_the_manifest_are_those_that_are_used(shards: ApiServer) -> None:
    role = next(yaml.safe_load_all((MANIFESTS / "scheduler.yaml").read_text()))
    granted = {(verb, name) for rule in role["rules"] for name in rule["resources"] for verb in rule["verbs"]}
    put_shard(shards, "ours", ["n1"])

    async with scheduler(shards.url, shard=ShardOptions("ours")) as running:
        await until(lambda: status(shards, "ours").get("nodesInUse") == ["n1"])
        await until(lambda: len(used(running)) >= len(granted))  # requests are counted when their answers are there
        assert used(running) == granted
