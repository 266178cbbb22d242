"""When a finished job is deleted."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from volcano_py.api.batch import Job
from volcano_py.controllers.garbage_collector.decision import NotFinishedError, plan, time_left
from volcano_py.controllers.plan import NOTHING
from volcano_py.controllers.writes import Delete
from volcano_py.kube.resource import VCJOBS

NOW = datetime(2025, 3, 11, 10, tzinfo=UTC)


def a_vcjob(phase: str = "Completed", ttl: int | None = 60, since: datetime | None = NOW, **meta: Any) -> Job:
    state = {"phase": phase, **({} if since is None else {"lastTransitionTime": since.isoformat()})}
    body = {
        "metadata": {"name": "job", "namespace": "ns", "uid": "uid", "resourceVersion": "9", **meta},
        "spec": {} if ttl is None else {"ttlSecondsAfterFinished": ttl},
        "status": {"state": state},
    }
    return msgspec.convert(body, Job)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_finished_job_is_deleted_when_its_time_is_over(phase: str) -> None:
    assert plan(a_vcjob(phase), NOW + timedelta(seconds=60)).steps == (
        Delete(VCJOBS, "ns", "job", "uid", "Foreground", "9"),
    )


def test_until_then_there_is_only_the_next_look() -> None:
    decided = plan(a_vcjob(), NOW + timedelta(seconds=59.5))

    assert (decided.steps, decided.look_again_s) == ((), pytest.approx(0.5))


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(None, id="gone"),
        pytest.param(a_vcjob("Running"), id="running"),
        pytest.param(a_vcjob("Aborted"), id="aborted-and-may-be-resumed"),
        pytest.param(a_vcjob("Completing"), id="completing"),
        pytest.param(a_vcjob(ttl=None), id="no-time-to-live"),
        pytest.param(a_vcjob(since=None), id="finished-nobody-knows-when"),
        pytest.param(a_vcjob(deletionTimestamp=NOW.isoformat()), id="being-deleted"),
    ],
)
def test_every_other_job_costs_neither_a_write_nor_a_timer(job: Job | None) -> None:
    assert plan(job, NOW + timedelta(days=365)) == NOTHING


def test_a_time_to_live_of_zero_ends_at_once() -> None:
    assert plan(a_vcjob(ttl=0), NOW).steps != ()


def test_a_clock_that_was_put_back_only_makes_a_job_live_longer() -> None:
    assert plan(a_vcjob(), NOW - timedelta(hours=1)).look_again_s == pytest.approx(3660)


def test_times_far_away_are_no_problem() -> None:
    assert plan(a_vcjob(ttl=2**31 - 1, since=datetime(9999, 12, 31, tzinfo=UTC)), NOW).steps == ()
    assert plan(a_vcjob(ttl=0, since=datetime(1, 1, 1, tzinfo=UTC)), NOW).steps != ()


def test_a_finished_job_that_does_not_say_since_when_says_what_is_missing() -> None:
    with pytest.raises(NotFinishedError, match=r"job ns/job is finished, but status\.state\.lastTransitionTime"):
        time_left(a_vcjob(since=None), NOW)
