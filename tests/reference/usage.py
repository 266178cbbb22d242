"""Measured load of nodes, task by task."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.reference.world import Task, World
from volcano_py.model.loads import NodeLoad
from volcano_py.model.objects import NodeRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus

HIDDEN = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND)
MIB = 2**20


@dataclass
class Busy:
    """One node: its measured load and the plugin's estimate on top of it, with the default arguments."""

    record: NodeRecord
    load: NodeLoad | None
    threshold: float
    estimated: list[float] = field(default_factory=lambda: [0.0, 0.0])

    @property
    def fresh(self) -> bool:
        return self.load is not None and self.load.measured >= -300

    def loads(self) -> tuple[float, float]:
        percents = (0.0, 0.0) if self.load is None else self.load[:2]
        found = []
        for percent, estimated, capacity in zip(percents, self.estimated, self.record.capacity, strict=True):
            value = (percent / 100 * capacity + estimated) / capacity if capacity > 0 else 0.0
            found.append(min(max(value, 0.0), 1.0))
        return found[0], found[1]

    def add(self, shape: Shape) -> None:
        cpu, memory = self.loads()
        for row, amount in enumerate(estimate(shape, 1.2 if (cpu + memory) / 2 >= self.threshold else 1.0)):
            self.estimated[row] += amount

    def score(self) -> float:
        cpu, memory = self.loads()
        return ((1 - cpu) + (1 - memory)) / 2 * 500 if self.fresh else 0.0

    def refusal(self) -> str | None:
        if self.load is None or not self.fresh:
            return None
        return "cpu-load" if self.load.cpu > 80 else "memory-load" if self.load.memory > 80 else None


def estimate(shape: Shape, risk: float) -> tuple[float, float]:
    if shape.best_effort:
        return 250 * risk, 200 * MIB * risk
    asked = dict(shape.request)
    found = []
    for name, limit in zip(("cpu", "memory"), shape.limits, strict=True):
        most = max(limit, asked.get(name, 0.0))
        found.append(min(asked.get(name, 0.0) * 0.7 * risk, most))
    return found[0], found[1]


def busy_nodes(
    world: World, loads: Mapping[str, NodeLoad], threshold: float, interval: float = 30.0
) -> dict[str, Busy]:
    """The nodes at a session that opens at time 0."""
    nodes = {node.name: Busy(node, loads.get(node.name), threshold) for node in world.nodes}
    for task in _in_order(world.tasks):
        if task.node in nodes and nodes[task.node].fresh and _hidden(task, interval):
            nodes[task.node].add(task.shape)
    return nodes


def _in_order(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: (task.record.creation, task.record.uid))


def _hidden(task: Task, interval: float) -> bool:
    running = task.status is TaskStatus.RUNNING
    return task.status in HIDDEN or (running and (task.record.started == 0 or task.record.started > -interval))
