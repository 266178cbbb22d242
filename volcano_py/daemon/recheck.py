"""Reads the pods of overdue binds and evictions: those that the watch should have confirmed by now.

An answer counts only if the watch has shown nothing of the pod since the request. A pod that cannot be read is read
again when it is overdue again; the others do not wait for it. If the API server does not answer at all, the next round
begins with the pods that have not been read yet.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from volcano_py.api.core import Pod
from volcano_py.cache.assumptions import Assumptions
from volcano_py.cache.cluster import ClusterCache
from volcano_py.effects.evictor import Evictor
from volcano_py.effects.nominations import NominationWriter
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PODS
from volcano_py.ledger.ledger import Entry
from volcano_py.metrics.state import StateMetrics
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock
from volcano_py.writing.throttled_log import ThrottledLog

_TIMEOUT_S: Final = 10.0
_LOG_EVERY_S: Final = 10.0
_UNANSWERED: Final = 3  # requests in a row without an answer; the other pods are read in the next round
_NO_ANSWER: Final = (errors.Timeout, errors.ConnectionFailed)


class BindHolder(Protocol):
    """Knows the binds that have not ended."""

    def holds(self, uid: str) -> bool:
        """Say whether a bind of this pod has still to be prepared, sent, answered or tried again."""
        ...


@dataclass(slots=True)
class _Kind:
    """Binds or evictions, with the overdue ones that must still be read."""

    assumed: Assumptions
    holds: Callable[[TaskRef], bool]  # whether a request will be sent or tried again; then it is not overdue
    left: deque[Entry] = field(default_factory=deque)  # to be read


async def recheck_overdue(
    client: ApiClient,
    cache: ClusterCache,
    binds: BindHolder,
    evictor: Evictor,
    nominations: NominationWriter,
    metrics: StateMetrics,
    *,
    clock: Clock,
    every_s: float,
) -> None:
    """Read overdue pods every ``every_s`` seconds, until cancelled; write nominations that found no place before."""
    kinds = (
        _Kind(cache.binds, lambda task: binds.holds(task.uid)),
        _Kind(cache.evictions, evictor.holds),
    )
    throttled_log = ThrottledLog(
        "overdue binds or evictions could not be checked", clock, _LOG_EVERY_S, outage=client.outage
    )
    while True:
        await clock.sleep(every_s)
        cache.nominations.end_expired(nominations.holds)
        for nomination in cache.nominations.to_write_again(nominations.holds):
            nominations.put(nomination)
        for kind in kinds:
            await _recheck(client, kind, metrics, throttled_log)


async def _recheck(client: ApiClient, kind: _Kind, metrics: StateMetrics, throttled_log: ThrottledLog) -> None:
    late = kind.assumed.expired()
    uids = {entry.task.uid for entry in late}
    kind.left = deque([entry for entry in kind.left if entry.task.uid not in uids] + late)
    unanswered = 0
    while kind.left and unanswered < _UNANSWERED:
        entry = kind.left.popleft()
        task = entry.task
        if kind.holds(task) or not kind.assumed.ledger.unchanged(entry):
            continue
        metrics.expired()
        try:
            pod = await client.get(PODS, task.name, Pod, namespace=task.namespace, timeout_s=_TIMEOUT_S)
        except errors.NotFound:
            pod = None
        except errors.ApiError as error:
            what = kind.assumed.what
            throttled_log.log(what, why=error, what=what, task=str(task), node=entry.node, problem=str(error))
            unanswered = unanswered + 1 if isinstance(error, _NO_ANSWER) else 0
            continue  # the ledger will report it again
        unanswered = 0
        if kind.assumed.ledger.unchanged(entry):
            kind.assumed.resolve(task, pod)
