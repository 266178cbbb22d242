"""Asks the API server whether a job is there, which its watch may show late."""

from typing import Final

from volcano_py.api.batch import Job
from volcano_py.controllers.answers import Named
from volcano_py.controllers.job.record import Record
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import VCJOBS

_TIMEOUT_S: Final = 10.0


async def exists(client: ApiClient, job: Job) -> bool:
    """Ask whether a job is there and is not being deleted."""
    meta = job.metadata
    try:
        found = await client.get(VCJOBS, meta.name, Named, namespace=meta.namespace, timeout_s=_TIMEOUT_S)
    except errors.NotFound:
        return False
    return found.metadata.uid == meta.uid and found.metadata.deletion_timestamp is None


async def was_not_found(client: ApiClient, record: Record, job: Job) -> None:
    """Forget a job to which a write was answered with 404; raise ServerError if the job is there.

    One 404 proves nothing. If the job is gone, the watch will say so, too.
    """
    if await exists(client, job):
        path = VCJOBS.item(job.metadata.name, job.metadata.namespace)
        raise errors.ServerError("patch", path, "the server does not find it, and finds it when asked again")
    record.job = None
