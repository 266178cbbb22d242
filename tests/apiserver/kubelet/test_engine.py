"""The kubelet stand-in at work, in-process and over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from tests.apiserver.support import a_bare_pod, until
from volcano_py.apiserver import ApiServer, ApiServerOptions, Fault
from volcano_py.apiserver.kubelet import ClusterPort, HttpPort, InProcessPort, Kubelet, StageError, load_stages
from volcano_py.apiserver.subresources import bind
from volcano_py.testing import a_node, manifest

QUICK = {"pod-run": 0.0, "pod-gone": 0.0}


@pytest.fixture(params=["in-process", "http"])
async def port(request: pytest.FixtureRequest, server: ApiServer) -> AsyncIterator[ClusterPort]:
    if request.param == "in-process":
        yield InProcessPort(server.registry)
        return
    async with aiohttp.ClientSession() as session:
        yield HttpPort(session, server.url)


def _phase(server: ApiServer, name: str = "a") -> str | None:
    pod = server.get("pods", name, "default")
    return str(pod["status"]["phase"]) if pod else None


def _delete(server: ApiServer, name: str = "a") -> None:
    server.registry.delete(server.resources.named("pods"), "default", name)


async def test_a_bound_pod_runs_and_a_deleted_one_is_removed(server: ApiServer, port: ClusterPort) -> None:
    async with Kubelet(port, delays=QUICK) as kubelet:
        server.create(a_bare_pod(nodeName="n"))
        await until(lambda: _phase(server) == "Running")
        pod = server.get("pods", "a", "default")
        assert pod is not None
        assert pod["status"]["podIP"].startswith("10.")
        assert {item["type"]: item["status"] for item in pod["status"]["conditions"]}["Ready"] == "True"
        _delete(server)
        await until(lambda: _phase(server) is None)
    assert kubelet.applied["pod-run"] == kubelet.applied["pod-gone"] == 1


async def test_pods_created_before_the_kubelet_are_run(server: ApiServer, port: ClusterPort) -> None:
    server.create(a_bare_pod("early", nodeName="n"))
    async with Kubelet(port, delays=QUICK):
        await until(lambda: _phase(server, "early") == "Running")


async def test_the_scheduled_condition_survives_the_start(server: ApiServer, port: ClusterPort) -> None:
    server.create(a_bare_pod())
    pods = server.resources.named("pods")
    bind(server.registry, pods, "default", "a", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    async with Kubelet(port, delays=QUICK):
        await until(lambda: _phase(server) == "Running")
    pod = server.get("pods", "a", "default")
    assert pod is not None
    assert {"PodScheduled", "Ready"} <= {item["type"] for item in pod["status"]["conditions"]}


async def test_a_pod_with_a_duration_ends_as_its_command_says(server: ApiServer, port: ClusterPort) -> None:
    async with Kubelet(port, delays=QUICK):
        for name, command in (("good", "sleep 0.01"), ("bad", "sleep 0.01; exit 2")):
            container = {"name": "main", "image": "none:1", "command": ["sh", "-c", command]}
            server.create(a_bare_pod(name, nodeName="n", restartPolicy="Never", containers=[container]))
        await until(lambda: (_phase(server, "good"), _phase(server, "bad")) == ("Succeeded", "Failed"))


async def test_a_pod_deleted_before_it_starts_never_runs(server: ApiServer, port: ClusterPort) -> None:
    async with Kubelet(port, delays={"pod-run": 0.05, "pod-gone": 0.0}) as kubelet:
        server.create(a_bare_pod(nodeName="n"))
        _delete(server)
        await until(lambda: _phase(server) is None)
        await asyncio.sleep(0.06)  # the time at which it would have started
    assert kubelet.applied["pod-run"] == 0


async def test_nodes_become_ready_and_lose_their_taint() -> None:
    async with ApiServer(ApiServerOptions(node_lifecycle=True)) as server, Kubelet(InProcessPort(server.registry)):
        for index in range(20):
            server.create(manifest(a_node(f"n{index}")))
        assert all(node["spec"]["taints"] for node in server.list("nodes"))
        await until(lambda: not any(node["spec"].get("taints") for node in server.list("nodes")))


async def test_thousands_of_pods_run_on_one_timer(server: ApiServer) -> None:
    async with Kubelet(InProcessPort(server.registry), delays=QUICK) as kubelet:
        for index in range(2000):
            server.create(a_bare_pod(f"p{index}", nodeName="n"))
        await until(lambda: kubelet.applied["pod-run"] == 2000)
    assert len([task for task in asyncio.all_tasks() if "kubelet" in task.get_name()]) == 0


async def test_a_change_that_leaves_the_stage_does_not_restart_its_clock(server: ApiServer) -> None:
    async with Kubelet(InProcessPort(server.registry), delays={"pod-run": 0.15}):
        server.create(a_bare_pod(nodeName="n"))

        def relabel(obj: dict[str, Any], value: int) -> dict[str, Any]:
            obj["metadata"]["labels"] = {"n": str(value)}
            return obj

        pods = server.resources.named("pods")
        for value in range(100):
            server.registry.patch(pods, "default", "a", lambda obj, value=value: relabel(obj, value))  # type: ignore[misc]
            await asyncio.sleep(0.005)
            if _phase(server) == "Running":
                break
        assert _phase(server) == "Running"  # half a second of changes, each within the 0.15 s


async def test_a_refused_write_is_tried_again(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("volcano_py.apiserver.kubelet.engine._RETRY_S", 0.01)
    server.faults.add(Fault("reply", verb="patch", resource="pods/status", code=500, times=2))
    async with aiohttp.ClientSession() as session, Kubelet(HttpPort(session, server.url), delays=QUICK):
        with caplog.at_level(logging.ERROR):
            server.create(a_bare_pod(nodeName="n"))
            await until(lambda: _phase(server) == "Running")
    assert "stage pod-run of a failed" in caplog.text


@pytest.mark.parametrize("how", ["clean", "abrupt", "expired"])
async def test_a_watch_that_ends_is_resumed(server: ApiServer, how: Any) -> None:
    async with aiohttp.ClientSession() as session, Kubelet(HttpPort(session, server.url), delays=QUICK):
        await until(lambda: bool(server.store.collection("pods").watchers))
        server.faults.disconnect_watches("*", how)
        server.create(a_bare_pod(nodeName="n"))
        await until(lambda: _phase(server) == "Running")


async def test_a_new_list_finds_objects_deleted_meanwhile(server: ApiServer) -> None:
    seen: list[tuple[str, str]] = []
    server.create(a_bare_pod())
    async with aiohttp.ClientSession() as session:
        port = HttpPort(session, server.url)
        follow = asyncio.create_task(
            port.follow(["pods"], lambda resource, kind, obj: seen.append((kind, obj["metadata"]["name"])))
        )
        await until(lambda: bool(server.store.collection("pods").watchers))
        server.faults.disconnect_watches()
        _delete(server)
        server.create(a_bare_pod("b"))
        server.faults.compact()
        await until(lambda: ("ADDED", "b") in seen)
        follow.cancel()
        await asyncio.wait([follow])
    assert seen == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "b")]


async def test_an_object_that_two_stages_match_is_left_alone(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    stages = load_stages()
    [run] = [stage for stage in stages if stage.name == "pod-run"]
    with caplog.at_level(logging.ERROR):
        async with Kubelet(InProcessPort(server.registry), [run, run], delays={"pod-run": 0.0}):
            server.create(a_bare_pod(nodeName="n"))
            await until(lambda: "pods a is left alone" in caplog.text)
    assert _phase(server) == "Pending"


async def test_a_delay_for_a_stage_that_does_not_exist_is_an_error(server: ApiServer) -> None:
    with pytest.raises(StageError, match="no stage is called pod-walk"):
        Kubelet(InProcessPort(server.registry), delays={"pod-walk": 1})
