"""Small clusters, full of ties, on which queues lend and reclaim; and what reclaim owes a queue that holds nothing.

Ties can make two queues exchange pods for ever, so there are many: requests of 1 or 2, equal totals of three resources,
weights 1, 1 and 2. The rule is written here a second time, in plain Python over names (`permitted`, `newcomers`),
independent of how reclaim finds victims.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from tests.reference import entitlements, sharing
from volcano_py.api import keys
from volcano_py.testing import Result, Scenario, a_job, a_node, a_pod, a_queue
from volcano_py.testing.objects import Job

RESOURCES = ("cpu", "memory", "gpu")
Amounts = Counter[str]


@dataclass(frozen=True)
class QueueSpec:
    """A queue of the reference; amounts are whole units of each resource."""

    name: str
    weight: int = 1
    priority: int = 0
    reclaimable: bool = True
    guarantee: Mapping[str, int] = field(default_factory=dict)
    deserved: Mapping[str, int] = field(default_factory=dict)
    capability: Mapping[str, int] = field(default_factory=dict)
    parent: str = ""

    def wire(self) -> Any:
        """Return the object."""
        return a_queue(
            self.name,
            weight=self.weight,
            priority=self.priority,
            guarantee=_wire(self.guarantee),
            deserved=_wire(self.deserved),
            capability=_wire(self.capability),
            parent=self.parent,
            reclaimable=self.reclaimable,
        )


def _fractions(amounts: Mapping[str, int]) -> dict[str, Fraction]:
    return {name: Fraction(amount) for name, amount in amounts.items()}


def _wire(amounts: Mapping[str, int]) -> dict[str, Any]:
    return {name: f"{amount}Gi" if name == "memory" else amount for name, amount in amounts.items() if amount}


@dataclass(frozen=True)
class JobSpec:
    """A job of equal tasks."""

    name: str
    queue: str
    tasks: int
    minimum: int
    request: Mapping[str, int]
    created: int
    kept: bool = False  # its pods are not preemptable

    def wire(self) -> Job:
        """Return the PodGroup and its pods."""
        return a_job(
            self.name,
            queue=self.queue,
            tasks=self.tasks,
            min_available=self.minimum,
            created=self.created,
            labels={keys.PREEMPTABLE: "false"} if self.kept else {},
            **_wire(self.request),
        )


@dataclass(frozen=True)
class Lending:
    """A cluster, its queues and batches of arriving jobs."""

    sharing: str  # proportion, capacity or tree (capacity with a hierarchy)
    actions: str
    beyond_minimum: bool
    nodes: Mapping[str, int]  # of each resource
    closed: frozenset[str]
    foreign: Mapping[str, int]  # node -> amount of each resource, held by a pod of another scheduler
    queues: tuple[QueueSpec, ...]
    arrivals: tuple[tuple[JobSpec, ...], ...]
    grace: int
    level: int = 0  # ancestorReclaimLevel, for a tree

    @property
    def leaves(self) -> list[str]:
        """The queues that jobs may name."""
        parents = {queue.parent for queue in self.queues} | {"root"}
        return [queue.name for queue in self.queues if queue.name not in parents]

    def queue(self, name: str) -> QueueSpec:
        """Return a queue."""
        return next(queue for queue in self.queues if queue.name == name)

    def path(self, name: str) -> list[str]:
        """Return a queue and its ancestors, the root last; without a tree only the queue itself."""
        if self.sharing != "tree" or name == "root":
            return [name]
        return [name, *self.path(self.queue(name).parent or "root")]

    def branches(self, one: str, other: str) -> tuple[str, str]:
        """Return the ancestors at which the paths of two queues part."""
        ways = zip(reversed(self.path(one)), reversed(self.path(other)), strict=False)
        return next((left, right) for left, right in ways if left != right)

    def due(self, picture: "Picture") -> dict[str, entitlements.Due]:
        """Return the ceiling, deserved share and guarantee of each queue."""
        total = {resource: float(sum(self.nodes.values())) for resource in RESOURCES}
        specs = {
            queue.name: entitlements.Queue(queue.name, queue.parent, queue.capability, queue.deserved, queue.guarantee)
            for queue in self.queues
        }
        if self.sharing == "tree":
            return entitlements.in_a_tree(total, specs)
        due = entitlements.side_by_side(total, specs)
        if self.sharing == "capacity":
            return due
        asked: dict[str, Amounts] = {}
        for job in picture.jobs.values():
            for _ in range(job.tasks):
                asked.setdefault(job.queue, Counter()).update(job.request)
        parts = sharing.shares(
            {resource: Fraction(int(amount)) for resource, amount in total.items()},
            {
                name: sharing.Queue(
                    self.queue(name).weight, _fractions(request), {}, _fractions(self.queue(name).guarantee)
                )
                for name, request in asked.items()
            },
            [_fractions(queue.guarantee) for queue in self.queues if queue.name not in asked],
        )
        return {
            name: entitlements.Due(
                one.ceiling, {key: float(part) for key, part in parts.get(name, {}).items()}, one.guarantee
            )
            for name, one in due.items()
        }

    def measure(self, name: str, picture: "Picture") -> Mapping[str, float]:
        """Return the denominator of a queue's share."""
        if self.sharing == "proportion":
            return {resource: sum(self.nodes.values()) * self.queue(name).weight for resource in RESOURCES}
        due = self.due(picture)[name].deserved
        below = [queue.name for queue in self.queues if self.sharing == "tree" and queue.parent == name]
        return {
            resource: due.get(resource) or sum(self.measure(child, picture).get(resource, 0) for child in below)
            for resource in RESOURCES
        }

    def scenario(self) -> Scenario:
        """Return the cluster before the first jobs arrive."""
        share: Any = self.sharing
        if self.sharing == "tree":
            arguments = {"ancestorReclaimLevel": self.level}
            share = {"name": "capacity", "enableHierarchy": True, "arguments": arguments}
        gang: Any = {"name": "gang", "enablePreemptable": False}
        if self.beyond_minimum:
            gang["enableJobStarving"] = False
        drf = {"name": "drf", "enablePreemptable": False}
        return Scenario(
            *(
                a_node(name, cpu=size, memory=f"{size}Gi", gpu=size, unschedulable=name in self.closed)
                for name, size in self.nodes.items()
            ),
            *(
                a_pod(
                    f"foreign-{node}", node=node, scheduler="default-scheduler", cpu=held, memory=f"{held}Gi", gpu=held
                )
                for node, held in self.foreign.items()
            ),
            queues=[queue.wire() for queue in self.queues],
            actions=self.actions,
            plugins=[
                ["priority", gang, "conformance"],
                ["overcommit", drf, "predicates", share, "nodeorder", "binpack"],
            ],
            grace=self.grace,
        )


