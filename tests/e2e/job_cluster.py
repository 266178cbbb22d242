"""A cluster that runs jobs: scheduler and controllers as processes, scripted kubelets, and a record of all versions."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import aiohttp

from tests.controlplane.install import Installed
from tests.controlplane.namespaces import create_namespace, discard_namespace
from tests.controlplane.nodes import create_nodes, delete_nodes, node_object, wait_nodes_ready
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.controllers import Controllers
from tests.e2e.daemon import Daemon
from tests.e2e.recorder import Recorder
from tests.e2e.scripted_kubelet import SELECTOR, ScriptedKubelet, reader
from volcano_py.apiserver.kubelet.ports import HttpPort

POOL = "e2e.volcano-py/pool"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
MERGE = "application/merge-patch+json"
N_NODES = 6
RECORDED = {
    "jobs": "/apis/batch.volcano.sh/v1alpha1/namespaces/{}/jobs",
    "podgroups": "/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups",
    "pods": "/api/v1/namespaces/{}/pods",
    "events": "/api/v1/namespaces/{}/events",
    "configmaps": "/api/v1/namespaces/{}/configmaps",
}
FLAGS = ("--leader-elect=false", "--enable-healthz=true", "--enable-metrics=true")
"""Of the controllers: they work at once, and tests of other modules find no lease of theirs."""


class Background:
    """An event loop in a thread of its own, for what goes on while tests wait."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="job-cluster", daemon=True)
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, Any], timeout: float = 60.0) -> Any:
        """Run a coroutine to its end and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Start a coroutine that goes on until the end."""

        async def start() -> None:
            self._tasks.append(asyncio.create_task(work))

        self.call(start())

    def later(self, function: Any, *arguments: Any) -> None:
        """Call a function in the loop, from any thread."""
        self._loop.call_soon_threadsafe(function, *arguments)

    def failures(self) -> list[BaseException]:
        """Return why tasks have ended that should go on."""
        return [failed for task in self._tasks if task.done() and not task.cancelled() and (failed := task.exception())]

    def stop(self) -> None:
        """End all tasks and the thread."""

        async def end() -> None:
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=10)

        self.call(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class JobCluster:
    """What the tests of one module share."""

    def __init__(
        self,
        plane: ControlPlane,
        installed: Installed,
        *,
        controllers: bool = True,
        recorded: Iterable[str] = tuple(RECORDED),
    ) -> None:
        self.plane = plane
        self.installed = installed
        self.pool = secrets.token_hex(4)
        self.namespace = create_namespace(plane.cluster, "jobs")
        self.background = Background()
        self.scheduler = Daemon(plane, installed, name=f"vc-scheduler-{secrets.token_hex(2)}")
        self.controllers = Controllers(plane, installed, *FLAGS)
        self.refused: list[str] = []
        self._with_controllers = controllers
        self._recorded = tuple(recorded)
        self._nodes: list[str] = []
        self._to_remove: list[str] = []
        self.records: dict[str, Recorder] = {}

    # Life

    def start(self) -> JobCluster:
        """Start everything and wait until it works."""
        self.background.start()
        self._session: aiohttp.ClientSession = self.background.call(self._open())
        self.kubelet = ScriptedKubelet(HttpPort(self._session, self.plane.url), reader(self._session, self.plane.url))
        self.background.begin(self.kubelet.run())
        self.nodes(N_NODES, cpu=64, memory="256Gi", pods=500, labels={POOL: self.pool})
        for name in self._recorded:
            path = RECORDED[name].format(self.namespace)
            self.records[name] = Recorder(self._session, self.plane.url + path)
            self.background.begin(self.records[name].run())
        for name, record in self.records.items():
            wait_until(f"{name} are recorded", partial(self._listed, record), 20.0, every=0.02)
        self.scheduler.start()
        if self._with_controllers:
            self.controllers.start()
        return self

    def stop(self) -> list[str]:
        """Stop everything and return what went wrong on the way."""
        try:
            if jobs := self.records.get("jobs"):
                self.plane.request("DELETE", RECORDED["jobs"].format(self.namespace))
                wait_until("all jobs are gone", lambda: not jobs.alive(), 30.0)
        finally:
            self.scheduler.stop()
            if self._with_controllers:
                self.controllers.stop()
                self.refused += self.controllers.refused()
            discard_namespace(self.plane.cluster, self.namespace)
            problems = [repr(failed) for failed in (*self.background.failures(), *self.kubelet.failures)]
            self.background.call(self._session.close())
            self.background.stop()
            delete_nodes(self.plane.cluster, self._nodes)
            for path in self._to_remove:
                self.plane.request("DELETE", path)
        return problems + self.refused

    @contextmanager
    def without_controllers(self, kill: bool = False) -> Iterator[None]:
        """Stop or kill the controllers for the time of a block; others start after it."""
        if kill:
            self.controllers.kill()
        else:
            self.controllers.stop()
        self.refused += self.controllers.refused()
        try:
            yield
        finally:
            self.controllers = Controllers(self.plane, self.installed, *FLAGS).start()

    def remove_at_end(self, path: str) -> None:
        """Remove an object outside of the namespace when the tests of the module have ended."""
        self._to_remove.append(path)

    # Nodes

    def nodes(self, count: int, **what: Any) -> list[str]:
        """Create nodes whose pods the scripted kubelet runs; they are removed at the end."""
        stem = f"jobs-{secrets.token_hex(3)}"
        names = [f"{stem}-{index}" for index in range(count)]
        what["labels"] = {**SELECTOR, **what.get("labels", {})}
        self._nodes += names
        create_nodes(self.plane.cluster, [node_object(name, **what) for name in names])
        wait_nodes_ready(self.plane.cluster, names)
        return names

    def own_nodes(self, count: int = 1, **what: Any) -> tuple[list[str], dict[str, str]]:
        """Create nodes for one job; return their names, and the selector of its pods."""
        selector = {POOL: secrets.token_hex(4)}
        return self.nodes(count, labels=selector, **what), selector

    def cordon(self, node: str, closed: bool = True) -> None:
        """Let no further pod onto a node; return when the scheduler can see it."""
        path = f"/api/v1/nodes/{node}"

        def tainted() -> bool:
            taints = self.plane.request("GET", path)["spec"].get("taints", ())
            return any(taint["key"] == UNSCHEDULABLE for taint in taints)

        self.plane.request("PATCH", path, {"spec": {"unschedulable": closed}}, content_type=MERGE)
        wait_until(f"the taint of {node}", lambda: tainted() == closed, 20.0)

    def uncordon(self, node: str) -> None:
        """Let pods onto a node again."""
        self.cordon(node, closed=False)

    @property
    def node(self) -> str:
        """One of the nodes of all."""
        return self._nodes[0]

    @property
    def selector(self) -> dict[str, str]:
        """The selector of pods that run on the nodes of all."""
        return {POOL: self.pool}

    def say(self, subject: str, word: str) -> None:
        """Say a word to a pod or to all pods of a job, by name; see `container_script`."""
        self.background.later(self.kubelet.words.say, self.namespace, subject, word)

    def _listed(self, record: Recorder) -> bool:
        if failures := self.background.failures():
            raise failures[0]
        return record.listed.is_set()

    async def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self.plane.ssl_context, limit=100)
        return aiohttp.ClientSession(connector=connector)
