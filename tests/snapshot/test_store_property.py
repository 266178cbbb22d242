"""Whatever happened to a store, it is equal to one that was told only how things are now."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.snapshot.pictures import check_free_rows, picture
from volcano_py.model.objects import JobKey, JobRecord, NodeRecord, QueueRecord, TaintRecord, TaskRecord
from volcano_py.model.shape import HostPort, Shape
from volcano_py.model.statuses import OCCUPYING_STATUSES, TaskStatus
from volcano_py.snapshot.store import ClusterStore

NODES = ["n1", "n2", "n3"]
UIDS = ["a", "b", "c"]
GROUPS = ["j1", "j2"]
RESOURCES = ["cpu", "memory", "pods", "nvidia.com/gpu", "example.com/fpga", "hugepages-2Mi"]

WEB, DNS = HostPort("0.0.0.0", "TCP", 80), HostPort("0.0.0.0", "TCP", 53)
amounts = st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 2**40).map(float), max_size=4)
node_records = st.builds(
    NodeRecord,
    name=st.sampled_from(NODES),
    allocatable=amounts,
    labels=st.dictionaries(st.sampled_from(["zone", "disk"]), st.sampled_from(["x", "y", "z"])),
    taints=st.lists(
        st.builds(TaintRecord, st.sampled_from(["k", "l"]), st.just(""), st.just("NoSchedule")), max_size=2, unique=True
    ).map(tuple),
    unschedulable=st.booleans(),
    closed=st.sampled_from(["", "broken"]),
    images=st.sampled_from([{}, {}, {"web:1": 5}, {"web:1": 5, "web:2": 6}]),
)
shapes = st.builds(
    Shape,
    request=amounts.map(lambda found: tuple(sorted({**found, "pods": 1.0}.items()))),
    nonzero=st.tuples(st.integers(0, 1000).map(float), st.integers(0, 2**30).map(float)),
    gates=st.sampled_from([(), ("g",)]),
    host_ports=st.sampled_from([(), (), (WEB,), (DNS, WEB)]),
)
few_shapes = st.one_of(
    st.sampled_from([Shape(), *(Shape(request=(("cpu", cpu), ("pods", 1.0))) for cpu in (1000.0, 2000.0))]), shapes
)
task_records = st.builds(
    TaskRecord,
    uid=st.sampled_from(UIDS),
    namespace=st.just("default"),
    name=st.sampled_from(["p", "job-worker-7", "job-12"]),
    job=st.sampled_from([None, *GROUPS]),
    priority=st.integers(-5, 5),
    creation=st.integers(0, 9).map(float),
)
places = st.one_of(
    st.tuples(st.sampled_from([*OCCUPYING_STATUSES, TaskStatus.PIPELINED]), st.sampled_from(NODES)),
    st.tuples(
        st.sampled_from([TaskStatus.PENDING, TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.RELEASING]),
        st.just(""),
    ),
)
job_records = st.builds(
    JobRecord,
    key=st.sampled_from(GROUPS).map(lambda name: JobKey("default", name)),
    uid=st.just("u"),
    queue=st.sampled_from(["default", "other"]),
    min_available=st.integers(0, 9),
    min_resources=st.one_of(st.none(), amounts),
    priority=st.integers(-2, 2),
    creation=st.integers(0, 9).map(float),
    phase=st.sampled_from(["", "Inqueue", "Running"]),
)
queue_records = st.builds(QueueRecord, name=st.sampled_from(["q1", "q2"]), weight=st.integers(1, 3))

steps = st.lists(
    st.one_of(
        st.tuples(st.just("set_node"), node_records),
        st.tuples(st.just("remove_node"), st.sampled_from(NODES)),
        st.tuples(st.just("set_task"), task_records, few_shapes, places),
        st.tuples(st.just("set_task"), task_records, few_shapes, places),
        st.tuples(st.just("move_task"), st.sampled_from(UIDS), places),
        st.tuples(st.just("remove_task"), st.sampled_from(UIDS)),
        st.tuples(st.just("set_job"), job_records),
        st.tuples(st.just("remove_job"), st.sampled_from(GROUPS).map(lambda name: JobKey("default", name))),
        st.tuples(st.just("set_queue"), queue_records),
        st.tuples(st.just("remove_queue"), st.sampled_from(["q1", "q2"])),
        st.tuples(st.just("snapshot")),
    ),
    min_size=20,
    max_size=50,
)


@dataclass
class World:
    """How things are, in the plainest form."""

    nodes: dict[str, NodeRecord] = field(default_factory=dict)
    tasks: dict[str, tuple[TaskRecord, Shape, TaskStatus, str]] = field(default_factory=dict)
    jobs: dict[JobKey, JobRecord] = field(default_factory=dict)
    queues: dict[str, QueueRecord] = field(default_factory=dict)

    def rebuilt(self) -> ClusterStore:
        """Return a store that was told only this."""
        store = ClusterStore()
        for task, shape, status, node in self.tasks.values():
            store.set_task(task, shape, status, node)
        for record in self.nodes.values():
            store.set_node(record)
        for job in self.jobs.values():
            store.set_job(job)
        for queue in self.queues.values():
            store.set_queue(queue)
        return store


def take(store: ClusterStore, world: World, step: tuple[Any, ...]) -> None:
    """Do one step to the store and to the world."""
    match step:
        case ("set_node", record):
            store.set_node(record)
            world.nodes[record.name] = record
        case ("remove_node", name):
            store.remove_node(name)
            world.nodes.pop(name, None)
        case ("set_task", record, shape, (status, node)):
            store.set_task(record, shape, status, node)
            world.tasks[record.uid] = (record, shape, status, node)
        case ("move_task", uid, (status, node)):
            if uid in world.tasks:
                store.move_task(uid, status, node)
                world.tasks[uid] = (*world.tasks[uid][:2], status, node)
        case ("remove_task", uid):
            store.remove_task(uid)
            world.tasks.pop(uid, None)
        case ("set_job", record):
            store.set_job(record)
            world.jobs[record.key] = record
        case ("remove_job", key):
            store.remove_job(key)
            world.jobs.pop(key, None)
        case ("set_queue", record):
            store.set_queue(record)
            world.queues[record.name] = record
        case ("remove_queue", name):
            store.remove_queue(name)
            world.queues.pop(name, None)
        case ("snapshot",):
            store.snapshot()  # what a snapshot remembers must not outlive the next change


ON_UNKNOWN_NODES: list[tuple[Any, ...]] = [
    ("snapshot",),
    *(
        ("set_task", TaskRecord(uid, "default", "p"), Shape(), (TaskStatus.BOUND, node))
        for uid, node in zip(UIDS, NODES, strict=True)
    ),
]
SHAPE_NUMBER_USED_AGAIN: list[tuple[Any, ...]] = [
    (
        "set_task",
        TaskRecord("a", "default", "p", "j1"),
        Shape(request=(("cpu", cpu), ("pods", 1.0))),
        (TaskStatus.BOUND, "n1"),
    )
    for cpu in (1000.0, 2000.0, 3000.0)
]


@settings(max_examples=100)
@example(ON_UNKNOWN_NODES)
@example([step for task in SHAPE_NUMBER_USED_AGAIN for step in (("remove_task", "a"), task)])
@given(steps)
def test_a_store_after_any_changes_equals_one_built_from_the_final_state(
    history: list[tuple[Any, ...]],
) -> None:
    store, world = ClusterStore(), World()
    for step in [*history, ("snapshot",)]:
        take(store, world, step)
        if step == ("snapshot",):
            snapshot = store.snapshot()
            assert picture(snapshot) == picture(world.rebuilt().snapshot())
            check_free_rows(snapshot)


@settings(max_examples=30)
@given(steps, steps)
def test_a_snapshot_does_not_see_what_happens_later(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]]
) -> None:
    store, world = ClusterStore(), World()
    for step in before:
        take(store, world, step)
    snapshot = store.snapshot()
    taken = picture(snapshot)

    for step in after:
        take(store, world, step)

    assert picture(snapshot) == taken


@settings(max_examples=30)
@given(steps)
def test_changes_of_a_snapshot_do_not_reach_the_store(history: list[tuple[Any, ...]]) -> None:
    store, world = ClusterStore(), World()
    for step in history:
        take(store, world, step)
    before = picture(store.snapshot())

    spoilt = store.snapshot()
    for array in (
        spoilt.nodes.block,
        spoilt.jobs.block,
        spoilt.jobs.phase,
        spoilt.tasks.status,
        spoilt.tasks.node,
        spoilt.requests,
    ):
        array[...] = 7
    spoilt.queues.clear()

    assert picture(store.snapshot()) == before
