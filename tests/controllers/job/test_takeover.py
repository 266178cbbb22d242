"""What Volcano's controllers have counted they have answered: the notes about that, and how long they hold."""

from typing import Any

from tests.controllers.job.builders import a_job_task, a_member, a_ready_job, members_of, on
from volcano_py.api.batch import Job
from volcano_py.controllers.job import bookkeeping, takeover
from volcano_py.controllers.job.bookkeeping import Notes
from volcano_py.controllers.job.happenings import present
from volcano_py.controllers.job.members import Member
from volcano_py.testing import a_group

FAILED = a_member("train-worker-0", "Failed", uid="u0", exit_code=3)
RUNS = a_member("train-worker-1", "Running", uid="u1")
NOTE = {"answered-pod/train-worker-0": "u0"}
BUDGETS = {"worker": 1}


def a_left_job(*policies: Any, phase: str = "Running", **status: Any) -> Job:
    """Return a job of Volcano, whose status counts one failed pod."""
    counted = {"taskStatusCount": {"worker": {"phase": {"Failed": 1, "Running": 1}}}, "state": {"phase": phase}}
    return a_ready_job(a_job_task("worker", 2), policies=list(policies), status={**counted, **status})


def notes(job: Job, *pods: Member, phase: str = "Running") -> Notes:
    members = members_of(job, pods or (FAILED, RUNS))
    return takeover.answered(job, members, a_group(uid="g", phase=phase), {"worker": -1})


def test_a_failure_that_is_counted_is_answered() -> None:
    assert notes(a_left_job(on("PodFailed", "RestartJob"))) == NOTE
    assert notes(a_left_job({"exitCode": 3, "action": "TerminateJob"})) == NOTE


def test_a_failure_without_a_policy_needs_no_note() -> None:
    assert notes(a_left_job(on("PodEvicted", "RestartJob"))) == {}


def test_a_failure_that_is_not_counted_happened_meanwhile() -> None:
    assert notes(a_left_job(on("PodFailed", "RestartJob"), taskStatusCount={})) == {}
    two = (FAILED, a_member("train-worker-1", "Failed", uid="u1"))
    assert notes(a_left_job(on("PodFailed", "RestartJob")), *two) == {}


def test_a_policy_that_waits_goes_on_waiting() -> None:
    assert notes(a_left_job(on("PodFailed", "RestartJob", timeout="1h"))) == {}


def test_a_job_that_does_not_run_has_nothing_to_answer() -> None:
    assert notes(a_left_job(on("PodFailed", "RestartJob"), phase="Aborting")) == {}


def test_failed_pods_do_not_use_up_the_restarts_of_a_task_for_volcano() -> None:
    job = a_left_job(on("TaskFailed", "RestartJob"))
    members = members_of(job, (FAILED, RUNS))

    assert takeover.answered(job, members, a_group(), BUDGETS) == {"task-failed-worker": "1"}


def test_the_phase_unknown_is_answered_after_the_first_restart_only() -> None:
    policy = on("Unknown", "RestartJob")

    assert notes(a_left_job(policy, version=1), phase="Unknown") == {"answered-group": "g"}
    assert notes(a_left_job(policy), phase="Unknown") == {}
    assert notes(a_left_job(policy, version=1)) == {}


def test_a_noted_failure_is_no_event_at_a_later_start() -> None:
    members = members_of(a_left_job(), (FAILED, RUNS))

    assert "PodFailed" in [one.event for one in present(members, {}, {})]
    assert "PodFailed" not in [one.event for one in present(members, {}, NOTE)]
    assert "PodFailed" in [one.event for one in present(members, {}, {**NOTE, "answered-pod/train-worker-0": "old"})]


def test_notes_go_with_the_pod_and_with_the_phase_of_the_group() -> None:
    every = {**NOTE, "answered-group": "g", "plugin-svc": "svc"}
    job = a_left_job()

    assert bookkeeping.of_present(every, members_of(job, (FAILED, RUNS)), "g") == every
    assert bookkeeping.of_present(every, members_of(job, (RUNS,)), "") == {"plugin-svc": "svc"}
    assert bookkeeping.of_past(every) == {"plugin-svc": "svc"}
