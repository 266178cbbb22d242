"""Binds: one POST per pod, as many at once as the API server answers quickly, and never two that succeed for one pod.

    queued ──▶ sent ──▶ bound
     │ ▲         ├────▶ failed     404, a refusal for good, or attempts used up
     │ │         ├────▶ unknown    attempts used up and the pod cannot be read; the ledger reads it later
     │ └─ later ◀┘                 429, 5xx, no answer; after an unclear one the pod is read before the next POST
     └────────────────▶ withdrawn  not sent: its pod or its node is gone

Binds of one gang are sent one after another in the order they were decided. One that fails does not stop the others.
The next cycle completes the gang or plans it anew.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from volcano_py.effects.binding import binding_body
from volcano_py.effects.lookup import read_place, why_not_there
from volcano_py.effects.outcomes import BindOutcomes, GangOutcome
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PODS
from volcano_py.kube.retry_queue import RetryQueue
from volcano_py.metrics.effects import BindMetrics
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.concurrency_limit import DEFAULT_HIGHEST, DEFAULT_START, AdaptiveLimit

log = structlog.get_logger()

_PUSH_BACK = (
    errors.TooManyRequests,
    errors.ServerError,
    errors.Timeout,
    errors.ConnectionFailed,
    errors.UnexpectedAnswer,
)
"""Errors after which a retry may succeed; every other error is final."""


@dataclass(frozen=True, slots=True)
class BinderOptions:
    """How many binds are sent at once, and how often each is tried."""

    start: int = DEFAULT_START
    highest: int = DEFAULT_HIGHEST
    timeout_s: float = 10.0
    attempts: int = 8  # with the delays below about half a minute
    retry_first_s: float = 0.2
    retry_cap_s: float = 10.0


class _Gang:
    __slots__ = ("binds", "failed", "job", "left")

    def __init__(self, job: JobKey) -> None:
        self.job = job
        self.binds = 0
        self.left = 0
        self.failed: list[tuple[Bind, str]] = []


class _Order:
    """One bind that has not ended."""

    __slots__ = ("bind", "gang", "postponed", "unclear")

    def __init__(self, bind: Bind, gang: _Gang) -> None:
        self.bind = bind
        self.gang = gang
        self.postponed = False  # an attempt has failed
        self.unclear = False  # a request went out, and it is not known whether it took effect


class Binder:
    """Carries out binds; start it under a supervisor, then submit."""

    def __init__(
        self,
        client: ApiClient,
        outcomes: BindOutcomes,
        metrics: BindMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        options: BinderOptions | None = None,
        objection: Callable[[Bind], str] = lambda _: "",
    ) -> None:
        """Take the receiver of the results; ``objection`` returns why a bind must not be sent now, "" if it may."""
        self._client = client
        self._objection = objection
        self._outcomes = outcomes
        self._metrics = metrics
        self._clock = clock
        self._options = options or BinderOptions()
        self._limit = AdaptiveLimit(self._options.start, 1, self._options.highest)
        self._queue: deque[_Order] = deque()
        self._later: dict[str, _Order] = {}  # by uid: what waits for its next attempt
        self._retries: RetryQueue[str] = RetryQueue(
            attempts=self._options.attempts,
            clock=clock,
            rng=rng,
            first_retry_s=self._options.retry_first_s,
            retry_cap_s=self._options.retry_cap_s,
        )
        self._in_flight = 0
        self._open: set[str] = set()  # uids of pods whose binds have not ended
        self._idle: list[asyncio.Future[_Order]] = []  # workers without work
        self._quiet = asyncio.Event()
        self._quiet.set()
        metrics.watch(lambda: self.queued, lambda: self._in_flight, lambda: self._limit.current)

    @property
    def queued(self) -> int:
        """How many binds wait, for a connection or for their next attempt."""
        return len(self._queue) + len(self._later)

    @property
    def in_flight(self) -> int:
        """How many binds are sent and not answered."""
        return self._in_flight

    @property
    def limit(self) -> int:
        """How many binds may be sent and not answered at present."""
        return self._limit.current

    @property
    def busy(self) -> bool:
        """Whether any bind has not ended."""
        return not self._quiet.is_set()

    def holds(self, uid: str) -> bool:
        """Say whether a bind of this pod has still to be sent, answered or tried again."""
        return uid in self._open

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers."""
        for number in range(self._options.highest):
            supervisor.start(f"bind {number}", self._work())
        supervisor.start("bind retries", self._release_retries())

    def submit(self, binds: Sequence[Bind]) -> None:
        """Take binds that were decided together; the caller bounds how many are under way."""
        gangs: dict[JobKey, _Gang] = {}
        for bind in binds:
            gang = gangs.get(bind.job)
            if gang is None:
                gang = gangs[bind.job] = _Gang(bind.job)
            gang.binds += 1
            gang.left += 1
            self._open.add(bind.task.uid)
            self._queue.append(_Order(bind, gang))
        if binds:
            self._quiet.clear()
            self._hand_out()

    async def drained(self, timeout_s: float) -> bool:
        """Wait until every bind has ended; return whether all ended in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    # Workers

    def _hand_out(self) -> None:
        """Give binds to idle workers, as many as may be in flight."""
        while self._queue and self._idle and self._in_flight < self._limit.current:
            worker = self._idle.pop()
            if not worker.done():
                self._in_flight += 1
                worker.set_result(self._queue.popleft())

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            work: asyncio.Future[_Order] = loop.create_future()
            self._idle.append(work)
            self._hand_out()
            order: _Order | None = await work
            while order is not None:
                try:
                    await self._carry_out(order)
                finally:
                    self._in_flight -= 1
                order = None
                if self._queue and self._in_flight < self._limit.current:
                    self._in_flight += 1
                    order = self._queue.popleft()
                    self._hand_out()  # the limit may have grown
                elif not (self._queue or self._later or self._in_flight):
                    self._quiet.set()

    async def _release_retries(self) -> None:
        while True:
            uid = await self._retries.next()  # it is released when it has been carried out
            # It goes to the front: it has waited longest, and its gang waits for it.
            self._queue.appendleft(self._later.pop(uid))
            self._hand_out()

    # One bind

    async def _carry_out(self, order: _Order) -> None:
        if order.unclear and not await self._may_send_again(order):
            return
        bind = order.bind
        if why := self._objection(bind):  # the cluster may have changed while it waited
            self._ended(order, "")  # it has not failed: no request was sent
            self._outcomes.bind_withdrawn(bind, why)
            return
        path = PODS.item(bind.task.name, bind.task.namespace, "binding")
        self._outcomes.sending(bind)
        sent_at = self._clock.monotonic()
        try:
            answer = await self._client.post_bytes(path, binding_body(bind), timeout_s=self._options.timeout_s)
            if not answer.startswith(b"{"):  # somebody between us and the API server has answered
                raise errors.UnexpectedAnswer("create", path, "the answer is not JSON", maybe_applied=True)
        except _PUSH_BACK as error:
            self._limit.pushed_back(sent_at, self._clock.monotonic())
            order.unclear = error.maybe_applied
            self._postpone(order, error)
        except errors.ApiError as error:
            await self._refused(order, error)
        else:
            now = self._clock.monotonic()
            self._limit.answered(sent_at, now, bool(self._queue))
            self._metrics.bound(now - sent_at)
            self._bound(order)

    async def _may_send_again(self, order: _Order) -> bool:
        """Read the pod after an unclear outcome: it may be bound, free or gone; return whether it is free."""
        try:
            place = await read_place(self._client, order.bind.task, self._options.timeout_s)
        except errors.ApiError as error:
            self._postpone(order, error)
            return False
        order.unclear = False
        why = why_not_there(order.bind.task, order.bind.node, place)
        if not why:
            self._metrics.adopted()
            self._bound(order)
            return False
        free = place is not None and place.uid == order.bind.task.uid and not place.node and not place.terminating
        if not free:
            self._failed(order, why)
        return free

    async def _refused(self, order: _Order, error: errors.ApiError) -> None:
        """Report a final refusal, unless it is a 409 that an earlier successful request of ours has caused."""
        if isinstance(error, errors.Conflict):
            order.unclear = True
            if not await self._may_send_again(order):
                return
        self._failed(order, error.server_message)

    def _postpone(self, order: _Order, error: errors.ApiError) -> None:
        uid = order.bind.task.uid
        order.postponed = True
        delay_s = self._retries.failed(uid, error.retry_after_s)
        self._retries.release(uid)
        if delay_s is None:
            self._given_up(order, error)
            return
        self._later[uid] = order
        self._metrics.retried(type(error).__name__)
        log.debug("bind postponed", task=str(order.bind.task), node=order.bind.node, delay_s=delay_s, error=str(error))

    def _given_up(self, order: _Order, error: errors.ApiError) -> None:
        if not order.unclear:
            self._failed(order, f"no success after {self._options.attempts} attempts: {error}")
            return
        self._metrics.unknown()
        self._ended(order, "its outcome is unknown")
        self._outcomes.bind_unknown(order.bind)

    def _bound(self, order: _Order) -> None:
        self._ended(order, "")
        self._outcomes.bound(order.bind)

    def _failed(self, order: _Order, why: str) -> None:
        self._metrics.failed()
        self._ended(order, why)
        self._outcomes.bind_failed(order.bind, why)

    def _ended(self, order: _Order, why: str) -> None:
        self._open.discard(order.bind.task.uid)
        if order.postponed:
            self._retries.succeeded(order.bind.task.uid)  # another bind of this pod begins anew
            self._retries.release(order.bind.task.uid)
        gang = order.gang
        gang.left -= 1
        if why:
            gang.failed.append((order.bind, why))
        if gang.left == 0 and gang.failed:
            if len(gang.failed) < gang.binds:
                self._metrics.gang_in_part()
            self._outcomes.gang_failed(GangOutcome(gang.job, gang.binds, tuple(gang.failed)))
