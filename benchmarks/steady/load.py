"""The load: gangs that run at the start, gangs that wait, and gangs that arrive, drawn from a seed.

A node has 32 CPU and a pod asks for about 1.9, so 16 pods fill 95 % of a node and no other pod fits. Such a place for
one pod is a slot. Every pod that can run fits into every slot, so room can be counted in slots.
"""

import itertools
import random
from dataclasses import dataclass, field
from typing import Final

SLOTS_PER_NODE: Final = 16
NODE_CPU: Final = 32
SHAPES: Final = 30
QUEUES: Final = {"q0": 1, "q1": 1, "q2": 2, "q3": 4}
"""Name and weight of each queue."""
PRIORITIES: Final = {"low": 10, "middle": 100, "high": 1000}
"""Name and value of each PriorityClass."""
PRIORITY_WEIGHTS: Final = (70, 20, 10)
SIZES: Final = {1: 40, 2: 15, 4: 15, 8: 10, 16: 10, 32: 6, 64: 4}
"""How many of a hundred gangs have how many pods."""
NEVER: Final = 0.02
"""The share of gangs that can never run, unless the load says otherwise."""
MEAN_SIZE: Final = sum(size * share for size, share in SIZES.items()) / sum(SIZES.values())
_LEAST_CPU_M: Final = 1885  # 17 pods of it need 32.05 CPU; 16 of the greatest need 30.6
_TOO_MUCH_CPU_M: Final = 2 * NODE_CPU * 1000
NO_NODE_HAS: Final = {"benchmark.volcano-py/accelerator": "none"}


@dataclass(frozen=True)
class Load:
    """The size of a run."""

    nodes: int
    waiting: int
    """Gangs that wait at the start."""
    minutes: float
    """How long is measured."""
    rate: float
    """Gangs that arrive per second, on average."""
    seed: int = 1
    never: float = NEVER
    """The share of gangs that can never run. They add up."""
    balanced: bool = False
    """Whether gangs arrive when as many pods have ended, so that as many pods wait at any time.

    Otherwise they arrive at random times, and the number of pods that wait wanders: within an hour it may double.
    """

    def __post_init__(self) -> None:
        """Refuse a number that is no share: the load would be out of balance."""
        if not 0 <= self.never < 1:
            raise SystemExit(f"--never {self.never:g} is not a share of gangs: give at least 0 and less than 1")

    @property
    def slots(self) -> int:
        """How many pods fill the nodes."""
        return self.nodes * SLOTS_PER_NODE

    @property
    def seconds(self) -> float:
        """How long is measured, in seconds."""
        return self.minutes * 60

    @property
    def mean_life_s(self) -> float:
        """How long a pod runs on average, so that as many pods end as arrive while the nodes are full."""
        return self.slots / (self.rate * (1 - self.never) * MEAN_SIZE)


@dataclass(frozen=True)
class Gang:
    """A PodGroup and its equal pods."""

    number: int
    size: int
    queue: str
    priority: str
    cpu_m: int
    at_s: float = 0.0
    """When it arrives, from the start of the measurement; 0 if it is there before."""
    life_s: float = 0.0
    """How long each pod runs after it was bound; after the start of the measurement if it runs before."""
    selector: dict[str, str] = field(default_factory=dict)

    @property
    def never(self) -> bool:
        """Whether no node can ever run its pods."""
        return bool(self.selector) or self.cpu_m > NODE_CPU * 1000

    @property
    def name(self) -> str:
        """The name of its PodGroup."""
        return f"gang-{self.number}"

    def pods(self) -> list[str]:
        """Return the names of its pods."""
        return [f"{self.name}-{index}" for index in range(self.size)]


@dataclass(frozen=True)
class Plan:
    """Everything that a run creates."""

    running: tuple[Gang, ...]
    waiting: tuple[Gang, ...]
    arriving: tuple[Gang, ...]
    balanced: bool = False
    """Whether gangs arrive when as many pods have ended, in their order, instead of at their times."""

    @property
    def gangs(self) -> tuple[Gang, ...]:
        """All gangs, in the order of their numbers."""
        return (*self.running, *self.waiting, *self.arriving)


def draw(load: Load) -> Plan:
    """Draw a plan; equal loads give equal plans."""
    rng, numbers = random.Random(load.seed), itertools.count()
    running: list[Gang] = []
    free = load.slots
    while free:
        gang = _gang(rng, load, next(numbers), at_most=free)
        running.append(gang)
        free -= gang.size
    waiting = [_maybe_never(rng, load, _gang(rng, load, next(numbers))) for _ in range(load.waiting)]
    arriving: list[Gang] = []
    at_s = rng.expovariate(load.rate)
    # In a balanced run, pods that end decide when the next gang arrives: there are enough gangs for half as many again.
    until_s = load.seconds * (1.5 if load.balanced else 1)
    while at_s < until_s:
        arriving.append(_maybe_never(rng, load, _gang(rng, load, next(numbers), at_s)))
        at_s += rng.expovariate(load.rate)
    return Plan(tuple(running), tuple(waiting), tuple(arriving), load.balanced)


def _gang(rng: random.Random, load: Load, number: int, at_s: float = 0.0, at_most: int = max(SIZES)) -> Gang:
    (size,) = rng.choices(list(SIZES), list(SIZES.values()))
    (priority,) = rng.choices(list(PRIORITIES), PRIORITY_WEIGHTS)
    (queue,) = rng.choices(list(QUEUES), list(QUEUES.values()))
    cpu_m = _LEAST_CPU_M + rng.randrange(SHAPES)
    # Lives of exponential length: a gang that runs already has as long to run as a new one.
    return Gang(number, min(size, at_most), queue, priority, cpu_m, at_s, rng.expovariate(1 / load.mean_life_s))


def _maybe_never(rng: random.Random, load: Load, gang: Gang) -> Gang:
    """Return the gang, or now and then one that no node can run: it asks for too much, or for a label."""
    if rng.random() >= load.never:
        return gang
    too_much = rng.random() < 0.5
    return Gang(
        gang.number,
        gang.size,
        gang.queue,
        gang.priority,
        _TOO_MUCH_CPU_M if too_much else gang.cpu_m,
        gang.at_s,
        gang.life_s,
        {} if too_much else dict(NO_NODE_HAS),
    )
