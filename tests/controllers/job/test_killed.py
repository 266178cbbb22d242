"""The controllers are killed again and again on an embedded API server while jobs start, run, fail and restart.

Each life of the controller manager ends after a seeded number of writes, before it hears the answer to the last one. In
the end all jobs and pods are as without kills. `test_killed_at_every_write` goes through every single write of jobs of
every kind.
"""

import asyncio
import json
import random
from contextlib import suppress
from typing import Any, Final

import pytest

from tests.controllers.managing import GROUPS, put_queue
from tests.daemon.cluster import serve_definitions
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.kubelet.ports import InProcessPort
from volcano_py.controllers.in_flight import AT_ONCE
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import ManagerOptions
from volcano_py.controllers.writes import Write, Writer
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.reflector import ReflectorOptions
from volcano_py.kube.resource import PODS, VCJOBS
from volcano_py.runtime.signals import Shutdown

KILLS: Final = 50
OF_EACH: Final = 3
PODS_EACH: Final = 4
RESTING: Final = ("Completed", "Failed", "Aborted", "Terminated")
_PATIENCE_S: Final = 90.0
Obj = dict[str, Any]


def a_policy(event: str, action: str) -> Obj:
    return {"event": event, "action": action}


KINDS: Final[dict[str, Obj]] = {
    "complete": {},
    "restart": {"policies": [a_policy("PodFailed", "RestartJob")]},
    "restart-task": {"policies": [a_policy("PodFailed", "RestartTask")]},
    "restart-pod": {"policies": [a_policy("PodFailed", "RestartPod")], "plugins": {"svc": [], "env": []}},
    "fail": {"policies": [a_policy("PodFailed", "RestartJob")], "maxRetry": 2},
    "abort": {"policies": [a_policy("PodFailed", "AbortJob")]},
}
"""By name: what jobs of a kind have in addition. The first pod of all but the first kind fails in the first start."""


def put_jobs(server: ApiServer) -> None:
    for kind, more in KINDS.items():
        for number in range(OF_EACH):
            container = {"name": "c", "image": "example.com/image"}
            task = {"name": "t", "replicas": PODS_EACH, "template": {"spec": {"containers": [container]}}}
            meta = {"name": f"{kind}-{number}", "namespace": "default"}
            spec = {"minAvailable": PODS_EACH, "maxRetry": 3, **more, "tasks": [task]}
            server.create({"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "metadata": meta, "spec": spec})


class World:
    """The scheduler and a kubelet as far as jobs need them: what they do depends on the objects alone."""

    def __init__(self, server: ApiServer, user: ApiClient) -> None:
        self._server = server
        self._user = user
        self._port = InProcessPort(server.registry)
        self._groups = server.resources.named(GROUPS)

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            for group in self._server.list(GROUPS, "default"):
                phase = group.get("status", {}).get("phase", "")
                if following := {"": "Pending", "Pending": "Inqueue", "Inqueue": "Running"}.get(phase):
                    self._enter(group, following)
            for pod in self._server.list("pods", "default"):
                await self._move(pod)
            await asyncio.sleep(0.02)

    def _enter(self, group: Obj, phase: str) -> None:
        name = group["metadata"]["name"]
        context = WriteContext(self._server.registry, version=self._groups.storage.name)
        self._server.registry.patch(
            self._groups, "default", name, lambda now: {**now, "status": {"phase": phase}}, context
        )

    async def _move(self, pod: Obj) -> None:
        meta, phase = pod["metadata"], pod["status"]["phase"]
        if "deletionTimestamp" in meta:
            await self._port.delete("pods", pod)
        elif phase == "Pending" and "nodeName" not in pod["spec"]:
            target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]}, "target": target}
            with suppress(errors.NotFound, errors.Conflict):
                path = PODS.item(meta["name"], "default", "binding")
                await self._user.post_bytes(path, json.dumps(body).encode())
        elif phase == "Pending":
            await self._port.patch_status("pods", pod, {"phase": "Running"})
        elif phase == "Running" and (status := _ending(pod)) is not None:
            await self._port.patch_status("pods", pod, status)


