"""Binds and evictions that the watch should have confirmed by now: their pods are read, and what they say counts.

An answer counts only if nothing has been heard of the pod since it was asked for. A pod that cannot be read is asked
for again when it is late again, and holds nobody else up. If the API server does not answer at all, those who have not
been asked for yet come first in the next round.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from volcano_py.api.core import Pod
from volcano_py.cache.cluster import ClusterCache
from volcano_py.effects.binder import Binder
from volcano_py.effects.evictor import Evictor
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PODS
from volcano_py.ledger.ledger import Entry
from volcano_py.metrics.state import StateMetrics
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock
from volcano_py.writing.throttled_log import ThrottledLog

_TIMEOUT_S: Final = 10.0
_COMPLAIN_EVERY_S: Final = 10.0
_UNANSWERED: Final = 3  # requests in a row without an answer: the rest is asked for in the next round
_NO_ANSWER: Final = (errors.Timeout, errors.ConnectionFailed)


@dataclass(slots=True)
class _Kind:
    """One kind of what is assumed."""

    what: str
    expired: Callable[[], list[Entry]]
    holds: Callable[[TaskRef], bool]  # still to be sent or tried again: nothing is lost
    resolve: Callable[[TaskRef, Pod | None], None]
    unchanged: Callable[[Entry], bool] = lambda _: True  # nothing has been heard of it since
    left: deque[Entry] = field(default_factory=deque)  # to be asked for


async def recheck_overdue(
    client: ApiClient,
    cache: ClusterCache,
    binder: Binder,
    evictor: Evictor,
    metrics: StateMetrics,
    *,
    clock: Clock,
    every_s: float,
) -> None:
    """Look for what is overdue again and again, until cancelled."""
    kinds = (
        _Kind("bind", cache.expired, lambda task: binder.holds(task.uid), cache.resolve, cache.ledger.unchanged),
        _Kind(
            "eviction",
            cache.expired_evictions,
            evictor.holds,
            cache.resolve_eviction,
            cache.evictions.unchanged,
        ),
    )
    throttled_log = ThrottledLog("what is overdue could not be checked", clock, _COMPLAIN_EVERY_S)
    while True:
        await clock.sleep(every_s)
        cache.end_nominations()
        for kind in kinds:
            await _recheck(client, kind, metrics, throttled_log)


async def _recheck(client: ApiClient, kind: _Kind, metrics: StateMetrics, throttled_log: ThrottledLog) -> None:
    late = kind.expired()
    uids = {entry.task.uid for entry in late}
    kind.left = deque([entry for entry in kind.left if entry.task.uid not in uids] + late)
    unanswered = 0
    while kind.left and unanswered < _UNANSWERED:
        entry = kind.left.popleft()
        task = entry.task
        if kind.holds(task) or not kind.unchanged(entry):
            continue
        metrics.expired()
        try:
            pod = await client.get(PODS, task.name, Pod, namespace=task.namespace, timeout_s=_TIMEOUT_S)
        except errors.NotFound:
            pod = None
        except errors.ApiError as error:
            throttled_log.tell(kind.what, what=kind.what, task=str(task), node=entry.node, problem=str(error))
            unanswered = unanswered + 1 if isinstance(error, _NO_ANSWER) else 0
            continue  # the ledger names it again
        unanswered = 0
        if kind.unchanged(entry):
            kind.resolve(task, pod)
