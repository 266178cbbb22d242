"""The phases of a job: what an action does in each, and where it leads (Volcano's table, `platform` 2.5)."""

from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controllers.job.builders import a_job_task, a_ready_job, a_vcjob
from volcano_py.api.batch import Job
from volcano_py.controllers.job import phases, policies
from volcano_py.controllers.job.phases import AT_REST, FINISHED, SUCCESSORS, TABLE, Counts, Kill, next_phase, rule

ENDINGS = {"AbortJob": "Aborting", "TerminateJob": "Terminating", "CompleteJob": "Completing"}
RESTARTS = {"RestartJob": Kill.ALL} | dict.fromkeys(("RestartTask", "RestartPod", "RestartPartition"), Kill.TARGET)
PHASES = sorted(TABLE)
ACTIONS = sorted(policies.ACTIONS)


def expected(phase: str, action: str) -> tuple[Kill, str, bool] | None:
    """Return what an action does, read from the table in words; None for nothing."""
    if phase in ("Pending", "Running", "Restarting"):
        if action in ENDINGS:
            return Kill.UNFINISHED, ENDINGS[action], False
        if action in RESTARTS:
            return RESTARTS[action], "Restarting", phase != "Restarting"
    if phase in ("Aborting", "Aborted") and action == "ResumeJob":
        return Kill.UNSUCCESSFUL, "Restarting", True
    return None


@pytest.mark.parametrize(("phase", "action"), list(product(PHASES, ACTIONS)))
def test_every_action_in_every_phase_does_what_the_table_says(phase: str, action: str) -> None:
    found = rule(phase, action)

    assert (None if found is None else tuple(found)) == expected(phase, action)


def test_a_job_without_a_phase_is_treated_as_pending() -> None:
    assert [rule("", action) for action in ACTIONS] == [rule("Pending", action) for action in ACTIONS]
    assert rule("NoSuchPhase", "AbortJob") is None


def test_the_table_has_every_phase_and_leads_only_to_phases_that_may_follow() -> None:
    assert {"", *TABLE} == set(SUCCESSORS)
    for phase, actions in TABLE.items():
        for action, found in actions.items():
            assert action in policies.ACTIONS
            assert found.phase == phase or found.phase in SUCCESSORS[phase], (phase, action)


def test_a_finished_job_stays_finished_and_every_other_phase_leads_on() -> None:
    assert {phase for phase, following in SUCCESSORS.items() if not following} == FINISHED
    resumable = AT_REST - FINISHED
    assert resumable == {"Aborted"}
    reached = {following for phase in SUCCESSORS for following in SUCCESSORS[phase]}
    assert reached == set(TABLE)


# What a job does by itself


def a_job_in(phase: str, *tasks: Any, **fields: Any) -> Job:
    return a_ready_job(*tasks, phase=phase, **fields)


def follows(job: Job, *, tasks: dict[str, int] | None = None, **counts: int) -> str | None:
    """Return the next phase, with so many pods by state and so many that succeeded by task."""
    change = next_phase(job, Counts(**counts), {"worker": counts.get("succeeded", 0)} if tasks is None else tasks)
    return None if change is None else change.phase


FOUR = a_job_task(replicas=4, minAvailable=2)


@pytest.mark.parametrize(
    ("counts", "phase"),
    [
        ({"pending": 4}, None),
        ({"pending": 3, "running": 1}, None),
        ({"pending": 2, "running": 2}, "Running"),
        ({"running": 1, "failed": 1}, "Running"),
        ({"succeeded": 2}, "Running"),
        ({"running": 1, "terminating": 1}, None),
        ({"running": 1, "unknown": 1}, None),
    ],
)
def test_a_pending_job_runs_when_its_minimum_has_started(counts: dict[str, int], phase: str | None) -> None:
    assert follows(a_job_in("Pending", FOUR), **counts) == phase
    assert follows(a_job_in("", FOUR), **counts) == phase


@pytest.mark.parametrize(
    ("fields", "counts", "phase"),
    [
        pytest.param({}, {"running": 4}, None, id="runs"),
        pytest.param({}, {"running": 2, "pending": 2}, None, id="enough-run"),
        pytest.param({}, {"running": 1, "pending": 3}, "Pending", id="too-many-are-pending-again"),
        pytest.param({}, {"running": 1, "terminating": 3}, None, id="pods-that-terminate-are-not-pending"),
        pytest.param({}, {"succeeded": 3, "running": 1}, None, id="one-still-runs"),
        pytest.param({}, {"succeeded": 2, "failed": 2}, "Completed", id="all-ended-and-the-minimum-succeeded"),
        pytest.param({}, {"succeeded": 1, "failed": 3}, "Failed", id="all-ended-and-too-few-succeeded"),
        pytest.param({}, {"failed": 4}, "Failed", id="all-failed"),
        pytest.param({"minSuccess": 2}, {"succeeded": 2, "running": 2}, "Completed", id="enough-successes"),
        pytest.param({"minSuccess": 3}, {"succeeded": 2, "running": 2}, None, id="not-yet-enough-successes"),
        pytest.param({"minSuccess": 3}, {"succeeded": 2, "failed": 2}, "Failed", id="successes-missed"),
        pytest.param(
            {"minSuccess": 1}, {"succeeded": 1, "failed": 3}, "Completed", id="fewer-than-the-minimum-suffice"
        ),
        pytest.param({"minSuccess": 1}, {"succeeded": 1, "pending": 3}, "Completed", id="before-going-back-to-pending"),
    ],
)
def test_a_running_job_ends_or_waits_again_as_its_pods_say(
    fields: dict[str, Any], counts: dict[str, int], phase: str | None
) -> None:
    assert follows(a_job_in("Running", FOUR, **fields), **counts) == phase


