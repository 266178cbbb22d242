"""A cluster in one object: a cron job, its jobs, watches that are late, and a controller that may end at any write."""

import asyncio
import random
from typing import Any, NoReturn, cast

import msgspec
from prometheus_client import CollectorRegistry

from tests.controllers.cronjob.objects import MORNING
from volcano_py.api.batch import CronJob, Job
from volcano_py.controllers.controller import ControllerContext, ControllerOptions
from volcano_py.controllers.cronjob.controller import CronJobController
from volcano_py.controllers.excuses import Excuses
from volcano_py.controllers.metrics import ControllerMetrics
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Create, Delete, Patch, Write
from volcano_py.kube import errors
from volcano_py.kube.delivery import Event, EventType
from volcano_py.kube.outage import Outage
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import FakeClock

KEY = "ns/nightly"
Wire = dict[str, Any]


class KilledError(Exception):
    """The controller ended in the middle of its work."""


class Cluster:
    """The objects as the server has them, and a controller that sees them late."""

    outage: Outage | None = None
    """Every failure is logged."""

    def __init__(self, **spec: Any) -> None:
        self.clock = FakeClock(MORNING)
        self.version = 1
        meta = {"name": "nightly", "namespace": "ns", "uid": "cron", "creationTimestamp": MORNING.isoformat()}
        self.cron_job: Wire = {"metadata": {**meta, "resourceVersion": "1"}, "spec": spec, "status": {}}
        self.jobs: dict[str, Wire] = {}
        self.created: list[str] = []  # names of jobs, in order
        self.events: list[RecordEvent] = []
        self.writes = 0
        self.refusals: list[type[errors.ApiError]] = []
        self.kill_after: int | None = None  # writes until the controller ends
        self.refuse: type[errors.ApiError] | None = None  # the answer to creations
        self.restart()

    # The controller

    def restart(self, *, jobs_late: bool = False) -> None:
        """Start a controller that knows what its first lists say, perhaps without the jobs."""
        self.kill_after = None
        self._late_cron_jobs: list[Event[CronJob]] = []
        self._late_jobs: list[Event[Job]] = []
        self._job_view: View[Job] = View()
        context = ControllerContext(
            client=cast(Any, self),
            writer=cast(Any, self),
            groups=View(),
            jobs=self._job_view,
            queues=View(),
            classes=View(),
            excuses=Excuses(View(), View()),
            events=cast(Any, self),
            metrics=ControllerMetrics(CollectorRegistry()),
            options=ControllerOptions(),
            clock=self.clock,
            rng=random.Random(0),
            served=lambda _: True,
        )
        self.controller = CronJobController(context)
        self._see_cron_job(EventType.ADDED)
        for name in sorted(self.jobs):
            self._see_job(name, EventType.ADDED)
        self.show_cron_job()
        if not jobs_late:
            self.show_jobs()

    def look(self) -> bool:
        """Let the controller look until it has nothing to write; say whether it was still alive then."""
        for _ in range(10):
            before = self.writes, self.refusals.count(errors.AlreadyExists)
            try:
                asyncio.run(self.controller._shell._reconcile(KEY))
            except KilledError:
                self.restart()
                return False
            except errors.ApiError:
                self.catch_up()  # it would try again after a while
                continue
            if before == (self.writes, self.refusals.count(errors.AlreadyExists)):
                return True
        raise AssertionError("the controller does not come to rest")

    # The watches

    def catch_up(self) -> None:
        """Let both watches show everything."""
        self.show_cron_job()
        self.show_jobs()

    def show_cron_job(self) -> None:
        late, self._late_cron_jobs = self._late_cron_jobs, []
        self.controller._cron_jobs.on_events(late)

    def show_jobs(self) -> None:
        late, self._late_jobs = self._late_jobs, []
        self._job_view.on_events(late)

    def _see_cron_job(self, kind: EventType) -> None:
        self._late_cron_jobs.append(
            Event(kind, KEY, "cron", msgspec.convert(self.cron_job, CronJob), 0.0, listed=False)
        )

    def _see_job(self, name: str, kind: EventType) -> None:
        job = msgspec.convert(self.jobs[name], Job)
        self._late_jobs.append(Event(kind, f"ns/{name}", job.metadata.uid, job, 0.0, listed=False))

    # Others

    def finish(self, number: int, phase: str) -> None:
        """End one of the running jobs."""
        running = self.running()
        if running:
            name = running[number % len(running)]
            self._next_version(self.jobs[name])
            state = {"phase": phase, "lastTransitionTime": self.clock.now().isoformat()}
            self.jobs[name]["status"] = {"state": state}
            self._see_job(name, EventType.MODIFIED)

    def touch(self) -> None:
        """Change the cron job as a user does who sets a label."""
        self._next_version(self.cron_job)
        self._see_cron_job(EventType.MODIFIED)

    def delete(self) -> None:
        """Delete the cron job."""
        self._see_cron_job(EventType.DELETED)
        self.show_cron_job()

    def running(self) -> list[str]:
        """Return the names of the jobs that are not finished."""
        return [name for name, job in sorted(self.jobs.items()) if "status" not in job]

    # The server, as the writer and the client of the controller see it

    async def sent(self, write: Write) -> bytes:
        self._count()
        answer = self._carry_out(write)
        self._count()
        return answer

    async def get(self, _: object, name: str, __: object, *, namespace: str, timeout_s: float) -> Job:
        if name not in self.jobs:
            raise errors.NotFound("get", f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{name}", "no")
        return msgspec.convert(self.jobs[name], Job)

    def record(self, event: RecordEvent) -> None:
        self.events.append(event)

    def _count(self) -> None:
        """End the controller before or after a write."""
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after < 0:
                raise KilledError

    def _carry_out(self, write: Write) -> bytes:
        match write:
            case Create(body=dict() as body):
                name = body["metadata"]["name"]
                if self.refuse is not None:
                    self._refuse(self.refuse)
                if name in self.jobs:
                    self._refuse(errors.AlreadyExists)
                meta = {"uid": f"uid-{len(self.created)}", "creationTimestamp": self.clock.now().isoformat()}
                self.jobs[name] = {**body, "metadata": {**body["metadata"], **meta}}
                self._next_version(self.jobs[name])
                self.created.append(name)
                self._see_job(name, EventType.ADDED)
                answer = self.jobs[name]
            case Patch(body=patch):
                if patch["metadata"]["resourceVersion"] != self.cron_job["metadata"]["resourceVersion"]:
                    self._refuse(errors.Conflict)
                self.cron_job = {**self.cron_job, "status": {**self.cron_job["status"], **patch["status"]}}
                self._next_version(self.cron_job)
                self._see_cron_job(EventType.MODIFIED)
                answer = self.cron_job
            case Delete(name=name, uid=uid):
                if name not in self.jobs:
                    self._refuse(errors.NotFound)
                if self.jobs[name]["metadata"]["uid"] != uid:
                    self._refuse(errors.Conflict)
                self._see_job(name, EventType.DELETED)
                del self.jobs[name]
                self.writes += 1
                return b""
            case _:
                raise AssertionError(write)
        self.writes += 1
        return msgspec.json.encode(answer)

    def _next_version(self, obj: Wire) -> None:
        self.version += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version)}

    def _refuse(self, why: type[errors.ApiError]) -> NoReturn:
        self.refusals.append(why)
        raise why("write", "/apis/batch.volcano.sh/v1alpha1/namespaces/ns/jobs/x", "refused")
