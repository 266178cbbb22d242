"""A whole cycle of enqueue and allocate, one task and one node at a time.

Queues are ordered by creation time and name; jobs in a queue by priority, then unready before ready, then creation time
and name; tasks in a job by priority, number in the name, creation time and uid. A job's turn lasts until it is ready;
its other tasks wait for its next turn. If one task of a shape is refused, all tasks of that shape are refused.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cmp_to_key

from tests.reference import inter_pod_terms, scoring
from tests.reference.accounts import READY, NodeAccount, best_effort, node_accounts, ports_free, takes, tasks_by_job
from tests.reference.ranking import ALL, Weights, nodeorder
from tests.reference.selection import static_reason
from tests.reference.world import Task, World
from volcano_py.model.objects import JobRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus

PENDING, ALLOCATED, PIPELINED = TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED


@dataclass(frozen=True)
class Rules:
    """Which policies are enabled."""

    gang: bool = True
    predicates: bool = True
    nodeorder: Weights = ALL
    binpack: int = 0
    overcommit: bool = True  # this and the next fields apply only under the default configuration
    quota: bool = True  # proportion votes on which jobs are enqueued
    allocatable: bool = True
    overused: bool = True
    weights: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})


@dataclass
class Member:
    task: Task
    status: TaskStatus
    node: str = ""


@dataclass
class Job:
    record: JobRecord
    members: list[Member]
    waiting: list[Member] = field(default_factory=list)
    refused: set[object] = field(default_factory=set)  # equivalence classes of tasks

    def count(self, *statuses: TaskStatus) -> int:
        return sum(member.status in statuses for member in self.members)

    def held(self) -> int:
        free = sum(member.status is PENDING and best_effort(member.task.shape) for member in self.members)
        return self.count(*READY) + free

    def role_rule(self) -> bool:
        roles = self.record.task_min_available
        return bool(roles) and self.record.min_available >= sum(roles.values())

    def roles(self, *statuses: TaskStatus, with_best_effort: bool) -> Counter[str]:
        return Counter(
            member.task.record.role
            for member in self.members
            if member.status in statuses
            or (with_best_effort and member.status is PENDING and best_effort(member.task.shape))
        )

    def short(self, *statuses: TaskStatus, with_best_effort: bool) -> bool:
        if not self.role_rule():
            return False
        have = self.roles(*statuses, with_best_effort=with_best_effort)
        return any(have[role] < minimum for role, minimum in self.record.task_min_available.items())

    def ready(self) -> bool:
        return self.held() >= self.record.min_available and not self.short(*READY, with_best_effort=True)

    def pipelined(self) -> bool:
        enough = self.held() + self.count(PIPELINED) >= self.record.min_available
        return enough and not self.short(*READY, PIPELINED, with_best_effort=True)

    def valid(self) -> bool:
        may = (*READY, PIPELINED, PENDING)
        return self.count(*may) >= self.record.min_available and not self.short(*may, with_best_effort=False)

    def go_on(self, failed: set[str]) -> bool:
        """Return whether to try other tasks after these roles failed (Volcano: NeedContinueAllocating)."""
        minimum, roles = self.record.min_available, self.record.task_min_available
        if minimum >= len(self.members):
            return False
        if minimum < sum(roles.values()):
            pending = self.roles(PENDING, with_best_effort=False)
            return self.count(*READY) + sum(n for role, n in pending.items() if role not in failed) >= minimum
        have = self.roles(*READY, with_best_effort=True)
        return all(have[role] >= roles.get(role, 0) for role in failed)


class Cycle:
    def __init__(self, world: World, rules: Rules) -> None:
        self.rules = rules
        self.nodes = node_accounts(world)
        self.placed = inter_pod_terms.placed_pods(world)
        self.selectors = {selector for task in world.tasks for selector in task.shape.selectors}
        self.binds: list[tuple[str, str]] = []
        members = tasks_by_job(world)
        self.jobs = [
            Job(record, [Member(task, task.status) for task in members.get(record.key, [])]) for record in world.jobs
        ]
        self.queues = sorted(world.queues, key=lambda queue: (queue.creation, queue.name))

    def run(self) -> None:
        for queue in self.queues:
            jobs = [job for job in self.jobs if job.record.queue == queue.name and self.enqueued(job, queue.state)]
            while jobs:
                job = min(jobs, key=self.rank)
                self.turn(job)
                if not job.waiting:
                    jobs.remove(job)

    def enqueued(self, job: Job, state: str) -> bool:
        if job.record.phase in ("", "Pending") and state not in ("", "Open"):
            return False
        if self.rules.gang and not job.valid():
            return False
        job.waiting = sorted(
            (member for member in job.members if member.status is PENDING and _placeable(member.task)),
            key=cmp_to_key(before),
        )
        return bool(job.waiting)

    def rank(self, job: Job) -> tuple[object, ...]:
        record = job.record
        ready = job.held() >= record.min_available if self.rules.gang else True
        return (-record.priority, ready, record.creation, *record.key)

    def turn(self, job: Job) -> None:
        placed: list[Member] = []
        failed: set[str] = set()
        while job.waiting:
            member = job.waiting.pop(0)
            shape, kind = member.task.shape, self.kind(member.task)
            if kind in job.refused:
                continue
            if not self.may_hold(job, shape):
                job.refused.add(kind)
            elif self.place(member):
                placed.append(member)
            else:
                job.refused.add(kind)
                failed.add(member.task.record.role)
                if not job.go_on(failed):
                    break
            if self.is_ready(job):
                break
        if self.is_ready(job):
            self.binds += [(one.task.record.name, one.node) for one in placed if one.status is ALLOCATED]
            return
        job.waiting = []
        if self.rules.gang and not job.pipelined():
            for member in placed:
                self.take_back(member)

    def is_ready(self, job: Job) -> bool:
        return job.ready() if self.rules.gang else True

    def kind(self, task: Task) -> object:
        """Return the equivalence class of a task: every answer about two tasks of one class is the same."""
        return task.shape, frozenset(one for one in self.selectors if self.placed.means(one, task))

    def may_hold(self, job: Job, shape: Shape) -> bool:
        """Return whether the job's queue may hold one more task like this."""
        return True

    def place(self, member: Member) -> bool:
        shape = member.task.shape
        open_nodes = [node for node in self.nodes.values() if self.feasible(member.task, node)]
        for status, future in ((ALLOCATED, False), (PIPELINED, True))[: 1 if best_effort(shape) else 2]:
            group = [node for node in open_nodes if takes(shape, node, future=future)]
            if group:
                scores = self.scores(member.task, group)
                best = group[scores.index(max(scores))]  # the first of equals, by name
                member.status, member.node = status, best.record.name
                best.put(shape, status)
                self.placed.pods.append(inter_pod_terms.PlacedPod(member.task, member.node))
                return True
        return False

    def feasible(self, task: Task, node: NodeAccount) -> bool:
        shape = task.shape
        if node.record.closed:
            return False
        if not self.rules.predicates:
            return True
        if static_reason(shape, node.record) or not ports_free(shape, node):
            return False
        if inter_pod_terms.affinity_reason(task, node.record, self.placed):
            return False
        if inter_pod_terms.spread_reason(task, node.record, self.placed):
            return False
        return node.pods < node.allocatable["pods"]

    def scores(self, task: Task, group: list[NodeAccount]) -> list[Fraction]:
        rules, everybody, shape = self.rules, list(self.nodes.values()), task.shape
        scores = [Fraction(score) for score in nodeorder(shape, group, everybody, rules.nodeorder)]
        records = [node.record for node in group]
        wishes = inter_pod_terms.affinity_scores(task, records, self.placed)
        even = inter_pod_terms.spread_scores(task, records, self.placed)
        by = rules.nodeorder
        scores = [
            score + by.pod_affinity * wish + by.pod_spread * flat
            for score, wish, flat in zip(scores, wishes, even, strict=True)
        ]
        if not rules.binpack:
            return scores
        packed = (scoring.binpack(shape, node, rules.weights, rules.binpack) for node in group)
        return [score + more for score, more in zip(scores, packed, strict=True)]

    def take_back(self, member: Member) -> None:
        node, shape, status = self.nodes[member.node], member.task.shape, member.status
        books = node.pipelined if status is PIPELINED else node.used
        books.subtract({name: int(amount) for name, amount in shape.request})
        node.nonzero_cpu -= int(shape.nonzero[0])
        node.nonzero_memory -= int(shape.nonzero[1])
        node.pods -= 1
        self.placed.pods.remove(inter_pod_terms.PlacedPod(member.task, member.node))
        for port in shape.host_ports:
            node.ports.remove(port)
        member.status, member.node = PENDING, ""


def expected_binds(world: World, rules: Rules | None = None) -> list[tuple[str, str]]:
    """Return (pod, node) in the order of the decisions."""
    cycle = Cycle(world, rules or Rules())
    cycle.run()
    return cycle.binds


def _placeable(task: Task) -> bool:
    shape = task.shape
    return not (best_effort(shape) or shape.gates or shape.unsupported or task.record.foreign)


def before(left: Member, right: Member) -> int:
    one, other = left.task.record, right.task.record
    if one.priority != other.priority:
        return other.priority - one.priority
    numbers = number(one.name), number(other.name)
    if None not in numbers and numbers[0] != numbers[1]:
        return -1 if numbers[0] < numbers[1] else 1  # type: ignore[operator]
    return -1 if (one.creation, one.uid) < (other.creation, other.uid) else 1


def number(name: str) -> int | None:
    """Return the number after the last dash of a name of at least three parts."""
    parts = name.split("-")
    return int(parts[-1]) if len(parts) > 2 and parts[-1].isdigit() else None
