"""Evictions: write the reason on the pod, then delete the pod with its own grace period.

    queued ──▶ conditions written ──▶ deleted ──▶ evicted     also when the pod turns out to be gone already
      ▲              │                   ├──────▶ failed      refused for good, attempts used up, or not needed any more
      └─── later ◀───┴───────────────────┴──────▶ unknown     attempts used up and the last answer was lost

The conditions are those of Volcano's evictor: Ready=False with reason Evict, and DisruptionTarget=True with reason
PreemptionByScheduler, by which job controllers tell an eviction from a failure. Volcano does not delete the pod if the
first condition is there already or cannot be written. Here the pod is deleted in any case, and a refusal of its
conditions is only logged. The uid is a precondition of both requests, so that both may be repeated after a lost answer:
they never concern another pod of that name, and a second deletion of the same pod changes nothing.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from volcano_py.api import keys
from volcano_py.api.timestamp import wire_time
from volcano_py.kube import errors
from volcano_py.kube.backoff import CAP_S, FIRST_S
from volcano_py.kube.client import ApiClient, PatchType
from volcano_py.kube.resource import PODS
from volcano_py.kube.workqueue import WorkQueue, WorkQueueOptions
from volcano_py.metrics.evictions import EvictionMetrics
from volcano_py.model.decisions import Evict
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.throttled_log import ThrottledLog

_AGAIN: Final = (errors.TooManyRequests, errors.ServerError, errors.Timeout, errors.ConnectionFailed)
"""Errors after which a retry may succeed; every other error is final."""


@dataclass(frozen=True, slots=True)
class EvictorOptions:
    """How many evictions run at once, and how often each is tried."""

    workers: int = 8
    capacity: int = 50_000  # a plan is taken as a whole: one with more victims would never be carried out
    timeout_s: float = 10.0
    attempts: int = 8  # with the delays below about half a minute
    retry_first_s: float = FIRST_S
    retry_cap_s: float = CAP_S


class EvictionOutcomes(Protocol):
    """Learns what became of evictions, on the event loop."""

    def evicting(self, evict: Evict) -> None:
        """A request to delete is about to go out, the first or another."""
        ...

    def evicted(self, evict: Evict) -> None:
        """The API server has taken the deletion, or the pod is gone."""
        ...

    def eviction_failed(self, evict: Evict, why: str) -> None:
        """The pod was not deleted and will not be."""
        ...

    def eviction_unknown(self, evict: Evict) -> None:
        """It is not known whether the pod was deleted; it must count as leaving until it can be read."""
        ...


class _Order:
    __slots__ = ("evict", "explained", "unclear")

    def __init__(self, evict: Evict) -> None:
        self.evict = evict
        self.explained = False  # the reason stands on the pod, or cannot be written there
        self.unclear = False  # a deletion went out, and it is not known whether it took effect


class _Pod(msgspec.Struct):
    """An answer whose content is not needed."""


class Evictor:
    """Carries out evictions; start it under a supervisor, then submit."""

    def __init__(
        self,
        client: ApiClient,
        outcomes: EvictionOutcomes,
        metrics: EvictionMetrics,
        *,
        scheduler_name: str,
        clock: Clock,
        rng: random.Random,
        objection: Callable[[Evict], str] = lambda _: "",
        options: EvictorOptions | None = None,
    ) -> None:
        """Take the receiver of results; ``objection`` returns why an eviction must not be sent now, "" if it may."""
        self._client = client
        self._outcomes = outcomes
        self._objection = objection
        self._metrics = metrics
        self._scheduler_name = scheduler_name
        self._clock = clock
        self._options = options = options or EvictorOptions()
        self._orders: dict[TaskRef, _Order] = {}
        self._throttled_log = ThrottledLog(
            "reason of an eviction could not be written on its pod", clock, outage=client.outage
        )
        self._queue: WorkQueue[TaskRef] = WorkQueue(
            "eviction",
            self._carry_out,
            WorkQueueOptions(
                workers=options.workers,
                capacity=options.capacity,
                attempts=options.attempts,
                first_retry_s=options.retry_first_s,
                retry_cap_s=options.retry_cap_s,
                turn_timeout_s=3 * options.timeout_s,
            ),
            clock=clock,
            rng=rng,
            on_given_up=self._given_up,
            observe=lambda _, what: metrics.retried() if what == "retried" else None,
            outage=client.outage,
        )
        metrics.watch_backlog(lambda: self.backlog)

    @property
    def backlog(self) -> int:
        """How many evictions have not ended."""
        return len(self._orders)

    @property
    def room(self) -> int:
        """How many more may be submitted now."""
        return self._options.capacity - len(self._orders)

    def holds(self, task: TaskRef) -> bool:
        """Say whether an eviction of this pod has still to be sent, answered or tried again."""
        return task in self._orders

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers."""
        self._queue.start(supervisor)

    def submit(self, evictions: Sequence[Evict]) -> None:
        """Take evictions that were decided together, at most `room` of them."""
        for evict in evictions:
            self._orders[evict.task] = _Order(evict)
            if not self._queue.add(evict.task):
                self._failed(self._orders[evict.task], "too many evictions are on their way")

    async def drained(self, timeout_s: float) -> bool:
        """Wait until every eviction has ended; return whether all ended in time."""
        return await self._queue.drained(timeout_s)

    async def _carry_out(self, task: TaskRef) -> None:
        order = self._orders[task]
        if self._need_not_go(order):
            return
        deleting = False
        try:
            if not order.explained:
                await self._explain(order)
                if self._need_not_go(order):
                    return
            self._outcomes.evicting(order.evict)
            deleting = True
            await self._client.delete(
                PODS, task.name, namespace=task.namespace, uid=task.uid, timeout_s=self._options.timeout_s
            )
        except (errors.NotFound, errors.Conflict):
            self._evicted(order)  # gone, or replaced by another of its name
        except _AGAIN as error:
            order.unclear = order.unclear or (deleting and error.maybe_applied)
            raise
        except errors.ApiError as error:
            self._failed(order, error.server_message)
        else:
            self._evicted(order)

    def _need_not_go(self, order: _Order) -> bool:
        """End an eviction that is not needed any more: it may have waited for long. Say whether it was ended."""
        why = "" if order.unclear else self._objection(order.evict)
        if why:
            self._failed(order, why)
        return bool(why)

    async def _explain(self, order: _Order) -> None:
        """Write the reason on the pod; raise only if a retry may succeed."""
        task = order.evict.task
        try:
            await self._client.patch(
                PODS,
                task.name,
                self._reason(order.evict),
                _Pod,
                kind=PatchType.STRATEGIC,
                namespace=task.namespace,
                subresource="status",
                timeout_s=self._options.timeout_s,
            )
        except _AGAIN:
            raise
        except errors.ApiError as error:
            if not isinstance(error, errors.NotFound | errors.Conflict):
                self._throttled_log.log(why=error, task=str(task), error=str(error))
        order.explained = True

    def _reason(self, evict: Evict) -> dict[str, Any]:
        now = wire_time(self._clock.now())
        return {
            "metadata": {"uid": evict.task.uid},  # a precondition
            "status": {
                "conditions": [
                    {
                        "type": keys.CONDITION_READY,
                        "status": "False",
                        "reason": keys.EVENT_EVICT,
                        "message": message(evict),
                        "lastTransitionTime": now,
                    },
                    {
                        "type": keys.CONDITION_DISRUPTION_TARGET,
                        "status": "True",
                        "reason": keys.REASON_PREEMPTION,
                        "message": f"{self._scheduler_name}: preempting to accommodate a higher priority pod",
                        "lastTransitionTime": now,
                    },
                ]
            },
        }

    def _evicted(self, order: _Order) -> None:
        del self._orders[order.evict.task]
        self._metrics.evicted()
        self._outcomes.evicted(order.evict)

    def _failed(self, order: _Order, why: str) -> None:
        del self._orders[order.evict.task]
        self._metrics.failed()
        self._outcomes.eviction_failed(order.evict, why)

    def _given_up(self, task: TaskRef, error: errors.ApiError) -> None:
        order = self._orders[task]
        if not (order.unclear or error.maybe_applied):
            self._failed(order, f"no success after {self._options.attempts} attempts: {error}")
            return
        del self._orders[task]
        self._metrics.unknown()
        self._outcomes.eviction_unknown(order.evict)


def message(evict: Evict) -> str:
    """Return what users read on an evicted pod: Volcano's words, and the beneficiary."""
    because = f"Pod is evicted, because of {evict.action}"
    return f"{because}: {evict.message}" if evict.message else because
