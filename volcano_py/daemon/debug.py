"""Pages for operators of a running scheduler: which configuration is in force, and why jobs wait."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import web

from volcano_py.framework.state.report import CycleReport, JobReport
from volcano_py.model.objects import JobKey
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.runtime.http import Route

CONF: Final = "/debug/conf"
JOBS: Final = "/debug/jobs"


class LastCycle(NamedTuple):
    """The report of the cycle that ended last."""

    ended: datetime
    report: CycleReport


def routes(
    conf: Callable[[], Mapping[str, Any]], last: Callable[[], LastCycle | None], obstacle: Callable[[], str]
) -> dict[str, Route]:
    """Return the pages; each answers JSON."""

    async def show_conf(_: web.Request) -> web.Response:
        return _answer(conf())

    async def show_jobs(request: web.Request) -> web.Response:
        """Take ``?namespace=`` and ``?name=`` to see fewer."""
        return _answer(waiting_jobs(last(), obstacle(), request.query.get("namespace"), request.query.get("name")))

    return {CONF: show_conf, JOBS: show_jobs}


def waiting_jobs(
    last: LastCycle | None, obstacle: str = "", namespace: str | None = None, name: str | None = None
) -> dict[str, Any]:
    """Return why jobs wait, by namespace and name, as the last cycle found it."""
    if last is None:
        return {"cycle": None, "why": obstacle or "no cycle has ended yet", "jobs": []}
    report = last.report
    wanted = (
        (key, job)
        for key, job in sorted(report.jobs.items())
        if namespace in (None, key.namespace) and name in (None, key.name)
    )
    return {
        "cycle": last.ended.isoformat(timespec="milliseconds"),
        "pendingTasks": report.pending_tasks,
        "pluginFailures": sorted(set(report.failures)),
        "jobs": [_job(key, job) for key, job in wanted],
    }


def _job(key: JobKey, job: JobReport) -> dict[str, Any]:
    return {
        "namespace": key.namespace,
        "name": key.name,
        "tasks": job.tasks,
        "ready": job.ready,
        "minAvailable": job.min_available,
        "message": job.message,
        "rejections": [_rejection(rejection) for rejection in job.rejections],
    }


def _rejection(rejection: Rejection) -> dict[str, Any]:
    if rejection.blocked is not None:
        return {"message": rejection.message, "reasons": [_reason(rejection.blocked)]}
    reasons = [{**_reason(refusal.reason), "nodes": refusal.nodes} for refusal in rejection.refusals]
    return {"message": rejection.message, "reasons": reasons}


def _reason(reason: Reason) -> dict[str, Any]:
    return {"plugin": reason.plugin, "code": reason.code, "text": reason.text, "remedy": reason.remedy.value}


def _answer(content: Mapping[str, Any]) -> web.Response:
    body = msgspec.json.format(msgspec.json.encode(content), indent=2)
    return web.Response(body=body + b"\n", content_type="application/json")
