"""Our controllers take over what Volcano's have left, on an embedded API server: running jobs are not disturbed."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest

from tests.controllers.managing import controllers
from tests.daemon.cluster import serve_definitions
from tests.effects.waiting import until
from tests.migration.random_jobs import random_belongings, random_job
from tests.migration.volcano_job_kinds import KINDS, Obj, Pods, job, on
from tests.migration.volcano_job_sync import acts, owned_by
from tests.migration.volcano_workloads import Belongings, belongings
from tests.migration.volcano_writes import Request, create, requests, write_status
from volcano_py.apiserver import ApiServer
from volcano_py.testing import a_queue, manifest

JOBS, GROUPS, QUEUES = "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"
SEEDS = int(os.environ.get("VOLCANO_PY_TAKEOVER_SEEDS", "6"))
JOBS_OF_A_SEED = 20


class Left:
    """Jobs on a server as Volcano left them."""

    def __init__(self, server: ApiServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session
        self.states: dict[str, str] = {}

    async def send(self, request: Request) -> Obj:
        """Send one request."""
        headers = {"Content-Type": request.content_type}
        url = self.server.url + request.path
        async with self._session.request(request.method, url, data=json.dumps(request.body), headers=headers) as answer:
            found: Obj = await answer.json()
            assert answer.status < 300, (request, found)
            return found

    async def put(self, one: Obj, state: str, **more: Any) -> Obj:
        """Create a job and all that belongs to it."""
        made = await self.send(create(one))
        await self.put_belongings(made, state, belongings(made, state, lambda pod: "node-0", **more))
        return made

    async def put_belongings(self, made: Obj, state: str, found: Belongings) -> None:
        """Create all that belongs to a job."""
        self.states[made["metadata"]["name"]] = state
        for request in requests(made, found):
            await self.send(request)

    async def put_random(self, rng: random.Random, name: str, state: str | None = None) -> Obj:
        """Create a random job and all that belongs to it."""
        made = await self.send(create(random_job(rng, name)))
        await self.put_belongings(made, *random_belongings(rng, made, state))
        return made

    def pods(self) -> dict[str, Obj]:
        """Return all pods by name."""
        return {one["metadata"]["name"]: one for one in self.server.list("pods")}

    def jobs(self) -> dict[str, Obj]:
        """Return all jobs by name."""
        return {one["metadata"]["name"]: one for one in self.server.list(JOBS)}

    def writes(self) -> Counter[tuple[str, str]]:
        """Return how many requests that may change something were answered since the controllers started."""
        return Counter(self.server.requests.writes())

    async def settle(self) -> None:
        """Wait until nothing was written for a while."""
        before = self.writes()
        for _ in range(100):
            for _ in range(20):  # in small steps: if the process stands still, the controllers do, too
                await asyncio.sleep(0.02)
            if before == (before := self.writes()):
                return
        raise AssertionError("the controllers write and write")

    def of_volcano(self, name: str) -> Any:
        """Return what Volcano's controller would do with a job now."""
        one = self.jobs()[name]
        return acts(one, self.server.list(GROUPS), self.server.list("pods"), {"default": {}})

    def restless(self) -> dict[str, list[str]]:
        """Return by job that runs what Volcano's controller would do to it."""
        found = {name: self.of_volcano(name) for name, state in self.states.items() if state == "running"}
        return {name: one.restless for name, one in found.items() if one.restless}


@pytest.fixture
async def left() -> AsyncIterator[Left]:
    async with ApiServer() as server, aiohttp.ClientSession() as session:
        serve_definitions(server)
        for name in ("root", "default"):
            server.create(manifest(a_queue(name), spec={} if name == "root" else {"parent": "root"}))
        yield Left(server, session)


def without_answers(status: Obj) -> Obj:
    """Return a status without the notes about what Volcano has not acted on."""
    notes = status.get("controlledResources", {})
    kept = {key: value for key, value in notes.items() if not key.startswith(("answered-", "task-failed-"))}
    return {**{key: value for key, value in status.items() if key != "controlledResources"}, **kept}


def phase(one: Obj) -> str:
    return str(one["status"]["state"]["phase"])


