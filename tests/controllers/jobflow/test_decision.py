"""What is written about flows."""

import pytest

from tests.controllers.jobflow.flows import (
    a_child,
    a_flow,
    a_step,
    a_template,
    after,
    body_of,
    created,
    deleted,
    problems,
    status_patch,
    verdict,
    writes,
)
from volcano_py.controllers.jobflow.steps import INVALID
from volcano_py.controllers.writes import Patch

CHAIN = (a_step("a"), a_step("b", "a"), a_step("c", "b"))


def test_steps_without_targets_start_at_once_and_the_others_wait() -> None:
    found = verdict(a_flow(a_step("a"), a_step("b", "a"), a_step("x")))

    assert created(found) == ["f-a", "f-x"]


def test_the_job_has_the_spec_of_its_template_marks_and_the_flow_as_owner() -> None:
    flow = a_flow(a_step("a"))

    found = verdict(flow, templates={"a": a_template("a", minAvailable=2, custom={"kept": [1]})})

    body = body_of(writes(found)[1])
    assert body["spec"] == {"minAvailable": 2, "custom": {"kept": [1]}}
    marks = {"volcano.sh/createdByJobTemplate": "default.a", "volcano.sh/createdByJobFlow": "default.f"}
    assert body["metadata"]["labels"] == body["metadata"]["annotations"] == marks
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("JobFlow", "uid-f", True)


def test_the_status_is_written_before_jobs_are_created_and_guards_against_an_old_view() -> None:
    flow = after(a_flow(a_step("a")))

    first = writes(verdict(flow))[0]

    assert isinstance(first, Patch)
    assert first.body == {"metadata": {"uid": "uid-f", "resourceVersion": "7"}, "status": {}}


def test_a_step_starts_when_all_its_targets_are_completed() -> None:
    flow = a_flow(a_step("a"), a_step("b"), a_step("c", "a", "b"))

    assert created(verdict(flow, a_child("a", "Completed"), a_child("b", "Running"))) == []
    assert created(verdict(flow, a_child("a", "Completed"), a_child("b", "Completed"))) == ["f-c"]


def test_a_job_that_was_created_a_moment_ago_is_not_created_again() -> None:
    assert created(verdict(a_flow(a_step("a")), created={"f-a"})) == []


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_job_that_ended_and_is_gone_is_not_run_again(phase: str) -> None:
    job = a_child("a", phase)
    flow = after(a_flow(*CHAIN), job)

    found = verdict(flow)

    assert "f-a" not in created(found)
    assert created(found) == (["f-b"] if phase == "Completed" else [])


def test_a_job_that_is_deleted_while_it_runs_is_created_again() -> None:
    flow = after(a_flow(*CHAIN), a_child("a", "Running"))

    assert created(verdict(flow)) == ["f-a"]


def test_a_second_look_over_unchanged_objects_writes_nothing() -> None:
    jobs = (a_child("a", "Completed", runningDuration="5m0s"), a_child("b", "Running"))
    flow = after(after(a_flow(*CHAIN), *jobs), *jobs)

    assert verdict(flow, *jobs).plan.steps == ()


def test_nothing_starts_after_a_failure_and_the_flow_says_why() -> None:
    flow = after(a_flow(a_step("a"), a_step("b"), a_step("c", "b")), a_child("a", "Running"), a_child("b", "Running"))

    found = verdict(flow, a_child("a", "Failed"), a_child("b", "Completed"))

    assert created(found) == []
    (event,) = found.plan.events
    assert (event.type, event.reason, event.message) == (
        "Warning",
        "Failed",
        "no further step starts, because of Job f-a",
    )


def test_a_flow_whose_jobs_have_all_completed_succeeds() -> None:
    jobs = (a_child("a", "Completed"), a_child("b", "Completed"))
    flow = after(a_flow(a_step("a"), a_step("b")), *jobs)
    assert flow.status.state.phase == "Running"

    found = verdict(flow, *jobs)

    assert status_patch(found) == {"state": {"phase": "Succeed"}}
    assert deleted(found) == []


def test_jobs_are_deleted_after_success_if_the_policy_says_so() -> None:
    jobs = (a_child("a", "Completed"), a_child("b", "Completed"))
    flow = after(a_flow(a_step("a"), a_step("b"), policy="delete"), *jobs)

    assert deleted(verdict(flow, *jobs)) == ["f-a", "f-b"]

    done = after(flow, *jobs)
    assert verdict(done).plan.steps == ()
    assert done.status.completed_jobs == ["f-a", "f-b"]


def test_a_flow_that_is_being_deleted_is_left_alone() -> None:
    assert verdict(a_flow(a_step("a"), deletionTimestamp="2024-01-01T12:00:00Z")).plan.steps == ()


def test_a_missing_template_is_a_problem_of_the_step_that_needs_it() -> None:
    flow = a_flow(a_step("a"), a_step("b"), a_step("c", "b"))

    found = verdict(flow, templates={"a": a_template("a")})

    assert created(found) == ["f-a"]
    text = "step b does not start: JobTemplate default/b does not exist: create it, and the step starts"
    assert problems(found) == [("JobTemplateNotFound", text)]


def test_a_job_of_somebody_else_is_a_problem() -> None:
    found = verdict(a_flow(a_step("a")), taken={"f-a"})

    assert created(found) == []
    ((reason, text),) = problems(found)
    assert reason == "JobExists"
    assert "Job f-a exists already" in text


def test_a_patch_changes_the_job_of_its_step_only() -> None:
    flow = a_flow(a_step("a", patch={"minAvailable": 3}), a_step("b"))
    templates = {name: a_template(name, minAvailable=1) for name in "ab"}

    found = verdict(flow, templates=templates)

    assert [body_of(write)["spec"]["minAvailable"] for write in writes(found)[1:]] == [3, 1]


def test_a_patch_that_cannot_be_applied_is_a_problem() -> None:
    flow = a_flow(a_step("a", patch={"tasks": [{"replicas": 3}]}))

    found = verdict(flow, templates={"a": a_template("a", tasks=[{"name": "t"}])})

    assert created(found) == []
    text = "step a does not start: patch.jobSpec.tasks[0] has no name: name the item that it changes"
    assert problems(found) == [(INVALID, text)]


def test_names_that_are_too_long_for_a_label_are_cut_there_and_whole_in_the_annotation() -> None:
    flow = a_flow(a_step("a"), name="f" * 80)

    meta = body_of(writes(verdict(flow))[1])["metadata"]

    assert len(meta["labels"]["volcano.sh/createdByJobFlow"]) <= 63
    assert meta["annotations"]["volcano.sh/createdByJobFlow"] == f"default.{'f' * 80}"
