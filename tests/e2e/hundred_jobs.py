"""A hundred jobs of many kinds on a running system, for tests of what operators see of it.

Scheduler, controllers and webhooks run as processes. If there is a Prometheus, it scrapes them. What happened is kept:
all versions of the objects, and what `/metrics` said at rest, under another configuration, and after the jobs were
deleted. The processes end before the first test begins; Prometheus goes on, because it answers queries.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from tests.controlplane.install import Installed
from tests.controlplane.namespaces import create_namespace, discard_namespace
from tests.controlplane.nodes import create_nodes, delete_nodes, node_object, wait_nodes_ready
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.controllers import Controllers
from tests.e2e.daemon import Daemon
from tests.e2e.exposed import Exposed
from tests.e2e.job_cluster import FLAGS, POOL, Background
from tests.e2e.prometheus import Prometheus, Target
from tests.e2e.queue_objects import QUEUES
from tests.e2e.recorder import Obj, Recorder
from tests.e2e.scripted_kubelet import SELECTOR, ScriptedKubelet, reader
from tests.e2e.vcjobs import BATCH, FOR_EVER, on, task, template, vcjob
from tests.e2e.webhooks import Webhooks
from volcano_py.apiserver.kubelet.ports import HttpPort
from volcano_py.testing import a_priority_class, a_queue, manifest

FLOWS = "/apis/flow.volcano.sh/v1alpha1/namespaces/{}"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RECORDED = {
    "jobs": f"/apis/{BATCH}/jobs",
    "podgroups": "/apis/scheduling.volcano.sh/v1beta1/podgroups",
    "queues": QUEUES,
    "flows": "/apis/flow.volcano.sh/v1alpha1/jobflows",
    "pods": "/api/v1/pods",
    "events": "/api/v1/events",
}
CAPACITY = """\
actions: "enqueue, allocate, backfill, preempt, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: capacity
  - name: nodeorder
