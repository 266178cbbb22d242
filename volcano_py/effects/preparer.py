"""Prepares binds: carries out their steps, waits until they have taken effect, and undoes them if anything fails.

    steps ──▶ waiting ──▶ prepared ──▶ sent       when every bind of its gang is prepared; the binder does the rest
      │          │           │
      └──────────┴───────────┴──▶ undoing ──▶ failed or withdrawn

The binds of a gang that were decided together are sent together. If one of them cannot be prepared, none is sent. Their
steps are undone in reverse order, those of unknown outcome too: an undo reads before it writes. Then the gang is
reported, as a whole and not earlier, so that no cycle plans a part of it. The bind that could not be prepared has
failed, so that its pod backs off; the others are withdrawn.

A claim that is bound stays bound: nothing of it is promised any more, and the next cycle goes by its volume. Two binds
may have the same step, because their pods share a claim. It is undone with the last of them.

What cannot be undone is reported and left to the recovery (`effects.orphans`), which finds it by reading.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from volcano_py.effects.backpressure import BindBackpressure
from volcano_py.effects.outcomes import BindOutcomes, GangOutcome
from volcano_py.effects.preparations import Failure, Gang, Order
from volcano_py.effects.promises import Progress, claim_of, not_achieved, progress, still_missing
from volcano_py.effects.promising import NotPromised, Promising
from volcano_py.kube import errors
from volcano_py.kube.workqueue import WorkQueue, WorkQueueOptions
from volcano_py.metrics.preparing import PrepareMetrics
from volcano_py.model.decisions import Bind, PrepareStep
from volcano_py.model.objects import JobKey
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()

_AGAIN: Final = (
    errors.TooManyRequests,
    errors.ServerError,
    errors.Timeout,
    errors.ConnectionFailed,
    errors.UnexpectedAnswer,
    errors.Conflict,
)
"""Errors after which a step may succeed; every other error is final."""
_LOOK_EVERY_S: Final = 1.0
_ENDING: Final = "the scheduler ends"


@dataclass(frozen=True, slots=True)
class PreparerOptions:
    """How many steps are under way at once, how often each is tried, and how long claims may take to be bound."""

    workers: int = 16
    capacity: int = 10_000
    timeout_s: float = 10.0
    attempts: int = 8  # with the delays below about half a minute
    retry_first_s: float = 0.2
    retry_cap_s: float = 10.0
    wait_s: float = 600.0
    """How long the claims of a pod may take to be bound after its steps are carried out, unless a policy says so."""
    announce_s: float = 10.0
    """After how long the pod's users hear what it waits for."""
    recover_every_s: float = 3.0
    """How often promises that belong to no bind are looked for; one is undone when it is seen twice."""


