"""The cluster of `volcano-py up`: a gang runs on it, and nothing is left of it afterwards."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path

import pytest
import yaml

from tests.apiserver.support import until
from volcano_py.api import keys
from volcano_py.apiserver import PortInUse
from volcano_py.conf.reload import ConfFile, built_in
from volcano_py.daemon.configuration import Configuration
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import VCJOBS
from volcano_py.local import objects
from volcano_py.local.cluster import LocalCluster
from volcano_py.local.kubeconfig import KubeconfigError, written_kubeconfig
from volcano_py.local.up import LocalSystem, UpOptions
from volcano_py.runtime.signals import Shutdown

DEADLINE_S = 10.0


async def test_a_gang_and_a_bare_pod_are_placed() -> None:
    shutdown = Shutdown()
    options = UpOptions(nodes=2, cpu="2", memory="4Gi", extended=(("nvidia.com/gpu", "1"),))
    async with LocalSystem(options, Configuration(built_in()), shutdown) as system:
        cluster = system.cluster
        names = [node["metadata"]["name"] for node in cluster.registry.objects("nodes")]
        cluster.create(objects.pod_group("gang", 2))
        for index in range(2):
            cluster.create(objects.pod(f"gang-{index}", "gang", "worker", {"cpu": "1", objects.GPU: "1"}))
        bare = objects.pod("bare", "none", "worker", {"cpu": "1"})
        del bare["metadata"]["annotations"]
        cluster.create(bare)
        await until(lambda: all(pod["spec"].get("nodeName") for pod in cluster.pods()))
        groups = [group["metadata"]["name"] for group in cluster.registry.objects(f"podgroups.{keys.SCHEDULING_GROUP}")]
        waiting = asyncio.create_task(system.until_end())
        await asyncio.sleep(0)
        assert not waiting.done()
        shutdown.request("test")
        await asyncio.wait_for(waiting, DEADLINE_S)
    assert names == ["node-0", "node-1"]
    assert len(groups) == 2  # the bare pod got one of its own
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_job_runs_to_its_end() -> None:
    task = objects.task("worker", 2, {"cpu": "1"})
    task["template"]["metadata"] = {"annotations": {"kubelet.volcano-py/start-after": "0"}}
    async with LocalSystem(UpOptions(nodes=1), Configuration(built_in()), Shutdown()) as system:
        cluster = system.cluster
        cluster.create(objects.job("train", [task]))
        await until(lambda: _phase(cluster) == "Running")
        pods = list(cluster.pods())
        await cluster.finish(pods)
        await until(lambda: _phase(cluster) == "Completed")
    assert sorted(pod["metadata"]["name"] for pod in pods) == ["train-worker-0", "train-worker-1"]


async def test_what_users_send_passes_through_the_webhooks() -> None:
    job = objects.job("train", [objects.task("worker", 2, {"cpu": "1"})])
    del job["spec"]["tasks"][0]["name"]
    async with (
        LocalSystem(UpOptions(nodes=1), Configuration(built_in()), Shutdown()) as system,
        ApiClient(Credentials(system.url)) as user,
    ):
        await until(lambda: "default" in _open_queues(system.cluster))
        stored = await user.create(VCJOBS, job, dict, namespace="default")
        job["metadata"]["name"], job["spec"]["minAvailable"] = "wrong", 3
        with pytest.raises(errors.ApiError, match="'minAvailable' should not be greater than total replicas in tasks"):
            await user.create(VCJOBS, job, dict, namespace="default")
    assert stored["spec"]["tasks"][0]["name"] == "default0"


def _open_queues(cluster: LocalCluster) -> list[str]:
    queues = cluster.registry.objects(f"queues.{keys.SCHEDULING_GROUP}")
    return [queue["metadata"]["name"] for queue in queues if queue.get("status", {}).get("state") == "Open"]


def _phase(cluster: LocalCluster) -> str:
    (job,) = cluster.registry.objects("jobs.batch.volcano.sh")
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


async def test_a_changed_configuration_is_applied_and_a_faulty_one_is_not(tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text("actions: enqueue\n")
    configuration = Configuration.of_file(ConfFile(conf))
    async with LocalSystem(UpOptions(nodes=1), configuration, Shutdown()) as system:
        system.cluster.create(objects.pod_group("gang", 1))
        system.cluster.create(objects.pod("gang-0", "gang", "worker", {"cpu": "1"}))
        conf.write_text("actions: nonsense\n")
        await until(lambda: configuration.shown()["lastError"] is not None)
        assert not any(pod["spec"].get("nodeName") for pod in system.cluster.pods())
        conf.write_text("actions: 'enqueue, allocate'\ntiers: [{plugins: [{name: gang}]}]\n")
        await until(lambda: all(pod["spec"].get("nodeName") for pod in system.cluster.pods()))
    assert configuration.policy.action_names == ("enqueue", "allocate")


async def test_a_port_in_use_is_reported() -> None:
    async with LocalSystem(UpOptions(nodes=0), Configuration(built_in()), Shutdown()) as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(PortInUse, match=f"port {port} on 127.0.0.1 is in use"):
            async with LocalSystem(UpOptions(port=port), Configuration(built_in()), Shutdown()):
                pytest.fail("it began on a port in use")


def test_a_kubeconfig_exists_as_long_as_its_cluster() -> None:
    with written_kubeconfig("http://127.0.0.1:5") as path:
        document = yaml.safe_load(path.read_text())
        assert document["clusters"][0]["cluster"]["server"] == "http://127.0.0.1:5"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.parent.exists()


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "config"
    theirs.write_text("mine")
    with pytest.raises(KubeconfigError, match="already exists"), written_kubeconfig("http://x", theirs):
        pytest.fail("it was overwritten")
    assert theirs.read_text() == "mine"


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(KubeconfigError, match="cannot be written"),
        written_kubeconfig("http://x", tmp_path / "a" / "b"),
    ):
        pytest.fail("it was written")
