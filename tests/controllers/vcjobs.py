"""Jobs and cron jobs of Volcano on an embedded server, where a test ends the jobs itself."""

from datetime import UTC, datetime, timedelta
from typing import Any

from volcano_py.api.timestamp import wire_time
from volcano_py.apiserver import ApiServer
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import CRON_JOBS, VCJOBS

JOBS = VCJOBS.label
CRONS = CRON_JOBS.label
SPEC: dict[str, Any] = {
    "minAvailable": 1,
    "tasks": [
        {
            "name": "t",
            "replicas": 1,
            "template": {"spec": {"containers": [{"name": "c", "image": "example.com/image"}]}},
        }
    ],
}


def ago(seconds: float) -> datetime:
    """Return a time before now."""
    return datetime.now(UTC) - timedelta(seconds=seconds)


def put_job(server: ApiServer, name: str, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return server.create(
        {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "metadata": meta, "spec": {**SPEC, **spec}}
    )


def put_cron_job(server: ApiServer, name: str, schedule: str, **spec: Any) -> dict[str, Any]:
    body = {
        "apiVersion": CRON_JOBS.api_version,
        "kind": CRON_JOBS.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": SPEC}, **spec},
    }
    return server.create(body)


async def end_job(user: ApiClient, name: str, phase: str = "Completed", seconds_ago: float = 0.0) -> None:
    """Give a job a phase, as the controller of jobs does."""
    state = {"phase": phase, "lastTransitionTime": wire_time(ago(seconds_ago))}
    await user.patch(VCJOBS, name, {"status": {"state": state}}, dict, namespace="default", subresource="status")


async def set_status(user: ApiClient, cron_job: str, **status: Any) -> None:
    await user.patch(CRON_JOBS, cron_job, {"status": status}, dict, namespace="default", subresource="status")


def names(server: ApiServer) -> list[str]:
    """Return the names of all jobs."""
    return [job["metadata"]["name"] for job in server.list(JOBS, "default")]


def cron_status(server: ApiServer, name: str) -> dict[str, Any]:
    found = server.get(CRONS, name, "default")
    return {} if found is None else dict(found.get("status", {}))


def active(server: ApiServer, name: str) -> list[str]:
    """Return the names of the jobs that run, as the status of their cron job says."""
    return [entry["name"] for entry in cron_status(server, name).get("active", [])]
