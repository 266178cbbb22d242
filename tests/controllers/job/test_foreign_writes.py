"""Anybody may write annotations and status: text that says no number is none, and ends no process."""

import json

import msgspec
import pytest

from tests.controllers.job.builders import a_job_pod_body, a_vcjob
from volcano_py.api import keys
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job import bookkeeping, happenings
from volcano_py.controllers.job.delays import PREFIX, restored
from volcano_py.controllers.job.members import Member, Members
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.pod_group import version_of

NO_NUMBERS = ["²", "-1", "1.5", "٣", "9" * 5000]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_a_version_that_is_no_number_is_none(text: str) -> None:
    pod = a_job_pod_body()
    pod["metadata"]["annotations"][keys.JOB_VERSION] = text
    group = {"metadata": {"name": "g", "annotations": {keys.JOB_VERSION: text}}}

    assert Member.of(msgspec.convert(pod, JobPod)).version == 0
    assert version_of(msgspec.convert(group, PodGroup)) is None


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_notes_that_are_no_numbers_count_as_none(text: str) -> None:
    notes = {f"{bookkeeping.SPENT}worker": text, f"{bookkeeping.TASK_FAILED}worker": text}
    job = a_vcjob(phase="Running", status={"controlledResources": {f"{bookkeeping.EVICTING}train-worker-{text}": "u"}})

    assert bookkeeping.spent(notes, "worker") == 0
    assert bookkeeping.answered_restarts(notes, "worker") == 0
    assert happenings.missed(job, Members()) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("version", "1", id="a-version-that-is-text"),
        pytest.param("task", ["worker"], id="a-task-that-is-a-list"),
        pytest.param("due", "0001-01-01T00:00:00+12:00", id="a-time-before-all-times"),
    ],
)
def test_a_delayed_action_that_does_not_fit_its_type_is_left_out(field: str, value: object) -> None:
    fields = ["PodEvicted", "", "uid-train", "worker", "train-worker-0", "u1", "2", 137, 4]
    due: object = "2024-01-01T12:00:00Z"
    if field == "due":
        due = value
    else:
        fields[-1 if field == "version" else 3] = value  # type: ignore[call-overload]
    good = json.dumps(["2024-01-01T12:00:00Z", "RestartTask", ["Unknown", "", "", "", "", "", "", 0, None], ""])

    found = restored({f"{PREFIX}x": json.dumps([due, "RestartTask", fields, ""]), f"{PREFIX}y": good})

    assert [one.request.event for one in found] == ["Unknown"]
