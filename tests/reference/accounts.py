"""What nodes and jobs hold, counted pod by pod in whole numbers."""

from collections import Counter
from dataclasses import dataclass, field

from tests.reference.world import Task, World
from volcano_py.model.objects import JobKey, NodeRecord
from volcano_py.model.shape import HostPort, Shape
from volcano_py.model.statuses import TaskStatus

HOLDING = {
    TaskStatus.ALLOCATED,
    TaskStatus.BINDING,
    TaskStatus.BOUND,
    TaskStatus.RUNNING,
    TaskStatus.RELEASING,
    TaskStatus.UNKNOWN,
}
READY = {TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.SUCCEEDED}


@dataclass
class NodeAccount:
    """The quantities of one node."""

    record: NodeRecord
    allocatable: Counter[str] = field(default_factory=Counter)
    used: Counter[str] = field(default_factory=Counter)
    releasing: Counter[str] = field(default_factory=Counter)
    pipelined: Counter[str] = field(default_factory=Counter)
    nonzero_cpu: int = 0
    nonzero_memory: int = 0
    pods: int = 0
    ports: list[HostPort] = field(default_factory=list)

    def idle(self, name: str) -> int:
        return self.allocatable[name] - self.used[name]

    def future_idle(self, name: str) -> int:
        return self.idle(name) + self.releasing[name] - self.pipelined[name]

    def put(self, shape: Shape, status: TaskStatus) -> None:
        if status not in HOLDING and status is not TaskStatus.PIPELINED:
            return
        request = asked(shape)
        if status is TaskStatus.PIPELINED:
            self.pipelined.update(request)
        else:
            self.used.update(request)
        if status is TaskStatus.RELEASING:
            self.releasing.update(request)
        self.nonzero_cpu += int(shape.nonzero[0])
        self.nonzero_memory += int(shape.nonzero[1])
        self.pods += 1
        self.ports += shape.host_ports


def asked(shape: Shape) -> dict[str, int]:
    return {name: int(amount) for name, amount in shape.request}


def best_effort(shape: Shape) -> bool:
    return all(name == "pods" or amount == 0 for name, amount in asked(shape).items())


def account(record: NodeRecord) -> NodeAccount:
    return NodeAccount(record, Counter({name: int(amount) for name, amount in record.allocatable.items()}))


def node_accounts(world: World) -> dict[str, NodeAccount]:
    accounts = {node.name: account(node) for node in sorted(world.nodes, key=lambda node: node.name)}
    for task in world.tasks:
        if task.node in accounts:
            accounts[task.node].put(task.shape, task.status)
    return accounts


def tasks_by_job(world: World) -> dict[JobKey, list[Task]]:
    by_job: dict[JobKey, list[Task]] = {}
    for task in world.tasks:
        if task.record.key is not None:
            by_job.setdefault(task.record.key, []).append(task)
    return by_job


def fits(shape: Shape, account: NodeAccount, *, future: bool = False) -> bool:
    """Return whether cpu, memory and every requested resource is available."""
    has = account.future_idle if future else account.idle
    request = asked(shape)
    return all(request.get(name, 0) <= has(name) for name in {"cpu", "memory", *request})


def takes(shape: Shape, account: NodeAccount, *, future: bool) -> bool:
    """Return whether the request is idle (``future``: will be), and remains after all pipelined tasks."""
    return fits(shape, account, future=True) and (future or fits(shape, account))


def ports_free(shape: Shape, account: NodeAccount) -> bool:
    """Return whether no requested port is taken: same port and protocol, and overlapping addresses."""
    anywhere = "0.0.0.0"
    for want in shape.host_ports:
        for used in account.ports:
            overlap = want.ip == used.ip or anywhere in (want.ip, used.ip)
            if (want.protocol, want.port) == (used.protocol, used.port) and overlap:
                return False
    return True
