"""Area controllers/cronjob: schedules, and whole synchronisations against a server of two lists and some answers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import NOW, Case
from volcano_py.api.batch import CronJob, Job
from volcano_py.controllers.cronjob import child, decision, reports
from volcano_py.controllers.cronjob.memory import Memory, observed
from volcano_py.controllers.cronjob.starts import MANY, NeverError, Starts
from volcano_py.controllers.writes import Create, Delete, Patch, Write, is_needed
from volcano_py.kube import errors
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import FakeClock

_LOOKS: Final = 5  # a synchronisation comes to rest in fewer
_REFUSALS: Final = {
    "AlreadyExists": errors.AlreadyExists,
    "NamespaceTerminating": errors.NamespaceTerminating,
    "BadRequest": errors.BadRequest,
    "Conflict": errors.Conflict,
    "Forbidden": errors.Forbidden,
    "InternalError": errors.ServerError,
    "Invalid": errors.Invalid,
    "NotFound": errors.NotFound,
    "Timeout": errors.Timeout,
}


def _cron_job(given: dict[str, Any]) -> CronJob:
    given = {"metadata": {}, **given}
    return msgspec.convert(given, CronJob)


def _jobs(given: list[dict[str, Any]]) -> list[Job]:
    return msgspec.convert(given, list[Job])


def _starts(cron_job: CronJob, now: datetime) -> Starts:
    schedule, zone = decision.read(cron_job, UTC)
    return decision.starts_of(cron_job, cron_job.status, schedule, zone, now)


# A synchronisation


@dataclass(slots=True)
class _Server:
    """What the API server has, and how it answers."""

    cron_job: dict[str, Any]
    by_name: dict[str, dict[str, Any]]
    create_error: str | None = None
    get_error: str | None = None
    created: int = 0
    deleted: int = 0
    status_written: bool = False

    def read(self, name: str) -> dict[str, Any] | None:
        """Return a job by its name."""
        self._refuse("get", self.get_error)
        return self.by_name.get(name)

    def write(self, write: Write) -> bytes:
        """Carry out a write and return its answer."""
        match write:
            case Create(body=dict() as body):
                self._refuse("create", self.create_error)
                job = {**body, "metadata": {**body["metadata"], "uid": f"uid-{self.created}"}}
                self.created += 1
                self.by_name[body["metadata"]["name"]] = job
                return msgspec.json.encode(job)
            case Delete(name=name):
                # Here a job is read and deleted by one request, which names its uid: the answer to the read counts.
                self._refuse("delete", self.get_error)
                self.by_name.pop(name, None)
                self.deleted += 1
                return b""
            case Patch(body=patch):
                self.status_written = True
                self.cron_job["status"] = {**self.cron_job.get("status", {}), **patch["status"]}
                return msgspec.json.encode(self.cron_job)
        raise AssertionError(write)

    def _refuse(self, verb: str, reason: str | None) -> None:
        if reason is not None:
            raise _REFUSALS[reason](verb, "/apis/batch.volcano.sh/v1alpha1/jobs", reason)


@dataclass(slots=True)
class _Sync:
    """Looks at a cron job until nothing is left to write, as the controller does."""

    server: _Server
    shown: dict[str, Job]  # the jobs that the watch shows, by name
    now: datetime
    key: str
    memory: Memory
    events: list[RecordEvent] = field(default_factory=list)
    again_s: float | None = None
    failed: bool = False

    def run(self) -> None:
        for _ in range(_LOOKS):
            try:
                again = self._look()
            except errors.ApiError:
                self.failed = True
            if self.failed or not again:
                return
        raise AssertionError("the synchronisation does not come to rest")

    def _look(self) -> bool:
        """Look once; say whether anything was written."""
        cron_job = _cron_job(self.server.cron_job)
        own = {job.metadata.uid: job for job in self.shown.values() if child.is_child(cron_job, job)}
        own |= {job.metadata.uid: job for job in self.memory.created(self.key)}
        names = decision.unseen(cron_job, own, self.memory.taken(self.key))
        read = {name: self._read(name) for name in names if name not in self.shown}
        seen = observed(cron_job, [*own.values()], self.memory, self.key, read, self.shown.get)
        decided = decision.decide(seen, self.now)
        self.events += self.memory.new_warnings(self.key, decided.warnings)
        writes = list(_flat(decided.plan.steps))
        for write in writes:
            self._write(cron_job, write)
        self.events += decided.plan.events
        self.again_s, self.failed = decided.plan.look_again_s, self.failed or bool(decided.problem)
        return bool(writes)

    def _read(self, name: str) -> Job | None:
        found = self.server.read(name)
        return None if found is None else msgspec.convert(found, Job)

    def _write(self, cron_job: CronJob, write: Write) -> None:
        try:
            answer = self.server.write(write)
        except errors.ApiError as error:
            self.memory.refused(self.key, write, error)
            event = self.memory.new_refusal(cron_job, self.key, write, error)
            self.events += [] if event is None else [event]
            # An ending namespace is a failure in these rows; here it only ends the attempts.
            if is_needed(write, error) or isinstance(error, errors.NamespaceTerminating):
                raise
            return
        self.memory.written(self.key, write, answer)
        event = reports.written(cron_job, write)
        self.events += [] if event is None else [event]


def _flat(steps: tuple[Write | tuple[Write, ...], ...]) -> Iterator[Write]:
    for step in steps:
        yield from step if isinstance(step, tuple) else (step,)


def _job_of_row(cron_job: CronJob, given: dict[str, Any], number: int) -> dict[str, Any]:
    """Return a job of a row; one in the status has the uid that the status names."""
    unknown = given.keys() - {
        *("name", "scheduledTime", "phase", "lastTransitionTime", "creationTimestamp"),
        *("listed", "foundByName", "owned"),
    }
    assert not unknown, unknown
    meta, name = cron_job.metadata, given["name"]
    uids = {entry.name: entry.uid for entry in cron_job.status.active}
    owner = {"kind": "CronJob", "name": meta.name, "uid": meta.uid, "controller": True}
    return {
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "uid": uids.get(name, f"job-{number}"),
            "creationTimestamp": given.get("creationTimestamp", given["scheduledTime"]),
            "annotations": {child.SCHEDULED_TIME: given["scheduledTime"]},
            "ownerReferences": [owner] if given["owned"] else [],
        },
        "status": {"state": {"phase": given["phase"], "lastTransitionTime": given["lastTransitionTime"]}},
    }


def _sync(case: Case) -> Outcome:
    cron_job = _cron_job(case.input["cronJob"])
    meta = cron_job.metadata
    given = case.input.get("jobs", [])
    jobs = [_job_of_row(cron_job, job, number) for number, job in enumerate(given)]
    found = {job["metadata"]["name"]: job for job, row in zip(jobs, given, strict=True) if row["foundByName"]}
    shown = [job for job, row in zip(jobs, given, strict=True) if row["listed"]]
    server = _Server(dict(case.input["cronJob"]), found, case.input.get("createError"), case.input.get("getError"))
    now = datetime.fromisoformat(case.input["now"]) if "now" in case.input else NOW
    memory = Memory(FakeClock(now))
    sync = _Sync(server, {job.metadata.name: job for job in _jobs(shown)}, now, f"{meta.namespace}/{meta.name}", memory)
    sync.run()
    after = server.cron_job.get("status", {})
    return {
        "error": sync.failed,
        "requeueAfterSeconds": None if sync.failed else sync.again_s,
        # With a history that was trimmed, the original writes the status again, even if it is the same.
        "statusChanged": server.status_written or server.deleted > 0,
        "lastScheduleTime": after.get("lastScheduleTime"),
        "lastSuccessfulTime": after.get("lastSuccessfulTime"),
        "active": len(after.get("active", [])),
        "events": len(sync.events),
        "created": server.created,
        "deleted": server.deleted,
    }


# Schedules


def _most_recent(case: Case) -> Outcome:
    cron_job, now = _cron_job(case.input["cronJob"]), datetime.fromisoformat(case.input["now"])
    deadline_s = cron_job.spec.starting_deadline_seconds
    not_before = None
    if case.input["includeStartingDeadlineSeconds"] and deadline_s is not None:
        not_before = now - timedelta(seconds=deadline_s)
    try:
        missed = _starts(cron_job, now).missed(now, not_before)
    except NeverError:
        return {"error": True, "earliest": None, "recent": None, "missed": None}
    count = "none" if missed.count <= 1 else "few" if missed.count <= MANY else "many"
    return {"error": False, "earliest": missed.earliest, "recent": missed.latest, "missed": count}


def _same_moment(expected: Any, actual: Any, expect: Any) -> None:
    if not expect.get("error"):
        assert actual == (None if expected is None else datetime.fromisoformat(expected))


def _same_without_error(expected: Any, actual: Any, expect: Any) -> None:
    if not expect.get("error"):
        assert actual == expected


def _next(case: Case) -> Outcome:
    now = datetime.fromisoformat(case.input["now"])
    return {"seconds": decision.seconds_to_next(_starts(_cron_job(case.input["cronJob"]), now), now)}


def _sorted(case: Case) -> Outcome:
    ordered = child.oldest_first(_jobs(case.input["jobs"]))
    return {"jobs": [job.metadata for job in ordered]}


def _same_jobs(expected: Any, actual: Any, _: Any) -> None:
    assert actual == [job.metadata for job in _jobs(expected)]


def _owned(case: Case) -> Outcome:
    cron_job = _cron_job(case.input["cronJob"])
    return {"count": sum(child.is_child(cron_job, job) for job in _jobs(case.input.get("jobs", [])))}


def _same_seconds(expected: Any, actual: Any, _: Any) -> None:
    assert actual == (None if expected is None else pytest.approx(expected))


_STATUS_KEYS: Final = ("statusChanged", "lastScheduleTime", "lastSuccessfulTime", "active", "events", "created")
OPERATIONS: Final = {
    "sync": Operation(
        _sync,
        {"requeueAfterSeconds": _same_seconds, **dict.fromkeys(("error", *_STATUS_KEYS, "deleted"), same)},
        frozenset({"now", "cronJob", "jobs", "createError", "getError"}),
    ),
    "mostRecentSchedule": Operation(
        _most_recent,
        {"earliest": _same_moment, "recent": _same_moment, "missed": _same_without_error, "error": same},
        frozenset({"cronJob", "now", "includeStartingDeadlineSeconds"}),
    ),
    "nextSchedule": Operation(_next, {"seconds": _same_seconds}, frozenset({"cronJob", "now"})),
    "sortJobs": Operation(_sorted, {"jobs": _same_jobs}, frozenset({"jobs"})),
    "ownedJobs": Operation(_owned, {"count": same}, frozenset({"cronJob", "jobs"})),
}
