"""What is done about a cron job."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from tests.controllers.cronjob.objects import EVERY_FIVE, MORNING, a_cron_job, a_vcjob, at, number_of, seen
from volcano_py.api.batch import CronJob, ObjectReference
from volcano_py.controllers.cronjob.decision import Decision, decide, unseen
from volcano_py.controllers.cronjob.status import Observed
from volcano_py.controllers.writes import Create, Delete, Patch


def created(decision: Decision) -> dict[str, Any]:
    """Return the one job that is created."""
    (write,) = [step for step in decision.plan.steps if isinstance(step, Create)]
    assert isinstance(write.body, dict)
    return write.body


def creates(decision: Decision) -> bool:
    return any(isinstance(step, Create) for step in decision.plan.steps)


def status_of(decision: Decision) -> dict[str, Any]:
    """Return what is written into the status."""
    patches = [step for step in decision.plan.steps if isinstance(step, Patch)]
    assert all(patch.subresource == "status" for patch in patches)
    return dict(patches[0].body["status"]) if patches else {}


def deleted(decision: Decision) -> list[str]:
    steps = [step for step in decision.plan.steps if isinstance(step, tuple)]
    deletions = [write for step in steps for write in step]
    assert all(isinstance(write, Delete) and write.uid and write.propagation == "Background" for write in deletions)
    return [write.name for write in deletions if isinstance(write, Delete)]


def reasons(decision: Decision) -> list[str]:
    return [event.reason for event in decision.warnings]


# The job of a start


def test_a_job_is_created_when_its_time_has_come() -> None:
    decision = decide(seen(a_cron_job()), at(10, 5))

    assert created(decision)["metadata"]["name"] == f"nightly-{number_of(at(10, 5))}"
    assert decision.plan.look_again_s == pytest.approx(300.1)


def test_before_the_first_start_there_is_only_the_next_look() -> None:
    decision = decide(seen(a_cron_job()), at(10, 3))

    assert decision.plan.steps == ()
    assert decision.plan.look_again_s == pytest.approx(120.1)


def test_a_job_has_all_that_the_template_says() -> None:
    spec = {"minAvailable": 2, "unknown": {"deep": [1]}, "tasks": [{"template": {"spec": {"hostPID": True}}}]}
    template = {
        "metadata": {"name": "no", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x/y"]},
        "spec": spec,
    }
    cron_job = a_cron_job(jobTemplate=template, timeZone="Pacific/Honolulu")

    job = created(decide(seen(cron_job), at(10, 5)))

    assert job["spec"] == spec
    assert job["metadata"] == {
        "name": f"nightly-{number_of(at(10, 5))}",
        "namespace": "ns",
        "labels": {"a": "b"},
        "annotations": {"c": "d", "volcano.sh/cronjob-scheduled-timestamp": "2025-03-11T00:05:00-10:00"},
        "finalizers": ["x/y"],
        "ownerReferences": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "CronJob",
                "name": "nightly",
                "uid": "cron",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    assert cron_job.spec.job_template == template


def test_starts_in_one_minute_have_jobs_of_different_names() -> None:
    last = at(10, 5, 3)
    names = {
        created(
            decide(seen(a_cron_job("@every 3s", last=last + timedelta(seconds=n))), last + timedelta(seconds=n + 3))
        )["metadata"]["name"]
        for n in (0, 3, 6)
    }

    assert names == {f"nightly-{int(last.timestamp()) + n}" for n in (3, 6, 9)}


def test_a_created_job_is_entered_with_its_start() -> None:
    decision = decide(seen(a_cron_job(), a_vcjob(at(10, 5))), at(10, 5, 1))

    assert status_of(decision) == {
        "active": [
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "namespace": "ns",
                "name": f"nightly-{number_of(at(10, 5))}",
                "uid": f"uid-{number_of(at(10, 5))}",
            }
        ],
        "lastScheduleTime": "2025-03-11T10:05:00Z",
    }
    assert not creates(decision)
    assert decision.warnings == ()


def test_the_status_is_written_only_in_the_version_that_was_looked_at() -> None:
    (patch,) = decide(seen(a_cron_job(), a_vcjob(at(10, 5))), at(10, 5, 1)).plan.steps

    assert isinstance(patch, Patch)
    assert patch.body["metadata"] == {"uid": "cron", "resourceVersion": "7"}


def test_a_second_look_writes_nothing() -> None:
    cron_job = a_cron_job(active=(number_of(at(10, 5)),), last=at(10, 5))

    assert decide(seen(cron_job, a_vcjob(at(10, 5))), at(10, 7)).plan.steps == ()


def test_a_job_that_finished_before_anybody_entered_it_is_not_run_again() -> None:
    decision = decide(seen(a_cron_job(), a_vcjob(at(10, 5), "Failed")), at(10, 7))

    assert status_of(decision) == {"lastScheduleTime": "2025-03-11T10:05:00Z"}
    assert not creates(decision)


def test_the_status_of_a_job_is_written_before_the_job_is_deleted() -> None:
    cron_job = a_cron_job(successfulJobsHistoryLimit=0)

    patch, deletions = decide(seen(cron_job, a_vcjob(at(10, 5), "Completed")), at(10, 7)).plan.steps

    assert isinstance(patch, Patch)
    assert isinstance(deletions, tuple)


def test_a_running_job_is_taken_over_even_if_its_start_is_long_past() -> None:
    decision = decide(seen(a_cron_job(concurrencyPolicy="Forbid"), a_vcjob(at(10, 5))), at(10, 31))

    assert [entry["name"] for entry in status_of(decision)["active"]] == [f"nightly-{number_of(at(10, 5))}"]
    assert reasons(decision) == ["ForbidConcurrent"]
    assert not creates(decision)


def test_a_job_of_somebody_else_is_left_alone_and_named() -> None:
    other = a_vcjob(at(10, 5), owner="another")

    decision = decide(seen(a_cron_job(), others=(other,)), at(10, 5))

    assert decision.plan.steps == ()
    assert reasons(decision) == ["ForeignJob"]
    assert "controlled by CronJob nightly" in decision.warnings[0].message


def test_an_unfinished_job_that_the_status_never_had_is_reported_and_left_alone() -> None:
    by_hand = a_vcjob(at(10, 1), name="by-hand")

    decision = decide(seen(a_cron_job(last=at(10, 5)), by_hand), at(10, 7))

    assert (decision.plan.steps, reasons(decision)) == ((), ["OrphanedJob"])


def test_a_job_that_is_gone_is_taken_off_the_list() -> None:
    decision = decide(seen(a_cron_job(active=("1",), last=at(10, 5))), at(10, 7))

    assert status_of(decision) == {"active": []}
    assert reasons(decision) == ["StaleReference"]


def test_a_job_of_the_same_name_that_came_later_is_not_the_one_of_the_list() -> None:
    cron_job = a_cron_job(active=(number_of(at(10, 5)),), last=at(10, 5))
    later = msgspec.structs.replace(
        a_vcjob(at(10, 5)),
        metadata=msgspec.structs.replace(a_vcjob(at(10, 5)).metadata, uid="new", owner_references=[]),
    )

    decision = decide(seen(cron_job, others=(later,)), at(10, 7))

    assert status_of(decision) == {"active": []}
    assert "is not the one" in decision.warnings[0].message


def test_a_tampered_time_on_a_job_moves_no_start() -> None:
    job = a_vcjob(at(10, 5))
    far = {"volcano.sh/cronjob-scheduled-timestamp": "2099-01-01T00:00:00Z"}
    job = msgspec.structs.replace(job, metadata=msgspec.structs.replace(job.metadata, annotations=far))

    decision = decide(seen(a_cron_job(last=at(10, 5)), job), at(10, 7))

    assert status_of(decision) == {}


# Finished jobs


def test_a_completed_job_leaves_the_list_and_its_end_is_the_last_success() -> None:
    cron_job = a_cron_job(active=(number_of(at(10, 5)),), last=at(10, 5))

    decision = decide(seen(cron_job, a_vcjob(at(10, 5), "Completed", ended=at(10, 6))), at(10, 7))

    assert status_of(decision) == {"active": [], "lastSuccessfulTime": "2025-03-11T10:06:00Z"}
    assert [event.reason for event in decision.plan.events] == ["SawCompletedJob"]


@pytest.mark.parametrize("phase", ["Failed", "Terminated"])
def test_a_job_that_did_not_complete_is_no_success(phase: str) -> None:
    cron_job = a_cron_job(active=(number_of(at(10, 5)),), last=at(10, 5))

    assert status_of(decide(seen(cron_job, a_vcjob(at(10, 5), phase)), at(10, 7))) == {"active": []}


def test_an_aborted_job_stays_on_the_list_because_it_can_be_resumed() -> None:
    cron_job = a_cron_job(active=(number_of(at(10, 5)),), last=at(10, 5))

    assert decide(seen(cron_job, a_vcjob(at(10, 5), "Aborted")), at(10, 7)).plan.steps == ()


def test_the_oldest_finished_jobs_beyond_the_limits_are_deleted() -> None:
    ends = [("Completed", 1), ("Failed", 2), ("Completed", 3), ("Terminated", 4), ("Completed", 5), ("Failed", 6)]
    jobs = [a_vcjob(at(9, minute), phase) for phase, minute in ends]
    cron_job = a_cron_job(last=at(10, 5), successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)

    decision = decide(seen(cron_job, *reversed(jobs)), at(10, 7))

    assert deleted(decision) == [f"nightly-{number_of(at(9, minute))}" for minute in (1, 2, 4)]


def test_a_history_that_cannot_be_trimmed_keeps_no_job_from_its_start() -> None:
    cron_job = a_cron_job(last=at(10, 0), successfulJobsHistoryLimit=0)

    create, trimmed = decide(seen(cron_job, a_vcjob(at(9, 1), "Completed")), at(10, 5)).plan.steps[-2:]

    assert isinstance(create, Create)
    assert isinstance(trimmed, tuple)


def test_without_limits_all_finished_jobs_stay() -> None:
    jobs = [a_vcjob(at(9, minute), "Completed") for minute in range(20)]

    assert deleted(decide(seen(a_cron_job(last=at(10, 5)), *jobs), at(10, 7))) == []


def test_a_job_that_is_being_deleted_is_not_deleted_again() -> None:
    cron_job = a_cron_job(last=at(10, 5), successfulJobsHistoryLimit=0)

    assert deleted(decide(seen(cron_job, a_vcjob(at(9, 1), "Completed", deleting=True)), at(10, 7))) == []


# Jobs that still run


def running(**spec: Any) -> Observed:
    """Return a cron job whose job of 10:05 runs."""
    return seen(a_cron_job(active=(number_of(at(10, 5)),), last=at(10, 5), **spec), a_vcjob(at(10, 5)))


def test_allow_starts_a_second_job() -> None:
    assert creates(decide(running(concurrencyPolicy="Allow"), at(10, 10)))


def test_forbid_waits_until_the_running_job_ends_and_then_makes_up_for_the_start() -> None:
    cron_job = running(concurrencyPolicy="Forbid").cron_job

    waits = decide(running(concurrencyPolicy="Forbid"), at(10, 10))
    ended = decide(seen(cron_job, a_vcjob(at(10, 5), "Completed")), at(10, 12))

    assert (waits.plan.steps, reasons(waits)) == ((), ["ForbidConcurrent"])
    assert created(ended)["metadata"]["name"] == f"nightly-{number_of(at(10, 10))}"


def test_replace_deletes_the_running_jobs_and_then_creates_the_new_one() -> None:
    decision = decide(running(concurrencyPolicy="Replace"), at(10, 10))

    deletions, create = decision.plan.steps
    assert deleted(decision) == [f"nightly-{number_of(at(10, 5))}"]
    assert isinstance(deletions, tuple)
    assert isinstance(create, Create)
    assert reasons(decision) == ["ReplaceConcurrent"]


def test_what_was_replaced_leaves_the_list_with_the_entry_of_the_new_job_and_without_a_warning() -> None:
    cron_job = running(concurrencyPolicy="Replace").cron_job
    gone = f"uid-{number_of(at(10, 5))}"

    decision = decide(seen(cron_job, a_vcjob(at(10, 10)), is_deleted={gone}.__contains__), at(10, 10, 1))

    assert [entry["uid"] for entry in status_of(decision)["active"]] == [f"uid-{number_of(at(10, 10))}"]
    assert (decision.warnings, len(decision.plan.steps)) == ((), 1)


def test_replace_does_not_delete_a_job_that_is_being_deleted() -> None:
    cron_job = running(concurrencyPolicy="Replace").cron_job

    decision = decide(seen(cron_job, a_vcjob(at(10, 5), deleting=True)), at(10, 10))

    assert (deleted(decision), creates(decision)) == ([], True)


# Time


def test_a_start_that_is_later_than_the_deadline_is_left_out() -> None:
    decision = decide(seen(a_cron_job(startingDeadlineSeconds=60)), at(10, 7))

    assert (decision.plan.steps, decision.warnings) == ((), ())


def test_only_the_last_of_many_missed_starts_is_made_up_for() -> None:
    decision = decide(seen(a_cron_job("* * * * *")), at(20, 0))

    assert created(decision)["metadata"]["name"] == f"nightly-{number_of(at(20, 0))}"
    assert reasons(decision) == ["TooManyMissedTimes"]


def test_the_same_look_again_warns_in_the_same_words() -> None:
    observed = running(concurrencyPolicy="Forbid", startingDeadlineSeconds=100_000, schedule="* * * * *")

    assert decide(observed, at(13, 0, 10)).warnings == decide(observed, at(13, 0, 40)).warnings != ()


def test_a_clock_that_was_put_back_starts_nothing_twice() -> None:
    cron_job = a_cron_job(last=at(10, 10), active=(number_of(at(10, 10)),))

    decision = decide(seen(cron_job, a_vcjob(at(10, 10))), at(10, 5))

    assert decision.plan.steps == ()
    assert decision.plan.look_again_s == pytest.approx(600.1)


def test_the_past_of_an_edited_schedule_was_not_missed() -> None:
    cron_job = a_cron_job("0 * * * *", last=at(10, 5))

    assert creates(decide(seen(cron_job), at(13, 30)))
    assert not creates(decide(seen(cron_job, edited=at(13, 20)), at(13, 30)))
    assert creates(decide(seen(cron_job, edited=at(13, 20)), at(14, 0)))


def test_a_schedule_without_a_zone_is_in_the_zone_of_the_process() -> None:
    berlin = ZoneInfo("Europe/Berlin")

    assert creates(decide(seen(a_cron_job("0 12 * * *")), at(11, 0), berlin))
    assert not creates(decide(seen(a_cron_job("0 12 * * *", timeZone="UTC")), at(11, 0), berlin))
    assert creates(decide(seen(a_cron_job("0 12 * * *", timeZone="Local")), at(11, 0), berlin))


def test_a_zone_in_the_schedule_is_obeyed_with_a_warning() -> None:
    decision = decide(seen(a_cron_job("TZ=Asia/Tokyo 0 20 * * *", timeZone="UTC")), at(11, 0))

    assert (creates(decision), reasons(decision)) == (True, ["UnsupportedSchedule"])


def test_a_time_that_summer_time_leaves_out_starts_nothing_and_a_repeated_one_starts_twice() -> None:
    cron_job = a_cron_job("30 2 * * *", timeZone="Europe/Berlin", last=datetime.fromisoformat("2025-03-29T02:30+01:00"))
    assert decide(seen(cron_job), datetime.fromisoformat("2025-03-30T12:00+02:00")).plan.steps == ()

    starts = []
    last = datetime.fromisoformat("2025-10-25T02:30+02:00")
    for hour in range(24):
        now = datetime.fromisoformat("2025-10-26T00:00+02:00") + timedelta(hours=hour)
        decision = decide(seen(a_cron_job("30 2 * * *", timeZone="Europe/Berlin", last=last)), now)
        if creates(decision):
            text = created(decision)["metadata"]["annotations"]["volcano.sh/cronjob-scheduled-timestamp"]
            last = datetime.fromisoformat(text)
            starts.append(text)
    assert starts == ["2025-10-26T02:30:00+02:00", "2025-10-26T02:30:00+01:00"]


# What stops a cron job


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"timeZone": "Mars/Base"}, "InvalidTimeZone"),
        ({"schedule": "often"}, "InvalidSchedule"),
        ({"schedule": "0 0 31 2 *"}, "InvalidSchedule"),
        ({"schedule": "TZ=Mars/Base 0 0 * * *"}, "InvalidSchedule"),
    ],
)
def test_what_cannot_be_read_is_reported_and_there_is_no_next_look(spec: dict[str, Any], reason: str) -> None:
    decision = decide(seen(a_cron_job(**{"schedule": EVERY_FIVE, **spec})), at(10, 5))

    assert (decision.plan.steps, decision.plan.look_again_s, reasons(decision)) == ((), None, [reason])


def test_an_edit_that_cannot_be_read_has_a_reason_of_its_own() -> None:
    assert reasons(decide(seen(a_cron_job("often"), edited=at(10, 1)), at(10, 5))) == ["UnParseableCronJobSchedule"]


def test_a_cron_job_that_cannot_be_read_still_counts_its_finished_jobs() -> None:
    cron_job = a_cron_job("often", active=(number_of(at(10, 5)),), last=at(10, 5))

    assert status_of(decide(seen(cron_job, a_vcjob(at(10, 5), "Failed")), at(10, 7))) == {"active": []}


def test_a_suspended_cron_job_starts_nothing_but_counts_its_finished_jobs() -> None:
    cron_job = a_cron_job(suspend=True, active=(number_of(at(10, 5)),), last=at(10, 5), failedJobsHistoryLimit=0)

    decision = decide(seen(cron_job, a_vcjob(at(10, 5), "Failed")), at(10, 17))

    assert status_of(decision) == {"active": []}
    assert (len(deleted(decision)), creates(decision), decision.plan.look_again_s) == (1, False, None)


def test_a_resumed_cron_job_makes_up_for_its_last_start() -> None:
    decision = decide(seen(a_cron_job(last=at(10, 5))), at(12, 2))

    assert created(decision)["metadata"]["name"] == f"nightly-{number_of(at(12, 0))}"


def test_a_cron_job_that_is_being_deleted_does_nothing() -> None:
    cron_job = a_cron_job(active=("1",), meta={"deletionTimestamp": MORNING.isoformat()}, failedJobsHistoryLimit=0)

    decision = decide(seen(cron_job, a_vcjob(at(9, 0), "Failed")), at(12, 0))

    assert (decision.plan.steps, decision.warnings, decision.plan.look_again_s) == ((), (), None)


def test_a_cron_job_without_a_time_of_creation_starts_from_now() -> None:
    bare = msgspec.convert({"metadata": {"name": "n"}, "spec": {"schedule": "@every 1h"}}, CronJob)

    assert decide(seen(bare), MORNING).plan.look_again_s == pytest.approx(3600.1)


@pytest.mark.parametrize("year", [1, 1969, 1970])
@pytest.mark.parametrize("schedule", [EVERY_FIVE, "@every 1m"])
def test_a_last_start_before_all_schedules_ends_nothing(year: int, schedule: str) -> None:
    """Go writes a time that is not set as a moment in the year 1."""
    decision = decide(seen(a_cron_job(schedule, last=datetime(year, 1, 1, tzinfo=UTC))), at(10, 7))

    assert reasons(decision) == ["TooManyMissedTimes"]
    assert creates(decision)


def test_an_entry_without_a_name_is_not_looked_up() -> None:
    cron_job = a_cron_job()
    nameless = msgspec.structs.replace(cron_job.status, active=[ObjectReference(uid="u"), ObjectReference(name="old")])

    assert unseen(msgspec.structs.replace(cron_job, status=nameless), (), ()) == ["old"]
