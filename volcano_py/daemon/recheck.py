"""Binds that the watch should have confirmed by now: their pods are read, and what they say counts."""

from typing import Final

import structlog

from volcano_py.api.types import Pod
from volcano_py.cache.cluster import ClusterCache
from volcano_py.effects.binder import Binder
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PODS
from volcano_py.metrics.state import StateMetrics
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_TIMEOUT_S: Final = 10.0


async def recheck_overdue(
    client: ApiClient, cache: ClusterCache, binder: Binder, metrics: StateMetrics, *, clock: Clock, every_s: float
) -> None:
    """Look for overdue binds again and again, until cancelled."""
    while True:
        await clock.sleep(every_s)
        for entry in cache.expired():
            task = entry.task
            if binder.holds(task.uid):
                continue  # it is still to be sent or tried again: nothing is lost
            metrics.expired()
            try:
                pod = await client.get(PODS, task.name, Pod, namespace=task.namespace, timeout_s=_TIMEOUT_S)
            except errors.NotFound:
                pod = None
            except errors.ApiError as error:
                log.warning("overdue bind could not be checked", task=str(task), node=entry.node, error=str(error))
                break  # the ledger names the rest again when the server may be back
            cache.resolve(task, pod)
