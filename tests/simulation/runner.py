"""Runs many seeds in several processes, and adds up what came of them."""

import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import active_children, get_context
from typing import Any, Final

from tests.simulation.drawing import draw_plan
from tests.simulation.logs import quiet
from tests.simulation.loop import HarnessError
from tests.simulation.plan import SIZES
from tests.simulation.world import simulate

TOO_LONG_S: Final = 60
"""CPU seconds after which a schedule counts as one that never ends: something loops without ever waiting."""
_FIRST_SEEDS: Final = 5
_AHEAD: Final = 2


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one seed."""

    seed: int
    digest: str = ""
    violations: tuple[tuple[str, str], ...] = ()
    """Names of invariants, and what is wrong."""
    struck: tuple[str, ...] = ()
    bound: int = 0
    virtual_s: float = 0.0
    broken: str = ""
    """What a part of the simulation itself has raised."""


class _TooLong(KeyboardInterrupt):
    """Passes through every `except Exception`."""


def run_seed(seed: int, size: str) -> Result:
    """Run one seed in this process."""
    plan = draw_plan(seed, SIZES[size])
    try:
        outcome = simulate(plan)
    except _TooLong:
        return Result(seed, violations=(("endless", f"more than {TOO_LONG_S} s of CPU time"),))
    except HarnessError as error:
        return Result(seed, broken="\n".join([str(error), *error.__notes__]))
    violations = tuple((violation.invariant, violation.text) for violation in outcome.violations)
    return Result(seed, outcome.digest, violations, outcome.struck, outcome.bound, outcome.virtual_s)


@dataclass(slots=True)
class Summary:
    """What came of all seeds so far."""

    size: str
    wanted: int
    done: int = 0
    seconds: float = 0.0
    virtual_s: float = 0.0
    bound: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    """In how many schedules each fault took effect."""
    violated: Counter[str] = field(default_factory=Counter)
    """In how many schedules each invariant was violated."""
    first: dict[str, list[int]] = field(default_factory=dict)
    """The first seeds that violate each invariant."""
    text: dict[str, str] = field(default_factory=dict)
    """What was wrong in the first of them."""
    broken: list[Result] = field(default_factory=list)
    failed: int = 0
    """Schedules with a violation."""

    def add(self, result: Result) -> None:
        """Count a result."""
        self.done += 1
        self.virtual_s += result.virtual_s
        self.bound += result.bound
        self.struck.update(result.struck)
        self.failed += bool(result.violations)
        for invariant in sorted({name for name, _ in result.violations}):
            self.violated[invariant] += 1
            seeds = self.first.setdefault(invariant, [])
            seeds.append(result.seed)
            seeds.sort()
            del seeds[_FIRST_SEEDS:]
            if seeds[0] == result.seed:
                self.text[invariant] = next(text for name, text in result.violations if name == invariant)
        if result.broken:
            self.broken.append(result)

    @property
    def flawless(self) -> bool:
        """Whether nothing was violated and nothing is broken."""
        return not self.failed and not self.broken

    @property
    def rate(self) -> float:
        """Seeds per second."""
        return self.done / self.seconds if self.seconds else 0.0


def run_all(seeds: range, size: str, jobs: int, told: Callable[[Summary, Result | None], None]) -> Summary:
    """Run seeds; Ctrl-C ends it with what was found so far. ``told`` hears each result, and None now and then."""
    summary = Summary(size, len(seeds))
    begun = time.monotonic()
    try:
        for result in _in_process(seeds, size) if jobs == 1 else _in_processes(seeds, size, jobs):
            summary.seconds = time.monotonic() - begun
            if result is not None:
                summary.add(result)
            told(summary, result)
    except KeyboardInterrupt:
        summary.seconds = time.monotonic() - begun
    return summary


def _in_process(seeds: Iterable[int], size: str) -> Iterator[Result]:
    quiet()
    with _Watched():
        for seed in seeds:
            yield _timed(seed, size)


def _in_processes(seeds: range, size: str, jobs: int) -> Iterator[Result | None]:
    """Yield results in the order in which they come."""
    left = iter(seeds)
    with ProcessPoolExecutor(jobs, get_context("spawn"), _begin) as pool:
        waiting: set[Future[Result]] = set()
        ended = False
        try:
            while True:
                for seed in left:
                    waiting.add(pool.submit(_timed, seed, size))
                    if len(waiting) >= jobs * _AHEAD:
                        break
                if not waiting:
                    ended = True
                    return
                ready, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in ready)
                yield None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            if not ended:  # Ctrl-C: nobody waits for the schedules that run now
                for child in active_children():
                    child.terminate()


def _begin() -> None:
    """Prepare a process of the pool: the terminal's Ctrl-C is for the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, _too_long)
    gc.disable()  # each simulation collects its own garbage
    quiet()


class _Watched:
    """Ends what loops for ever in this process."""

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGPROF, _too_long)
        gc.disable()  # each simulation collects its own garbage

    def __exit__(self, *_: object) -> None:
        gc.enable()
        gc.unfreeze()
        signal.signal(signal.SIGPROF, self._before)


def _too_long(*_: Any) -> None:
    raise _TooLong


def _timed(seed: int, size: str) -> Result:
    # Again every second: raised in a finalizer or the callback of a weak reference, the exception is ignored.
    signal.setitimer(signal.ITIMER_PROF, TOO_LONG_S, 1.0)
    try:
        return run_seed(seed, size)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def cores() -> int:
    """Return how many processes may run at once here."""
    return len(os.sched_getaffinity(0))
