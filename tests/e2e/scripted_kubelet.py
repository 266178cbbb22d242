"""A kubelet stand-in that runs what the containers of a pod say: it starts, restarts and ends them by their command.

It acts for pods that select nodes with the label `e2e.volcano-py/kubelet=scripted`; the stages of kwok leave these
alone. A pod starts once all objects that it refers to exist, its init containers run one after the other, its
containers at once. `restartPolicy` is obeyed, with a short pause instead of a growing one. A pod that is told to go
reports that its containers were stopped (exit code 143), and is then removed.

Annotations of the pod:
    kubelet.volcano-py/start-after: seconds between its binding and its first container (0.1)
    kubelet.volcano-py/stop-after: seconds until a pod that was told to go is removed (0.3)
    kubelet.volcano-py/ready-after: seconds from the start of a container until it is ready (0)
    kubelet.volcano-py/silent: a pod that was told to go is removed without a report
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp

from tests.e2e import container_script, container_view
from tests.e2e.container_view import Need, NotThere, Obj
from volcano_py.apiserver.kubelet.ports import HttpPort

log = logging.getLogger(__name__)

KUBELET = "e2e.volcano-py/kubelet"
SCRIPTED = "scripted"
SELECTOR = {KUBELET: SCRIPTED}
START, STOP, READY, SILENT = (
    f"kubelet.volcano-py/{name}" for name in ("start-after", "stop-after", "ready-after", "silent")
)
JOB_LABEL = "volcano.sh/job-name"
RESTART_PAUSE_S = 0.3
LOOK_AGAIN_S = 0.3
STOPPED = 143  # 128 + SIGTERM
ATTEMPTS = 5

Read = Callable[[str, Need], Awaitable[Obj | None]]


def now() -> str:
    """Return the time as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Container:
    """One container of a pod and its status."""

    def __init__(self, spec: Obj) -> None:
        self.spec = spec
        self.ready = False
        self.restarts = 0
        self.state: dict[str, Any] = {"waiting": {"reason": "ContainerCreating"}}
        self.last: dict[str, Any] = {}

    @property
    def exit_code(self) -> int | None:
        """The code it ended with; None while it has not."""
        ended = self.state.get("terminated")
        return None if ended is None else int(ended["exitCode"])

    def begin(self) -> None:
        """It runs."""
        self.state = {"running": {"startedAt": now()}}

    def end(self, code: int) -> None:
        """It has ended."""
        started = self.state.get("running", {}).get("startedAt")
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now()}
        self.state = {"terminated": ended | ({"startedAt": started} if started else {})}
        self.ready = False

    def again(self) -> None:
        """It ended and runs again."""
        self.last, self.restarts = self.state, self.restarts + 1
        self.begin()

    def status(self) -> dict[str, Any]:
        """Return its status as the API has it."""
        return {
            "name": self.spec["name"],
            "image": self.spec.get("image", ""),
            "imageID": "",
            "ready": self.ready,
            "started": "running" in self.state,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last,
        }


