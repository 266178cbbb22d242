"""Crowded clusters, one for each number: several jobs in each queue, and more requests than resources.

Capacities and sums of weights are powers of two, so that ratios and shares are exact in floating point and ties are
exact.
"""

from random import Random

from tests.reference.strategies import CORDON, PORTS, PREFERENCES, SOFT_TAINTS
from tests.reference.world import GPU, Task, World, a_job, a_node, a_shape, a_task, amounts
from volcano_py.model.objects import JobRecord, NodeRecord, QueueRecord, TaintRecord
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.shape import Shape, Tolerance
from volcano_py.model.statuses import TaskStatus

LIMITS = ({}, {}, {}, {"cpu": "2048m"}, {"memory": "2Gi"}, {"cpu": 8, "gpu": 0})
GUARANTEES = ({}, {}, {"cpu": "1024m"})
MINIMUMS = (None, None, {}, {"cpu": "512m"}, {"cpu": 2, "memory": "1Gi"}, {"cpu": 5}, {"cpu": 40}, {"gpu": 1})
PHASES = ("Pending", "Pending", "", "Inqueue", "Inqueue", "Running", "Unknown")
STANDING = (TaskStatus.RUNNING, TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.RELEASING)


def busy_world(number: int) -> World:
    """Return the cluster of a number, always the same."""
    random = Random(number)
    nodes = tuple(_node(random, f"n{row}") for row in range(random.randint(2, 6)))
    shapes = [_shape(random) for _ in range(random.randint(1, 3))]
    weights = random.choice(((1, 1), (3, 1), (1, 3)))
    queues = tuple(_queue(random, name, weight) for name, weight in zip(("default", "other"), weights, strict=True))
    jobs: list[JobRecord] = []
    tasks: list[Task] = []
    for row in range(random.randint(2, 6)):
        record, members = _job(random, f"j{row}", shapes, [node.name for node in nodes])
        jobs.append(record)
        tasks += members
    return World(nodes, queues, tuple(jobs), tuple(tasks))


def _node(random: Random, name: str) -> NodeRecord:
    gpu = {"gpu": random.choice((1, 2))} if random.random() < 0.3 else {}
    hard = (TaintRecord("k", "v", "NoSchedule"),) if random.random() < 0.1 else ()
    return a_node(
        name,
        cpu=random.choice(("1024m", "2048m", "4096m")),
        memory=random.choice(("1Gi", "2Gi", "4Gi")),
        pods=random.choice((3, 8, 110, 110)),
        labels=random.choice(({}, {"zone": "a"}, {"zone": "b"})),
        taints=hard or random.choice(SOFT_TAINTS),
        unschedulable=random.random() < 0.05,
        images={"big": 900 * 2**20, "small": 60 * 2**20} if random.random() < 0.2 else {},
        **gpu,
    )


def _shape(random: Random) -> Shape:
    if random.random() < 0.15:
        return a_shape(host_ports=random.choice(PORTS) if random.random() < 0.3 else ())
    return a_shape(
        cpu=random.choice(("128m", "256m", "512m", "1024m")),
        memory=random.choice((None, "128Mi", "256Mi", "512Mi")),
        preferred=random.choice(PREFERENCES),
        images=random.choice(((), (), ("big",), ("big", "small"))),
        host_ports=random.choice(PORTS) if random.random() < 0.1 else (),
        tolerations=random.choice(((), (), (Tolerance("a", "Exists"),), (Tolerance(CORDON, "Exists"),))),
        gates=("g",) if random.random() < 0.03 else (),
        node_selector={"zone": "a"} if random.random() < 0.1 else {},
        **({GPU: 1} if random.random() < 0.15 else {}),
    )


def _queue(random: Random, name: str, weight: int) -> QueueRecord:
    return QueueRecord(
        name,
        weight=weight,
        state=random.choice(("Open", "Open", "Open", "", "Closed" if random.random() < 0.3 else "Open")),
        priority=random.choice((0, 0, 0, 5)),
        creation=random.choice((0.0, 1.0)),
        capability=ResourceList.of(amounts(**random.choice(LIMITS))),
        guarantee=ResourceList.of(amounts(**random.choice(GUARANTEES))),
    )


def _job(random: Random, name: str, shapes: list[Shape], nodes: list[str]) -> tuple[JobRecord, list[Task]]:
    roles = random.choice((("",), ("",), ("a", "b")))
    minimum = random.choice(MINIMUMS)
    tasks = []
    for row in range(random.randint(1, 7)):
        status = random.choice(STANDING) if random.random() < 0.25 else TaskStatus.PENDING
        task = a_task(
            f"{name}-x-{row}",
            random.choice(shapes),
            job=name,
            role=random.choice(roles),
            status=status,
            node="" if status is TaskStatus.PENDING else random.choice(nodes),
            priority=random.choice((1, 1, 5)),
        )
        tasks.append(task)
    record = a_job(
        name,
        queue="missing" if random.random() < 0.03 else random.choice(("default", "other")),
        min_available=random.choice((0, 1, 2, len(tasks))),
        task_min_available={"a": random.randint(0, 2), "b": random.randint(0, 2)} if "a" in roles else {},
        min_resources=None if minimum is None else amounts(**minimum),
        priority=random.choice((0, 0, 0, 10)),
        creation=random.choice((0.0, 5.0)),
        phase=random.choice(PHASES),
    )
    return record, tasks
