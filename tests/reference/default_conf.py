"""A whole cycle under Volcano's default configuration: enqueue, allocate, backfill with drf, proportion, overcommit.

It extends the cycle of `allocation` by enqueue votes, the scheduling order, and limits of queues.
"""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import cmp_to_key

from tests.reference.accounts import asked, best_effort
from tests.reference.allocation import ALLOCATED, PENDING, PIPELINED, Cycle, Job, Member, Rules, before
from tests.reference.sharing import Queue, shares
from tests.reference.world import World
from volcano_py.model.objects import QueueRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus

HOLDING = (ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
FACTOR = 1.2


def requests(members: Iterable[Member]) -> Counter[str]:
    total: Counter[str] = Counter()
    for member in members:
        total.update(asked(member.task.shape))
    return total


class DefaultCycle(Cycle):
    """One cycle."""

    def __init__(self, world: World, rules: Rules) -> None:
        super().__init__(world, rules)
        self.total: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        for node in self.nodes.values():
            self.total.update(node.allocatable)
            self.used.update(node.used)
        self.by_queue = {
            queue.name: [job for job in self.jobs if job.record.queue == queue.name] for queue in self.queues
        }
        self.deserved = self._deserved()
        known = [job for jobs in self.by_queue.values() for job in jobs]
        self.cluster_reserved: Counter[str] = Counter()
        for job in known:
            self.cluster_reserved.update(self._reserved(job, whole=True))
        self.reserved = {name: Counter[str]() for name in self.by_queue}
        self.elastic = {name: Counter[str]() for name in self.by_queue}
        for name, jobs in self.by_queue.items():
            for job in jobs:
                self.reserved[name].update(self._reserved(job, whole=False))
                self.elastic[name].update(self.holds(job) - self._minimum(job))  # Counter: never below 0

    # What jobs and queues hold

    def holds(self, job: Job) -> Counter[str]:
        return requests(member for member in job.members if member.status in HOLDING)

    def taken(self, queue: str) -> Counter[str]:
        return requests(
            member for job in self.by_queue[queue] for member in job.members if member.status in (*HOLDING, PIPELINED)
        )

    def _minimum(self, job: Job) -> Counter[str]:
        return Counter({name: int(amount) for name, amount in (job.record.min_resources or {}).items()})

    def _reserved(self, job: Job, *, whole: bool) -> Counter[str]:
        """The resources that an enqueued job will still take; scheduling gates play no part in these tests."""
        minimum, holding = self._minimum(job), self.holds(job)
        if job.record.phase == "Inqueue":
            return minimum if whole else minimum - holding
        enough = job.count(*HOLDING) >= job.record.min_available
        return minimum - holding if job.record.phase == "Running" and enough else Counter()

    def _deserved(self) -> dict[str, dict[str, Fraction]]:
        total = {name: Fraction(amount) for name, amount in self.total.items()}
        for member in (member for job in self.jobs for member in job.members):
            for name in asked(member.task.shape):
                total.setdefault(name, Fraction(0))
        guaranteed = {
            queue.name: {name: Fraction(queue.guarantee.get(name)) for name in total} for queue in self.queues
        }
        named = {}
        for queue in self.queues:
            if self.by_queue[queue.name]:
                wanting = (PENDING, *HOLDING)
                request = requests(m for job in self.by_queue[queue.name] for m in job.members if m.status in wanting)
                limits = {"cpu": queue.capability.cpu, "memory": queue.capability.memory}
                limits = {name: amount for name, amount in limits.items() if amount} | dict(queue.capability.scalars)
                named[queue.name] = Queue(
                    queue.weight,
                    {name: Fraction(amount) for name, amount in request.items()},
                    {name: Fraction(amount) for name, amount in limits.items()},
                    guaranteed.pop(queue.name),
                )
        return {
            name: {resource: Fraction(round(amount, 6)) for resource, amount in share.items()}
            for name, share in shares(total, named, list(guaranteed.values())).items()
        }

    # Scheduling order

    def share(self, queue: str) -> float:
        taken = self.taken(queue)
        parts = [float(taken[name]) / float(due) for name, due in self.deserved[queue].items() if due >= 0.1]
        return max(parts, default=0.0)

    def first(self, queues: list[QueueRecord]) -> QueueRecord:
        return min(queues, key=lambda queue: (-queue.priority, self.share(queue.name), queue.creation, queue.name))

    def rank(self, job: Job) -> tuple[object, ...]:
        record, taken = job.record, requests(m for m in job.members if m.status in (*HOLDING, PIPELINED))
        share = max((taken[name] / amount for name, amount in self.total.items() if amount), default=0.0)
        return (-record.priority, job.held() >= record.min_available, share, record.creation, *record.key)

    def overused(self, queue: str) -> bool:
        taken = self.taken(queue)
        return self.rules.overused and all(due < taken[name] + 0.1 for name, due in self.deserved[queue].items())

    def may_hold(self, job: Job, shape: Shape) -> bool:
        queue = next(queue for queue in self.queues if queue.name == job.record.queue)
        taken, due = self.taken(queue.name), self.deserved[queue.name]
        fits = (taken[name] + amount <= due[name] for name, amount in asked(shape).items() if amount and name != "pods")
        return not self.rules.allocatable or (queue.open and all(fits))

    # The actions

    def run(self) -> None:
        out = self._enqueue()
        self._allocate(out)
        self._backfill(out)

    def _enqueue(self) -> list[Job]:
        """Return the jobs that are not enqueued."""
        out: list[Job] = []
        waiting = {
            name: [job for job in jobs if job.record.phase in ("", "Pending")] for name, jobs in self.by_queue.items()
        }
        live = [queue for queue in self.queues if waiting[queue.name]]
        while live:
            queue = self.first(live)
            job = min(waiting[queue.name], key=self.rank)
            waiting[queue.name].remove(job)
            if not waiting[queue.name]:
                live.remove(queue)
            if not queue.open or not self._admitted(job, queue.name):
                out.append(job)
            else:
                self.cluster_reserved.update(self._minimum(job))
                self.reserved[queue.name].update(self._minimum(job))
        return out

    def _admitted(self, job: Job, queue: str) -> bool:
        if job.record.min_resources is None:
            return True
        minimum, record = self._minimum(job), next(one for one in self.queues if one.name == queue)
        guaranteed = {name: sum(one.guarantee.get(name) for one in self.queues) for name in minimum}
        taken = self.taken(queue)
        for name, amount in minimum.items():
            if amount == 0 or name == "pods":
                continue
            idle = self.total[name] * FACTOR - self.used[name]
            if self.rules.overcommit and self.cluster_reserved[name] + amount > idle:
                return False
            own = record.guarantee.get(name)
            most = max(self.total[name] - guaranteed[name], 0) + own
            limit = record.capability.get(name)
            if limit or name in record.capability.scalars:
                most = min(most, limit)
            need = amount + taken[name] + self.reserved[queue][name] - self.elastic[queue][name]
            if self.rules.quota and need > most:
                return False
        return True

    def _allocate(self, out: list[Job]) -> None:
        live = {
            name: found
            for name, jobs in self.by_queue.items()
            if (found := [job for job in jobs if job not in out and self.enqueued(job, "Open")])
        }
        while live:
            queue = self.first([queue for queue in self.queues if queue.name in live])
            if self.overused(queue.name):
                del live[queue.name]
                continue
            job = min(live[queue.name], key=self.rank)
            self.turn(job)
            if not job.waiting:
                live[queue.name].remove(job)
            if not live[queue.name]:
                del live[queue.name]

    def _backfill(self, out: list[Job]) -> None:
        turns: list[Job] = []
        live = {name: [job for job in jobs if job not in out and job.valid()] for name, jobs in self.by_queue.items()}
        queues = [queue for queue in self.queues if any(map(self._free, live[queue.name]))]
        while queues:
            queue = self.first(queues)
            queues.remove(queue)
            turns += sorted(filter(self._free, live[queue.name]), key=self.rank)
        for job in turns:
            placed = [member for member in self._free(job) if self.place(member)]
            if job.ready():
                self.binds += [(member.task.record.name, member.node) for member in placed]
            else:
                for member in placed:
                    self.take_back(member)

    def _free(self, job: Job) -> list[Member]:
        """Return the pending best-effort tasks that may be placed, in task order."""
        free = (m for m in job.members if m.status is PENDING and best_effort(m.task.shape))
        ours = (m for m in free if not (m.task.shape.gates or m.task.shape.unsupported or m.task.record.foreign))
        return sorted(ours, key=cmp_to_key(before))


def expected_binds(world: World, rules: Rules | None = None) -> list[tuple[str, str]]:
    """Return (pod, node) in the order of the decisions."""
    cycle = DefaultCycle(world, rules or Rules())
    cycle.run()
    return cycle.binds