ACTIONS = (
    "enqueue, allocate, backfill, reclaim",
    "enqueue, allocate, backfill, reclaim, preempt",
    "enqueue, allocate, backfill, gangreclaim",
    "enqueue, allocate, backfill, gangpreempt, gangreclaim",
)


def lending(number: int, sharing: str | None = None) -> Lending:
    """Return the cluster of a number."""
    rng = random.Random(number)
    sharing = sharing or rng.choice(("proportion", "capacity", "tree"))
    nodes = {f"n{row}": rng.choice((2, 3, 4, 4)) for row in range(rng.randint(1, 4))}
    total = sum(nodes.values())
    closed = frozenset({"n0"}) if len(nodes) > 1 and rng.random() < 0.3 else frozenset()
    foreign = {name: rng.randint(1, 2) for name in nodes if rng.random() < 0.4}
    queues = _tree(rng, total) if sharing == "tree" else _flat(rng, total, sharing)
    made = Lending(
        sharing=sharing,
        actions=rng.choice(ACTIONS),
        beyond_minimum=rng.random() < 0.6,
        nodes=nodes,
        closed=closed,
        foreign=foreign,
        queues=queues,
        arrivals=(),
        grace=rng.randint(0, 2),
        level=rng.choice((0, 0, 1, 2)),
    )
    arrivals = tuple(tuple(_arrival(rng, number, made.leaves, total)) for number in range(rng.randint(2, 3)))
    return Lending(**{**made.__dict__, "arrivals": arrivals})


def _flat(rng: random.Random, total: int, sharing: str) -> tuple[QueueSpec, ...]:
    return tuple(_queue(rng, f"q{row}", total, sharing) for row in range(rng.randint(2, 4)))


