"""What a cycle reports: counts, durations, reasons."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from volcano_py.model.objects import JobKey
from volcano_py.model.rejections import Rejection


class Failure(Protocol):
    """The failure of a plugin; its text says what went wrong."""

    plugin: str
    point: str  # the method


class JobReport(msgspec.Struct, frozen=True, gc=False):
    """The outcome of one job; a struct, because there is one for each waiting job."""

    tasks: int
    ready: int
    min_available: int
    rejections: tuple[Rejection, ...] = ()
    message: str = ""  # why it waits, "" if it does not


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What a queue holds and deserves; amounts by resource."""

    weight: int | None  # None from a plugin that does not divide by weight
    share: float
    overused: bool
    allocated: Mapping[str, float]  # including what is promised
    request: Mapping[str, float]
    deserved: Mapping[str, float]
    inqueue: Mapping[str, float]
    capacity: Mapping[str, float] | None = None  # its own limit, None if the plugin does not report it
    real_capacity: Mapping[str, float] | None = None  # the limit after other guarantees and the queues above


@dataclass(frozen=True, slots=True)
class Difference:
    """What was kept about a job from cycle to cycle, and what it is when it is found anew: a fault of ours."""

    job: JobKey
    about: str
    kept: str
    anew: str


@dataclass(slots=True)
class CycleReport:
    """What users watch: counts, durations, reasons. The shell turns it into metrics."""

    tasks_placed: int = 0
    jobs_committed: int = 0
    jobs_discarded: int = 0
    jobs_enqueued: int = 0
    jobs_refused: int = 0  # not enqueued because of a plugin; their tasks may not exist yet, and are not counted then
    pending_tasks: int = 0
    # Until when (seconds since the epoch) a cycle over the same state of the cluster would decide nothing again.
    repeats_until: float = -math.inf
    tells_in: float | None = None  # seconds until users may be told about a job whose tasks keep arriving, if any
    evictions_left: bool = False  # whether the next cycle must begin at once, because this one stopped evicting
    preemption_attempts: int = 0  # nodes on which an action simulated evictions
    seconds: dict[str, float] = field(default_factory=dict)  # stage -> duration: open, each action, close
    plugin_seconds: dict[tuple[str, str], float] = field(default_factory=dict)  # (plugin, hook) -> sum of all calls
    plugin_longest: dict[tuple[str, str], float] = field(default_factory=dict)  # (plugin, hook) -> longest call
    # First look at all nodes for a kind of task: seconds to find the feasible nodes, and to score them if any.
    rankings: list[tuple[float, float | None]] = field(default_factory=list)
    jobs: dict[JobKey, JobReport] = field(default_factory=dict)  # jobs that have pending tasks or were placed
    queues: dict[str, QueueReport] = field(default_factory=dict)  # all queues, if a plugin reports them
    # Queue -> what it and all queues below it hold, by resource.
    queues_hold: dict[str, dict[str, float]] = field(default_factory=dict)
    queue_problems: dict[str, str] = field(default_factory=dict)  # what is wrong with queues, and its consequence
    job_shares: dict[JobKey, float] = field(default_factory=dict)  # dominant shares above 0, if a plugin reports them
    jobs_verified: int = 0  # jobs about which all that is kept from cycle to cycle was found anew
    differences: list[Difference] = field(default_factory=list)  # of these jobs
    failures: list[str] = field(default_factory=list)  # of plugins, with the consequence for each job
    problems: dict[tuple[str, str], str] = field(default_factory=dict)  # (plugin, method) -> its first failure alone

    def failed(self, failure: Failure, consequence: str = "") -> None:
        """Note that a plugin failed, and the consequence."""
        self.failures.append(f"{failure}; {consequence}" if consequence else str(failure))
        self.problems.setdefault((failure.plugin, failure.point), str(failure))
