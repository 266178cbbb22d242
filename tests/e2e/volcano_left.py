"""A cluster on which Volcano has worked for a while: running, waiting and finished jobs, and all else that it keeps."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.controlplane.nodes import create_nodes, node_object, wait_nodes_ready
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.migration.volcano_job_kinds import BATCH, KINDS, SCHEDULING, Obj, Pods, job, owner
from tests.migration.volcano_job_sync import Acts, acts, owned_by
from tests.migration.volcano_workloads import belongings
from tests.migration.volcano_writes import CONTROLLERS, MERGE, Request, create, requests

NAMESPACE = "batch-team"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
QUEUE_CONTROLLER = "queue-controller"
"""The field manager as which Volcano's queue controller applies the state of queues."""
APPLY = "application/apply-patch+yaml"
HUGE = Pods(cpu="4")
SMALL = Pods(cpu="200m")
NOT_WAITING = ("claims", "limited")
"""Kinds that say themselves what they ask for, or need a volume."""


class VolcanoLeft:
    """What Volcano left, and how it stands now."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.states: dict[str, str] = {}
        self._nodes: list[str] = []
        self._turn = itertools.count()

    # What Volcano left

    def nodes(self, stem: str, count: int, cpu: int) -> None:
        """Create nodes."""
        names = [f"{stem}-{index}" for index in range(count)]
        create_nodes(self.plane.cluster, [node_object(one, cpu=cpu, memory="256Gi", pods=500) for one in names])
        wait_nodes_ready(self.plane.cluster, names)
        self._nodes += names

    def queues(self, **states: str) -> None:
        """Create queues, and apply their states as Volcano's queue controller does."""
        for name, state in {"root": "Open", "default": "Open", **states}.items():
            spec: Obj = {"weight": 1, "reclaimable": name != "root"}
            if name != "root":
                spec["parent"] = "root"
            body = {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
            self.plane.request("POST", f"{QUEUES}?fieldManager=vc-scheduler", body)
            self.apply_state(name, state)

    def apply_state(self, queue: str, state: str) -> Obj:
        """Apply the state of a queue as Volcano does: without force, so that another owner of the field refuses it."""
        body = {"apiVersion": SCHEDULING, "kind": "Queue", "metadata": {"name": queue}, "status": {"state": state}}
        path = f"{QUEUES}/{queue}/status?fieldManager={QUEUE_CONTROLLER}"
        answer: Obj = self.plane.request("PATCH", path, body, content_type=APPLY)
        return answer

    def send(self, request: Request) -> Obj:
        """Send one request."""
        answer: Obj = self.plane.request(
            request.method, request.path, request.body or None, content_type=request.content_type
        )
        return answer

    def job(self, name: str, kind: str, state: str, pods: Pods = SMALL, **more: Any) -> Obj:
        """Create a job and all that belongs to it."""
        queue = more.pop("queue", "default")
        body = job(name, NAMESPACE, {**KINDS[kind](pods), "queue": queue, **more.pop("spec", {})})
        if "owners" in more:
            body["metadata"]["ownerReferences"] = more.pop("owners")
        body["metadata"]["labels"] = more.pop("labels", {})
        made = self.send(create(body))
        for request in requests(made, belongings(made, state, self._node, **more)):
            self.send(request)
        self.states[name] = state
        return made

    def jobs(self, wanted: Iterable[tuple[str, str, str, Pods]]) -> None:
        """Create many jobs: name, kind, state and pods of each."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda one: self.job(*one), wanted))

    def running(self, count: int) -> None:
        """Create jobs that run, of every kind in turn."""
        kinds = itertools.cycle(KINDS)
        chosen = zip(range(count), kinds, strict=False)
        self.jobs([(f"run-{number}-{kind}", kind, "running", SMALL) for number, kind in chosen])

    def waiting(self, count: int, pods: Pods = HUGE, stem: str = "wait") -> None:
        """Create jobs that wait for room, half of them with pods."""
        kinds = itertools.cycle([kind for kind in KINDS if kind not in NOT_WAITING])
        states = itertools.cycle(("pending-with-pods", "pending-without-pods"))
        chosen = zip(range(count), kinds, states, strict=False)
        self.jobs([(f"{stem}-{number}-{kind}", kind, state, pods) for number, kind, state in chosen])

    def in_state(self, state: str) -> None:
        """Create a job of several kinds in one of the other states."""
        kinds = ("plain", "policies", "services")
        self.jobs([(f"{state}-{kind}", kind, state, SMALL) for kind in kinds])

    def cron_job(self, name: str) -> None:
        """Create a cron job whose last start was at the beginning of the year and whose job still runs."""
        spec = KINDS["plain"](SMALL)
        year = time.gmtime().tm_year
        start = f"{year}-01-01T00:00:00Z"
        minutes = int(time.mktime((year, 1, 1, 0, 0, 0, 0, 0, 0)) - time.timezone) // 60
        body = {
            "apiVersion": BATCH,
            "kind": "CronJob",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "schedule": "0 0 1 1 *",
                "timeZone": "Etc/UTC",
                "concurrencyPolicy": "Allow",
                "jobTemplate": {"spec": spec},
            },
        }
        made = self.send(create(body))
        child = self.job(f"{name}-{minutes}", "plain", "running", owners=[{**owner(made), "kind": "CronJob"}])
        meta = child["metadata"]
        active = {"apiVersion": BATCH, "kind": "Job", "name": meta["name"], "namespace": NAMESPACE, "uid": meta["uid"]}
        status = {"active": [active], "lastScheduleTime": start}
        path = f"/apis/{BATCH}/namespaces/{NAMESPACE}/cronjobs/{name}/status?fieldManager={CONTROLLERS}"
        self.send(Request("PATCH", path, {"status": status}, MERGE))

    def job_flow(self, name: str) -> None:
        """Create a flow of two steps: the first has completed, and the second runs."""
        flow = "flow.volcano.sh/v1alpha1"
        for step in ("prepare", "train"):
            meta = {"name": step, "namespace": NAMESPACE}
            spec = KINDS["plain"](SMALL)
            self.send(create({"apiVersion": flow, "kind": "JobTemplate", "metadata": meta, "spec": spec}))
        steps = [{"name": "prepare"}, {"name": "train", "dependsOn": {"targets": ["prepare"]}}]
        meta = {"name": name, "namespace": NAMESPACE}
        spec = {"flows": steps, "jobRetainPolicy": "retain"}
        made = self.send(create({"apiVersion": flow, "kind": "JobFlow", "metadata": meta, "spec": spec}))
        for step, state in (("prepare", "completed"), ("train", "running")):
            labels = {
                "volcano.sh/createdByJobFlow": f"{NAMESPACE}.{name}",
                "volcano.sh/createdByJobTemplate": f"{NAMESPACE}.{step}",
            }
            owners = [{**owner(made), "apiVersion": flow, "kind": "JobFlow"}]
            self.job(f"{name}-{step}", "plain", state, labels=labels, owners=owners)
        status = {
            "state": {"phase": "Running"},
            "completedJobs": [f"{name}-prepare"],
            "runningJobs": [f"{name}-train"],
        }
        path = f"/apis/{flow}/namespaces/{NAMESPACE}/jobflows/{name}/status?fieldManager={CONTROLLERS}"
        self.send(Request("PATCH", path, {"status": status}, MERGE))

    def deployment(self, name: str) -> None:
        """Create a Deployment of two pods for Volcano's scheduler, with the PodGroup of its ReplicaSet."""
        labels = {"app": name}
        pod = SMALL.template()["spec"]
        template = {
            "metadata": {"labels": labels},
            "spec": {**pod, "restartPolicy": "Always", "schedulerName": "volcano"},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        meta = {"name": name, "namespace": NAMESPACE}
        self.send(create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}, "kubectl"))
        selected = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{name}"
        wait_until("the pods of a Deployment", lambda: len(self.plane.request("GET", selected)["items"]) == 2, 30.0)
        pods = self.plane.request("GET", selected)["items"]
        references = pods[0]["metadata"]["ownerReferences"]
        group = f"podgroup-{references[0]['uid']}"
        body = {
            "apiVersion": SCHEDULING,
            "kind": "PodGroup",
            "metadata": {"name": group, "namespace": NAMESPACE, "ownerReferences": references},
            "spec": {
                "minMember": 1,
                "queue": "default",
                "minResources": {"cpu": "200m", "memory": "64Mi", "pods": "1"},
            },
            "status": {"phase": "Running", "running": 2},
        }
        self.send(create(body))
        for one in pods:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{one['metadata']['name']}"
            note = {"metadata": {"annotations": {"scheduling.k8s.io/group-name": group}}}
            self.send(Request("PATCH", f"{path}?fieldManager={CONTROLLERS}", note, MERGE))
            target = {"apiVersion": "v1", "kind": "Node", "name": self._node(one)}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": one["metadata"]["name"]}}
            self.send(Request("POST", f"{path}/binding", {**binding, "target": target}))

    def _node(self, pod: Obj) -> str:
        return self._nodes[next(self._turn) % len(self._nodes)]

    # What users do

    def command(self, name: str, action: str) -> None:
        """Create a Command for a job."""
        uid = self.all("jobs")[name]["metadata"]["uid"]
        self._command(NAMESPACE, action, {"apiVersion": BATCH, "kind": "Job", "name": name, "uid": uid})

    def queue_command(self, name: str, action: str) -> None:
        """Create a Command for a queue, as `vcctl queue operate` does."""
        uid = self.queue_objects()[name]["metadata"]["uid"]
        self._command("default", action, {"apiVersion": SCHEDULING, "kind": "Queue", "name": name, "uid": uid})

    def _command(self, namespace: str, action: str, target: Obj) -> None:
        meta = {"generateName": f"{target['name']}-{action.lower()}-", "namespace": namespace}
        bus = "bus.volcano.sh/v1alpha1"
        self.send(create({"apiVersion": bus, "kind": "Command", "metadata": meta, "target": target, "action": action}))

    def end_pods(self, name: str, code: int, only: str = "") -> None:
        """Let the pods of a job end with this exit code, as a kubelet says it."""
        one = self.all("jobs")[name]
        for pod in owned_by(one, self.all("pods").values()):
            if only and pod["metadata"]["name"] != f"{name}-{only}":
                continue
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}/status?fieldManager=kubelet"
            ended = [
                {**container, "ready": False, "state": {"terminated": {"exitCode": code, "reason": "Error"}}}
                for container in pod["status"]["containerStatuses"]
            ]
            status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": ended}
            self.send(Request("PATCH", path, {"status": status}, MERGE))

    def delete_pod(self, name: str) -> None:
        """Delete a pod."""
        self.plane.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")

    def scale(self, name: str, replicas: int) -> None:
        """Give the only task of a job another number of pods."""
        (one,) = self.all("jobs")[name]["spec"]["tasks"]
        path = f"/apis/{BATCH}/namespaces/{NAMESPACE}/jobs/{name}"
        self.send(Request("PATCH", path, {"spec": {"tasks": [{**one, "replicas": replicas}]}}, MERGE))

    def create_new(self, name: str) -> None:
        """Create a job as a user writes it; the webhooks fill in its defaults."""
        one = {"replicas": 2, "template": SMALL.template()}
        meta = {"name": name, "namespace": NAMESPACE}
        self.send(create({"apiVersion": BATCH, "kind": "Job", "metadata": meta, "spec": {"tasks": [one]}}, "kubectl"))

    # How it stands now

    def queue_objects(self) -> dict[str, Obj]:
        """Return the queues by name."""
        return {one["metadata"]["name"]: one for one in self.plane.request("GET", QUEUES)["items"]}

    def queue_states(self) -> dict[str, str]:
        """Return the state of each queue."""
        return {name: one["status"]["state"] for name, one in self.queue_objects().items()}

    def starting_with(self, stem: str) -> list[Obj]:
        """Return the pods whose name begins so."""
        return [one for name, one in self.all("pods").items() if name.startswith(stem)]

    def all(self, plural: str) -> dict[str, Obj]:
        """Return the objects of a kind by name."""
        roots = {"pods": "/api/v1", "podgroups": f"/apis/{SCHEDULING}", "jobs": f"/apis/{BATCH}"}
        path = f"{roots[plural]}/namespaces/{NAMESPACE}/{plural}"
        # For a moment, an API server answers 429 for the kinds of a new definition.
        answer = wait_until(
            f"a list of {plural}", lambda: self.plane.request("GET", path), 30.0, tolerate=(ApiFailure,)
        )
        found = answer["items"]
        return {one["metadata"]["name"]: one for one in found}

    def pods_of(self, *states: str) -> dict[str, Obj]:
        """Return the pods of the jobs that Volcano left in these states."""
        jobs, pods = self.all("jobs"), self.all("pods").values()
        wanted = [jobs[name] for name, state in self.states.items() if state in states and name in jobs]
        return {one["metadata"]["name"]: one for each in wanted for one in owned_by(each, pods)}

    def phases(self) -> dict[str, str]:
        """Return the phase of each job."""
        return {name: one.get("status", {}).get("state", {}).get("phase", "") for name, one in self.all("jobs").items()}

    def in_phase(self, phase: str, stem: str = "") -> list[str]:
        """Return the jobs in a phase whose name begins so."""
        return sorted(name for name, now in self.phases().items() if now == phase and name.startswith(stem))

    def of_volcano(self) -> dict[str, Acts]:
        """Return by job what Volcano's job controller would do if it started now."""
        groups, pods = list(self.all("podgroups").values()), list(self.all("pods").values())
        queues = self.queue_objects()
        return {name: acts(one, groups, pods, queues) for name, one in self.all("jobs").items()}

    def settle(self, still_s: float = 2.0, timeout: float = 120.0) -> None:
        """Wait until no object of the jobs has changed for some seconds."""
        end, since, before = time.monotonic() + timeout, time.monotonic(), self._versions()
        while time.monotonic() - since < still_s:
            if time.monotonic() > end:
                raise AssertionError(f"the objects still change after {timeout:g} s")
            time.sleep(0.25)
            if (now := self._versions()) != before:
                before, since = now, time.monotonic()

    def _versions(self) -> list[tuple[str, str]]:
        kinds = ("pods", "podgroups", "jobs")
        return [
            (one["metadata"]["uid"], one["metadata"]["resourceVersion"])
            for kind in kinds
            for one in self.all(kind).values()
        ]

    def wait(self, what: str, condition: Callable[[], bool], timeout: float = 120.0) -> None:
        """Wait for something; a failure shows the phases of all jobs."""
        try:
            wait_until(what, condition, timeout, tolerate=(ApiFailure,))
        except Exception as late:
            raise AssertionError(f"{late}; the phases are {self.phases()}") from late


def uids(pods: dict[str, Obj]) -> dict[str, str]:
    """Return the UIDs of pods by name."""
    return {name: one["metadata"]["uid"] for name, one in pods.items()}


def versions(pods: dict[str, Obj]) -> dict[str, str]:
    """Return the resourceVersions of pods by name."""
    return {name: one["metadata"]["resourceVersion"] for name, one in pods.items()}