def _ending(pod: Obj) -> Obj | None:
    """Return how a pod ends; None if it runs on."""
    name, annotations = pod["metadata"]["name"], pod["metadata"]["annotations"]
    kind = name.rsplit("-", 3)[0]
    fails = name.endswith("-t-0") and (kind == "fail" or annotations["volcano.sh/job-retry-count"] == "0")
    if kind in ("fail", "abort") and not fails:
        return None  # which pods had succeeded before the last kill would depend on the moment
    code = 3 if fails and kind != "complete" else 0
    ended = {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}
    status = {
        "name": "c",
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": [status]}


class Lives:
    """The controller manager, again and again."""

    def __init__(self, server: ApiServer, rng: random.Random) -> None:
        self._server = server
        self._rng = rng
        self.kills = 0

    async def live(self, writes: int | None) -> bool:
        """Run a controller manager; kill it at its nth write, or return when all jobs rest."""
        killed = asyncio.Event()
        real = Writer.answered
        left = -1 if writes is None else writes

        async def answered(writer: Writer, write: Write, turn: int = AT_ONCE) -> bytes | None:
            nonlocal left
            answer = await real(writer, write, turn)
            left -= 1
            if left == 0:
                killed.set()
            if killed.is_set():
                await asyncio.Event().wait()  # nobody hears the answer
            return answer

        options = ManagerOptions(
            metrics_address=None, health_address=None, reflectors=ReflectorOptions(absent_retry_s=0.1)
        )
        manager = ControllerManager(Credentials(self._server.url), options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Writer, "answered", answered)
            running = asyncio.create_task(manager.run(Shutdown()), name="manager")
            try:
                while not killed.is_set():
                    if await self._rests():
                        return True
                    assert not running.done()
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        self.kills += 1
        return False

    async def _rests(self) -> bool:
        """Say whether all jobs rest and nothing has changed for a while."""
        before = self._server.store.rv
        await asyncio.sleep(0.05)
        jobs = self._server.list(VCJOBS.label, "default")
        if any(job.get("status", {}).get("state", {}).get("phase") not in RESTING for job in jobs):
            return False
        for _ in range(24):  # counters follow within a second, unless the process stands still
            await asyncio.sleep(0.05)
        return self._server.store.rv == before


async def in_the_end(kills: int, seed: int = 0) -> tuple[dict[str, Any], int]:
    """Let all jobs run to their end while the controllers are killed so often; return how they rest."""
    rng = random.Random(seed)
    async with ApiServer() as server, ApiClient(Credentials(server.url)) as user:
        serve_definitions(server)
        put_queue(server, "default")
        put_jobs(server)
        world = asyncio.create_task(World(server, user).run())
        lives = Lives(server, rng)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while lives.kills < kills and not await lives.live(rng.randint(1, 6)):
                    pass
                await lives.live(None)
        finally:
            world.cancel()
            await asyncio.gather(world, return_exceptions=True)
        return {job["metadata"]["name"]: how_it_rests(server, job) for job in server.list(VCJOBS.label)}, lives.kills


def how_it_rests(server: ApiServer, job: Obj) -> Obj:
    status = job["status"]
    mine = [
        pod for pod in server.list("pods", "default") if pod["metadata"]["name"].startswith(job["metadata"]["name"])
    ]
    return {
        "phase": status["state"]["phase"],
        "retries": status.get("retryCount", 0),
        "version": status.get("version", 0),
        "counters": {
            name: status.get(name, 0) for name in ("pending", "running", "succeeded", "failed", "terminating")
        },
        "pods": sorted((pod["metadata"]["name"], pod["status"]["phase"]) for pod in mine),
        "groups": [
            group["metadata"]["name"]
            for group in server.list(GROUPS)
            if job["metadata"]["uid"] in group["metadata"]["name"]
        ],
    }


@pytest.mark.timeout(200)
async def test_jobs_end_as_if_the_controllers_had_never_been_killed() -> None:
    wanted, _ = await in_the_end(kills=0)
    found, kills = await in_the_end(kills=KILLS)

    assert kills == KILLS
    assert found == wanted
    assert {name: rest["phase"] for name, rest in wanted.items() if name.endswith("-0")} == {
        "complete-0": "Completed",
        "restart-0": "Completed",
        "restart-task-0": "Completed",
        "restart-pod-0": "Completed",
        "fail-0": "Failed",
        "abort-0": "Aborted",
    }
