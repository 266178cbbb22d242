"""The cronjob controller with late watches, refused writes and sudden ends: no start is made twice, none is lost."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controllers.cronjob.model import KEY, Cluster
from volcano_py.controllers.writes import Delete
from volcano_py.kube import errors
from volcano_py.kube.resource import VCJOBS

PHASES = ("Completed", "Failed", "Terminated")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([1, 3, 30, 60, 600])),
        st.tuples(st.just("look"), st.just(0)),
        st.tuples(st.just("kill"), st.integers(0, 6)),
        st.tuples(st.just("finish"), st.integers(0, 5)),
        st.tuples(st.just("show cron job"), st.just(0)),
        st.tuples(st.just("show jobs"), st.just(0)),
        st.tuples(st.just("touch"), st.just(0)),
    ),
    max_size=40,
)
SPECS = st.fixed_dictionaries(
    {
        "schedule": st.sampled_from(["* * * * *", "@every 3s", "*/5 * * * *"]),
        "concurrencyPolicy": st.sampled_from(["Allow", "Forbid", "Replace"]),
        "successfulJobsHistoryLimit": st.integers(0, 2),
        "failedJobsHistoryLimit": st.integers(0, 1),
    }
)


def take(cluster: Cluster, step: str, number: int) -> None:
    match step:
        case "wait":
            cluster.clock.advance(number)
        case "look":
            cluster.look()
        case "kill":
            cluster.kill_after = number
        case "finish":
            cluster.finish(number, PHASES[number % 3])
        case "show cron job":
            cluster.show_cron_job()
        case "show jobs":
            cluster.show_jobs()
        case "touch":
            cluster.touch()


@given(spec=SPECS, steps=STEPS)
def test_whatever_happens_no_start_gets_two_jobs_and_the_status_names_what_runs(
    spec: dict[str, Any], steps: list[tuple[str, int]]
) -> None:
    cluster = Cluster(**spec)
    for step, number in steps:
        take(cluster, step, number)
        assert len(cluster.created) == len(set(cluster.created))
        if spec["concurrencyPolicy"] != "Allow":
            assert len(cluster.running()) <= 1

    cluster.kill_after = None
    cluster.catch_up()
    cluster.look()
    cluster.catch_up()

    status = cluster.cron_job["status"]
    assert sorted(entry["name"] for entry in status.get("active", [])) == cluster.running()
    finished = [job["status"]["state"]["phase"] for name, job in cluster.jobs.items() if name not in cluster.running()]
    completed = finished.count("Completed")
    assert completed <= spec["successfulJobsHistoryLimit"]
    assert len(finished) - completed <= spec["failedJobsHistoryLimit"]
    assert bool(cluster.created) == ("lastScheduleTime" in status)
    writes = cluster.writes
    cluster.look()
    assert cluster.writes == writes


@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_an_end_at_any_write_changes_nothing_in_the_end(policy: str) -> None:
    def run(kill_after: int | None) -> tuple[list[str], Any]:
        cluster = Cluster(schedule="* * * * *", concurrencyPolicy=policy, successfulJobsHistoryLimit=1)
        cluster.clock.advance(60.2)
        cluster.kill_after = kill_after
        for number in range(4):
            cluster.look() or cluster.look()
            cluster.catch_up()
            if number == 1:
                cluster.finish(0, "Completed")
                cluster.look() or cluster.look()
                cluster.catch_up()
            cluster.clock.advance(60)
        return cluster.created, (cluster.cron_job["status"], sorted(cluster.jobs))

    expected = run(None)

    assert len(expected[0]) == {"Allow": 4, "Forbid": 2, "Replace": 4}[policy]
    assert [run(number) for number in range(40)] == [expected] * 40


def test_a_start_costs_one_creation_and_one_status() -> None:
    cluster = Cluster(schedule="* * * * *")
    cluster.clock.advance(60.2)

    cluster.look()

    assert (len(cluster.created), cluster.writes) == (1, 2)


def test_a_status_that_the_watch_does_not_show_yet_costs_no_conflict() -> None:
    cluster = Cluster(schedule="@every 3s")
    for _ in range(5):
        cluster.clock.advance(3)
        assert cluster.look()

    assert len(cluster.created) == 5
    assert len(cluster.cron_job["status"]["active"]) == 5
    assert cluster.refusals == []


def test_a_running_job_that_the_watch_does_not_show_yet_is_not_taken_for_gone() -> None:
    cluster = Cluster(schedule="* * * * *", concurrencyPolicy="Forbid")
    cluster.clock.advance(61)
    cluster.look()
    cluster.restart(jobs_late=True)
    cluster.clock.advance(60)

    cluster.look()

    assert len(cluster.created) == 1
    assert [event.reason for event in cluster.events] == ["SuccessfulCreate", "ForbidConcurrent"]


def test_a_job_that_exists_without_an_entry_is_found_before_the_watch_shows_it() -> None:
    cluster = Cluster(schedule="* * * * *")
    cluster.clock.advance(61)
    cluster.kill_after = 1
    cluster.look()
    cluster.restart(jobs_late=True)

    assert cluster.look()

    assert cluster.created == [entry["name"] for entry in cluster.cron_job["status"]["active"]]
    assert cluster.refusals == [errors.AlreadyExists]


def test_a_cron_job_that_was_deleted_is_left_alone() -> None:
    cluster = Cluster(schedule="* * * * *")
    cluster.clock.advance(61)
    cluster.delete()

    assert cluster.look()
    assert cluster.writes == 0


def test_a_warning_is_recorded_once_however_often_the_look_is_repeated() -> None:
    cluster = Cluster(schedule="often")
    for _ in range(5):
        cluster.look()
        cluster.touch()
        cluster.catch_up()

    assert [event.reason for event in cluster.events] == ["InvalidSchedule"]


def test_a_refusal_is_recorded_once_until_a_job_could_be_created() -> None:
    cluster = Cluster(schedule="* * * * *")
    cluster.clock.advance(61)
    cluster.refuse = errors.Forbidden
    for _ in range(3):
        with pytest.raises(AssertionError, match="does not come to rest"):
            cluster.look()
    assert [event.reason for event in cluster.events] == ["FailedCreate"]

    cluster.refuse = None
    cluster.look()
    assert [event.reason for event in cluster.events] == ["FailedCreate", "SuccessfulCreate"]


def test_in_a_namespace_that_ends_there_are_no_further_attempts() -> None:
    cluster = Cluster(schedule="* * * * *")
    cluster.clock.advance(61)
    cluster.refuse = errors.NamespaceTerminating

    assert cluster.look()
    assert [event.reason for event in cluster.events] == ["NamespaceTerminating"]


def test_a_job_that_is_replaced_is_reported_as_deleted() -> None:
    cluster = Cluster(schedule="* * * * *", concurrencyPolicy="Replace")
    for _ in range(2):
        cluster.clock.advance(60.5)
        cluster.look()
        cluster.catch_up()

    assert [event.reason for event in cluster.events] == [
        *("SuccessfulCreate", "ReplaceConcurrent", "SuccessfulDelete", "SuccessfulCreate"),
    ]
    assert len(cluster.running()) == 1


def test_an_edited_schedule_starts_at_its_next_time_and_not_for_its_past() -> None:
    cluster = Cluster(schedule="0 0 1 1 *")
    cluster.clock.advance(3 * 3600 + 60)
    cluster.cron_job["spec"] = {"schedule": "0 * * * *"}
    cluster.touch()
    cluster.catch_up()
    cluster.look()
    assert cluster.created == []

    cluster.clock.advance(3600)
    cluster.look()
    assert len(cluster.created) == 1


def test_a_look_that_failed_to_the_end_is_repeated_and_does_not_wait_for_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(schedule="0 0 * * *")
    cluster.clock.advance(24 * 3600)
    cluster.look()
    cluster.catch_up()
    cluster.look()
    assert list(cluster.controller._soon()) == []

    asyncio.run(cluster.sent(Delete(VCJOBS, "ns", cluster.created[0], "uid-0")))
    cluster.catch_up()
    monkeypatch.setattr(cluster, "get", unanswered)
    with pytest.raises(errors.ServerError):
        asyncio.run(cluster.controller._shell._reconcile(KEY))

    assert list(cluster.controller._soon()) == [KEY]


async def unanswered(*_: Any, **__: Any) -> None:
    raise errors.ServerError("get", "/", "no")