def of_running(left: Left, pods: Mapping[str, Obj]) -> dict[str, Obj]:
    """Return the pods of jobs that run."""
    jobs = [one for name, one in left.jobs().items() if left.states[name] == "running"]
    return {one["metadata"]["name"]: one for each in jobs for one in owned_by(each, pods.values())}


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_a_take_over_leaves_every_pod_of_running_jobs_as_it_is(left: Left, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(JOBS_OF_A_SEED):
        await left.put_random(rng, f"job-{number}", "running" if number % 2 else None)
    before, pods = left.jobs(), of_running(left, left.pods())
    left.server.requests.reset()
    async with controllers(left.server.url):
        await left.settle()

    assert of_running(left, left.pods()) == pods
    after = left.jobs()
    for name, state in left.states.items():
        if state == "running":
            assert phase(after[name]) == "Running", (name, after[name]["status"])
            assert without_answers(after[name]["status"]) == without_answers(before[name]["status"])
    assert left.restless() == {}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_that_runs_costs_one_write_and_has_what_it_had(left: Left, kind: str) -> None:
    await left.put(job("train", "default", KINDS[kind](Pods())), "running")
    before, pods = left.jobs()["train"], left.pods()
    (group,) = left.server.list(GROUPS)
    left.server.requests.reset()
    async with controllers(left.server.url):
        await left.settle()
        writes = left.writes()

    assert left.pods() == pods
    assert left.jobs()["train"] == before
    (now,) = left.server.list(GROUPS)
    assert now["spec"] == group["spec"]
    assert now["metadata"]["annotations"] == {**group["metadata"].get("annotations", {}), "volcano.sh/job-version": "0"}
    assert left.restless() == {}
    assert left.of_volcano("train").group_changes == []
    assert writes["patch", GROUPS] == 1
    assert not {key for key in writes if "jobs" in key[1] or "pods" in key[1].split(".")[0].split("/")}


async def test_a_unit_that_quantities_are_rarely_written_in_is_no_reason_to_write(left: Left) -> None:
    spec = KINDS["plain"](Pods())
    spec["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "500M", "cpu": "1"}}
    made = await left.send(create(job("train", "default", spec)))
    found = belongings(made, "running", lambda pod: "node-0")
    assert found.group is not None
    resources = found.group["spec"]["minResources"]
    assert resources["memory"] == resources["requests.memory"] == "1500M"  # Go keeps the unit of the template
    await left.put_belongings(made, "running", found)
    async with controllers(left.server.url):
        await left.settle()

    (group,) = left.server.list(GROUPS)
    assert group["spec"]["minResources"] == resources
    assert left.of_volcano("train").group_changes == []


@pytest.mark.parametrize("action", ["RestartJob", "TerminateJob"])
async def test_an_exit_code_that_volcano_did_not_read_is_no_reason_to_act_at_a_take_over(
    left: Left, action: str
) -> None:
    """Volcano reads the first container of a pod only; whoever runs such a job has seen it go on."""
    spec = KINDS["plain"](Pods())
    containers = spec["tasks"][0]["template"]["spec"]["containers"]
    containers.append({**containers[0], "name": "sidecar"})
    spec["policies"] = [on(3, action)]
    await left.put(job("train", "default", spec), "running", ended={"train-worker-1": (0, 3)})
    pods = left.pods()
    for _ in ("take-over", "restart of our controllers"):
        async with controllers(left.server.url):
            await left.settle()

            assert left.pods() == pods
            assert phase(left.jobs()["train"]) == "Running"
    async with controllers(left.server.url):
        another = pods["train-worker-2"]
        ended = pods["train-worker-1"]["status"]
        await left.send(write_status(another, ended, "kubelet"))
        await until(lambda: phase(left.jobs()["train"]) in ("Restarting", "Terminating", "Terminated", "Pending"))


async def test_a_group_that_was_unknown_long_ago_is_no_reason_to_act_at_a_take_over(left: Left) -> None:
    """After the first restart, Volcano answers the phase Unknown with nothing."""
    spec = {**KINDS["elastic"](Pods()), "policies": [on("Unknown", "RestartJob")]}
    made = await left.send(create(job("train", "default", spec)))
    found = belongings(made, "running", lambda pod: "node-0", version=1, retries=1)
    assert found.group is not None
    found.group["status"]["phase"] = "Unknown"
    await left.put_belongings(made, "running", found)
    pods = left.pods()
    for _ in ("take-over", "restart of our controllers"):
        async with controllers(left.server.url):
            await left.settle()

            assert left.pods() == pods
            assert phase(left.jobs()["train"]) == "Running"


@pytest.mark.parametrize("kind", ["Service", "NetworkPolicy"])
async def test_a_job_whose_plugin_uses_an_object_of_somebody_else_runs_on_and_ends(left: Left, kind: str) -> None:
    """Volcano silently uses a Service or NetworkPolicy that has the name of the job and belongs to nobody."""
    made = await left.send(create(job("train", "default", KINDS["services"](Pods()))))
    found = belongings(made, "running", lambda pod: "node-0")
    for one in found.objects:
        if one["kind"] == kind:
            del one["metadata"]["ownerReferences"]
    await left.put_belongings(made, "running", found)
    pods = left.pods()
    async with controllers(left.server.url):
        await left.settle()

        assert left.pods() == pods
        assert phase(left.jobs()["train"]) == "Running"
        for pod in pods.values():
            await left.send(write_status(pod, {**pod["status"], "phase": "Succeeded"}, "kubelet"))
        await until(lambda: phase(left.jobs()["train"]) == "Completed")
