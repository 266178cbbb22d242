"""Contract: nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.contract.api import STRATEGIC, Answer, Api, unique

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


@pytest.fixture
async def node(api: Api) -> AsyncIterator[Answer]:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    answer = await api.made("/api/v1/nodes", {"metadata": {"name": unique("node")}, "status": {"capacity": capacity}})
    yield answer
    await api.delete(f"/api/v1/nodes/{answer.meta['name']}")


async def test_a_new_node_is_tainted_and_keeps_its_status(node: Answer) -> None:
    assert node.body["spec"]["taints"] == [NOT_READY]
    assert node.body["status"]["capacity"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
    assert node.body["status"]["allocatable"] == node.body["status"]["capacity"]
    assert "generation" not in node.meta
    assert "namespace" not in node.meta


async def test_a_ready_node_loses_the_taint(api: Api, node: Answer) -> None:
    path = f"/api/v1/nodes/{node.meta['name']}"
    ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": "2030-01-01T00:00:00Z"}
    await api.patch(f"{path}/status", {"status": {"conditions": [ready]}}, STRATEGIC)
    answer = await api.until(path, lambda found: NOT_READY not in found.body["spec"].get("taints", []), "no taint")
    assert "taints" not in answer.body["spec"]


async def test_a_cordoned_node_is_found_by_selector(api: Api, node: Answer) -> None:
    name = node.meta["name"]
    await api.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    answer = await api.get("/api/v1/nodes", fieldSelector=f"spec.unschedulable=true,metadata.name={name}")
    assert answer.names == [name]


async def test_capacity_must_be_quantities(api: Api) -> None:
    bad = {"metadata": {"name": unique("node")}, "status": {"capacity": {"cpu": "lots"}}}
    answer = await api.post("/api/v1/nodes", bad)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_deleted_node_is_answered_with_a_status(api: Api, node: Answer) -> None:
    answer = await api.delete(f"/api/v1/nodes/{node.meta['name']}")
    assert (answer.status, answer.body["kind"], answer.body["details"]["kind"]) == (200, "Status", "nodes")
