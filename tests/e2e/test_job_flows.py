"""Job flows on a real API server: jobs from templates, one after the other."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.controlplane.waiting import wait_until
from tests.e2e.jobs import Job, Jobs, phase_of
from tests.e2e.recorder import Obj
from tests.e2e.together import together
from tests.e2e.vcjobs import task, template, vcjob

FLOW = "flow.volcano.sh/v1alpha1"


class Flow:
    """One flow, its templates and jobs. Templates have the name of the flow and of the step."""

    def __init__(self, jobs: Jobs, scripts: Mapping[str, str]) -> None:
        self._jobs = jobs
        self.name = f"f{secrets.token_hex(3)}"
        self._path = f"/apis/{FLOW}/namespaces/{jobs.namespace}"
        for step, script in scripts.items():
            self.create_template(step, script)

    def template(self, step: str) -> str:
        return f"{self.name}-{step}"

    def create_template(self, step: str, script: str) -> None:
        pods = template(script, selector=self._jobs.cluster.selector)
        spec = vcjob("", [task("worker", 1, pods)])["spec"]
        self._create("JobTemplate", self.template(step), spec)

    def start(self, steps: Mapping[str, Sequence[str]], **spec: Any) -> None:
        """Create the flow; `steps` says on which steps each step depends."""
        flows: list[Obj] = []
        for step, targets in steps.items():
            flows.append({"name": self.template(step)})
            if targets:
                flows[-1]["dependsOn"] = {"targets": [self.template(target) for target in targets]}
        self.uid = self._create("JobFlow", self.name, {"flows": flows, **spec})["metadata"]["uid"]

    def _create(self, kind: str, name: str, spec: Obj) -> Obj:
        body = {"apiVersion": FLOW, "kind": kind, "metadata": {"name": name}, "spec": spec}
        answer: Obj = self._jobs.plane.request("POST", f"{self._path}/{kind.lower()}s", body)
        return answer

    def status(self) -> Obj:
        found: Obj = self._jobs.plane.request("GET", f"{self._path}/jobflows/{self.name}").get("status", {})
        return found

    def phase(self) -> str:
        return str(self.status().get("state", {}).get("phase", ""))

    def job(self, step: str) -> Job | None:
        """Return the job of a step, None if there was none so far."""
        name = f"{self.name}-{self.template(step)}"
        uids = self._jobs.cluster.records["jobs"].named(name)
        return Job(self._jobs.cluster, name, uids[-1]) if uids else None

    def wait_job(self, step: str) -> Job:
        found = self.wait(f"step {step} has begun", lambda: self.job(step))
        assert isinstance(found, Job)
        return found

    def wait(self, what: str, probe: Any, timeout: float = 60.0) -> Any:
        return wait_until(f"{self.name}: {what}", probe, timeout, every=0.05)

    def wait_phase(self, phase: str) -> None:
        self.wait(f"is {phase}", lambda: self.phase() == phase)

    def delete(self) -> None:
        options = {"propagationPolicy": "Background"}
        self._jobs.plane.request("DELETE", f"{self._path}/jobflows/{self.name}", options)


@contextmanager
def flow(jobs: Jobs, **scripts: str) -> Iterator[Flow]:
    """Yield a flow whose templates exist; the flow is deleted after the block."""
    found = Flow(jobs, scripts)
    yield found
    found.delete()


CHAIN = {"a": (), "b": ("a",), "c": ("b",)}


@together
def test_a_flow_of_three_runs_one_job_after_the_other_and_succeeds(jobs: Jobs) -> None:
    with flow(jobs, a="await go", b="await go", c="await go") as chain:
        chain.start(CHAIN)
        for step, later in (("a", "b"), ("b", "c"), ("c", None)):
            job = chain.wait_job(step)
            job.wait_phases("Pending", "Running")
            assert later is None or chain.job(later) is None, f"{later} began before {step} had completed"
            chain.wait_phase("Running")
            assert job.name in chain.wait("it is listed", lambda: chain.status().get("runningJobs"))
            job.say("go")
            job.wait_phases("Pending", "Running", "Completed")
        chain.wait_phase("Succeed")

        status = chain.status()
        names = {f"{chain.name}-{chain.template(step)}" for step in CHAIN}
        assert set(status["completedJobs"]) == names
        assert {each["name"] for each in status["jobStatusList"]} == names
        last = chain.wait_job("c").last["metadata"]
        assert last["labels"]["volcano.sh/createdByJobFlow"] == f"{jobs.namespace}.{chain.name}"
        assert last["labels"]["volcano.sh/createdByJobTemplate"] == f"{jobs.namespace}.{chain.template('c')}"
        assert [owner["uid"] for owner in last["ownerReferences"]] == [chain.uid]
        assert chain.wait_job("a").last["metadata"]["uid"] == chain.wait_job("a").uid


@together
def test_a_step_with_two_targets_waits_for_both(jobs: Jobs) -> None:
    with flow(jobs, a="sleep 0.5", b="await go", c="sleep 0.5") as joined:
        joined.start({"a": (), "b": (), "c": ("a", "b")})
        joined.wait_job("a").wait_phase("Completed")
        second = joined.wait_job("b")
        second.wait_phase("Running")
        second.stays("c waits for b", lambda: joined.job("c") is None)
        second.say("go")
        joined.wait_phase("Succeed")
        assert joined.wait_job("c").phase == "Completed"


@together
def test_a_flow_fails_with_a_step_and_begins_no_later_one(jobs: Jobs) -> None:
    with flow(jobs, a="sleep 0.5", b="exit 1", c="sleep 0.5") as chain:
        chain.start(CHAIN)
        chain.wait_phase("Failed")
        failed = chain.wait_job("b")
        failed.stays("c does not begin", lambda: chain.job("c") is None, 2.0)
        assert chain.status()["failedJobs"] == [failed.name]


@together
def test_a_flow_that_keeps_no_jobs_removes_them_when_it_has_succeeded(jobs: Jobs) -> None:
    with flow(jobs, a="sleep 0.5", b="sleep 0.5", c="sleep 0.5") as chain:
        chain.start(CHAIN, jobRetainPolicy="delete")
        chain.wait_phase("Succeed")
        made = [chain.wait_job(step) for step in CHAIN]
        chain.wait("its jobs are gone", lambda: all(job.gone() for job in made))
        made[0].stays("none is made again", lambda: all(job.gone() for job in map(chain.wait_job, CHAIN)), 3.0)
        assert chain.phase() == "Succeed"


@together
def test_a_flow_waits_for_a_template_that_is_missing(jobs: Jobs) -> None:
    with flow(jobs, a="sleep 0.5", c="sleep 0.5") as chain:
        chain.start(CHAIN)
        first = chain.wait_job("a")
        first.wait_phase("Completed")
        first.stays("b cannot begin", lambda: chain.job("b") is None)
        chain.create_template("b", "sleep 0.5")
        chain.wait_phase("Succeed")


@together
def test_the_jobs_of_a_flow_go_with_it(jobs: Jobs) -> None:
    with flow(jobs, a="sleep infinity") as single:
        single.start({"a": ()})
        job = single.wait_job("a")
        job.wait_phase("Running")
    job.wait("is gone with its pods", lambda: job.gone() and not job.uids())
    assert phase_of(job.last) == "Running"
