"""Jobs and their queues on a real API server: a queue that is missing, closed, or deleted while jobs run."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.jobs import Jobs
from tests.e2e.queue_objects import QUEUES
from tests.e2e.together import together
from tests.e2e.vcjobs import BUS, command, on, task, template
from volcano_py.testing import a_queue, manifest

SCHEDULING = "scheduling.volcano.sh/v1beta1"
START = ("Pending", "Running")


class Queue:
    """One queue."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self.name = f"q-{secrets.token_hex(3)}"

    def create(self) -> None:
        answer = self._jobs.plane.request("POST", QUEUES, manifest(a_queue(self.name)))
        self.uid = answer["metadata"]["uid"]
        self.wait("Open")

    def state(self) -> str:
        found: dict[str, Any] = self._jobs.plane.request("GET", f"{QUEUES}/{self.name}")
        return str(found.get("status", {}).get("state", ""))

    def wait(self, state: str) -> None:
        wait_until(f"{self.name} is {state}", lambda: self.state() == state, 30.0)

    def command(self, action: str) -> None:
        path = f"/apis/{BUS}/namespaces/{self._jobs.namespace}/commands"
        self._jobs.plane.request("POST", path, command(action, "Queue", SCHEDULING, self.name, self.uid))

    def delete(self) -> None:
        with contextlib.suppress(ApiFailure):
            self._jobs.plane.request("DELETE", f"{QUEUES}/{self.name}")


@contextmanager
def queue(jobs: Jobs, exists: bool = True) -> Iterator[Queue]:
    """Yield a queue, which is deleted after the block."""
    found = Queue(jobs)
    if exists:
        found.create()
    try:
        yield found
    finally:
        found.delete()


@together
def test_a_job_in_an_unknown_queue_says_so_and_begins_when_the_queue_appears(jobs: Jobs) -> None:
    with queue(jobs, exists=False) as unknown:
        job = jobs.create([task("worker", 1)], queue=unknown.name)
        job.wait("says so in its status", lambda: unknown.name in job.status.get("state", {}).get("message", ""))
        assert job.uids() == {}
        unknown.create()
        job.wait_phases(*START)
        assert job.pods()[job.pod_name("worker", 0)]["metadata"]["annotations"]["volcano.sh/queue-name"] == unknown.name


@together
def test_a_running_job_goes_on_when_its_queue_is_closed_which_is_closed_when_the_job_has_ended(jobs: Jobs) -> None:
    with queue(jobs) as own:
        job = jobs.create([task("worker", 2, template("await go"))], queue=own.name)
        job.wait_phases(*START)
        own.command("CloseQueue")
        own.wait("Closing")
        job.stays("it runs", lambda: job.phase == "Running")
        job.say("go")
        job.wait_phases(*START, "Completed")
        own.wait("Closed")


@together
def test_a_job_in_a_closed_queue_waits_until_the_queue_is_opened(jobs: Jobs) -> None:
    with queue(jobs) as own:
        own.command("CloseQueue")
        own.wait("Closed")
        job = jobs.create([task("worker", 1)], queue=own.name)
        job.wait_phases("Pending")
        job.stays("it waits", lambda: job.phases == ["Pending"], 3.0)
        own.command("OpenQueue")
        own.wait("Open")
        job.wait_phases(*START)


@together
def test_a_job_whose_queue_closes_while_it_restarts_runs_when_the_queue_is_opened(jobs: Jobs) -> None:
    with queue(jobs) as own:
        pods = template("[ $RETRY = 0 ] && await go && exit 1; sleep infinity")
        job = jobs.create([task("worker", 1, pods)], queue=own.name, policies=[on("PodFailed", "RestartJob")])
        job.wait_phases(*START)
        own.command("CloseQueue")
        own.wait("Closing")
        job.say("go")
        job.wait("is restarted", lambda: job.status.get("retryCount") == 1)
        own.command("OpenQueue")
        job.wait_phases(*START, "Restarting", *START)


@together
def test_a_job_ends_well_although_its_queue_was_deleted(jobs: Jobs) -> None:
    with queue(jobs) as own:
        job = jobs.create([task("worker", 2, template("await go"))], queue=own.name)
        job.wait_phases(*START)
        own.delete()
        job.stays("it runs", lambda: job.phase == "Running" and len(job.in_phase("Running")) == 2)
        job.say("go")
        job.wait_phases(*START, "Completed")
