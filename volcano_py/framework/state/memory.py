"""What survives from one cycle to the next: memory, in a form that can be serialised, and one cache.

Memory is what decisions and texts depend on: since when something waits, until when something holds, what is on its way
to objects that do not show it yet. If it is lost, the next cycle may decide something else. The cache (`told`) only
spares work: without it a cycle looks at all jobs instead of those that differ, and decides and remembers the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from volcano_py.framework.state.texts import Texts
from volcano_py.framework.state.told import Told
from volcano_py.model.objects import JobKey


class Nomination(NamedTuple):
    """A node on which room is reserved for a task."""

    node: str
    since: float  # when the node last had releasing resources, or the nomination was first seen; seconds since 1970


@dataclass(frozen=True, slots=True)
class PlannedEviction:
    """Evictions that a plan has decided."""

    job: JobKey  # the preemptor
    victims: tuple[str, ...]  # uids
    until: float  # seconds since the epoch


class Arrival(NamedTuple):
    """How a waiting job's tasks arrive."""

    first: int  # number of the first task that users were not told about, see `TaskColumns.arrived`
    since: float  # when that task was first seen, seconds since the epoch
    last: float  # when the last task was first seen, seconds since the epoch


class Cooldown(NamedTuple):
    """A job has evicted tasks of another job, which cannot preempt it for a while."""

    preemptor: JobKey
    victim: JobKey
    until: float  # seconds since the epoch


@dataclass(frozen=True, slots=True)
class Memory:
    """Carried from cycle to cycle. The same memory, snapshot, policy, clock and seed lead to the same decisions.

    Two memories are equal if they differ in nothing but their caches and `now`.
    """

    cycle: int = 0  # how many cycles there have been
    lineage: str = ""  # names the series of cycles, so that its session ids are unique
    now: float | None = field(default=None, compare=False, repr=False)  # of the last cycle, seconds since the epoch
    refusals: Mapping[JobKey, str] = field(default_factory=dict)  # why jobs were not enqueued, as users were told
    # Texts of events about statuses that may not be written yet.
    announced: Mapping[JobKey, str] = field(default_factory=dict)
    times: Mapping[str, float] = field(default_factory=dict)  # plugin -> when it last did its periodic work
    enqueued: tuple[JobKey, ...] = ()  # jobs enqueued by the last cycle; the next may not see their phase yet
    nominations: Mapping[str, Nomination] = field(default_factory=dict)  # of our pending tasks, by uid
    plans: tuple[PlannedEviction, ...] = ()  # evictions under way
    cooldowns: tuple[Cooldown, ...] = ()
    gates_lifted: Mapping[str, float] = field(default_factory=dict)  # uid -> when the removal of its gate was decided
    arrivals: Mapping[JobKey, Arrival] = field(default_factory=dict)  # jobs whose tasks keep arriving
    # Jobs placed by topology -> the HyperNode of each part, by the part's name (`framework.contract.topology.Part`).
    domains: Mapping[JobKey, Mapping[str, str]] = field(default_factory=dict)
    # How many tasks had arrived, as one store counts them; not a fact about the cluster. None: unknown, so the tasks of
    # the next cycle count as not new.
    seen: int | None = field(default=None, repr=False)
    texts: Texts = field(default_factory=Texts, repr=False)  # when texts were made, and what is on its way
    # A cache: what users have been told. Any cycle may begin without it.
    told: Told | None = field(default=None, compare=False, repr=False)

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
        domains: Mapping[JobKey, Mapping[str, str]] | None = None,
        seen: int | None = None,
        texts: Texts | None = None,
        told: Told | None = None,
    ) -> "Memory":
        """Return the memory of the next cycle."""
        return Memory(
            self.cycle + 1,
            self.lineage,
            self.now,
            refusals=dict(refusals or {}),
            announced=dict(announced or {}),
            enqueued=tuple(sorted(enqueued)),
            times=dict(times or {}),
            nominations=dict(nominations or {}),
            plans=plans,
            cooldowns=cooldowns,
            gates_lifted=dict(gates_lifted or {}),
            arrivals=dict(arrivals or {}),
            domains=dict(domains or {}),
            seen=seen,
            texts=texts or Texts(),
            told=told,
        )

    def at(self, now: float) -> "Memory":
        """Return the memory for a cycle at this time, in seconds since the epoch.

        Time never runs backwards. If the clock is behind the last cycle, someone has set it back, and all moments that
        are remembered move with it: nothing lasts longer because of that.
        """
        back = 0.0 if self.now is None else self.now - now
        if back <= 0:
            return replace(self, now=now)
        return replace(
            self,
            now=now,
            times={plugin: moment - back for plugin, moment in self.times.items()},
            nominations={uid: one._replace(since=one.since - back) for uid, one in self.nominations.items()},
            plans=tuple(replace(plan, until=plan.until - back) for plan in self.plans),
            cooldowns=tuple(one._replace(until=one.until - back) for one in self.cooldowns),
            gates_lifted={uid: moment - back for uid, moment in self.gates_lifted.items()},
            arrivals={
                job: one._replace(since=one.since - back, last=one.last - back) for job, one in self.arrivals.items()
            },
            texts=replace(self.texts, renewed=self.texts.renewed - back),
        )

    def without_caches(self) -> "Memory":
        """Return the same memory without what only spares work."""
        return replace(self, told=None)
