"""Delayed actions that cannot be derived again stand on the job."""

from datetime import timedelta, timezone

import pytest

from tests.controllers.job.builders import NOW
from volcano_py.controllers.job import policies
from volcano_py.controllers.job.delays import KEPT, PREFIX, Delayed, kept, restored
from volcano_py.controllers.job.policies import Request

REQUEST = Request("PodEvicted", "", "uid-train", "worker", "train-worker-0", "u1", "2", 137, 4)


def a_delayed(request: Request = REQUEST, task: str = "worker") -> Delayed:
    return Delayed(NOW + timedelta(milliseconds=1500), policies.RESTART_TASK, request, task)


@pytest.mark.parametrize(
    "delayed",
    [
        pytest.param(a_delayed(), id="all-fields"),
        pytest.param(a_delayed(Request(event="Unknown"), ""), id="of-the-group"),
        pytest.param(a_delayed(REQUEST._replace(version=None, exit_code=-1)), id="no-version"),
    ],
)
def test_what_is_kept_is_restored(delayed: Delayed) -> None:
    key, text = kept(delayed)

    assert key.startswith(PREFIX)
    assert restored({key: text}) == [delayed]


def test_times_are_restored_in_utc() -> None:
    delayed = a_delayed()._replace(due=NOW.astimezone(timezone(timedelta(hours=2))))

    (found,) = restored(dict([kept(delayed)]))

    assert found.due == NOW
    assert found.due.utcoffset() == timedelta(0)


def test_one_action_is_kept_per_pod_and_event() -> None:
    others = [a_delayed(REQUEST._replace(pod="b")), a_delayed(REQUEST._replace(event="TaskFailed"))]

    assert len({kept(one)[0] for one in [a_delayed(), a_delayed(), *others]}) == 3


@pytest.mark.parametrize("text", ["", "not json", "[]", '["2024-01-01T12:00:00Z","RestartJob",[1,2],"w"]extra', "{}"])
def test_what_cannot_be_read_is_left_out(text: str) -> None:
    key, good = kept(a_delayed())

    assert restored({f"{PREFIX}broken": text, key: good, "plugin-svc": "svc"}) == [a_delayed()]


def test_events_that_pods_do_not_show_are_kept() -> None:
    assert {"PodEvicted", "TaskCompleted", "TaskFailed", "Unknown"} == KEPT