class Life:
    """The life of one pod."""

    def __init__(self, pod: Obj, port: HttpPort, read: Read, words: Words) -> None:
        self.pod = pod
        self.task: asyncio.Task[None] | None = None
        self.stopping = False
        self._port = port
        self._read = read
        self._words = words
        self._init = [Container(spec) for spec in pod["spec"].get("initContainers", ())]
        self._main = [Container(spec) for spec in pod["spec"]["containers"]]
        self._objects: dict[Need, Obj] = {}
        self._started: str | None = None

    def _seconds(self, annotation: str, default: float) -> float:
        return float(self.pod["metadata"].get("annotations", {}).get(annotation, default))

    async def run(self) -> None:
        """Start the pod and follow its containers to their end."""
        await asyncio.sleep(self._seconds(START, 0.1))
        while not await self._collect():  # noqa: ASYNC110 -- a kubelet asks again, too
            await asyncio.sleep(LOOK_AGAIN_S)
        self._started = now()
        for container in self._init:
            if not await self._run_init(container):
                return
        for container in self._main:
            container.begin()
        if not self._seconds(READY, 0.0):
            self._become_ready()
        await self._report()
        late = [asyncio.create_task(self._be_ready_later())] if self._seconds(READY, 0.0) else []
        runs = [asyncio.create_task(self._run_main(container)) for container in self._main]
        try:
            await asyncio.gather(*late, *runs)
        finally:
            for task in (*late, *runs):
                task.cancel()

    async def stop(self) -> None:
        """Stop the containers, say so, and remove the pod."""
        await asyncio.sleep(self._seconds(STOP, 0.3))
        if SILENT not in self.pod["metadata"].get("annotations", {}) and self._started is not None:
            for container in self._main:
                if container.exit_code is None:
                    container.end(STOPPED)
            await self._report()
        await self._port.delete("pods", dict(self.pod))

    async def _collect(self) -> bool:
        """Read the objects that the pod needs; say whether its containers can start."""
        space = self.pod["metadata"]["namespace"]
        for need, required in container_view.needs(self.pod).items():
            found = await self._read(space, need)
            if found is not None:
                self._objects[need] = found
            elif required:
                return False
        try:
            for container in container_view.containers_of(self.pod):
                container_view.view(self.pod, container, self._objects)
        except NotThere:
            return False
        return True

    async def _run_init(self, container: Container) -> bool:
        """Run an init container to its end; say whether the pod may go on."""
        container.begin()
        await self._report()
        while code := await self._script(container, forever=False):
            container.end(code)
            if self.pod["spec"]["restartPolicy"] == "Never":
                await self._report(failed=True)
                return False
            await asyncio.sleep(RESTART_PAUSE_S)
            container.again()
            await self._report()
        container.end(0)
        await self._report()
        return True

    async def _run_main(self, container: Container) -> None:
        while True:
            code = await self._script(container)
            container.end(code)
            policy = self.pod["spec"]["restartPolicy"]
            if policy == "Never" or (policy == "OnFailure" and code == 0):
                await self._report()
                return
            await asyncio.sleep(RESTART_PAUSE_S)
            container.again()
            container.ready = True
            await self._report()

    async def _script(self, container: Container, forever: bool = True) -> int:
        seen = container_view.view(self.pod, container.spec, self._objects)
        script = container_script.script_of(container.spec.get("command", ()), container.spec.get("args", ()))
        if not forever and not script.strip():
            return 0

        async def hear(word: str) -> None:
            await self._words.hear(self.pod, word)

        return await container_script.run(script, {**seen.env, "RESTARTS": str(container.restarts)}, hear)

    async def _be_ready_later(self) -> None:
        await asyncio.sleep(self._seconds(READY, 0.0))
        self._become_ready()
        await self._report()

    def _become_ready(self) -> None:
        for container in self._main:
            container.ready = container.exit_code is None

    def _phase(self, failed: bool) -> str:
        codes = [container.exit_code for container in self._main]
        if failed:
            return "Failed"
        if all(container.exit_code is None and "running" not in container.state for container in self._main):
            return "Pending"
        policy = self.pod["spec"]["restartPolicy"]
        over = policy == "Never" or self.stopping
        if any(code is None or (not over and (code or policy == "Always")) for code in codes):
            return "Running"
        return "Failed" if any(codes) else "Succeeded"

    async def _report(self, failed: bool = False) -> None:
        phase = self._phase(failed)
        initialized = all(container.exit_code == 0 for container in self._init)
        ready = phase == "Running" and all(container.ready for container in self._main)
        conditions = {"Initialized": initialized, "ContainersReady": ready, "Ready": ready}
        status: dict[str, Any] = {
            "phase": phase,
            "startTime": self._started,
            "podIP": "10.1.0.1",
            "podIPs": [{"ip": "10.1.0.1"}],
            "conditions": [
                {"type": name, "status": "True" if holds else "False", "lastTransitionTime": now()}
                for name, holds in conditions.items()
            ],
            "containerStatuses": [container.status() for container in self._main],
        }
        if self._init:
            status["initContainerStatuses"] = [container.status() for container in self._init]
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._port.patch_status("pods", dict(self.pod), status)
                return
            except Exception:
                if attempt == ATTEMPTS:
                    raise
                await asyncio.sleep(LOOK_AGAIN_S)


class Words:
    """What tests say to pods."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str, str], asyncio.Event] = {}

    def say(self, namespace: str, subject: str, word: str) -> None:
        """Say a word to a pod, or to all pods of a job, by name; also to those that are created later."""
        self._event(namespace, subject, word).set()

    async def hear(self, pod: Obj, word: str) -> None:
        """Wait until a word is said to a pod."""
        meta = pod["metadata"]
        subjects = (meta["name"], meta.get("labels", {}).get(JOB_LABEL, ""))
        waits = [
            asyncio.create_task(self._event(meta["namespace"], subject, word).wait()) for subject in subjects if subject
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _event(self, *key: str) -> asyncio.Event:
        namespace, subject, word = key
        return self._said.setdefault((namespace, subject, word), asyncio.Event())


def reader(session: aiohttp.ClientSession, url: str) -> Callable[[str, Need], Awaitable[Obj | None]]:
    """Return what reads an object that a pod refers to: its namespace and name -> the object, None if there is none."""

    async def read(namespace: str, need: Need) -> Obj | None:
        async with session.get(f"{url}/api/v1/namespaces/{namespace}/{need.resource}/{need.name}") as answer:
            if answer.status == 404:
                return None
            answer.raise_for_status()
            found: Obj = await answer.json()
            return found

    return read


class ScriptedKubelet:
    """Stands in for the kubelets of all nodes with the label."""

    def __init__(self, port: HttpPort, read: Read) -> None:
        self._port = port
        self._read = read
        self._lives: dict[str, Life] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.words = Words()
        self.failures: list[BaseException] = []
        """What went wrong with pods; a test run ends with an error if there is something."""

    async def run(self) -> None:
        """Follow all pods until cancelled."""
        try:
            await self._port.follow(["pods"], self._observe)
        finally:
            for task in tuple(self._tasks):
                task.cancel()

    def _observe(self, _: str, kind: str, pod: Mapping[str, Any]) -> None:
        meta, spec = pod["metadata"], pod["spec"]
        if spec.get("nodeSelector", {}).get(KUBELET) != SCRIPTED or not spec.get("nodeName"):
            return
        life = self._lives.get(meta["uid"])
        if kind == "DELETED":
            if self._lives.pop(meta["uid"], None) and life is not None and life.task is not None:
                life.task.cancel()
            return
        if life is None:
            life = self._lives[meta["uid"]] = Life(pod, self._port, self._read, self.words)
            life.task = self._begin(life.run())
        if meta.get("deletionTimestamp") and not life.stopping:
            life.stopping = True
            if life.task is not None:
                life.task.cancel()
            life.task = self._begin(life.stop())

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failed := task.exception()) is not None:
            log.error("a pod could not be run", exc_info=failed)
            self.failures.append(failed)
