"""Runs the cycle, a plain function, in a thread of its own, and keeps its memory between two calls."""

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import CycleReport
from volcano_py.model.decisions import Emit
from volcano_py.runtime.clock import Clock
from volcano_py.scheduler import Policy, run_cycle
from volcano_py.snapshot.columns import Snapshot

Cycle = Callable[[Snapshot, Policy, CycleClock, int, Memory, Emit], tuple[Memory, CycleReport]]


class CycleRunner:
    """Runs cycles one after another in one thread, so that watches and binds go on meanwhile."""

    def __init__(
        self, policy: Policy, *, seed: int, clock: Clock, rng: random.Random, cycle: Cycle = run_cycle
    ) -> None:
        self.policy = policy
        """What the next cycle runs; a cycle that is under way keeps the policy that it began with."""
        self._seed = seed
        self._clock = clock
        self._cycle = cycle
        # Session ids stay unique over restarts. Objects that are there when the process starts may still be arriving.
        self._memory = Memory(lineage=f"{rng.getrandbits(32):08x}", seen=0)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cycle")

    @property
    def memory(self) -> Memory:
        """What the next cycle will remember."""
        return self._memory

    async def decide(self, snapshot: Snapshot, emit: Emit) -> CycleReport:
        """Run one cycle over a private snapshot; ``emit`` is called in the cycle's thread.

        A cycle has no time limit: it is pure arithmetic, and nothing can stop it from outside.
        """
        now = self._clock.now()
        local = now.astimezone().utcoffset() or timedelta()
        clock = CycleClock(now.timestamp(), self._clock.monotonic, local.total_seconds())
        loop = asyncio.get_running_loop()
        self._memory, report = await loop.run_in_executor(
            self._thread, self._cycle, snapshot, self.policy, clock, self._seed, self._memory, emit
        )
        return report

    def close(self) -> None:
        """Start no cycle any more; the thread ends with the cycle that it is in."""
        self._thread.shutdown(wait=False, cancel_futures=True)
