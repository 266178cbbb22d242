"""A queue of object names for controllers: each name once, worked on by one worker at a time, tried again after errors.

    add ──▶ waiting ──▶ worker: reconcile ──▶ done
              ▲            │ API error: again after a pause that grows, up to a number of attempts
              └────────────┴ added meanwhile: once more, at once or after that pause

A name says only *that* something may have to be done; what, the worker finds out when its turn comes, so ten changes of
an object cost one look at it. A name that failed has no turn before its pause is over, whoever adds it meanwhile: that
is the rule of :mod:`volcano_py.kube.retry_queue`, whose cap is what a change waits for at most. The queue is bounded.
What did not fit, and what was given up, is asked for again from ``refill``: all names that still need work.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from volcano_py.kube import errors
from volcano_py.kube.backoff import CAP_S, FIRST_S
from volcano_py.kube.retry_queue import RetryQueue
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()

K = TypeVar("K", bound=Hashable)

Observer = Callable[[str, str], None]
"""Told the queue's name and what a turn came to: done, retried, given_up; refused for a name that did not fit."""


@dataclass(frozen=True, slots=True)
class WorkQueueOptions:
    """How a queue paces itself."""

    workers: int = 4
    capacity: int = 10_000
    attempts: int = 15
    """Turns in a row that may fail before a name is left to the next change or refill."""
    first_retry_s: float = FIRST_S
    retry_cap_s: float = CAP_S
    refill_every_s: float = 300.0
    """How often all names that still need work are asked for."""
    turn_timeout_s: float = 300.0
    """The longest that one turn may take."""


class WorkQueue(Generic[K]):
    """Gives names to workers; ``reconcile`` brings about what one of them needs and raises ApiError if it could not."""

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[None]],
        options: WorkQueueOptions | None = None,
        *,
        clock: Clock,
        rng: random.Random,
        refill: Callable[[], Iterable[K]] = tuple,
        on_given_up: Callable[[K, errors.ApiError], None] = lambda _, __: None,
        observe: Observer = lambda _, __: None,
    ) -> None:
        self.name = name
        self._reconcile = reconcile
        self._options = options or WorkQueueOptions()
        self._clock = clock
        self._refill = refill
        self._on_given_up = on_given_up
        self._observe = observe
        self._queue: RetryQueue[K] = RetryQueue(
            attempts=self._options.attempts,
            clock=clock,
            rng=rng,
            first_retry_s=self._options.first_retry_s,
            retry_cap_s=self._options.retry_cap_s,
        )
        self._overflowed = False

    @property
    def backlog(self) -> int:
        """How many names wait, for a worker or for their next attempt, or are being worked on."""
        return self._queue.backlog

    def start(self, supervisor: Supervisor) -> None:
        """Start the workers."""
        for number in range(self._options.workers):
            supervisor.start(f"{self.name} worker {number}", self._work())
        supervisor.start(f"{self.name} refill", self._refill_now_and_then())

    def add(self, key: K) -> bool:
        """Ask for a turn, as soon as the pause after a failure of the name is over; False if the queue is full.

        What did not fit is asked for from ``refill`` as soon as there is room.
        """
        return self._plan(key, 0.0)

    def add_later(self, key: K, seconds: float) -> None:
        """Ask for a turn after a while, so that what changes meanwhile costs no turn of its own.

        A name that waits already has its turn at the earlier of the two times.
        """
        self._plan(key, seconds)

    async def drained(self, timeout_s: float) -> bool:
        """Wait until nothing is left to do, or as long as that may still come in time; say whether it came."""
        return await self._queue.drained(timeout_s)

    def _plan(self, key: K, delay_s: float) -> bool:
        queue = self._queue
        if key not in queue and not queue.is_working(key) and len(queue) >= self._options.capacity:
            self._overflowed = True
            self._observe(self.name, "refused")
            return False
        queue.plan(key, delay_s)
        return True

    async def _work(self) -> None:
        while True:
            key = await self._queue.next()
            try:
                async with asyncio.timeout(self._options.turn_timeout_s):
                    await self._reconcile(key)
            except errors.ApiError as error:
                self._failed(key, error)
            except TimeoutError:
                problem = f"its turn took longer than {self._options.turn_timeout_s:g} s"
                self._failed(key, errors.Timeout("reconcile", str(key), problem, maybe_applied=True))
            else:
                self._queue.succeeded(key)
                self._observe(self.name, "done")
            finally:
                self._queue.release(key)
            self._make_up_for_overflow()

    def _failed(self, key: K, error: errors.ApiError) -> None:
        pause_s = self._queue.failed(key, error.retry_after_s)
        if pause_s is None:
            self._observe(self.name, "given_up")
            log.warning(
                "given up after repeated errors; tried again when the object changes, or later",
                queue=self.name,
                object=str(key),
                attempts=self._options.attempts,
                again_within_s=self._options.refill_every_s,
                error=str(error),
            )
            self._on_given_up(key, error)
            return
        self._observe(self.name, "retried")
        level = log.debug if isinstance(error, errors.Conflict) else log.info
        level("trying again", queue=self.name, object=str(key), error=str(error), pause_s=round(pause_s, 2))

    def _make_up_for_overflow(self) -> None:
        """Ask for what did not fit, once half of the queue is free."""
        if self._overflowed and len(self._queue) <= self._options.capacity // 2:
            self._overflowed = False
            self._add_all()

    def _add_all(self) -> None:
        for key in self._refill():
            if not self.add(key):
                break

    async def _refill_now_and_then(self) -> None:
        """Ask for forgotten names."""
        while True:
            await self._clock.sleep(self._options.refill_every_s)
            self._add_all()
