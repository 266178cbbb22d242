"""Which action a job takes on an event."""

from typing import Any

import msgspec
import pytest

from tests.controllers.job.builders import UID, a_job_task, a_ready_job, on
from volcano_py.api.batch import Job, LifecyclePolicy
from volcano_py.controllers.job.policies import ANY, Request, answered_events, delay_of, resolve

FAILED = Request(event="PodFailed", job_uid=UID, task="worker", pod="train-worker-0", version=2)


def job_with(of_job: list[Any] = [], of_task: list[Any] = [], version: int = 2) -> Job:  # noqa: B006 - only read
    return a_ready_job(
        a_job_task("ps"), a_job_task("worker", policies=of_task), policies=of_job, status={"version": version}
    )


EVERY = [on(ANY, "AbortJob")]


@pytest.mark.parametrize(
    ("job", "request_", "action"),
    [
        pytest.param(job_with(EVERY), Request(action="ResumeJob", event="PodFailed"), "ResumeJob", id="1-command"),
        pytest.param(job_with(EVERY), Request(event="OutOfSync"), "SyncJob", id="2-out-of-sync"),
        pytest.param(job_with(EVERY), Request(event="CommandIssued"), "SyncJob", id="2-command-without-action"),
        pytest.param(job_with(EVERY), FAILED._replace(event="PodRunning"), "SyncJob", id="2-pod-running"),
        pytest.param(job_with(EVERY), FAILED._replace(job_uid="other"), "SyncJob", id="3-another-job"),
        pytest.param(job_with(EVERY), FAILED._replace(job_uid=""), "AbortJob", id="3-no-uid"),
        pytest.param(job_with(EVERY), FAILED._replace(version=1), "SyncJob", id="4-earlier-version"),
        pytest.param(job_with(EVERY), FAILED._replace(version=3), "AbortJob", id="4-later-version"),
        pytest.param(
            job_with([on("Unknown", "RestartJob")]), Request(event="Unknown"), "RestartJob", id="4-no-version"
        ),
        pytest.param(job_with(EVERY, [on("PodFailed", "RestartPod")]), FAILED, "RestartPod", id="5-task-before-job"),
        pytest.param(
            job_with(EVERY, [on("PodEvicted", "RestartPod")]), FAILED, "AbortJob", id="5-task-policy-of-another-event"
        ),
        pytest.param(
            job_with([], [on("PodFailed", "RestartPod")]), FAILED._replace(task="ps"), "SyncJob", id="5-other-task"
        ),
        pytest.param(
            job_with([on("PodFailed", "RestartTask"), *EVERY]), FAILED, "RestartTask", id="5-first-in-the-list"
        ),
        pytest.param(job_with([on("PodEvicted", "RestartJob")]), FAILED, "SyncJob", id="6-nothing-applies"),
        pytest.param(job_with([{"event": "PodFailed"}, *EVERY]), FAILED, "AbortJob", id="6-policy-without-action"),
    ],
)
def test_the_first_rule_that_applies_decides(job: Job, request_: Request, action: str) -> None:
    assert resolve(job, request_).action == action


@pytest.mark.parametrize(
    ("policy", "event", "applies"),
    [
        (on("PodFailed", "AbortJob"), "PodFailed", True),
        (on("PodFailed", "AbortJob"), "PodEvicted", False),
        (on(ANY, "AbortJob"), "TaskCompleted", True),
        ({"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}, "PodEvicted", True),
        ({"events": ["PodFailed"], "event": "Unknown", "action": "AbortJob"}, "Unknown", True),
        ({"events": [ANY], "action": "AbortJob"}, "Unknown", True),
        pytest.param(on("PodPending", "AbortJob"), "PodPending", False, id="pending-needs-a-timeout"),
        pytest.param(on(ANY, "AbortJob"), "PodPending", False, id="pending-needs-a-timeout-for-any-event-too"),
        pytest.param(on("PodPending", "AbortJob", timeout="10s"), "PodPending", True, id="pending-with-timeout"),
    ],
)
def test_a_policy_applies_to_its_events(policy: Any, event: str, applies: bool) -> None:
    resolved = resolve(job_with([policy]), FAILED._replace(event=event))

    assert (resolved.action == "AbortJob") is applies


@pytest.mark.parametrize(
    ("asked", "code", "applies"), [(3, 3, True), (3, 137, False), (0, 0, False), (3, 0, False), (-1, -1, True)]
)
def test_an_exit_code_applies_if_it_is_the_same_and_not_zero(asked: int, code: int, applies: bool) -> None:
    job = job_with([{"exitCode": asked, "action": "AbortJob"}])

    assert (resolve(job, FAILED._replace(exit_code=code)).action == "AbortJob") is applies


def test_the_answer_names_the_policy_its_task_and_its_delay() -> None:
    resolved = resolve(job_with([], [on("PodFailed", "RestartTask", timeout="1m30s")]), FAILED)

    assert (resolved.task, resolved.delay_s) == ("worker", 90.0)
    assert resolved.policy is not None
    assert resolved.policy.event == "PodFailed"
    assert resolve(job_with(EVERY), FAILED).task == ""


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(None, 0), ("", 0), ("10s", 10), ("1h", 3600), ("-5s", 0), ("soon", 0), ("100ms", 0.1)]
)
def test_a_timeout_is_a_duration_as_in_go_and_one_that_cannot_be_read_is_none(
    timeout: str | None, seconds: float
) -> None:
    assert delay_of(LifecyclePolicy(action="AbortJob", timeout=timeout)) == seconds


@pytest.mark.parametrize(
    ("job", "events"),
    [
        (job_with(), set()),
        (job_with([on("PodFailed", "AbortJob")], [on("TaskCompleted", "CompleteJob")]), {"PodFailed", "TaskCompleted"}),
        (job_with([{"exitCode": 3, "action": "AbortJob"}]), {"PodFailed"}),
        (job_with([], [{"events": ["PodEvicted", "Unknown"], "action": "AbortJob"}]), {"PodEvicted", "Unknown"}),
        (
            job_with(EVERY),
            {ANY, "PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown"},
        ),
    ],
)
def test_only_events_that_a_policy_answers_need_to_be_kept(job: Job, events: set[str]) -> None:
    assert answered_events(job) == events


def test_every_event_that_is_left_out_would_be_a_sync() -> None:
    for policy in (EVERY[0], on("PodFailed", "AbortJob"), on("PodPending", "AbortJob", timeout="1s")):
        job = job_with([policy])
        for event in ("PodFailed", "PodEvicted", "PodPending", "PodRunning", "TaskCompleted", "TaskFailed", "Unknown"):
            if resolve(job, FAILED._replace(event=event)).action != "SyncJob":
                assert event in answered_events(job)


def test_requests_are_compared_with_the_job_as_it_is_now() -> None:
    job = job_with(EVERY, version=3)

    assert resolve(job, FAILED).action == "SyncJob"
    older = msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, version=2))
    assert resolve(older, FAILED).action == "AbortJob"
