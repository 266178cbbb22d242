"""Jobs of one test on a real API server: what the test does with them, and what was seen of them.

    job = jobs.create([task("worker", 2)], policies=[on("PodFailed", "RestartJob")])
    job.wait_phases("Pending", "Running")
    job.say("go", pod=job.pod_name("worker", 0))
    job.wait_phases("Pending", "Running", "Restarting", "Pending", "Running")

At the end of a test, `Jobs.close` judges the history of each of its jobs by the rules of `job_rules`.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import NotInTime, wait_until
from tests.e2e.job_cluster import MERGE, JobCluster
from tests.e2e.job_rules import broken_rules
from tests.e2e.recorder import Obj, Seen
from tests.e2e.vcjobs import BATCH, BUS, command, vcjob

T = TypeVar("T")

JSON_PATCH = "application/json-patch+json"
PATIENCE_S = 90.0
POLL_S = 0.05
CORE = "/api/v1"


class Job:
    """One job: what is done with it, and what was seen."""

    def __init__(self, cluster: JobCluster, name: str, uid: str) -> None:
        self.cluster = cluster
        self.name = name
        self.uid = uid
        self.path = f"/apis/{BATCH}/namespaces/{cluster.namespace}/jobs/{name}"

    # What was seen

    @property
    def seen(self) -> list[Seen]:
        """All versions, oldest first."""
        return self.cluster.records["jobs"].history(self.uid)

    @property
    def last(self) -> Obj:
        """The last version."""
        return self.seen[-1].obj

    @property
    def status(self) -> Obj:
        """The last status."""
        found: Obj = self.last.get("status", {})
        return found

    @property
    def phase(self) -> str:
        """The last phase."""
        return phase_of(self.last)

    @property
    def phases(self) -> list[str]:
        """The phases in the order in which they were entered."""
        return [phase for phase, _ in groupby(phase_of(each.obj) for each in self.seen) if phase]

    def entered(self, phase: str, nth: int = 0) -> Seen:
        """Return the first version of the nth time that the job was in a phase."""
        starts = [
            next(versions)
            for entered, versions in groupby(self.seen, lambda each: phase_of(each.obj))
            if entered == phase
        ]
        return starts[nth]

    def counts(self) -> dict[str, int]:
        """Return the counters of the last status that are not 0."""
        return counters(self.status)

    def gone(self) -> bool:
        """Say whether the job is deleted."""
        return bool(self.seen) and self.seen[-1].kind == "DELETED"

    def pod_histories(self) -> list[list[Seen]]:
        """Return the versions of each pod that the job ever had."""
        return [each for each in self.cluster.records["pods"].everything() if self.uid in owners(each[-1].obj)]

    def pods(self) -> dict[str, Obj]:
        """Return the pods that exist, by name."""
        histories = self.pod_histories()
        return {each[-1].obj["metadata"]["name"]: each[-1].obj for each in histories if each[-1].kind != "DELETED"}

    def uids(self) -> dict[str, str]:
        """Return the UIDs of the pods that exist, by the name of the pod without that of the job."""
        return {name.removeprefix(f"{self.name}-"): pod["metadata"]["uid"] for name, pod in self.pods().items()}

    def in_phase(self, phase: str) -> list[str]:
        """Return the names of pods in a phase which are not told to go, without the name of the job."""
        return sorted(
            name.removeprefix(f"{self.name}-")
            for name, pod in self.pods().items()
            if pod["status"].get("phase") == phase and "deletionTimestamp" not in pod["metadata"]
        )

    def pod_name(self, task: str, index: int) -> str:
        """Return the name of a pod."""
        return f"{self.name}-{task}-{index}"

    def group(self) -> Obj | None:
        """Return its PodGroup, None if there is none."""
        return next((each for each in self.cluster.records["podgroups"].alive() if self.uid in owners(each)), None)

    def events(self, reason: str | None = None) -> list[Obj]:
        """Return the events of the job (with this reason), oldest first."""
        return [
            event
            for event in self.cluster.records["events"].alive()
            if event["involvedObject"].get("uid") == self.uid and reason in (None, event["reason"])
        ]

    def executed(self, action: str) -> list[Obj]:
        """Return the events which say that an action was executed."""
        return [event for event in self.events("ExecuteAction") if action in event["message"]]

    def times(self, action: str) -> int:
        """Return how often an action was executed, according to the events; announcements of a delay do not count."""
        done = [
            event for event in self.executed(action) if not re.match(r"Execute action \w+ after ", event["message"])
        ]
        return sum(event.get("count") or 1 for event in done)

    # What is done

    def say(self, word: str, pod: str | None = None) -> None:
        """Say a word to all its pods, or to one, named without the job."""
        self.cluster.say(self.name if pod is None else f"{self.name}-{pod}", word)

    def patch(self, spec: Mapping[str, Any]) -> Obj:
        """Merge into its spec."""
        answer: Obj = self.cluster.plane.request("PATCH", self.path, {"spec": dict(spec)}, content_type=MERGE)
        return answer

    def scale(self, minimum: int | None = None, **replicas: int) -> None:
        """Change the replicas of tasks by name, and the job's `minAvailable` to the sum of all, or what is given."""
        tasks = self.last["spec"]["tasks"]
        changes = [
            {"op": "replace", "path": f"/spec/tasks/{index}/replicas", "value": replicas[each["name"]]}
            for index, each in enumerate(tasks)
            if each["name"] in replicas
        ]
        total = sum(replicas.get(each["name"], each["replicas"]) for each in tasks)
        changes.append({"op": "replace", "path": "/spec/minAvailable", "value": total if minimum is None else minimum})
        self.cluster.plane.request("PATCH", self.path, changes, content_type=JSON_PATCH)

    def command(self, action: str) -> None:
        """Send a Command."""
        path = f"/apis/{BUS}/namespaces/{self.cluster.namespace}/commands"
        self.cluster.plane.request("POST", path, command(action, "Job", BATCH, self.name, self.uid))

    def evict(self, pod: str, grace_s: int | None = None) -> None:
        """Delete a pod, named without the job."""
        path = f"{CORE}/namespaces/{self.cluster.namespace}/pods/{self.name}-{pod}"
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        self.cluster.plane.request("DELETE", path, options)

    def delete(self, propagation: str = "Background") -> None:
        """Delete the job."""
        self.cluster.plane.request("DELETE", self.path, {"propagationPolicy": propagation})

    # Waiting

    def wait(self, what: str, probe: Callable[[], T], timeout: float = PATIENCE_S) -> T:
        """Wait until something holds; the failure tells what was seen of the job."""
        try:
            return wait_until(f"{self.name}: {what}", probe, timeout, every=POLL_S)
        except NotInTime as late:
            raise AssertionError(f"{late}\n{self.story()}") from None

    def wait_phase(self, phase: str, timeout: float = PATIENCE_S) -> None:
        """Wait until the job is in a phase."""
        self.wait(f"is {phase}", lambda: self.phase == phase, timeout)

    def wait_phases(self, *phases: str, timeout: float = PATIENCE_S) -> None:
        """Wait until the job has gone through exactly these phases; fail as soon as it has entered another one."""

        def there() -> bool:
            found = self.phases
            return found == list(phases) or found != list(phases[: len(found)])

        self.wait(f"has the phases {phases}", there, timeout)
        assert self.phases == list(phases), self.story()

    def wait_running(self, *pods: str, timeout: float = PATIENCE_S) -> None:
        """Wait until exactly these pods run (named without the job) and no other pod exists."""
        self.wait(f"runs {pods}", lambda: self.in_phase("Running") == sorted(pods) == sorted(self.uids()), timeout)

    def stays(self, what: str, probe: Callable[[], bool], seconds: float = 1.5) -> None:
        """Check that something holds, and goes on to hold for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert probe(), f"{self.name}: {what}: no longer\n{self.story()}"
            time.sleep(POLL_S)

    def rests(self, seconds: float = 1.5) -> None:
        """Check that neither the job nor its pods change for a while, within a longer while."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            before = self._versions()
            time.sleep(seconds)
            if self._versions() == before:
                return
        raise AssertionError(f"{self.name} does not come to rest\n{self.story()}")

    def _versions(self) -> tuple[int, int]:
        return len(self.seen), sum(len(each) for each in self.pod_histories())

    def story(self) -> str:
        """Return what was seen, as lines: versions of the job, pods, events."""
        seen = self.seen
        if not seen:
            return "(nothing was seen of the job)"
        begin = seen[0].at
        lines = []
        for kind, obj, at in seen:
            status = obj.get("status", {})
            state = status.get("state", {})
            numbers = {key: status[key] for key in ("retryCount", "version") if status.get(key)}
            lines.append(
                f"{at - begin:7.2f} {kind} {phase_of(obj) or '-'} {counters(status)} {numbers}"
                f" {state.get('reason', '')}: {state.get('message', '')}"
            )
        for history in self.pod_histories():
            steps = [
                f"{each.at - begin:.2f} {each.obj['status'].get('phase')}"
                + (" going" if "deletionTimestamp" in each.obj["metadata"] else "")
                + (" gone" if each.kind == "DELETED" else "")
                for each in history
            ]
            meta = history[-1].obj["metadata"]
            lines.append(f"        pod {meta['name']} {meta['uid'][:8]}: {', '.join(steps)}")
        group = self.group()
        lines.append(f"        group: {json.dumps((group or {}).get('status'))}")
        lines += [
            f"        {each['type']} {each['reason']} x{each.get('count')}: {each['message']}" for each in self.events()
        ]
        return "\n".join(lines)


