"""Cron jobs on an embedded API server: jobs come at their times, and the status follows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.controllers.managing import controllers
from tests.controllers.vcjobs import (
    CRONS,
    JOBS,
    active,
    ago,
    cron_status,
    end_job,
    names,
    put_cron_job,
    put_job,
    set_status,
)
from tests.daemon.cluster import comes_to_rest, event_reasons, events, stays
from tests.effects.waiting import standstill, until
from volcano_py.api.timestamp import wire_time
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.controllers.cronjob.controller import local_zone
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import CRON_JOBS


@asynccontextmanager
async def cron_jobs(server: ApiServer) -> AsyncIterator[ApiClient]:
    """Start only this controller."""
    async with controllers(server.url, controllers=frozenset({"cronjob-controller"})) as manager:
        yield manager.client


@pytest.fixture
async def user(server: ApiServer) -> AsyncIterator[ApiClient]:
    async with ApiClient(Credentials(server.url)) as client:
        yield client


async def due(user: ApiClient, name: str, seconds: float = 3600) -> None:
    """Say that the last start was that long ago: a start of ``@every 1h`` has come by now."""
    await set_status(user, name, lastScheduleTime=wire_time(ago(seconds)))


def writes(server: ApiServer) -> dict[str, int]:
    """Return how often jobs and cron jobs were written, by verb and resource."""
    return {
        f"{verb} {what}": count
        for (verb, what), count in server.requests.writes().items()
        if what in (JOBS, f"{CRONS}/status")
    }


async def test_jobs_come_one_after_the_other(server: ApiServer) -> None:
    put_cron_job(server, "often", "@every 1s")
    async with cron_jobs(server), standstill() as still:
        await until(lambda: len(names(server)) >= 2)
        first, second, *_ = sorted(int(name.removeprefix("often-")) for name in names(server))
        missed = int(await still.seconds())  # by a process that stood still for so many seconds
        await until(lambda: active(server, "often") == names(server))

    assert first + 1 <= second <= first + 1 + missed


async def test_a_start_costs_one_creation_and_one_status(server: ApiServer, user: ApiClient) -> None:
    put_cron_job(server, "hourly", "@every 1h")
    await due(user, "hourly")
    server.requests.reset()
    async with cron_jobs(server):
        await until(lambda: active(server, "hourly"))
        await comes_to_rest(lambda: writes(server), 0.3)

        assert writes(server) == {f"create {JOBS}": 1, f"patch {CRONS}/status": 1}
        assert event_reasons(server, "CronJob", "hourly") == {"SuccessfulCreate"}
        (event,) = events(server, "CronJob", "hourly")
        assert event["involvedObject"]["apiVersion"] == CRON_JOBS.api_version


async def test_a_finished_job_is_counted_and_the_history_is_trimmed_at_once(server: ApiServer, user: ApiClient) -> None:
    put_cron_job(server, "hourly", "@every 1h", successfulJobsHistoryLimit=0)
    await due(user, "hourly")
    async with cron_jobs(server):
        await until(lambda: active(server, "hourly"))
        await end_job(user, names(server)[0])

        await until(lambda: names(server) == [])
        assert active(server, "hourly") == []
        assert cron_status(server, "hourly")["lastSuccessfulTime"]
        expected = {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"}
        await until(lambda: event_reasons(server, "CronJob", "hourly") == expected)


async def test_a_deletion_is_reported_even_if_the_watch_shows_it_before_the_answer(
    server: ApiServer, user: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch and the answer come on two connections, and on a real API server the watch is often first."""
    put_cron_job(server, "hourly", "@every 1h", successfulJobsHistoryLimit=0)
    await due(user, "hourly")
    async with cron_jobs(server) as client:
        await until(lambda: active(server, "hourly"))
        delete = client.delete

        async def answered_late(*what: Any, **more: Any) -> None:
            await delete(*what, **more)
            await asyncio.sleep(0.2)

        monkeypatch.setattr(client, "delete", answered_late)
        await end_job(user, names(server)[0])

        await until(lambda: "SuccessfulDelete" in event_reasons(server, "CronJob", "hourly"))


async def test_forbid_waits_for_the_job_that_runs(server: ApiServer) -> None:
    put_cron_job(server, "often", "@every 1s", concurrencyPolicy="Forbid")
    async with cron_jobs(server) as user:
        await until(lambda: "ForbidConcurrent" in event_reasons(server, "CronJob", "often"))
        (first,) = names(server)
        await end_job(user, first)

        await until(lambda: len(names(server)) == 2)


async def test_replace_deletes_what_runs_and_creates_the_next(server: ApiServer, user: ApiClient) -> None:
    put_cron_job(server, "hourly", "@every 1h", concurrencyPolicy="Replace")
    await due(user, "hourly", 5400)
    async with cron_jobs(server):
        await until(lambda: active(server, "hourly"))
        (first,) = names(server)
        await due(user, "hourly", 3600)
        await until(lambda: names(server) not in ([], [first]) and active(server, "hourly") == names(server))

    assert len(names(server)) == 1
    assert "StaleReference" not in event_reasons(server, "CronJob", "hourly")


