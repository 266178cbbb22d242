"""What must survive from one cycle to the next, explicitly and serialisably; and what a cycle reports."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from volcano_py.model.objects import JobKey
from volcano_py.model.rejections import Rejection


class Nomination(NamedTuple):
    """A node whose room is held for a task."""

    node: str
    since: float  # when something was last being released there, or the nomination was first seen; seconds


@dataclass(frozen=True, slots=True)
class PlannedEviction:
    """Evictions that have been decided."""

    job: JobKey  # who gets the room
    victims: tuple[str, ...]  # uids
    until: float  # seconds since the epoch


class Arrival(NamedTuple):
    """How a waiting job's tasks arrive."""

    first: int  # number of the first task that users were not told about, see `TaskColumns.arrived`
    since: float  # when it was first seen, seconds since the epoch
    last: float  # when the last one was first seen, seconds since the epoch


class Cooldown(NamedTuple):
    """A job has taken from another one, which must not take from it."""

    preemptor: JobKey
    victim: JobKey
    until: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Memory:
    """Carried from cycle to cycle. With the same memory, snapshot, policy, clock and seed a cycle decides the same."""

    cycle: int = 0  # how many cycles there have been
    lineage: str = ""  # names the series of cycles, so that its session ids are unique
    refusals: Mapping[JobKey, str] = field(default_factory=dict)  # why jobs were not let in, as their users were told
    announced: Mapping[JobKey, str] = field(
        default_factory=dict
    )  # events about statuses that are not known to be written
    times: Mapping[str, float] = field(default_factory=dict)  # plugin -> when it last did what it does now and then
    enqueued: tuple[JobKey, ...] = ()  # jobs that the last cycle let in; the next may not see their phase yet
    nominations: Mapping[str, Nomination] = field(default_factory=dict)  # of our tasks that wait, by uid
    plans: tuple[PlannedEviction, ...] = ()  # evictions under way
    cooldowns: tuple[Cooldown, ...] = ()
    gates_lifted: Mapping[str, float] = field(default_factory=dict)  # uid -> when it was decided that its gate goes
    arrivals: Mapping[JobKey, Arrival] = field(default_factory=dict)  # jobs whose tasks keep coming
    # How many tasks had come, by the count of one store, which says nothing about the cluster. None: those that are
    # there have been there.
    seen: int | None = field(default=None, repr=False)

    @property
    def session_id(self) -> str:
        """The id of the session that runs on this memory; conditions carry it as their transition id."""
        return f"{self.lineage}-{self.cycle}" if self.lineage else str(self.cycle)

    def next(
        self,
        refusals: Mapping[JobKey, str] | None = None,
        announced: Mapping[JobKey, str] | None = None,
        enqueued: Iterable[JobKey] = (),
        times: Mapping[str, float] | None = None,
        nominations: Mapping[str, Nomination] | None = None,
        plans: tuple[PlannedEviction, ...] = (),
        cooldowns: tuple[Cooldown, ...] = (),
        gates_lifted: Mapping[str, float] | None = None,
        arrivals: Mapping[JobKey, Arrival] | None = None,
        seen: int | None = None,
    ) -> "Memory":
        """Return the memory of the next cycle."""
        return Memory(
            self.cycle + 1,
            self.lineage,
            refusals=dict(refusals or {}),
            announced=dict(announced or {}),
            enqueued=tuple(sorted(enqueued)),
            times=dict(times or {}),
            nominations=dict(nominations or {}),
            plans=plans,
            cooldowns=cooldowns,
            gates_lifted=dict(gates_lifted or {}),
            arrivals=dict(arrivals or {}),
            seen=seen,
        )


@dataclass(frozen=True, slots=True)
class JobReport:
    """What became of one job."""

    tasks: int
    ready: int
    min_available: int
    rejections: tuple[Rejection, ...] = ()
    message: str = ""  # why it waits, "" if it does not


@dataclass(frozen=True, slots=True)
class QueueReport:
    """What a queue has and should have; amounts by resource."""

    weight: int | None  # None from a plugin that does not divide by weight
    share: float
    overused: bool
    allocated: Mapping[str, float]  # promised included
    request: Mapping[str, float]
    deserved: Mapping[str, float]
    inqueue: Mapping[str, float]
    capacity: Mapping[str, float] | None = None  # its own limit, None if the plugin does not say
    real_capacity: Mapping[str, float] | None = None  # what others' guarantees and queues above leave of it


@dataclass(slots=True)
class CycleReport:
    """What users watch: counts, durations, reasons. The shell turns it into metrics."""

    tasks_placed: int = 0
    jobs_committed: int = 0
    jobs_discarded: int = 0
    jobs_enqueued: int = 0
    jobs_refused: int = 0  # not let in by plugins; their tasks may not exist yet, and so not be among the pending ones
    pending_tasks: int = 0
    tells_in: float | None = None  # seconds until users may be told about a job whose tasks keep coming, None for none
    preemption_attempts: int = 0  # nodes on which an action tried out what evictions would bring
    seconds: dict[str, float] = field(default_factory=dict)  # stage -> duration: open, each action, close
    plugin_seconds: dict[tuple[str, str], float] = field(default_factory=dict)  # (plugin, hook) -> all calls together
    plugin_longest: dict[tuple[str, str], float] = field(default_factory=dict)  # (plugin, hook) -> longest call
    jobs: dict[JobKey, JobReport] = field(default_factory=dict)  # jobs that have pending tasks or were placed
    queues: dict[str, QueueReport] = field(default_factory=dict)  # all queues, if a plugin divides among them
    queues_hold: dict[str, dict[str, float]] = field(
        default_factory=dict
    )  # every queue and all below it -> by resource
    queue_problems: dict[str, str] = field(default_factory=dict)  # what is wrong with queues and what it costs
    job_shares: dict[JobKey, float] = field(default_factory=dict)  # dominant shares above 0, if a plugin finds them
    failures: list[str] = field(default_factory=list)  # plugins that raised, and what it cost