"""
PROPORTION = CAPACITY.replace("capacity", "proportion")
GPU = "nvidia.com/gpu"
N_NODES, NODE_CPU, NODE_MEMORY, NODE_GPUS = 4, 16, "64Gi", 4
SMALL_CPU = 4
AMOUNTS = {"cpu": "16", "memory": "64Gi", GPU: "8"}
QUEUE_SPECS: dict[str, dict[str, Any]] = {
    "research": {"deserved": AMOUNTS, "capability": {"cpu": "40", "memory": "160Gi", GPU: "16"}},
    "batch": {"deserved": AMOUNTS, "guarantee": {"resource": {"cpu": "4", "memory": "8Gi"}}},
    "narrow": {"deserved": {"cpu": "2", "memory": "4Gi"}, "capability": {"cpu": "2", "memory": "4Gi"}},
}
RETRIES = "[ $RETRY = 0 ] && exit 1; sleep 0.5"
ENDED_QUICKLY = "sleep 0.5"
LASTS_S = 0.35  # between two jobs
SERIES_GO_S = 60.0
REST_S = 4.5


@dataclass(frozen=True)
class Kind:
    """Jobs of one kind: how many, what they say, and the phase in which they come to rest."""

    name: str
    count: int
    rests_in: str
    make: Callable[[int], dict[str, Any]]
    queues: Sequence[str] = ("default", "research", "batch")


@dataclass
class Run:
    """What happened, and what metrics said about it."""

    jobs: dict[str, str] = field(default_factory=dict)
    """The phase in which each job, as namespace/name, is expected to rest."""
    records: dict[str, Recorder] = field(default_factory=dict)
    at_rest: dict[str, Exposed] = field(default_factory=dict)
    """What each process exposed with all jobs there, by its Service."""
    objects: dict[str, list[Obj]] = field(default_factory=dict)
    """The objects at that time."""
    by_weight: Exposed = field(default_factory=lambda: Exposed(""))
    """What the scheduler exposed then, after a change from `capacity` to `proportion`."""
    deleted: dict[str, Exposed] = field(default_factory=dict)
    """What each process exposed when jobs, flows and queues were deleted."""
    queues: dict[str, str] = field(default_factory=dict)
    """The name of each queue, by its name here."""
    nodes: dict[str, Obj] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    began: float = 0.0
    """In Unix seconds."""
    rested: float = 0.0
    rested_at: float = 0.0
    """The same in seconds of the monotonic clock, as records have it."""
    ended: float = 0.0
    prometheus: Prometheus | None = None


class HundredJobs:
    """Runs them."""

    def __init__(self, plane: ControlPlane, installed: Installed) -> None:
        self.plane = plane
        self.run = Run()
        suffix = secrets.token_hex(2)
        self.background = Background()
        self.namespaces = [create_namespace(plane.cluster, prefix) for prefix in ("team-a", "team-b", "team-c")]
        self.important = f"important-{suffix}"
        self.pool, self.small_pool = f"all-{suffix}", f"small-{suffix}"
        self.run.queues = {"default": "default", **{name: f"{name}-{suffix}" for name in QUEUE_SPECS}}
        flags = ("--leader-elect=false", "--schedule-period=500ms")
        self.scheduler = Daemon(plane, installed, CAPACITY, name=f"vc-scheduler-{suffix}", flags=flags)
        self.controllers = Controllers(plane, installed, *FLAGS)
        self.webhooks = Webhooks(plane)
        self._nodes: list[str] = []

    # Life

    def play(self) -> Run:
        """Start everything, run the jobs, and stop everything but Prometheus."""
        run = self.run
        self.background.start()
        try:
            self._prepare()
            run.began = time.time()
            self._create()
            wait_until("all jobs rest", self._at_rest, 180.0)
            time.sleep(REST_S)  # for counters that are written now and then, and for Prometheus
            run.rested, run.rested_at = time.time(), time.monotonic()
            run.at_rest = self._exposed()
            run.objects = {name: record.alive() for name, record in run.records.items()}
            self.scheduler.take_conf(PROPORTION)
            time.sleep(REST_S)
            run.by_weight = Exposed(self.scheduler.metrics())
            self._delete()
            wait_until("no series of a deleted object", lambda: not self._left(), SERIES_GO_S)
            run.deleted = self._exposed()
            run.ended = time.time()
            run.logs = {"scheduler": self.scheduler.log(), "controllers": self.controllers.log()}
            problems = [repr(failed) for failed in (*self.background.failures(), *self.kubelet.failures)]
            assert not problems, problems
        finally:
            self._stop()
        return run

    def _prepare(self) -> None:
        plane = self.plane
        self._session: aiohttp.ClientSession = self.background.call(self._open())
        self.kubelet = ScriptedKubelet(HttpPort(self._session, plane.url), reader(self._session, plane.url))
        self.background.begin(self.kubelet.run())
        plane.request("POST", CLASSES, manifest(a_priority_class(self.important, 1000)))
        self._make_nodes(self.pool, N_NODES, cpu=NODE_CPU, memory=NODE_MEMORY, extended={GPU: NODE_GPUS})
        self._make_nodes(self.small_pool, 1, cpu=SMALL_CPU, memory="16Gi")
        for name in RECORDED:
            self.run.records[name] = Recorder(self._session, plane.url + RECORDED[name])
            self.background.begin(self.run.records[name].run())
        for name, record in self.run.records.items():
            wait_until(f"{name} are recorded", record.listed.is_set, 20.0, every=0.02)
        # What earlier tests have left would be counted, too. Namespaces are emptied some time after their tests.
        # The pods of our own Deployments are the default scheduler's, which is not here: they stay pending, uncounted.
        for name in ("jobs", "podgroups", "flows", "pods"):
            wait_until(f"no {name} of others", lambda name=name: not self._of_volcano(name), 60.0)  # type: ignore[misc]
        for name, spec in QUEUE_SPECS.items():
            plane.request("POST", QUEUES, manifest(a_queue(self.run.queues[name]), spec=spec))
        self.scheduler.start()
        self.controllers.start()
        self.webhooks.start().install()
        self.run.prometheus = Prometheus.if_installed(plane.processes)
        if self.run.prometheus is not None:
            self.run.prometheus.start(self._targets())

    def _of_volcano(self, name: str) -> list[Any]:
        """Return the objects of a record that our processes count: all but pods of other schedulers."""
        found = self.run.records[name].alive()
        return [each for each in found if name != "pods" or each["spec"]["schedulerName"] == "volcano"]

    def _targets(self) -> list[Target]:
        urls = {
            "volcano-scheduler-service": self.scheduler.metrics_address,
            "volcano-controllers-service": self.controllers.metrics_address,
            "volcano-admission-service": self.webhooks.metrics_address,
        }
        return [Target(service, address) for service, address in urls.items()]

    def _make_nodes(self, pool: str, count: int, **what: Any) -> None:
        names = [f"{pool}-{index}" for index in range(count)]
        self._nodes += names
        nodes = [node_object(name, labels={**SELECTOR, POOL: pool}, **what) for name in names]
        create_nodes(self.plane.cluster, nodes)
        wait_nodes_ready(self.plane.cluster, names)
        for name in names:
            self.run.nodes[name] = self.plane.request("GET", f"/api/v1/nodes/{name}")

    def _exposed(self) -> dict[str, Exposed]:
        processes = (self.scheduler, self.controllers, self.webhooks)
        return {
            target.service: Exposed(each.metrics()) for target, each in zip(self._targets(), processes, strict=True)
        }

    def _stop(self) -> None:
        self.webhooks.uninstall()
        for process in (self.webhooks, self.controllers):
            process.stop()
        if self.scheduler.alive():
            self.scheduler.stop()
        for namespace in self.namespaces:
            discard_namespace(self.plane.cluster, namespace)
        for queue in self.run.queues.values():  # after a failure they are still there, and hold their guarantees
            if queue != "default":
                self._close_and_delete(queue)
        self.background.call(self._session.close())
        self.background.stop()
        delete_nodes(self.plane.cluster, self._nodes)
        self.plane.request("DELETE", f"{CLASSES}/{self.important}")

    # Jobs

    def _create(self) -> None:
        kinds = self._kinds()
        left = {kind.name: kind.count for kind in kinds}
        number = 0
        while any(left.values()):
            for kind in kinds:  # kinds in turn, so that at any time there are jobs of each
                if not left[kind.name]:
                    continue
                index = kind.count - left[kind.name]
                left[kind.name] -= 1
                namespace = self.namespaces[number % len(self.namespaces)]
                queue = self.run.queues[kind.queues[number % len(kind.queues)]]
                self._submit(namespace, f"{kind.name}-{index}", queue, kind.make(index), kind.rests_in)
                number += 1
                time.sleep(LASTS_S)
        self._refused()
        self._preempt()
        self._flow("good", {"first": ENDED_QUICKLY, "second": ENDED_QUICKLY})
        self._flow("better", {"first": ENDED_QUICKLY, "second": ENDED_QUICKLY})
        self._flow("bad", {"first": "exit 1"})

    def _refused(self) -> None:
        """Submit a job that the webhooks refuse; it is none of the hundred."""
        wrong = vcjob("wrong", [task("worker", 1)], minAvailable=2)
        with pytest.raises(ApiFailure):
            self.plane.request("POST", f"/apis/{BATCH}/namespaces/{self.namespaces[0]}/jobs", wrong)

    def _submit(self, namespace: str, name: str, queue: str, spec: dict[str, Any], rests_in: str) -> None:
        job = vcjob(name, spec.pop("tasks"), queue=queue, **spec)
        self.plane.request("POST", f"/apis/{BATCH}/namespaces/{namespace}/jobs", job)
        self.run.jobs[f"{namespace}/{name}"] = rests_in

    def _kinds(self) -> list[Kind]:
        def pods(script: str, pool: str = "", **more: Any) -> dict[str, Any]:
            return template(script, selector={POOL: pool or self.pool}, **more)

        def with_gpu(script: str) -> dict[str, Any]:
            made = pods(script, cpu="1")
            requests = {"cpu": "1", "memory": "2Gi", GPU: "1"}
            made["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": {GPU: "1"}}
            return made

        def restarts(_: int) -> dict[str, Any]:
            return {"tasks": [task("worker", 2, pods(RETRIES))], "policies": [on("PodFailed", "RestartJob")]}

        return [
            Kind("ordinary", 53, "Completed", lambda i: {"tasks": [task("worker", 1 + i % 4, pods(ENDED_QUICKLY))]}),
            Kind("failing", 10, "Failed", lambda _: {"tasks": [task("worker", 1, pods("exit 1"))]}),
            Kind("restarting", 10, "Completed", restarts),
            Kind("lasting", 8, "Running", lambda _: {"tasks": [task("worker", 2, with_gpu(FOR_EVER))]}),
            Kind(
                "queueing",
                8,
                "Completed",
                lambda _: {"tasks": [task("worker", 1, pods("sleep 1.5", cpu="1"))]},
                ("narrow",),
            ),
            Kind(
                "unplaceable",
                2,
                "Pending",
                lambda _: {"tasks": [task("worker", 3, pods(FOR_EVER, self.small_pool, cpu="3"))]},
            ),
            Kind("too-big", 2, "Pending", lambda _: {"tasks": [task("worker", 10, pods(FOR_EVER, cpu="15"))]}),
        ]

    def _preempt(self) -> None:
        """Fill a node with pods that may go, and then ask for room with a higher priority in the same queue."""
        queue, namespace = self.run.queues["research"], self.namespaces[0]
        pods = template(FOR_EVER, selector={POOL: self.small_pool}, cpu="1")
        self._submit(namespace, "patient", queue, {"tasks": [task("worker", 4, pods)], "minAvailable": 1}, "Running")
        wait_until("the patient job runs", lambda: self._running(f"{namespace}/patient") == 4, 60.0)
        spec = {"tasks": [task("worker", 2, pods)], "priorityClassName": self.important}
        self._submit(namespace, "urgent", queue, spec, "Running")
        wait_until("the urgent job runs", lambda: self._running(f"{namespace}/urgent") == 2, 60.0)

    def _flow(self, name: str, steps: Mapping[str, str]) -> None:
        namespace = self.namespaces[1]
        flows: list[Obj] = []
        for step, script in steps.items():
            spec = vcjob("", [task("worker", 1, template(script, selector={POOL: self.pool}))])["spec"]
            self._make_flow_object(namespace, "JobTemplate", f"{name}-{step}", spec)
            flows.append({"name": f"{name}-{step}"})
            if len(flows) > 1:
                flows[-1]["dependsOn"] = {"targets": [flows[-2]["name"]]}
            self.run.jobs[f"{namespace}/{name}-{name}-{step}"] = "Failed" if "exit" in script else "Completed"
        self._make_flow_object(namespace, "JobFlow", name, {"flows": flows, "jobRetainPolicy": "retain"})

    def _make_flow_object(self, namespace: str, kind: str, name: str, spec: Obj) -> None:
        body = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.plane.request("POST", f"{FLOWS.format(namespace)}/{kind.lower()}s", body)

    # Waiting

    def _at_rest(self) -> bool:
        if failures := self.background.failures():
            raise failures[0]
        flows = {each.get("status", {}).get("state", {}).get("phase") for each in self.run.records["flows"].alive()}
        return self._phases() == self.run.jobs and flows == {"Succeed", "Failed"} and not self._unsettled()

    def _phases(self) -> dict[str, str]:
        jobs = self.run.records["jobs"].alive()
        return {key_of(job): str(job.get("status", {}).get("state", {}).get("phase", "Pending")) for job in jobs}

    def _running(self, job: str) -> int:
        found = [each for each in self.run.records["jobs"].alive() if key_of(each) == job]
        return int(found[0].get("status", {}).get("running", 0)) if found else 0

    def _unsettled(self) -> bool:
        """Say whether a pod is being deleted, or is bound and has not begun."""
        pods = self.run.records["pods"].alive()
        return any(
            "deletionTimestamp" in pod["metadata"]
            or (pod["status"]["phase"] == "Pending" and pod["spec"].get("nodeName"))
            for pod in pods
            if pod["metadata"]["namespace"] in self.namespaces
        )

    def _delete(self) -> None:
        for namespace in self.namespaces:
            for plural in ("jobflows", "jobtemplates"):
                self.plane.request("DELETE", f"{FLOWS.format(namespace)}/{plural}")
            self.plane.request("DELETE", f"/apis/{BATCH}/namespaces/{namespace}/jobs")
        records = self.run.records
        wait_until("all jobs are gone", lambda: not records["jobs"].alive() and not records["podgroups"].alive(), 60.0)
        for queue in self.run.queues.values():
            if queue != "default":
                self._close_and_delete(queue)

    def _close_and_delete(self, queue: str) -> None:
        if queue not in {one["metadata"]["name"] for one in self.plane.request("GET", QUEUES)["items"]}:
            return
        state = {"status": {"state": "Closed"}}
        self.plane.request(
            "PATCH", f"{QUEUES}/{queue}/status", state, content_type="application/merge-patch+json"
        )  # an open queue may not be deleted
        wait_until(
            f"{queue} is gone",
            lambda: self.plane.request("DELETE", f"{QUEUES}/{queue}"),
            20.0,
            tolerate=(Exception,),
        )

    def _left(self) -> list[str]:
        """Return the series that name a deleted queue, or a namespace whose jobs are deleted."""
        own = set(self.run.queues.values()) - {"default"}
        return sorted(
            str(sample)
            for page in self._exposed().values()
            for sample in page.samples
            if own & set(sample.labels.values())
            or any(value.split("/")[0] in self.namespaces for value in sample.labels.values())
        )

    async def _open(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self.plane.ssl_context, limit=100)
        return aiohttp.ClientSession(connector=connector)


def key_of(obj: Obj) -> str:
    """Return namespace and name of an object."""
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
