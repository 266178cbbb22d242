"""The status of flows."""

from typing import Any

import msgspec
import pytest

from tests.controllers.jobflow.flows import THEN, a_child, a_flow, a_step, after
from volcano_py.api.flow import JobFlowStatus
from volcano_py.controllers.jobflow.standing import next_phase

LATER = "2024-01-01T11:30:00Z"


def wire(status: JobFlowStatus) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(status)
    return found


def test_jobs_are_listed_by_phase_in_the_order_of_the_steps() -> None:
    phases = {
        "z": "Running",
        "y": "Pending",
        "x": "Running",
        "w": "Completed",
        "v": "Restarting",
        "u": "Aborted",
        "t": "",
        "s": "Completing",
        "r": "Terminating",
        "q": "Aborting",
    }
    flow = a_flow(*(a_step(name) for name in phases))

    status = wire(after(flow, *(a_child(name, phase) for name, phase in phases.items())).status)

    assert status["runningJobs"] == ["f-z", "f-x"]
    assert status["pendingJobs"] == ["f-y"]
    assert status["completedJobs"] == ["f-w"]
    assert status["unKnowJobs"] == ["f-v", "f-u", "f-t", "f-q"]
    assert "failedJobs" not in status
    assert [entry["name"] for entry in status["jobStatusList"]] == [f"f-{name}" for name in phases]


def test_each_phase_of_a_job_is_an_entry_of_its_history() -> None:
    flow = after(a_flow(a_step("a")), a_child("a", "Running"))
    state = {"phase": "Completed", "lastTransitionTime": LATER}
    done = a_child("a", state=state, runningDuration="40m0s", retryCount=2)

    (entry,) = wire(after(flow, done).status)["jobStatusList"]

    assert entry == {
        "name": "f-a",
        "state": "Completed",
        "startTimestamp": THEN,
        "endTimestamp": "2024-01-01T11:40:00Z",
        "restartCount": 2,
        "runningHistories": [
            {"startTimestamp": THEN, "endTimestamp": LATER, "state": "Running"},
            {"startTimestamp": LATER, "state": "Completed"},
        ],
    }


def test_a_job_that_runs_has_no_end() -> None:
    status = after(a_flow(a_step("a")), a_child("a", "Running", runningDuration="5s")).status

    assert status.job_status_list[0].end_timestamp is None


def test_conditions_show_each_job_at_a_glance() -> None:
    counts = {"t": {"phase": {"Running": 2}}}

    status = wire(after(a_flow(a_step("a")), a_child("a", "Running", taskStatusCount=counts)).status)

    assert status["conditions"] == {"f-a": {"phase": "Running", "createTime": THEN, "taskStatusCount": counts}}


def test_a_job_that_ended_and_is_gone_stays_listed_and_one_that_ran_does_not() -> None:
    flow = after(a_flow(a_step("a"), a_step("b")), a_child("a", "Completed"), a_child("b", "Running"))

    status = after(flow).status

    assert status.completed_jobs == ["f-a"]
    assert list(status.conditions) == ["f-a"]
    assert status.running_jobs == []


@pytest.mark.parametrize(
    ("phase", "facts", "following"),
    [
        ("", {}, "Pending"),
        ("Pending", {}, "Pending"),
        ("Pending", {"running": True}, "Running"),
        ("Pending", {"completed": 1}, "Running"),
        ("Pending", {"running": True, "ended_badly": True}, "Failed"),
        ("Running", {}, "Running"),
        ("Running", {"completed": 2}, "Running"),
        ("Running", {"completed": 3}, "Succeed"),
        ("Running", {"completed": 2, "ended_badly": True}, "Failed"),
        ("Succeed", {"ended_badly": True}, "Succeed"),
        ("Failed", {"completed": 3}, "Failed"),
        ("Terminating", {"running": True}, "Terminating"),
    ],
)
def test_the_phase_follows_from_the_jobs(phase: str, facts: dict[str, Any], following: str) -> None:
    known = {"steps": 3, "completed": 0, "running": False, "ended_badly": False}

    assert next_phase(phase, **{**known, **facts}) == following


def test_a_flow_counts_its_steps_and_not_other_jobs_of_its_own() -> None:
    jobs = (a_child("a", "Completed"), a_child("old", "Completed"))
    flow = after(a_flow(a_step("a"), a_step("b")), *jobs)

    assert after(flow, *jobs).status.state.phase == "Running"
