"""Flows with late watches and a controller that may end at any write: no step runs twice, none is forgotten."""

import copy
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.controllers.jobflow.flows import NOW, THEN, a_step, a_template
from volcano_py.api.batch import Job
from volcano_py.api.flow import JobFlow
from volcano_py.apiserver.patches import merge_patch
from volcano_py.controllers.jobflow.decision import Seen, judge
from volcano_py.controllers.writes import Create, Delete, Patch, Write

NAMES = ("a", "b", "c")
ENDS = ("Completed", "Completed", "Completed", "Failed")
FLOWS = st.fixed_dictionaries(
    {
        "flows": st.sampled_from(
            [
                [a_step("a"), a_step("b", "a"), a_step("c", "b")],
                [a_step("a"), a_step("b"), a_step("c", "a", "b")],
                [a_step("a"), a_step("b", "a"), a_step("c", "a")],
            ]
        ),
        "jobRetainPolicy": st.sampled_from(["", "retain", "delete"]),
    }
)
CHAIN = {"flows": [a_step("a"), a_step("b", "a"), a_step("c", "b")], "jobRetainPolicy": "retain"}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("look"), st.integers(0, 5)),
        st.tuples(st.just("run"), st.integers(0, 2)),
        st.tuples(st.just("end"), st.integers(0, 11)),
        st.tuples(st.just("remove"), st.integers(0, 2)),
        st.tuples(st.just("settle"), st.just(0)),
        st.tuples(st.just("show flow"), st.just(0)),
        st.tuples(st.just("show jobs"), st.just(0)),
    ),
    max_size=60,
)


class Cluster:
    """A flow and its jobs as the server has them, and as the controller sees them: perhaps late."""

    def __init__(self, spec: dict[str, Any]) -> None:
        meta = {"name": "f", "namespace": "default", "uid": "uid-f", "resourceVersion": "1"}
        self.flow: dict[str, Any] = {"metadata": meta, "spec": spec, "status": {}}
        self.jobs: dict[str, dict[str, Any]] = {}
        self.made: list[str] = []  # names of created jobs, in order
        self.lost: set[str] = set()  # jobs that were removed before they ended
        self.show_flow()
        self.show_jobs()

    def show_flow(self) -> None:
        self.seen_flow = msgspec.convert(copy.deepcopy(self.flow), JobFlow)

    def show_jobs(self) -> None:
        self.seen_jobs = {name: msgspec.convert(copy.deepcopy(job), Job) for name, job in self.jobs.items()}

    def look(self, kill_after: int = 1000) -> int:
        """Carry out a plan up to so many writes, or up to the first refusal; return the number of writes."""
        seen = Seen(self.seen_flow, self.seen_jobs, {name: a_template(name) for name in NAMES})
        steps = judge(seen, NOW).plan.steps
        writes = [write for step in steps for write in (step if isinstance(step, tuple) else (step,))]
        done = 0
        for write in writes[:kill_after]:
            if not self._carry_out(write):
                break
            done += 1
        return done

    def _carry_out(self, write: Write) -> bool:
        match write:
            case Patch(body=body):
                meta = self.flow["metadata"]
                if body["metadata"]["resourceVersion"] != meta["resourceVersion"]:
                    return False
                if body["status"]:
                    self.flow["status"] = merge_patch(self.flow["status"], body["status"])
                    meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
            case Create(body=body):
                assert isinstance(body, dict)
                name = body["metadata"]["name"]
                if name not in self.jobs:
                    self.made.append(name)
                    meta = {**body["metadata"], "uid": f"uid-{len(self.made)}", "creationTimestamp": THEN}
                    self.jobs[name] = {"metadata": meta, "spec": {}, "status": {}}
            case Delete(name=name):
                self.jobs.pop(name, None)
        return True

    def settle(self) -> None:
        """Let the watches catch up and the controller look until it has nothing to write."""
        for _ in range(20):
            self.show_flow()
            self.show_jobs()
            if not self.look():
                return
        raise AssertionError("the controller does not come to rest")

    def enter(self, number: int, phase: str) -> None:
        """Let a job that has not ended enter a phase."""
        job = self.jobs.get(f"f-{NAMES[number % 3]}")
        if job is not None and job["status"].get("state", {}).get("phase") not in ENDS:
            job["status"] = {"state": {"phase": phase, "lastTransitionTime": THEN}}

    def remove(self, number: int) -> None:
        """Remove a job by hand, unless it has ended and the flow does not know that yet."""
        name = f"f-{NAMES[number]}"
        state = self.jobs.get(name, {}).get("status", {}).get("state", {}).get("phase")
        known = [entry.get("state") for entry in self.flow["status"].get("jobStatusList", []) if entry["name"] == name]
        if name not in self.jobs or (state in ENDS and known != [state]):
            return
        del self.jobs[name]
        if state not in ENDS:
            self.lost.add(name)

    def made_twice(self) -> list[str]:
        """Return the jobs that were created again although they had ended."""
        return sorted(name for name in {*self.made} - self.lost if self.made.count(name) > 1)

    def phase(self) -> str:
        return str(self.flow["status"].get("state", {}).get("phase", ""))


def take(cluster: Cluster, step: str, number: int) -> None:
    match step:
        case "look":
            cluster.look(number)
        case "run":
            cluster.enter(number, "Running")
        case "end":
            cluster.enter(number, ENDS[number // 3])
        case "remove":
            cluster.remove(number)
        case "settle":
            cluster.settle()
        case "show flow":
            cluster.show_flow()
        case "show jobs":
            cluster.show_jobs()


@given(spec=FLOWS, steps=STEPS)
@example(CHAIN, [("settle", 0), ("end", 0), ("settle", 0), ("remove", 0)])
@example(
    CHAIN,  # the watch of the flow is late, and the controller ends between its status and the next job
    [
        *[("look", 5), ("show flow", 0), ("end", 0), ("show jobs", 0), ("look", 1)],
        *[("remove", 0), ("show jobs", 0), ("look", 5)],
    ],
)
@settings(max_examples=200)
def test_no_step_runs_twice_and_the_flow_comes_to_its_end(spec: dict[str, Any], steps: list[tuple[str, int]]) -> None:
    cluster = Cluster(spec)
    for step, number in steps:
        take(cluster, step, number)
        assert cluster.made_twice() == []

    for _ in NAMES:
        cluster.settle()
        for number in range(3):
            cluster.enter(number, "Completed")
    cluster.settle()

    assert cluster.made_twice() == []
    assert cluster.phase() in ("Succeed", "Failed")
    if cluster.phase() == "Succeed":
        assert {*cluster.made} == {"f-a", "f-b", "f-c"}
        assert bool(cluster.jobs) <= (spec["jobRetainPolicy"] != "delete")
