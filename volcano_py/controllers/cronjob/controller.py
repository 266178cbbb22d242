"""The cronjob controller: watches cron jobs and their jobs, and carries out the plans of `decision`."""

import math
import os
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

import structlog

from volcano_py.api.batch import CronJob, Job
from volcano_py.api.schedule import ZoneError, zone_named
from volcano_py.controllers.controller import SOON_S, ControllerContext
from volcano_py.controllers.cronjob import child, decision, reports
from volcano_py.controllers.cronjob.memory import Memory, observed
from volcano_py.controllers.cronjob.status import Observed
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.shell import Shell
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Create, Write
from volcano_py.kube import errors
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import CRON_JOBS, VCJOBS
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()

_TIMEOUT_S: Final = 10.0
_LOCAL_TIME: Final = Path("/etc/localtime")


class CronJobController:
    """Creates the jobs of cron jobs when their time has come, and deletes those that are not kept."""

    name: Final = "cronjob-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._events = context.events
        self._clock = context.clock
        self._served = context.served
        self._jobs = context.jobs
        self._cron_jobs: View[CronJob] = View()
        self._children: dict[
            str, set[str]
        ] = {}  # key of a cron job -> keys of the jobs that name it as their controller
        self._memory = Memory(context.clock)
        self._next: dict[str, float] = {}  # key of a cron job -> seconds since 1970 of its next look without a change
        self._local = local_zone()
        self._shell: Shell[str] = Shell(
            context,
            self.name,
            self._look,
            workers=context.options.cron_job_workers,
            refill=self._soon,
            on_written=self._written,
            on_refused=self._refused,
        )
        context.excuses.subscribe(self._shell.excuse)
        self._cron_jobs.subscribe(self._cron_job_changed)
        context.jobs.subscribe(self._job_changed)

    def watch(self, informers: Informers) -> None:
        """Add the informer of cron jobs; the manager watches the jobs."""
        informers.add(CRON_JOBS, CronJob, self._cron_jobs, optional=True)

    def start(self, supervisor: Supervisor) -> None:
        """Start to look; until then, changes are only collected."""
        self._shell.start(supervisor)

    def backlog(self) -> int:
        """Return how many cron jobs wait for a look that is due, or have it."""
        return self._shell.backlog

    # Changes

    def _cron_job_changed(self, key: str, before: CronJob | None, after: CronJob | None) -> None:
        self._memory.cron_job_changed(key, before, after)
        self._next.pop(key, None)
        if after is not None:
            self._shell.changed(key)

    def _job_changed(self, key: str, before: Job | None, after: Job | None) -> None:
        was, now = _cron_job_of(before), _cron_job_of(after)
        self._memory.job_changed(key)
        if was != now and was:
            self._children[was].discard(key)
            if not self._children[was]:
                del self._children[was]
        if now:
            self._children.setdefault(now, set()).add(key)
        if _facts(before) != _facts(after):
            for cron_job in {was, now} - {""}:
                self._shell.changed(cron_job)

    def _soon(self) -> Iterable[str]:
        """Return the cron jobs whose next look is soon, or unknown because the last one failed."""
        until, keys = self._clock.now().timestamp() + SOON_S, self._cron_jobs.keys()
        return [key for key in keys if self._next.get(key, 0.0) <= until]

    # Looks

    async def _look(self, key: str) -> Plan:
        watched = self._cron_jobs.get(key)
        if watched is None or not (self._served(CRON_JOBS) and self._served(VCJOBS)):
            return NOTHING
        self._next.pop(key, None)  # if this look fails until it is given up, a refill brings it back
        cron_job = self._memory.newest(key, watched)
        seen = await self._observe(key, cron_job)
        now = self._clock.now()
        decided = decision.decide(seen, now, self._local)
        for event in self._memory.new_warnings(key, decided.warnings):
            self._events.record(event)
        plan, again_s = decided.plan, decided.plan.look_again_s
        self._next[key] = math.inf if again_s is None else now.timestamp() + again_s
        # A look that is due much later needs no place in the queue.
        return plan if again_s is None or again_s <= SOON_S else replace(plan, look_again_s=None)

    async def _observe(self, key: str, cron_job: CronJob) -> Observed:
        """Return what is known about a cron job; jobs that the watch should show and does not are read."""
        namespace = cron_job.metadata.namespace
        keys = self._children.get(key, set())
        shown = [job for name in sorted(keys) if (job := self._jobs.get(name)) is not None]
        known = {job.metadata.uid: job for job in (*self._memory.created(key), *shown)}
        names = decision.unseen(cron_job, known, self._memory.taken(key))
        read = {name: await self._read(namespace, name) for name in names if self._named(namespace, name) is None}
        return observed(cron_job, [*known.values()], self._memory, key, read, lambda name: self._named(namespace, name))

    def _named(self, namespace: str, name: str) -> Job | None:
        return self._jobs.get(f"{namespace}/{name}")

    async def _read(self, namespace: str, name: str) -> Job | None:
        try:
            return await self._client.get(VCJOBS, name, Job, namespace=namespace, timeout_s=_TIMEOUT_S)
        except errors.NotFound:
            return None

    # Results of writes

    def _written(self, key: str, write: Write, answer: bytes) -> None:
        self._memory.written(key, write, answer)
        cron_job = self._cron_jobs.get(key)
        event = None if cron_job is None else reports.written(cron_job, write)
        if event is not None:
            self._events.record(event)
        if isinstance(write, Create):
            log.info("job created", cron_job=key, job=child.metadata_of(write)["name"])
            self._shell.changed(key)  # its status names the job at the next look

    def _refused(self, key: str, write: Write, error: errors.ApiError) -> None:
        self._memory.refused(key, write, error)
        self._next.pop(key, None)
        cron_job = self._cron_jobs.get(key)
        event = None if cron_job is None else self._memory.new_refusal(cron_job, key, write, error)
        if event is not None:
            self._events.record(event)
        if isinstance(error, errors.AlreadyExists):
            self._shell.changed(key)


def local_zone() -> tzinfo:
    """Return the time zone of this process: that of $TZ, else that of the machine, else UTC."""
    name = os.environ.get("TZ")
    try:
        if name is not None:
            return zone_named(name.removeprefix(":"))
        with _LOCAL_TIME.open("rb") as file:
            return ZoneInfo.from_file(file, key="Local")
    except (ZoneError, OSError, ValueError):
        return UTC


def _cron_job_of(job: Job | None) -> str:
    """Return the key of the cron job that controls a job, "" if none does."""
    owner = None if job is None else child.controller_of(job.metadata)
    if job is None or owner is None or owner.kind != CRON_JOBS.kind:
        return ""
    return f"{job.metadata.namespace}/{owner.name}"


def _facts(job: Job | None) -> tuple[object, ...]:
    """Return what decisions depend on; counters of pods, which change often, are not among it."""
    if job is None:
        return ()
    meta, state = job.metadata, job.status.state
    return meta.uid, meta.deletion_timestamp is None, _cron_job_of(job), state.phase, state.last_transition_time
