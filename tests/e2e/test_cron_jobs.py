"""Cron jobs on a real API server: a job every three seconds, with each policy for jobs that overlap."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise
from typing import Any

from tests.controlplane.waiting import wait_until
from tests.e2e.job_cluster import MERGE
from tests.e2e.jobs import Jobs, phase_of
from tests.e2e.recorder import Obj, Seen
from tests.e2e.together import together
from tests.e2e.vcjobs import BATCH, task, template, vcjob

FINISHED = {"Completed", "Failed", "Terminated"}
LONG = 8.0


class CronJob:
    """One cron job and the jobs that it has created."""

    def __init__(self, jobs: Jobs, script: str, **spec: Any) -> None:
        self._jobs = jobs
        self.name = f"c{secrets.token_hex(3)}"
        self._path = f"/apis/{BATCH}/namespaces/{jobs.namespace}/cronjobs"
        pods = template(script, selector=jobs.cluster.selector)
        made = vcjob("", [task("worker", 1, pods)])["spec"]
        body = {
            "apiVersion": BATCH,
            "kind": "CronJob",
            "metadata": {"name": self.name},
            "spec": {
                "schedule": "@every 3s",
                "jobTemplate": {"metadata": {"labels": {"e2e.volcano-py/cron": self.name}}, "spec": made},
                **spec,
            },
        }
        self.uid = jobs.plane.request("POST", self._path, body)["metadata"]["uid"]

    def children(self) -> list[list[Seen]]:
        """Return the histories of its jobs, oldest first."""
        histories = self._jobs.cluster.records["jobs"].everything()
        return [each for each in histories if self.uid in {o["uid"] for o in owner_references(each[-1].obj)}]

    def alive(self) -> list[Obj]:
        """Return its jobs that exist and are not told to go."""
        last = [each[-1] for each in self.children()]
        return [seen.obj for seen in last if seen.kind != "DELETED" and "deletionTimestamp" not in seen.obj["metadata"]]

    def unfinished(self) -> list[Obj]:
        """Return its jobs that exist and have not ended."""
        return [job for job in self.alive() if phase_of(job) not in FINISHED]

    def finished(self) -> list[Obj]:
        """Return its jobs that exist and have ended."""
        return [job for job in self.alive() if phase_of(job) in FINISHED]

    def status(self) -> Obj:
        found: Obj = self._jobs.plane.request("GET", f"{self._path}/{self.name}").get("status", {})
        return found

    def reasons(self) -> set[str]:
        """Return the reasons of its events."""
        events = self._jobs.cluster.records["events"].alive()
        return {event["reason"] for event in events if event["involvedObject"].get("uid") == self.uid}

    def patch(self, **spec: Any) -> None:
        self._jobs.plane.request("PATCH", f"{self._path}/{self.name}", {"spec": spec}, content_type=MERGE)

    def delete(self) -> None:
        self._jobs.plane.request("DELETE", f"{self._path}/{self.name}", {"propagationPolicy": "Background"})

    def wait(self, what: str, probe: Any, timeout: float = 45.0) -> Any:
        return wait_until(f"{self.name}: {what}", probe, timeout)


@contextmanager
def cron_job(jobs: Jobs, script: str, **spec: Any) -> Iterator[CronJob]:
    """Yield a cron job; it is deleted after the block, and then its jobs go."""
    found = CronJob(jobs, script, **spec)
    try:
        yield found
    finally:
        found.delete()
        found.wait("its jobs are gone", lambda: not found.alive(), 60.0)


def owner_references(obj: Obj) -> list[Obj]:
    found: list[Obj] = obj["metadata"].get("ownerReferences", [])
    return found


@together
def test_a_job_is_created_every_three_seconds_and_says_for_when(jobs: Jobs) -> None:
    with cron_job(jobs, "sleep 0.5", successfulJobsHistoryLimit=10) as cron:
        cron.wait("three jobs have completed", lambda: len(cron.finished()) >= 3)
        first, second, third = cron.finished()[:3]

        times = [scheduled(job) for job in (first, second, third)]
        gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
        assert all(gap >= 2.9 for gap in gaps), times
        assert sum(gaps) <= 12.1, times
        for job in (first, second, third):
            assert re.fullmatch(rf"{cron.name}-\d+", job["metadata"]["name"])
            assert job["metadata"]["labels"]["e2e.volcano-py/cron"] == cron.name
            (owner,) = owner_references(job)
            assert (owner["kind"], owner["controller"]) == ("CronJob", True)
        cron.wait("the status says so", lambda: {"lastScheduleTime", "lastSuccessfulTime"} <= cron.status().keys())
        assert {"SuccessfulCreate", "SawCompletedJob"} <= cron.reasons()


@together
def test_jobs_that_overlap_run_at_the_same_time_when_the_policy_allows_it(jobs: Jobs) -> None:
    with cron_job(jobs, "sleep infinity", concurrencyPolicy="Allow") as cron:
        cron.wait("three jobs run", lambda: sum(phase_of(job) == "Running" for job in cron.unfinished()) >= 3)
        active = cron.wait("they are listed", lambda: len(cron.status().get("active", ())) >= 3 and cron.status())
        assert {each["kind"] for each in active["active"]} == {"Job"}


@together
def test_a_second_job_waits_for_the_end_of_the_first_when_the_policy_forbids_to_overlap(jobs: Jobs) -> None:
    with cron_job(jobs, "await go", concurrencyPolicy="Forbid", successfulJobsHistoryLimit=10) as cron:
        cron.wait("a job runs", lambda: [phase_of(job) for job in cron.alive()] == ["Running"])
        stays(cron, LONG, lambda: len(cron.children()) == 1)
        assert "ForbidConcurrent" in cron.reasons()
        jobs.cluster.say(cron.alive()[0]["metadata"]["name"], "go")
        cron.wait("another one is created", lambda: len(cron.children()) == 2)
        cron.wait("it runs alone", lambda: [phase_of(job) for job in cron.unfinished()] == ["Running"])


@together
def test_a_job_takes_the_place_of_the_one_before_when_the_policy_says_replace(jobs: Jobs) -> None:
    with cron_job(jobs, "sleep infinity", concurrencyPolicy="Replace") as cron:
        seen = 0
        deadline = time.monotonic() + 45.0
        while len(cron.children()) < 3 and time.monotonic() < deadline:
            assert len(cron.alive()) <= 1, "two jobs are there at the same time"
            seen = max(seen, len(cron.alive()))
            time.sleep(0.05)
        assert len(cron.children()) >= 3
        assert seen == 1
        assert "ReplaceConcurrent" in cron.reasons()
        gone = cron.children()[0]
        assert phase_of(gone[-1].obj) not in FINISHED, "it was deleted while it ran"


@together
def test_jobs_that_have_ended_are_removed_beyond_the_limits_of_the_history(jobs: Jobs) -> None:
    with cron_job(jobs, "sleep 0.3", successfulJobsHistoryLimit=1) as cron:
        cron.wait("four jobs have been created", lambda: len(cron.children()) >= 4)
        cron.patch(suspend=True)
        cron.wait("the last ones have ended", lambda: not cron.unfinished())
        cron.wait("one is kept", lambda: len(cron.finished()) == 1)
        newest = max(history[0].obj["metadata"]["name"] for history in cron.children())
        assert cron.finished()[0]["metadata"]["name"] == newest


@together
def test_failed_jobs_have_a_limit_of_their_own(jobs: Jobs) -> None:
    with cron_job(jobs, "exit 1", failedJobsHistoryLimit=2) as cron:
        cron.wait("four jobs have been created", lambda: len(cron.children()) >= 4)
        cron.patch(suspend=True)
        cron.wait("two are kept", lambda: not cron.unfinished() and len(cron.finished()) == 2)
        assert {phase_of(job) for job in cron.finished()} == {"Failed"}


@together
def test_a_suspended_cron_job_creates_no_job_until_it_is_resumed(jobs: Jobs) -> None:
    with cron_job(jobs, "sleep 0.3", suspend=True) as cron:
        stays(cron, LONG, lambda: not cron.children())
        cron.patch(suspend=False)
        cron.wait("a job is created", cron.children)


def stays(cron: CronJob, seconds: float, probe: Any) -> None:
    """Check that something holds for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert probe(), cron.children()
        time.sleep(0.1)


def scheduled(job: Obj) -> datetime:
    """Return for when a job was created."""
    return datetime.fromisoformat(job["metadata"]["annotations"]["volcano.sh/cronjob-scheduled-timestamp"])
