"""The status of a job: counters, conditions, durations, and the patch that writes what changed."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controllers.job.builders import NOW, a_vcjob
from tests.controllers.job.world import merged
from volcano_py.api.batch import Job, JobCondition, JobState, JobStatus, TaskState
from volcano_py.controllers.job.phases import Change, Counts
from volcano_py.controllers.job.status import appended, counted, difference, entered, go_duration, patch


def test_counters_are_those_of_the_pods_and_tasks_without_pods_are_left_out() -> None:
    before = JobStatus(pending=9, unknown=9, task_status_count={"gone": TaskState({"Running": 1})}, retry_count=2)
    by_task = {"b": {"Running": 2, "Failed": 0}, "a": {"Pending": 1}, "empty": {"Running": 0}}

    status = counted(before, Counts(1, 2, 3, 4, 5, 6), by_task.items())

    assert [status.pending, status.running, status.succeeded, status.failed] == [1, 2, 3, 4]
    assert [status.terminating, status.unknown, status.retry_count] == [5, 6, 2]
    assert status.task_status_count == {"a": TaskState({"Pending": 1}), "b": TaskState({"Running": 2})}


def test_a_phase_is_entered_with_reason_message_time_condition_and_duration() -> None:
    now = NOW + timedelta(hours=1, seconds=5, milliseconds=700)

    status = entered(a_vcjob(), JobStatus(), Change("Running", "Why", "x" * 5000), now)

    moment = NOW + timedelta(hours=1, seconds=5)
    assert (status.state.phase, status.state.reason, status.state.message) == ("Running", "Why", "x" * 1000)
    assert status.state.last_transition_time == moment
    assert status.conditions == [JobCondition("Running", moment)]
    assert status.running_duration == "1h0m5s"


def test_a_job_that_the_server_has_not_dated_has_no_duration() -> None:
    job = a_vcjob(meta={"creationTimestamp": None})

    assert entered(job, JobStatus(), Change("Pending", "", ""), NOW).running_duration == ""


def test_a_clock_that_is_behind_the_servers_gives_no_negative_duration() -> None:
    before = NOW - timedelta(seconds=5)

    assert entered(a_vcjob(), JobStatus(), Change("Pending", "", ""), before).running_duration == "0s"


def test_a_phase_that_is_entered_again_moves_to_the_end() -> None:
    conditions: list[JobCondition] = []
    for phase in ("Pending", "Running", "Restarting", "Pending"):
        conditions = appended(conditions, JobCondition(phase))

    assert [one.status for one in conditions] == ["Running", "Restarting", "Pending"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m0s"), (3599, "59m59s"), (3600, "1h0m0s"), (90061, "25h1m1s")],
)
def test_durations_are_written_as_in_go(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text


# The patch

_NAMES = st.sampled_from(["a", "b", "c"])
_VALUES = st.recursive(
    st.one_of(st.integers(0, 3), st.sampled_from(["x", ""]), st.lists(st.integers(0, 2), max_size=2)),
    lambda inner: st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_NAMES, _VALUES, max_size=3)


@given(_OBJECTS, _OBJECTS)
def test_a_difference_turns_one_object_into_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert merged(before, difference(before, after)) == after


@given(_OBJECTS)
def test_equal_objects_do_not_differ(one: dict[str, Any]) -> None:
    assert difference(one, one) == {}


def a_status(**fields: Any) -> JobStatus:
    return msgspec.convert(fields, JobStatus)


_STATUSES = [
    a_status(),
    a_status(state={"phase": "Pending"}, pending=2, taskStatusCount={"w": {"phase": {"Pending": 2}}}),
    a_status(state={"phase": "Running", "reason": "R"}, running=1, taskStatusCount={"w": {"phase": {"Running": 1}}}),
    a_status(controlledResources={"plugin-svc": "svc", "restarting-all": "everything"}, version=1, retryCount=1),
    a_status(controlledResources={"plugin-svc": "svc"}, conditions=[{"status": "Pending"}], runningDuration="1s"),
]


@pytest.mark.parametrize("before", _STATUSES)
@pytest.mark.parametrize("after", _STATUSES)
def test_a_patch_turns_the_status_of_a_job_into_the_new_one(before: JobStatus, after: JobStatus) -> None:
    job = msgspec.structs.replace(a_vcjob(), status=before)

    written = patch(job, after)

    assert (written.name, written.namespace, written.subresource) == ("train", "ns", "status")
    found = merged(msgspec.to_builtins(job), written.body)
    assert msgspec.convert(found["status"], JobStatus) == after


def test_a_patch_holds_only_for_the_state_of_the_job_that_was_seen() -> None:
    body = patch(a_vcjob(meta={"resourceVersion": "42"}), a_status(version=1)).body

    assert body == {"metadata": {"uid": "uid-train", "resourceVersion": "42"}, "status": {"version": 1}}


def test_a_note_that_is_dropped_is_removed_from_the_job() -> None:
    job: Job = msgspec.structs.replace(a_vcjob(), status=a_status(controlledResources={"a": "1", "b": "2"}))

    assert patch(job, a_status(controlledResources={"b": "2"})).body["status"] == {"controlledResources": {"a": None}}


def test_a_state_keeps_nothing_of_the_one_before() -> None:
    job = msgspec.structs.replace(a_vcjob(), status=a_status(state={"phase": "Running", "reason": "R", "message": "M"}))
    after = msgspec.structs.replace(job.status, state=JobState(phase="Pending"))

    found = merged(msgspec.to_builtins(job), patch(job, after).body)

    assert msgspec.convert(found["status"]["state"], JobState) == JobState(phase="Pending")