class Jobs:
    """The jobs of one test."""

    def __init__(self, cluster: JobCluster) -> None:
        self.cluster = cluster
        self.plane = cluster.plane
        self.namespace = cluster.namespace
        self.made: list[Job] = []

    def name(self) -> str:
        """Return a new name for a job."""
        return f"j{secrets.token_hex(3)}"

    def create(
        self,
        tasks: Sequence[Mapping[str, Any]],
        *,
        name: str = "",
        anywhere: bool = False,
        meta: Any = None,
        **spec: Any,
    ) -> Job:
        """Create a job; its pods run on the nodes of all unless they select others, or `anywhere` is given."""
        body = vcjob(name or self.name(), tasks, **spec)
        body["metadata"].update(meta or {})
        if not anywhere:
            for each in body["spec"]["tasks"]:
                for key, value in self.cluster.selector.items():
                    each["template"]["spec"]["nodeSelector"].setdefault(key, value)
        answer = self.plane.request("POST", f"/apis/{BATCH}/namespaces/{self.namespace}/jobs", body)
        return self.adopt(answer)

    def adopt(self, obj: Obj) -> Job:
        """Return a job that somebody created."""
        job = Job(self.cluster, obj["metadata"]["name"], obj["metadata"]["uid"])
        self.made.append(job)
        wait_until(f"{job.name} is seen", lambda: job.seen, 20.0, every=POLL_S)
        return job

    def read(self, path: str) -> Obj | None:
        """Return an object of the namespace by its path behind the group, None if it does not exist."""
        prefix, _, rest = path.rpartition("/n/")
        try:
            answer: Obj = self.plane.request("GET", f"{prefix}/namespaces/{self.namespace}/{rest}")
        except ApiFailure as refused:
            if refused.code == 404:
                return None
            raise
        return answer

    def core(self, resource: str, name: str) -> Obj | None:
        """Return an object of the core group by resource and name, None if it does not exist."""
        return self.read(f"{CORE}/n/{resource}/{name}")

    def close(self, judge: bool = True) -> None:
        """Judge the histories of the jobs and delete them."""
        for job in self.made:
            if not job.gone():
                try:
                    job.delete()
                except ApiFailure as refused:
                    if refused.code != 404:
                        raise
        if judge:
            for job in self.made:
                broken = broken_rules(job.seen, job.pod_histories())
                assert not broken, "\n".join([*broken, job.story()])


def phase_of(job: Obj) -> str:
    """Return the phase of a job, empty if it has none yet."""
    return str(job.get("status", {}).get("state", {}).get("phase", ""))


def counters(status: Obj) -> dict[str, int]:
    """Return the counters of a status that are not 0."""
    names = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
    return {name: status[name] for name in names if status.get(name)}


def owners(obj: Obj) -> set[str]:
    """Return the UIDs of an object's owners."""
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences", ())}