class Preparer:
    """Carries out the steps of binds and passes the binds on; start it under a supervisor, then submit."""

    def __init__(
        self,
        promising: Promising,
        send: Callable[[Sequence[Bind]], None],
        outcomes: BindOutcomes,
        backpressure: BindBackpressure,
        metrics: PrepareMetrics,
        *,
        clock: Clock,
        rng: random.Random,
        objection: Callable[[Bind], str] = lambda _: "",
        options: PreparerOptions | None = None,
    ) -> None:
        """``send`` takes prepared binds; ``objection`` returns why a bind must not be sent now, "" if it may."""
        self._promising = promising
        self._send = send
        self._outcomes = outcomes
        self._backpressure = backpressure
        self._metrics = metrics
        self._clock = clock
        self._outage = outage = promising.outage
        self._objection = objection
        self._options = options = options or PreparerOptions()
        self.wait_s = options.wait_s
        """How long claims may take to be bound; a new configuration may change it."""
        self._orders: dict[str, Order] = {}  # by uid
        self._holders: Counter[PrepareStep] = Counter()  # how many orders have this step
        self._written: set[PrepareStep] = set()  # a request of ours went out, and the promise was not taken back
        self._bound: set[PrepareStep] = set()  # its claim has been bound since
        self._undoing: Counter[str] = Counter()  # claims
        self._waiting: dict[str, dict[Order, None]] = {}  # by the name of a claim or volume
        self._news: set[str] = set()  # names of which the watch shows news
        self._quiet = asyncio.Event()
        self._quiet.set()
        pace = _pace(options)
        self._steps: WorkQueue[str] = WorkQueue(
            "prepare",
            self._carry_out,
            pace,
            clock=clock,
            rng=rng,
            on_given_up=self._given_up,
            observe=lambda _, what: metrics.step("all", what) if what == "retried" else None,
            outage=outage,
        )
        self._undos: WorkQueue[str | PrepareStep] = WorkQueue(
            "undo", self._undo, pace, clock=clock, rng=rng, on_given_up=self._not_undone, outage=outage
        )
        metrics.watch(lambda: len(self._orders), lambda: self._steps.backlog, lambda: self._undos.backlog)

    @property
    def under_way(self) -> int:
        """How many binds are being prepared or undone."""
        return len(self._orders)

    @property
    def busy(self) -> bool:
        """Whether any preparation, or any undo, has not ended."""
        return bool(self._orders) or bool(self._undos.backlog)

    def holds(self, uid: str) -> bool:
        """Say whether a bind of this pod is being prepared or undone."""
        return uid in self._orders

    def needs(self, step: PrepareStep) -> bool:
        """Say whether a bind that is being prepared or undone has this step."""
        return step in self._holders

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers."""
        self._steps.start(supervisor)
        self._undos.start(supervisor)
        supervisor.start("preparations", self._look_now_and_then())

    def submit(self, binds: Sequence[Bind]) -> None:
        """Take binds that were decided together; gangs without steps are passed on at once."""
        if not any([bind.prepare for bind in binds]):  # noqa: C419 - a list is twice as fast, and this is the usual case
            self._send(binds)
            return
        gangs: dict[JobKey, list[Bind]] = {}
        for bind in binds:
            gangs.setdefault(bind.job, []).append(bind)
        ready = [bind for gang in gangs.values() if not any(bind.prepare for bind in gang) for bind in gang]
        if ready:
            self._send(ready)
        for job, gang in gangs.items():
            if any(bind.prepare for bind in gang):
                self._begin(Gang(job, tuple(gang), self._clock.monotonic()))

    def changed(self, name: str) -> None:
        """Look soon at the binds that wait for a claim (namespace/name) or volume (name) that the watch shows anew.

        Not at once, because whoever tells of a change is in the middle of it.
        """
        if name in self._waiting:
            if not self._news:
                asyncio.get_running_loop().call_soon(self._look_at_news)
            self._news.add(name)

    def _look_at_news(self) -> None:
        news, self._news = self._news, set()
        for order in {order: None for name in sorted(news) for order in self._waiting.get(name, {})}:
            self._look(order)

    def undo_orphans(self, steps: Iterable[PrepareStep]) -> None:
        """Take back promises that belong to no bind, except those that a bind has begun to need meanwhile."""
        for step in steps:
            if not self._holders[step]:
                self._undos.add(step)

    async def undone(self, timeout_s: float) -> bool:
        """Wait until everything that was to be undone is; return whether all was in time."""
        return await self._undos.drained(timeout_s)

    async def drained(self, timeout_s: float) -> bool:
        """Let preparations complete in half of the time, undo the others; return whether all ended in time."""
        if await self._quiet_within(timeout_s / 2):
            return await self._undos.drained(timeout_s)
        for order in tuple(self._orders.values()):
            self._fail(order, _ENDING, withdrawn=True)
        return await self._quiet_within(timeout_s / 2) and await self._undos.drained(0.0)

    async def _quiet_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._quiet.wait()
        except TimeoutError:
            return False
        return True

    # Steps

    def _begin(self, gang: Gang) -> None:
        gang.aside = self._backpressure.set_aside(len(gang.binds))
        self._quiet.clear()
        for order in gang.orders:
            self._orders[order.bind.task.uid] = order
            self._holders.update(order.bind.prepare)
        for order in gang.orders:
            if order.bind.prepare and not self._steps.add(order.bind.task.uid):
                self._fail(order, "too many binds are being prepared")
                break

    async def _carry_out(self, uid: str) -> None:
        order = self._orders.get(uid)
        if order is None or order.gang.failure is not None or order.waits or order.prepared:
            return
        order.in_turn = True
        try:
            await self._promise(order)
        except _AGAIN:
            order.trusts_watch = False
            raise
        except errors.ApiError as error:
            self._fail(order, f"{_what(order)}: {error.server_message}", result="failed")
        finally:
            self._end_turn(order)

    def _end_turn(self, order: Order) -> None:
        order.in_turn = False
        if order.gang.failure is not None:
            self._begin_undo(order)

    async def _promise(self, order: Order) -> None:
        steps = order.bind.prepare
        while len(order.versions) < len(steps):
            if order.gang.failure is not None:
                return
            step = steps[len(order.versions)]
            if self._undoing[claim_of(step)]:
                raise errors.Conflict("patch", claim_of(step), "an earlier promise to the claim is being undone")
            answer = await self._promising.promise(step, lambda: self._written.add(step), shown=order.trusts_watch)  # noqa: B023
            if isinstance(answer, NotPromised):
                self._fail(order, answer.why, result="refused")
                return
            self._metrics.step(_kind(step), "promised")
            order.versions.append(answer.version)
        if order.gang.failure is None:
            self._await(order)

    def _given_up(self, uid: str, error: errors.ApiError) -> None:
        order = self._orders.get(uid)
        if order is not None:
            why = f"{_what(order)}: no success after {self._options.attempts} attempts: {error}"
            self._fail(order, why, result="failed")

    # Waiting

    def _await(self, order: Order) -> None:
        order.waits = True
        order.waits_since = self._clock.monotonic()
        for name in order.names():
            self._waiting.setdefault(name, {})[order] = None
        self._look(order)

    def _look(self, order: Order) -> None:
        """See whether the steps of a bind have taken effect, or cannot any more."""
        if not order.waits:
            return
        storage, node = self._promising.storage, order.bind.node
        for step, version in zip(order.bind.prepare, order.versions, strict=True):
            how = progress(step, version, node, storage)
            if isinstance(how, str):
                self._fail(order, how, result="refused", step=step)
                return
            if how is Progress.WAITING:
                order.follow(storage.claim(step.namespace, step.claim), self._waiting)
                self._be_patient(order, step)
                return
            self._bound.add(step)
        for step in order.bind.prepare:
            self._metrics.step(_kind(step), "done")
        self._end_waiting(order)
        order.prepared = True
        order.gang.unprepared -= 1
        if not order.gang.unprepared:
            self._hand_over(order.gang)

    def _be_patient(self, order: Order, step: PrepareStep) -> None:
        """Say after a while what a bind waits for; end it after a long while."""
        waited_s = self._clock.monotonic() - order.waits_since
        if waited_s >= self.wait_s:
            self._fail(order, not_achieved(step, self.wait_s), result="failed", step=step)
        elif waited_s >= self._options.announce_s and not order.announced:
            order.announced = True
            self._outcomes.preparing(order.bind, still_missing(step))

    def _end_waiting(self, order: Order) -> None:
        order.waits = False
        for name in order.names():
            orders = self._waiting.get(name)
            if orders is not None:
                orders.pop(order, None)
                if not orders:
                    del self._waiting[name]

    async def _look_now_and_then(self) -> None:
        """Find what no change of a claim or volume shows: time that is up, pods and nodes that are gone."""
        while True:
            await self._clock.sleep(_LOOK_EVERY_S)
            for order in tuple(self._orders.values()):
                if order.gang.failure is None and not self._object(order):
                    self._look(order)

    def _object(self, order: Order) -> bool:
        """Withdraw a gang if one of its binds must not be sent any more; say whether it was."""
        why = self._objection(order.bind)
        if why:
            self._fail(order, why, withdrawn=True)
        return bool(why)

    # The end of a gang

    def _hand_over(self, gang: Gang) -> None:
        """Pass a gang on to the binder; its claims are bound, so nothing is left to undo."""
        if any(self._object(order) for order in gang.orders):
            return
        for order in gang.orders:
            self._release(order, order.bind.prepare)
        self._close(gang, "prepared")
        self._send(gang.binds)

    def _fail(
        self,
        order: Order,
        why: str,
        *,
        withdrawn: bool = False,
        result: str = "",
        step: PrepareStep | None = None,
    ) -> None:
        """Undo a gang because of one bind, and then report it."""
        gang = order.gang
        if gang.failure is not None:
            return
        gang.failure = Failure(order.bind, why, withdrawn)
        if result:
            self._metrics.step(_kind(step or order.current), result)
        log.debug("bind not prepared", task=str(order.bind.task), node=order.bind.node, reason=why)
        for one in gang.orders:
            self._end_waiting(one)
            if not one.in_turn:
                self._begin_undo(one)

    def _begin_undo(self, order: Order) -> None:
        uid = order.bind.task.uid
        order.to_undo = list(order.bind.prepare)
        if not self._written.intersection(order.to_undo):
            self._end_undo(order)
        elif not self._undos.add(uid):
            self._not_undone(uid, errors.TooManyRequests("undo", uid, "too many binds are being undone"))

    async def _undo(self, key: str | PrepareStep) -> None:
        if not isinstance(key, str):
            await self._undo_orphan(key)
            return
        order = self._orders[key]
        while order.to_undo:
            step = order.to_undo[-1]
            if self._holders[step] == 1 and step in self._written:
                # A volume whose claim was bound once may contain data, even if the claim is gone.
                undone = await self._take_back(step, only_fresh=step in self._bound)
                self._written.discard(step)
                self._metrics.undone("undone" if undone else "kept")
            order.to_undo.pop()
            self._release(order, (step,))
        self._end_undo(order)

    async def _undo_orphan(self, step: PrepareStep) -> None:
        if not self._holders[step] and await self._take_back(step, only_fresh=True):
            self._metrics.recovered()
            log.info("promise without a bind undone", step=_kind(step), claim=claim_of(step))

    async def _take_back(self, step: PrepareStep, *, only_fresh: bool = False) -> bool:
        claim = claim_of(step)
        self._undoing[claim] += 1
        try:
            return await self._promising.take_back(step, only_fresh=only_fresh)
        except errors.ApiError as error:
            if isinstance(error, _AGAIN):
                raise
            raise errors.Conflict("undo", claim, error.server_message) from error  # a right may come back: try again
        finally:
            self._undoing[claim] -= 1
            if not self._undoing[claim]:
                del self._undoing[claim]

    def _not_undone(self, key: str | PrepareStep, error: errors.ApiError) -> None:
        """Report what could not be undone; the recovery finds it again."""
        order = self._orders.get(key) if isinstance(key, str) else None
        left = order.to_undo if order is not None else [key] if not isinstance(key, str) else []
        for step in left:
            self._metrics.undone("given_up")
            event = "promise not undone; it is found again by reading"
            if not self._outage.withholds(event, error):
                log.warning(event, step=_kind(step), claim=claim_of(step), error=str(error))
        if order is not None:
            self._end_undo(order)

    def _end_undo(self, order: Order) -> None:
        self._release(order, order.to_undo)
        order.to_undo = []
        gang = order.gang
        gang.not_undone -= 1
        if not gang.not_undone:
            self._report(gang)

    def _report(self, gang: Gang) -> None:
        failure = gang.failure
        if failure is None:
            raise RuntimeError(f"gang {gang.job} was undone without a reason")
        self._close(gang, "withdrawn" if failure.withdrawn else "failed")
        for bind in gang.binds:
            if bind is failure.bind and not failure.withdrawn:
                self._outcomes.bind_failed(bind, failure.why)
            else:
                self._outcomes.bind_withdrawn(bind, failure.why)
        if failure.why != _ENDING:
            unsent = len(gang.binds)
            self._outcomes.gang_failed(GangOutcome(gang.job, unsent, ((failure.bind, failure.why),), unsent=unsent))

    def _release(self, order: Order, steps: Iterable[PrepareStep]) -> None:
        """Note that an order does not need steps any more."""
        for step in steps:
            self._holders[step] -= 1
            if not self._holders[step]:
                del self._holders[step]
                self._written.discard(step)
                self._bound.discard(step)

    def _close(self, gang: Gang, result: str) -> None:
        if gang.aside:
            self._backpressure.take_up(len(gang.binds))
        seconds = self._clock.monotonic() - gang.begun_at
        for bind in gang.binds:
            del self._orders[bind.task.uid]
            self._metrics.ended(result, seconds)
            if result == "prepared":
                self._outcomes.prepared(bind, seconds)
        if not self._orders:
            self._quiet.set()


def _pace(options: PreparerOptions) -> WorkQueueOptions:
    return WorkQueueOptions(
        workers=options.workers,
        capacity=options.capacity,
        attempts=options.attempts,
        first_retry_s=options.retry_first_s,
        retry_cap_s=options.retry_cap_s,
        turn_timeout_s=6 * options.timeout_s,
    )


def _kind(step: PrepareStep | None) -> str:
    return "none" if step is None else type(step).__name__


def _what(order: Order) -> str:
    return "preparing it" if order.current is None else f"preparing claim {claim_of(order.current)}"
