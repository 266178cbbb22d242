"""Other operators bring their own PodGroups: their gangs run, and nothing here works against them.

The Spark operator, KubeRay and Kubeflow's operators write PodGroups and mark their pods; `tests/e2e/operators/` says
what each does. The API server is the embedded one; scheduler and controllers are ours.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
import yaml

from tests.apiserver.support import until
from tests.e2e.operators import FILES, Operator
from volcano_py.conf.reload import built_in
from volcano_py.daemon.configuration import Configuration
from volcano_py.local import objects
from volcano_py.local.up import LocalSystem, UpOptions
from volcano_py.runtime.signals import Shutdown
from volcano_py.testing import a_priority_class, manifest

SYNCS = 5
SYNC_EVERY_S = 0.02
TOO_LITTLE = UpOptions(nodes=1, cpu="3", memory="8Gi", extended=((objects.GPU, "4"),))
TOO_SMALL = UpOptions(nodes=12, cpu="1", memory="4Gi", extended=((objects.GPU, "4"),))
ROOM = objects.node("big", {"cpu": "32", "memory": "64Gi", objects.GPU: "8"})
NIGHTLY = manifest(a_priority_class("nightly", 1000))
FACTS = {name: yaml.safe_load(file.read_text()) for name, file in FILES.items()}
GANGS = [name for name, facts in FACTS.items() if facts["group"]["spec"]["minMember"] > 1]


@asynccontextmanager
async def playing(name: str, options: UpOptions) -> AsyncIterator[tuple[Operator, LocalSystem]]:
    async with (
        LocalSystem(options, Configuration(built_in()), Shutdown()) as system,
        aiohttp.ClientSession() as session,
    ):
        system.cluster.create(copy.deepcopy(NIGHTLY))
        yield Operator(name, system.cluster, session), system


@asynccontextmanager
async def running(name: str) -> AsyncIterator[Operator]:
    """Play an operator until all its pods run."""
    async with playing(name, TOO_LITTLE) as (operator, system):
        system.cluster.create(copy.deepcopy(ROOM))
        await operator.begin()
        await operator.make_pods(operator.facts["pods"])
        await until(operator.all_run)
        await operator.at_rest()
        yield operator


@asynccontextmanager
async def reconciling(operator: Operator) -> AsyncIterator[None]:
    """Let an operator reconcile all the time."""

    async def forever() -> None:
        while True:
            await operator.sync()
            await asyncio.sleep(SYNC_EVERY_S)

    task = asyncio.create_task(forever())
    try:
        yield
    finally:
        task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(ended, asyncio.CancelledError), ended


@pytest.mark.parametrize("name", FILES)
async def test_a_gang_waits_whole_and_runs_whole_while_its_operator_reconciles(name: str) -> None:
    async with playing(name, TOO_LITTLE) as (operator, system):
        await operator.begin()
        placing = asyncio.create_task(operator.make_pods(operator.facts["pods"]))
        await operator.at_rest()
        assert operator.phase() == "Pending"
        assert operator.bound() == []

        async with reconciling(operator):
            system.cluster.create(copy.deepcopy(ROOM))
            await placing
            await until(operator.all_run)
        await operator.at_rest()
        assert operator.all_run()
        assert operator.groups() == [operator.group_name]


@pytest.mark.parametrize("name", GANGS)
async def test_a_gang_does_not_begin_with_the_pods_that_fit(name: str) -> None:
    async with playing(name, TOO_SMALL) as (operator, _):
        await operator.begin()
        await operator.make_pods([entry for entry in operator.facts["pods"] if "after" not in entry])
        await until(lambda: bool(operator.group().get("status", {}).get("conditions")))
        await operator.at_rest()

        assert operator.phase() == "Inqueue"
        assert operator.bound() == []


@pytest.mark.parametrize("name", FILES)
async def test_reconciling_an_unchanged_job_changes_nothing_and_its_end_leaves_no_group(name: str) -> None:
    async with running(name) as operator:
        before = operator.group()
        for _ in range(SYNCS):
            await operator.sync()
        await operator.at_rest()
        assert operator.group() == before

        if operator.facts["leaves_first"]:
            await operator.end_pods()
            await until(lambda: operator.phase() == "Completed")
            await operator.delete_group()
        else:
            await operator.delete_owner()
            await until(lambda: not operator.running())
        await operator.at_rest()
        assert operator.groups() == []


async def test_workers_that_join_a_running_ray_cluster_are_placed() -> None:
    async with running("kuberay_cluster") as operator:
        resize = operator.facts["resize"]
        before = len(operator.running())

        await operator.put({**operator.facts["group"]["spec"], **resize["spec"]})
        await operator.make_pods(resize["pods"])
        await until(operator.all_run)
        await operator.at_rest()

        group = operator.group()
        assert len(operator.running()) == before + 2
        assert (group["spec"]["minMember"], group["status"]["phase"]) == (6, "Running")
        assert group["metadata"]["annotations"]["team"] == "search"


async def test_executors_join_a_driver_that_another_scheduler_has_placed() -> None:
    async with playing("spark", TOO_LITTLE) as (operator, system):
        system.cluster.create(copy.deepcopy(ROOM))
        driver, executors = (copy.deepcopy(entry) for entry in operator.facts["pods"])
        driver["spec"] |= {"schedulerName": "default-scheduler", "nodeName": "big"}

        await operator.begin()
        await operator.make_pods([driver, executors])
        await until(lambda: len(operator.running()) == 1 + executors["count"])
        await until(lambda: operator.phase() == "Running")


def test_every_operator_says_what_it_writes_and_where_that_was_read() -> None:
    assert len(FACTS) == 7
    for name, facts in FACTS.items():
        assert facts["facts"].strip(), name
        assert facts["read"].count("/") >= 3, name


def test_the_readme_explains_every_key() -> None:
    (folder,) = {file.parent for file in FILES.values()}
    explained = (folder / "README.md").read_text()

    assert all(f"`{key}`" in explained for facts in FACTS.values() for key in facts)