def two_tasks(**fields: Any) -> Job:
    tasks = a_job_task("ps", 1, minAvailable=1), a_job_task("worker", 3, minAvailable=2)
    return a_job_in("Running", *tasks, **fields)


@pytest.mark.parametrize(
    ("job", "by_task", "phase"),
    [
        pytest.param(two_tasks(), {"ps": 1, "worker": 2}, "Completed", id="each-task-has-its-minimum"),
        pytest.param(two_tasks(), {"ps": 0, "worker": 3}, "Failed", id="a-task-misses-its-minimum"),
        pytest.param(two_tasks(), {"worker": 3}, "Completed", id="a-task-without-pods-is-not-asked"),
        pytest.param(two_tasks(minAvailable=2), {"ps": 0, "worker": 3}, "Completed", id="the-job-asks-for-less"),
        pytest.param(two_tasks(minAvailable=2), {"ps": 0, "worker": 1}, "Failed", id="less-than-the-job-asks-for"),
        pytest.param(two_tasks(minSuccess=4), {"ps": 1, "worker": 2}, "Failed", id="and-successes-count"),
    ],
)
def test_when_all_pods_have_ended_the_minimum_of_each_task_counts(
    job: Job, by_task: dict[str, int], phase: str
) -> None:
    succeeded = sum(by_task.values())

    assert follows(job, tasks=by_task, succeeded=succeeded, failed=4 - succeeded) == phase


def test_a_job_scaled_to_zero_keeps_its_phase() -> None:
    assert follows(a_job_in("Running", a_job_task(replicas=0)), terminating=4) is None
    assert follows(a_job_in("Running", a_job_task(replicas=0), minSuccess=1)) is None


@pytest.mark.parametrize(
    ("retries", "terminating", "phase"),
    [(1, 0, "Pending"), (1, 2, "Pending"), (1, 3, None), (3, 0, "Failed"), (3, 4, "Failed"), (4, 0, "Failed")],
)
def test_a_restart_waits_for_room_and_ends_when_the_retries_are_used_up(
    retries: int, terminating: int, phase: str | None
) -> None:
    job = a_job_in("Restarting", FOUR, maxRetry=3, status={"retryCount": retries, "minAvailable": 2})

    assert follows(job, terminating=terminating) == phase


@pytest.mark.parametrize(
    ("phase", "final"), [("Aborting", "Aborted"), ("Terminating", "Terminated"), ("Completing", "Completed")]
)
def test_a_phase_that_kills_ends_with_its_last_pod(phase: str, final: str) -> None:
    job = a_job_in(phase, FOUR)

    for state in ("pending", "running", "terminating", "unknown"):
        assert follows(job, **{state: 1}) is None
    assert follows(job, succeeded=2, failed=2) == final


@pytest.mark.parametrize("phase", sorted(AT_REST))
def test_a_phase_at_rest_is_left_only_on_request(phase: str) -> None:
    assert follows(a_job_in(phase, FOUR), running=4) is None


def test_a_final_phase_keeps_the_reason_of_what_led_to_it() -> None:
    state = {"phase": "Terminating", "reason": "PodFailed", "message": "pod x failed"}

    assert next_phase(a_vcjob(status={"state": state}), Counts(), {}) == ("Terminated", "PodFailed", "pod x failed")


def test_every_change_says_why_with_numbers() -> None:
    change = next_phase(a_job_in("Running", FOUR, minSuccess=3), Counts(succeeded=2, failed=2), {"worker": 2})

    assert change == ("Failed", "MinSuccessMissed", "all pods have ended and 2 succeeded; minSuccess is 3")
    change = next_phase(a_job_in("Running", FOUR), Counts(succeeded=1, failed=3), {"worker": 1})
    assert change == ("Failed", "TaskFailed", "1 pods of task worker succeeded; its minAvailable is 2")
    assert phases.replicas_of(a_vcjob(FOUR, a_job_task("b", 3))) == 7


_COUNT = st.integers(0, 4)


@given(
    st.sampled_from(sorted(SUCCESSORS)),
    st.builds(Counts, _COUNT, _COUNT, _COUNT, _COUNT, _COUNT, _COUNT),
    st.integers(0, 5),
    st.integers(0, 4),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_every_change_leads_to_a_phase_that_may_follow(
    phase: str, counts: Counts, replicas: int, retries: int, min_success: int | None
) -> None:
    job = a_job_in(phase, a_job_task(replicas=replicas), status={"retryCount": retries, "minAvailable": replicas})
    job = msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, min_success=min_success))

    change = next_phase(job, counts, {"worker": counts.succeeded})

    assert change is None or change.phase in SUCCESSORS[phase or "Pending"]