def _tree(rng: random.Random, total: int) -> tuple[QueueSpec, ...]:
    queues = [QueueSpec("root")]
    for row in range(rng.randint(2, 3)):
        branch = _queue(rng, f"b{row}", total, "tree")
        leaves = [
            _queue(rng, f"b{row}-q{leaf}", total, "tree", branch.name) for leaf in range(rng.choice((0, 1, 2, 2)))
        ]
        guarantee: Counter[str] = Counter()
        for leaf in leaves:
            guarantee.update(leaf.guarantee)
        queues += [QueueSpec(**{**branch.__dict__, "guarantee": guarantee if leaves else branch.guarantee}), *leaves]
    return tuple(queues)


def _queue(rng: random.Random, name: str, total: int, sharing: str, parent: str = "") -> QueueSpec:
    deserved = {}
    if sharing != "proportion":
        named = rng.choice((RESOURCES, RESOURCES, ("cpu",), ("cpu", "gpu"), ("gpu",), ()))
        amount = rng.choice((1, 2, 2, total // 2, total // 3 or 1))
        deserved = {resource: amount if rng.random() < 0.7 else rng.choice((1, 2, total)) for resource in named}
    return QueueSpec(
        name,
        weight=rng.choice((1, 1, 2)),
        priority=rng.choice((0, 0, 0, 1)),
        reclaimable=rng.random() < 0.9,
        guarantee={rng.choice(RESOURCES): 1} if rng.random() < 0.15 else {},
        deserved=deserved,
        parent=parent,
    )


def _arrival(rng: random.Random, number: int, queues: Sequence[str], total: int) -> Iterator[JobSpec]:
    """Yield the jobs of one arrival: first large ones of few queues, mostly elastic, later smaller ones of all."""
    first = number == 0
    chosen = rng.sample(queues, min(len(queues), rng.choice((1, 2)))) if first else queues
    for place in range(rng.randint(1, 3) if first else rng.randint(1, 5)):
        tasks = rng.choice((total // 2, total, total)) if first else rng.choice((1, 1, 2, 3, 4, total // 2))
        size = rng.choice((1, 1, 2))
        asked = rng.choice((RESOURCES, RESOURCES, ("cpu",), ("cpu", "memory"), ("cpu", "gpu"), ("gpu",), ("memory",)))
        rigid = rng.random() < (0.1 if first else 0.4)
        yield JobSpec(
            name=f"w{number}j{place}",
            queue=rng.choice(chosen),
            tasks=max(1, tasks),
            minimum=min(tasks, 4) if rigid else rng.choice((1, 1, 1, 0)),
            request={resource: size if rng.random() < 0.8 else 3 - size for resource in asked},
            created=number * 10 + place,
            kept=rng.random() < 0.15,
        )


# What reclaim owes a queue that holds nothing


@dataclass(frozen=True)
class Picture:
    """A cluster at rest: the nodes of the pods, and the waiting jobs."""

    case: Lending
    jobs: Mapping[str, JobSpec]  # jobs that have arrived
    running_or_bound: Mapping[str, str]  # pod -> node
    enqueued: frozenset[str]  # jobs in phase Inqueue

    @classmethod
    def of(cls, case: Lending, arrived: int, result: Result) -> "Picture":
        """Return the state after a number of arrivals."""
        jobs = {job.name: job for batch in case.arrivals[:arrived] for job in batch}
        running_or_bound = {pod: node for pod, node in result.running_or_bound.items() if _job_of(pod) in jobs}
        enqueued = frozenset(name for name, phase in result.phases.items() if phase == keys.PHASE_INQUEUE)
        return cls(case, jobs, running_or_bound, enqueued)

    def job(self, pod: str) -> JobSpec:
        """Return the job of a pod."""
        return self.jobs[_job_of(pod)]

    def held(self, without: Iterable[str] = ()) -> dict[str, Amounts]:
        """Return what each queue, with all queues below it, holds without some pods."""
        gone = set(without)
        held: dict[str, Amounts] = {queue.name: Counter() for queue in self.case.queues}
        for pod in self.running_or_bound:
            if pod not in gone:
                job = self.job(pod)
                for name in self.case.path(job.queue):
                    held[name].update(job.request)
        return held


def _job_of(pod: str) -> str:
    return pod.rpartition("-")[0]


def newcomers(picture: Picture) -> list[str]:
    """Return the waiting jobs of queues that hold nothing, if permitted evictions would make room for their minimum.

    Brute force: every way to spread the minimum over the nodes, and all sets of victims that make room there.
    """
    held, due = picture.held(), picture.case.due(picture)
    found = []
    for job in picture.jobs.values():
        if job.name not in picture.enqueued or any(held[job.queue].values()):
            continue
        if not (job.minimum or picture.case.beyond_minimum):
            continue  # the job already has its minimum
        need = max(job.minimum, 1)
        wanted = {resource: amount * need for resource, amount in job.request.items()}
        mine = due[job.queue]
        if any(amount > mine.deserved.get(resource, 0) for resource, amount in wanted.items()):
            continue
        ways = picture.case.path(job.queue)
        if any(
            amount + held[name][resource] > due[name].ceiling.get(resource, 0)
            for name in ways
            for resource, amount in wanted.items()
        ):
            continue
        if any(permitted(picture, job, need, victims) for victims in _rooms(picture, job, need)):
            found.append(job.name)
    return found


def _rooms(picture: Picture, job: JobSpec, need: int) -> Iterator[tuple[str, ...]]:
    """Yield sets of pods of other queues whose eviction makes room for ``need`` pods of a job."""
    case = picture.case
    ways: list[list[tuple[int, tuple[str, ...]]]] = []  # by node: how many pods fit there without these victims
    for node, size in case.nodes.items():
        if node in case.closed:
            continue
        pods = [pod for pod, where in picture.running_or_bound.items() if where == node]
        others = [pod for pod in pods if picture.job(pod).queue != job.queue and not picture.job(pod).kept]
        free = Counter(dict.fromkeys(RESOURCES, size - case.foreign.get(node, 0)))
        for pod in pods:
            free.subtract(picture.job(pod).request)
        best: dict[int, list[tuple[str, ...]]] = {}
        for count in range(len(others) + 1):
            for going in combinations(others, count):
                room = Counter(free)
                for pod in going:
                    room.update(picture.job(pod).request)
                fits = min(need, *(room[resource] // amount for resource, amount in job.request.items()))
                lesser = (less for n, sets in best.items() if n >= fits for less in sets)
                if fits >= 0 and not any(set(less) <= set(going) for less in lesser):
                    best.setdefault(fits, []).append(going)
        ways.append([(fits, going) for fits, sets in best.items() for going in sets])
    for chosen in product(*ways):
        if sum(fits for fits, _ in chosen) >= need:
            yield tuple(pod for _, going in chosen for pod in going)


def permitted(picture: Picture, job: JobSpec, need: int, victims: Sequence[str]) -> bool:
    """Return whether all these pods may be evicted together so that a job gets ``need`` of its pods."""
    if not victims:
        return True
    case = picture.case
    standing = Counter(_job_of(pod) for pod in picture.running_or_bound)
    lost = Counter(_job_of(pod) for pod in victims)
    if any(standing[name] - count < picture.jobs[name].minimum for name, count in lost.items()):
        return False
    before, left, due = picture.held(), picture.held(victims), case.due(picture)
    wanted = Counter({resource: amount * need for resource, amount in job.request.items()})
    for victim in {picture.job(pod).queue for pod in victims}:
        if not case.queue(victim).reclaimable:
            return False
        mine, theirs = case.branches(job.queue, victim)
        for name in case.path(victim):
            if name in case.path(job.queue):
                break
            if any(left[name][resource] < due[name].guarantee.get(resource, 0) for resource in RESOURCES):
                return False
        after = before[mine] + wanted
        level = _shares(left[theirs], case.measure(theirs, picture)) >= _shares(after, case.measure(mine, picture))
        newcomer = not any(before[mine].values()) and any(left[theirs].values())
        if not (level or newcomer):
            return False
    return True


def _shares(held: Amounts, due: Mapping[str, float]) -> list[Fraction]:
    shares = [Fraction(held[name]) / Fraction(due[name]) if due.get(name) else Fraction(0) for name in RESOURCES]
    return sorted(shares, reverse=True)