async def test_a_job_of_another_owner_is_not_touched(server: ApiServer, user: ApiClient) -> None:
    put_cron_job(server, "hourly", "@every 1h")
    last = ago(3600)
    start = int(last.timestamp()) + 3600
    foreign = put_job(server, f"hourly-{start // 60}")
    await set_status(user, "hourly", lastScheduleTime=wire_time(last))
    async with cron_jobs(server):
        await until(lambda: event_reasons(server, "CronJob", "hourly") == {"ForeignJob"})

    assert server.list(JOBS, "default") == [foreign]
    assert cron_status(server, "hourly")["lastScheduleTime"] == wire_time(last)


async def test_a_controller_that_comes_back_takes_over_the_job_that_was_just_created(
    server: ApiServer, user: ApiClient
) -> None:
    put_cron_job(server, "hourly", "@every 1h")
    await due(user, "hourly")
    fault = server.faults.add(Fault("reply", verb="patch", resource=f"{CRONS}/status", code=503))
    async with cron_jobs(server):
        await until(lambda: fault.hits)
    server.faults.remove(fault)
    async with cron_jobs(server):
        await until(lambda: active(server, "hourly"))

    assert active(server, "hourly") == names(server)
    assert len(names(server)) == 1


async def test_an_answer_that_got_lost_leads_to_no_second_job(server: ApiServer, user: ApiClient) -> None:
    put_cron_job(server, "hourly", "@every 1h")
    await due(user, "hourly")
    server.faults.add(Fault("drop_after", verb="create", resource=JOBS, times=1))
    async with cron_jobs(server):
        await until(lambda: active(server, "hourly"))

    assert len(names(server)) == 1


async def test_a_refused_job_is_reported_once_and_tried_again(server: ApiServer, user: ApiClient) -> None:
    put_cron_job(server, "hourly", "@every 1h")
    await due(user, "hourly")
    fault = server.faults.add(Fault("reply", verb="create", resource=JOBS, code=403, message="over quota"))
    async with cron_jobs(server):
        await until(lambda: fault.hits > 2)
        server.faults.remove(fault)
        await until(lambda: active(server, "hourly"))
        await until(lambda: len(events(server, "CronJob", "hourly")) == 2)

    told = {event["reason"]: event["count"] for event in events(server, "CronJob", "hourly")}
    assert told == {"FailedCreate": 1, "SuccessfulCreate": 1}


async def test_an_unknown_zone_is_reported_once_and_works_when_it_is_corrected(server: ApiServer) -> None:
    put_cron_job(server, "often", "@every 1s", timeZone="Mars/Base")
    async with cron_jobs(server) as user:
        await until(lambda: event_reasons(server, "CronJob", "often") == {"InvalidTimeZone"})
        for number in range(3):
            body = {"metadata": {"labels": {"turn": str(number)}}}
            await user.patch(CRON_JOBS, "often", body, dict, namespace="default")
        await comes_to_rest(lambda: events(server, "CronJob", "often"), 0.2)
        assert [event["count"] for event in events(server, "CronJob", "often")] == [1]
        body = {"spec": {"timeZone": "Asia/Tokyo"}}
        await user.patch(CRON_JOBS, "often", body, dict, namespace="default")

        await until(lambda: names(server))


async def test_a_suspended_cron_job_starts_when_it_is_resumed(server: ApiServer, user: ApiClient) -> None:
    put_cron_job(server, "hourly", "@every 1h", suspend=True)
    await due(user, "hourly")
    async with cron_jobs(server):
        await stays(lambda: names(server) == [], 0.2)
        await user.patch(CRON_JOBS, "hourly", {"spec": {"suspend": False}}, dict, namespace="default")

        await until(lambda: names(server))


async def test_the_jobs_of_a_deleted_cron_job_go_and_none_comes_back(server: ApiServer) -> None:
    put_cron_job(server, "often", "@every 1s")
    async with cron_jobs(server) as user:
        await until(lambda: active(server, "often"))
        await user.delete(CRON_JOBS, "often", namespace="default", propagation="Foreground")

        await until(lambda: names(server) == [] and server.get(CRONS, "often", "default") is None)
        await stays(lambda: names(server) == [], 1.2)


async def test_many_cron_jobs_start_in_the_same_second(server: ApiServer, user: ApiClient) -> None:
    for number in range(60):
        put_cron_job(server, f"c{number}", "@every 1h")
        await due(user, f"c{number}")
    async with cron_jobs(server):
        await until(lambda: all(active(server, f"c{number}") for number in range(60)))

    assert len(names(server)) == 60


def test_the_zone_of_the_process_is_that_of_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert str(local_zone()) == "Asia/Tokyo"
    monkeypatch.setenv("TZ", "")
    assert str(local_zone()) == "UTC"
    monkeypatch.setenv("TZ", "Mars/Base")
    assert str(local_zone()) == "UTC"
