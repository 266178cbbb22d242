"""Task topology in plain Python: buckets, order and scores, one task and one node at a time."""

from dataclasses import dataclass, field

from tests.reference.accounts import NodeAccount, asked, node_accounts
from tests.reference.world import Task, World
from volcano_py.model.objects import JobRecord
from volcano_py.model.statuses import TaskStatus

MIB = 2**20


@dataclass
class Bucket:
    bound: list[Task] = field(default_factory=list)
    waiting: list[Task] = field(default_factory=list)

    @property
    def members(self) -> list[Task]:
        return self.bound + self.waiting

    def load(self) -> float:
        return sum(
            {"memory": amount / MIB}.get(name, amount) for task in self.waiting for name, amount in task.shape.request
        )


@dataclass
class Layout:
    tasks: list[Task]
    affine: set[frozenset[str]]
    apart: set[frozenset[str]]
    order: list[str]
    said: dict[str, int]
    buckets: list[Bucket] = field(default_factory=list)

    def bucket_of(self, task: Task) -> Bucket | None:
        return next((bucket for bucket in self.buckets if task in bucket.members), None)

    def rank(self, role: str) -> tuple[int, int]:
        given = len(self.order) - self.order.index(role) if role in self.order else 0
        return (-given, -self.said.get(role, 0))


def lay_out(world: World, job: JobRecord) -> Layout | None:
    """The buckets of a job, None without a valid topology."""
    tasks = [task for task in world.tasks if task.record.key == job.key]
    texts = job.topology
    if texts is None or not any(task.status is TaskStatus.PENDING for task in tasks):
        return None
    affinity, anti = ([group.split(",") for group in text.split(";")] if text else [] for text in texts[:2])
    order = texts.order.split(",") if texts.order else []
    roles = {task.record.role for task in tasks}
    for group in (*affinity, *anti, order):
        names = [name for name in group if name]
        if len(set(names)) != len(names) or not set(names) <= roles:
            return None
    said: dict[str, int] = {}
    pairs: tuple[set[frozenset[str]], set[frozenset[str]]] = (set(), set())
    for groups, found, alone, several in ((affinity, pairs[0], 2, 3), (anti, pairs[1], 4, 1)):
        for group in groups:
            for role in group:
                said[role] = max(said.get(role, 0), alone if len(group) == 1 else several)
                found |= {frozenset((role, other)) for other in group if len(group) == 1 or other != role}
    layout = Layout(tasks, *pairs, order, said)
    _fill(layout)
    return layout if layout.buckets else None


def _fill(layout: Layout) -> None:
    inside = [task for task in layout.tasks if task.record.role and layout.said.get(task.record.role)]
    standing = sorted((task for task in inside if _stands(task)), key=lambda task: task.node)
    waiting = [task for task in inside if task.status is TaskStatus.PENDING]
    by_node: dict[str, Bucket] = {}
    for task in standing:
        if task.node not in by_node:
            by_node[task.node] = Bucket()
            layout.buckets.append(by_node[task.node])
        by_node[task.node].bound.append(task)
    for task in sorted(waiting, key=lambda task: (*layout.rank(task.record.role), task.record.name)):
        best, chosen = -1, None
        for bucket in layout.buckets:
            pull = sum(_pull(layout, task, other) for other in bucket.members)
            if pull > best or (pull == best and chosen is not None and bucket.load() < chosen.load()):
                best, chosen = pull, bucket
        if chosen is None:
            chosen = Bucket()
            layout.buckets.append(chosen)
        chosen.waiting.append(task)


def _stands(task: Task) -> bool:
    """Whether the task is on a node and is neither terminating nor ended."""
    gone = (TaskStatus.PENDING, TaskStatus.RELEASING, TaskStatus.SUCCEEDED, TaskStatus.FAILED)
    return bool(task.node) and task.status not in gone


def _pull(layout: Layout, task: Task, other: Task) -> int:
    pair = frozenset((task.record.role, other.record.role))
    return (pair in layout.affine) - (pair in layout.apart)


def score(layout: Layout, world: World, task: Task, node: str) -> float:
    """The score of a node for a pending task, with weight 1."""
    account = node_accounts(world)[node]
    bucket = layout.bucket_of(task)
    if bucket is None or not _fits(account, [task]):
        return 0.0
    found = sum(_stands(other) and other.node == node for other in bucket.bound)
    found -= sum(
        frozenset((task.record.role, other.record.role)) in layout.apart
        for other in layout.tasks
        if _stands(other) and other.node == node
    )
    kept = [task, *(other for other in bucket.waiting if other is not _stand_in(bucket, task))]
    while not _fits(account, kept):
        kept.pop()
    return (found + len(kept)) * 100 / max(len(one.members) for one in layout.buckets)


def _stand_in(bucket: Bucket, task: Task) -> Task:
    """The first pending task of the same equivalence class, which stands in for this one."""
    return next(other for other in bucket.waiting if (other.shape, other.record.role) == (task.shape, task.record.role))


def _fits(account: NodeAccount, tasks: list[Task]) -> bool:
    names = {"cpu", "memory"} | {name for task in tasks for name, _ in task.shape.request}
    return all(
        sum(asked(task.shape).get(name, 0) for task in tasks) <= account.idle(name) + account.releasing[name]
        for name in names
    )
