"""What a seed stands for: a cluster, its work and its faults, as data that can be printed, cut down and run again."""

from dataclasses import dataclass, replace
from typing import Final

import msgspec


@dataclass(frozen=True, slots=True)
class Work:
    """Pods that somebody wants to run together."""

    number: int
    at: float
    kind: str
    """gang (PodGroup and pods), vcjob, deployment (pods of a ReplicaSet), or single (pods without a PodGroup)."""
    pods: int
    minimum: int
    cpu: str
    queue: str
    priority: str = ""
    ends_after_s: float = 0.0
    """How long its pods run; 0: for ever."""
    fails: bool = False
    """Whether its pods fail when they end."""
    tasks: int = 1
    """Of a vcjob."""
    policy: str = ""
    """Of a vcjob: event and action, such as ``PodFailed RestartJob``."""
    deleted_after_s: float = 0.0
    """When its owner deletes it; 0: never."""
    commands: tuple[tuple[float, str], ...] = ()
    """What its owner asks for a vcjob, and when: AbortJob, ResumeJob, RestartJob ..."""
    space: str = "default"
    """The namespace."""
    called: int | None = None
    """The number in its name, if that is the name of other work in another namespace."""
    plugins: tuple[str, ...] = ()
    """Of a vcjob."""
    ordered: bool = False
    """Whether the second task of a vcjob begins when the first one is ready."""
    claim: bool = False
    """Whether the pods of a vcjob share a volume."""
    held_s: float = 0.0
    """How long a finalizer keeps a vcjob, and each of its pods, when it is deleted; 0: there is none."""
    scales: tuple[tuple[float, int, int], ...] = ()
    """When the owner of a vcjob changes it, and to how many pods and what minimum."""

    @property
    def name(self) -> str:
        """The name of the job or group, and the beginning of the names of pods."""
        return f"{self.kind}-{self.number if self.called is None else self.called}"

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return f"{self.space}/{self.name}"


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue with its limits; an empty limit is none."""

    name: str
    weight: int = 1
    capability: str = ""
    """The most CPUs that it may use."""
    guarantee: str = ""
    """The CPUs that nobody else may use."""
    deserved: str = ""
    """The CPUs that it gets back from others."""
    reclaimable: bool = True
    parent: str = ""

    def __str__(self) -> str:
        """Return it as a part of a story."""
        limits = {"capability": self.capability, "guarantee": self.guarantee, "deserved": self.deserved}
        text = "".join(f", {name} {cpus} CPUs" for name, cpus in limits.items() if cpus)
        text += "" if self.reclaimable else ", not reclaimable"
        text += f", below {self.parent}" if self.parent else ""
        return f"{self.name} (weight {self.weight}{text})"


@dataclass(frozen=True, slots=True)
class Order:
    """What an administrator asks for a queue."""

    number: int
    at: float
    action: str
    """OpenQueue or CloseQueue."""
    queue: str

    def __str__(self) -> str:
        """Return it as a line of a story."""
        return f"{self.at:7.3f} s  {self.action} {self.queue}"


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault: what happens when, to whom, how long and how badly."""

    number: int
    at: float
    kind: str
    """A name of :data:`tests.simulation.faults.FAULTS`."""
    target: str = ""
    """A machine, a resource, or an object; what it means is up to the kind."""
    lasts_s: float = 0.0
    amount: float = 0.0
    """A probability, a delay or a count; what it means is up to the kind."""

    def __str__(self) -> str:
        """Return it as a line of a story."""
        text = f"{self.at:7.3f} s  {self.kind}"
        text += f" of {self.target}" if self.target else ""
        text += f" for {self.lasts_s:.1f} s" if self.lasts_s else ""
        return f"{text} ({self.amount:.3g})" if self.amount else text


@dataclass(frozen=True, slots=True)
class Size:
    """How much a plan of one kind has of everything."""

    name: str
    length_s: float
    works: int
    strikes: tuple[int, int]
    nodes: tuple[int, int]
    rest_s: float
    """How long the system must be silent at the end."""


SHORT: Final = Size("short", 45.0, 6, (2, 5), (3, 6), 60.0)
FULL: Final = Size("full", 180.0, 20, (4, 14), (5, 10), 60.0)
SIZES: Final = {size.name: size for size in (SHORT, FULL)}


@dataclass(frozen=True, slots=True)
class Plan:
    """One schedule."""

    seed: int
    size: Size
    conf: str
    """A configuration of :func:`tests.simulation.configurations.conf_text`."""
    nodes: tuple[int, ...]
    """CPUs of each node."""
    queues: tuple[Queue, ...]
    work: tuple[Work, ...]
    strikes: tuple[Strike, ...]
    webhooks: bool = False
    """Whether the webhooks run and see every write; each of them costs time."""
    narrow: bool = False
    """Whether the queues of the programs take a few objects only, as if there were hundreds of thousands."""
    orders: tuple[Order, ...] = ()
    """In plans that are wide; so are the namespaces, plugins, volumes, finalizers and changes of its work."""

    def without(self, *, work: frozenset[int] = frozenset(), strikes: frozenset[int] = frozenset()) -> "Plan":
        """Return the plan without some of its work and faults, by number; all else keeps its draws."""
        return replace(
            self,
            work=tuple(one for one in self.work if one.number not in work),
            strikes=tuple(one for one in self.strikes if one.number not in strikes),
        )


def written(plan: Plan) -> str:
    """Return a plan as JSON."""
    return msgspec.json.encode(plan).decode()


def read(text: str | bytes) -> Plan:
    """Return the plan of a JSON text."""
    return msgspec.json.decode(text, type=Plan)
