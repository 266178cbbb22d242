"""Commands to jobs on a real API server: every action in every phase."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.e2e.jobs import Job, Jobs
from tests.e2e.together import together
from tests.e2e.vcjobs import FOR_EVER, task, template

AGAIN = ("Restarting", "Pending", "Running")
ENDS: Mapping[str, tuple[str, ...]] = {
    "AbortJob": ("Aborting", "Aborted"),
    "TerminateJob": ("Terminating", "Terminated"),
    "CompleteJob": ("Completing", "Completed"),
}
ACTIONS = ("RestartJob", "AbortJob", "TerminateJob", "CompleteJob", "ResumeJob")
SLOW = {"kubelet.volcano-py/stop-after": "4"}
START = ("Pending", "Running")

WAYS: Mapping[str, tuple[str | None, tuple[str, ...]]] = {
    "Pending": (None, ("Pending",)),
    "Running": (None, START),
    "Restarting": ("RestartJob", (*START, "Restarting")),
    "Aborting": ("AbortJob", (*START, "Aborting")),
    "Aborted": ("AbortJob", (*START, "Aborting", "Aborted")),
    "Terminating": ("TerminateJob", (*START, "Terminating")),
    "Terminated": ("TerminateJob", (*START, "Terminating", "Terminated")),
    "Completing": ("CompleteJob", (*START, "Completing")),
    "Completed": (None, (*START, "Completed")),
    "Failed": (None, (*START, "Failed")),
}
"""The command that leads to a phase from Running, and the phases on the way."""
SCRIPTS = {"Completed": "sleep 1", "Failed": "sleep 1; exit 1"}


def follows(phase: str, action: str) -> tuple[str, ...]:
    """Return the phases that follow when a command comes in a phase."""
    match phase, action:
        case "Pending", "RestartJob":
            return ("Restarting", "Pending")  # the pods still cannot be scheduled
        case "Running", "RestartJob":
            return AGAIN
        case (("Pending" | "Running" | "Restarting"), ("AbortJob" | "TerminateJob" | "CompleteJob")):
            return ENDS[action]
        case "Restarting", _:
            return ("Pending", "Running")
        case (("Aborting" | "Aborted"), "ResumeJob"):
            return AGAIN
        case "Aborting", _:
            return ("Aborted",)
        case "Terminating", _:
            return ("Terminated",)
        case "Completing", _:
            return ("Completed",)
    return ()


def versions(phase: str, action: str) -> set[int]:
    """Return how often all pods of the job may have been killed: once for each such action that took effect."""
    before = 1 if WAYS[phase][0] else 0
    if phase == "Restarting" and action == "RestartJob":
        return {before, before + 1}
    took_effect = phase in {"Pending", "Running", "Restarting"} and action != "ResumeJob"
    if action == "ResumeJob" and phase in {"Aborting", "Aborted"}:
        return {before, before + 1}
    return {before + 1} if took_effect else {before}


def retries(phase: str, action: str) -> int:
    """Return how often the job was restarted or resumed."""
    restarted = phase in {"Pending", "Running"} and action == "RestartJob"
    resumed = phase in {"Aborting", "Aborted"} and action == "ResumeJob"
    return int(restarted or resumed) + (phase == "Restarting")


def bring(jobs: Jobs, phase: str) -> Job:
    """Create a job and bring it into a phase, in which it stays for some seconds at least."""
    pods = template(SCRIPTS.get(phase, FOR_EVER), annotations=SLOW, cpu="1000" if phase == "Pending" else "10m")
    job = jobs.create([task("worker", 2, pods)], maxRetry=5)
    command, way = WAYS[phase]
    if command is not None:
        job.wait_phases(*START)
        job.command(command)
    job.wait_phases(*way)
    if phase == "Pending":
        job.wait("it has its pods", lambda: len(job.uids()) == 2)
    return job


@together
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("phase", WAYS)
def test_a_command_acts_as_the_phase_of_the_job_allows(jobs: Jobs, phase: str, action: str) -> None:
    job = bring(jobs, phase)
    job.command(action)
    job.wait("the command is gone", lambda: not commands(jobs, job))
    job.wait_phases(*WAYS[phase][1], *follows(phase, action))
    job.rests()

    assert job.phases == [*WAYS[phase][1], *follows(phase, action)], job.story()
    assert job.status.get("version", 0) in versions(phase, action), job.story()
    assert job.status.get("retryCount", 0) == retries(phase, action), job.story()
    end = job.phase
    if end == "Running":
        assert job.in_phase("Running") == ["worker-0", "worker-1"]
    elif end == "Pending":
        assert job.in_phase("Pending") == ["worker-0", "worker-1"]
    elif end not in SCRIPTS or phase != end:
        assert job.uids() == {}
        assert job.group() is None
    assert job.events("CommandIssued"), job.story()


@together
def test_a_job_is_suspended_and_resumed_again_and_again(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)], maxRetry=5)
    job.wait_phases(*START)
    phases: tuple[str, ...] = START
    for count in (1, 2):
        old = set(job.uids().values())
        job.command("AbortJob")
        phases += ("Aborting", "Aborted")
        job.wait_phases(*phases)
        job.command("ResumeJob")
        phases += AGAIN
        job.wait_phases(*phases)
        job.wait_running("worker-0", "worker-1")
        assert job.status["retryCount"] == count
        assert not old & set(job.uids().values())


@together
def test_a_job_that_is_resumed_more_often_than_its_limit_fails(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 1)], maxRetry=1)
    job.wait_phases(*START)
    job.command("AbortJob")
    job.wait_phases(*START, "Aborting", "Aborted")
    job.command("ResumeJob")
    job.wait_phases(*START, "Aborting", "Aborted", "Restarting", "Failed")


@together
def test_pods_that_have_ended_stay_with_a_suspended_job_and_are_replaced_when_it_is_resumed(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2, template("[ $INDEX = 0 ] && [ $RETRY = 0 ] && exit 0; sleep infinity"))])
    job.wait("is counted", lambda: job.counts() == {"running": 1, "succeeded": 1})
    old = job.uids()
    job.command("AbortJob")
    job.wait_phases(*START, "Aborting", "Aborted")
    job.wait("one pod is left", lambda: job.uids() == {"worker-0": old["worker-0"]})
    assert job.counts() == {"succeeded": 1}
    job.command("ResumeJob")
    job.wait_phases(*START, "Aborting", "Aborted", *AGAIN)
    job.wait("both pods are there", lambda: set(job.uids()) == {"worker-0", "worker-1"})

    assert job.uids()["worker-1"] != old["worker-1"]
    assert job.uids()["worker-0"] == old["worker-0"], "a resume kills no pod that has ended"


@together
def test_a_command_with_an_unknown_action_is_removed_and_changes_nothing(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 1)])
    job.wait_phases(*START)
    job.command("DanceJob")
    job.wait("the command is gone", lambda: not commands(jobs, job))
    job.rests()

    assert job.phases == list(START)
    assert job.status.get("version", 0) == job.status.get("retryCount", 0) == 0


@together
def test_a_command_for_an_older_job_of_the_same_name_is_removed_and_changes_nothing(jobs: Jobs) -> None:
    older = jobs.create([task("worker", 1)])
    older.wait_phases(*START)
    older.delete()
    older.wait("is gone", older.gone)
    older.wait("its pods are gone", lambda: not older.uids())
    job = jobs.create([task("worker", 1)], name=older.name)
    job.wait_phases(*START)
    older.command("TerminateJob")
    job.wait("the command is gone", lambda: not commands(jobs, job))
    job.rests()

    assert job.phases == list(START)


def commands(jobs: Jobs, job: Job) -> list[str]:
    """Return the names of the commands to a job which still exist."""
    path = f"/apis/bus.volcano.sh/v1alpha1/namespaces/{jobs.namespace}/commands"
    items = jobs.plane.request("GET", path)["items"]
    return [item["metadata"]["name"] for item in items if item["target"]["name"] == job.name]
