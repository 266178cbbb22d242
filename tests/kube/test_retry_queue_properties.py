"""Turns of a retry queue, whatever comes: none during a back-off, none lost."""

import asyncio
import random
from dataclasses import dataclass, field
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kube.working import advance
from volcano_py.kube import retry_queue
from volcano_py.kube.retry_queue import RetryQueue
from volcano_py.runtime.clock import FakeClock
from volcano_py.runtime.supervisor import Supervisor

FIRST_S, CAP_S, LONGEST_S = 0.2, 10.0, 60.0


@dataclass
class World:
    """Workers of a queue, what they may not do, and what they did."""

    queue: RetryQueue[str]
    clock: FakeClock
    outcomes: list[tuple[str, float, float]]
    """How the next turns end: what came of it, how long it took, what the server asked for (0: nothing)."""
    working: set[str] = field(default_factory=set)
    failures: dict[str, int] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    if_excused: dict[str, float] = field(default_factory=dict)
    """For keys in ``refused``: the earliest time of the next turn after an excuse."""
    refused: set[str] = field(default_factory=set)
    """Keys with an excusable failure since their last success."""
    excused: set[str] = field(default_factory=set)
    """Keys that had their turn when an excuse came."""

    async def work(self) -> None:
        while True:
            key = await self.queue.next(lambda _: 0.0)
            now = self.clock.monotonic()
            assert key not in self.working
            assert now >= self.not_before.get(key, 0.0), f"{key} has its turn during its back-off"
            self.working.add(key)
            self.if_excused.pop(key, None)
            self.excused.discard(key)
            outcome, seconds, retry_after_s = self.outcomes.pop() if self.outcomes else ("succeeded", 0.0, 0.0)
            await self.clock.sleep(seconds)
            self.working.discard(key)
            if outcome == "succeeded":
                self.failures.pop(key, None)
                self.not_before.pop(key, None)
                self.refused.discard(key)
                self.queue.succeeded(key)
            else:
                if excusable := outcome == "refused":
                    self.refused.add(key)
                self._failed(key, retry_after_s)
                self.queue.failed(key, retry_after_s or None, again=outcome != "failed for good", excusable=excusable)
            self.queue.release(key)

    def excuse(self) -> None:
        """Excuse all keys, and plan those that the queue names."""
        for key in self.queue.excuse():
            self.queue.plan(key)
        self.not_before |= self.if_excused
        self.failures |= dict.fromkeys(self.if_excused, 0)
        self.if_excused.clear()
        self.excused |= self.working

    def _failed(self, key: str, retry_after_s: float) -> None:
        """Note the shortest back-off that the rule allows."""
        now = self.clock.monotonic()
        if now >= self.not_before.get(key, 0.0) + LONGEST_S:
            self.failures.pop(key, None)  # it may have been forgotten
        before = self.failures.get(key, 0)
        self.failures[key] = before + 1
        shortest_s = 0.5 * min(FIRST_S * 2**before, CAP_S)
        asked_s = min(retry_after_s, LONGEST_S)
        self.not_before[key] = now + max(shortest_s, asked_s)
        if key in self.refused:
            self.if_excused[key] = now + max(min(shortest_s, FIRST_S), asked_s)
            if key in self.excused:
                self.not_before[key] = self.if_excused.pop(key)
                self.failures[key] = 0

    def check(self) -> None:
        assert len(self.queue.due) <= 2 * len(self.queue)


KEYS = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.just("plan"), KEYS, st.sampled_from([0.0, 0.0, -2.0, 0.25, 1.0, 30.0])),
    st.tuples(st.just("discard"), KEYS, st.just(0.0)),
    st.tuples(st.just("wait"), KEYS, st.sampled_from([0.0, 0.1, 1.0, 1.0, 7.0, 70.0])),
    st.tuples(st.just("hurry"), KEYS, st.just(0.0)),
    st.tuples(st.just("excuse"), KEYS, st.just(0.0)),
)
OUTCOMES = st.tuples(
    st.sampled_from(["failed", "failed", "refused", "refused", "failed for good", "succeeded"]),
    st.sampled_from([0.0, 0.0, 0.3, 3.0]),
    st.sampled_from([0.0, 0.0, 1.0, 30.0, 3600.0]),
)


@settings(max_examples=100)
@given(
    st.lists(STEPS, min_size=20, max_size=60),
    st.lists(OUTCOMES, min_size=10, max_size=30),
    st.integers(1, 4),
    st.integers(0, 100),
)
def test_no_key_gets_a_turn_during_its_back_off_and_no_turn_is_lost(
    steps: list[tuple[str, str, float]], outcomes: list[tuple[str, float, float]], attempts: int, seed: int
) -> None:
    async def run() -> None:
        clock = FakeClock()
        queue: RetryQueue[str] = RetryQueue(attempts=attempts, clock=clock, rng=random.Random(seed))
        world = World(queue, clock, outcomes[::-1])
        async with Supervisor() as supervisor:
            for number in range(2):
                supervisor.start(f"worker {number}", world.work())
            for step, key, number in steps:
                if step == "plan":
                    queue.plan(key, number)
                elif step == "discard":
                    queue.discard(key)
                elif step == "hurry":
                    queue.hurry()
                elif step == "excuse":
                    world.excuse()
                else:
                    await advance(clock, number)
                world.check()
            world.outcomes.clear()
            await advance(clock, 2 * LONGEST_S)
            assert queue.backlog == 0

    with mock.patch.object(retry_queue, "_VOID_ITEMS", 0):
        asyncio.run(run())
