from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row, node_row, task_row
from tests.reference import topology
from tests.reference.furnished import with_topology
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.session import Session
from volcano_py.framework.state.equivalence import EquivalenceClasses
from volcano_py.model.arrays import Floats
from volcano_py.model.objects import JobKey, TopologyTexts
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.task_topology import TaskTopology
from volcano_py.plugins.task_topology.annotations import InvalidTopology, read
from volcano_py.plugins.task_topology.plugin import TaskTopologyArgs

PS_AND_WORKERS = TopologyTexts("ps,worker", "ps", None)


def a_world(*tasks: object, texts: TopologyTexts | None = PS_AND_WORKERS, nodes: int = 3, cpu: int = 3) -> World:
    """Return nodes of three cores and a job of two parameter servers and four workers of one core each."""
    members = tasks or (*tasks_of("j", 2, role="ps"), *tasks_of("j", 4, role="worker"))
    return World(
        nodes=tuple(a_node(f"n{row}", cpu=cpu) for row in range(nodes)),
        jobs=(a_job("j", topology=texts),),
        tasks=members,  # type: ignore[arg-type]
    )


def order_of(ssn: Session) -> list[str]:
    return [
        ssn.state.tasks.record(row).name.removeprefix("j-") for row in ssn.hooks.pending.of(job_row(ssn, "j")).tolist()
    ]


def scores(ssn: Session, plugin: TaskTopology, name: str) -> list[float]:
    task = ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, name)]))
    found: Floats = plugin.node_order(task, ssn.state.nodes)
    return found.round(6).tolist()


def put(ssn: Session, name: str, node: str) -> None:
    row = task_row(ssn, name)
    ssn.statement().allocate(
        int(ssn.state.tasks.job[row]), int(ssn.state.tasks.shape[row]), np.array([row]), np.array([node_row(ssn, node)])
    )


def test_each_parameter_server_is_placed_with_its_share_of_workers() -> None:
    ssn = a_session(a_world(), TaskTopology())

    assert order_of(ssn) == ["ps-0", "worker-0", "worker-2", "ps-1", "worker-1", "worker-3"]


def test_the_annotated_order_goes_first() -> None:
    texts = PS_AND_WORKERS._replace(order="worker,ps")

    assert order_of(a_session(a_world(texts=texts), TaskTopology()))[:2] == ["worker-0", "worker-1"]


def test_roles_without_a_topology_come_last() -> None:
    members = (*tasks_of("j", 2, role="chief"), *tasks_of("j", 2, role="ps"))

    ssn = a_session(a_world(*members, texts=TopologyTexts(None, "ps", "chief")), TaskTopology())
    assert order_of(ssn) == ["ps-0", "ps-1", "chief-0", "chief-1"]


def test_a_node_with_a_part_of_the_bucket_is_the_best_one_for_the_rest() -> None:
    plugin = TaskTopology(TaskTopologyArgs(weight=3))
    ssn = a_session(a_world(), plugin)
    assert scores(ssn, plugin, "j-worker-0") == [300, 300, 300]

    put(ssn, "j-ps-0", "n1")
    # n1: one stands there, two wait and fit. Elsewhere only the two that wait.
    assert scores(ssn, plugin, "j-worker-0") == [200, 300, 200]
    # The other server stays away from the first; there is room for two of its three.
    assert scores(ssn, plugin, "j-ps-1") == [300, 100, 300]


def test_room_for_a_part_of_the_bucket_counts_as_that_part() -> None:
    plugin = TaskTopology()
    world = a_world()
    standing = (a_task("s", a_shape(cpu=2), status=TaskStatus.RUNNING, node="n0"),)
    leaving = (a_task("l", a_shape(cpu=1), status=TaskStatus.RELEASING, node="n1"),)
    full = (a_task("f", a_shape(cpu=3), status=TaskStatus.RUNNING, node="n2"),)
    ssn = a_session(replace(world, tasks=(*world.tasks, *standing, *leaving, *full)), plugin)

    assert scores(ssn, plugin, "j-ps-0") == pytest.approx([100 / 3, 100, 0], abs=1e-5)


def test_a_score_does_not_look_at_every_waiting_task_of_the_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    task_of = EquivalenceClasses.task_of
    monkeypatch.setattr(EquivalenceClasses, "task_of", lambda self, one: asked.append(one) or task_of(self, one))
    plugin = TaskTopology()
    ssn = a_session(a_world(*tasks_of("j", 1, role="ps"), *tasks_of("j", 40, role="worker")), plugin)
    task = ssn.state.task_of(int(ssn.state.tasks.shape[task_row(ssn, "j-ps-0")]))
    before = len(asked)

    plugin.node_order(task, ssn.state.nodes)

    assert len(asked) - before <= 2


def test_tasks_bound_in_earlier_sessions_attract_and_repel() -> None:
    plugin = TaskTopology()
    running = (a_task("j-ps-0", a_shape(cpu=1), job="j", role="ps", status=TaskStatus.RUNNING, node="n2"),)
    ssn = a_session(a_world(*running, *tasks_of("j", 1, role="ps", first=1), *tasks_of("j", 2, role="worker")), plugin)

    assert scores(ssn, plugin, "j-ps-1")[2] < scores(ssn, plugin, "j-ps-1")[0]
    assert scores(ssn, plugin, "j-worker-0")[2] > scores(ssn, plugin, "j-worker-0")[0]


def test_an_undone_placement_no_longer_attracts() -> None:
    plugin = TaskTopology()
    ssn = a_session(a_world(), plugin)
    before = scores(ssn, plugin, "j-worker-0"), scores(ssn, plugin, "j-ps-1")
    row = task_row(ssn, "j-ps-0")

    statement = ssn.statement()
    statement.pipeline(job_row(ssn, "j"), int(ssn.state.tasks.shape[row]), np.array([row]), np.array([0]))
    assert (scores(ssn, plugin, "j-worker-0"), scores(ssn, plugin, "j-ps-1")) != before
    statement.discard()
    assert (scores(ssn, plugin, "j-worker-0"), scores(ssn, plugin, "j-ps-1")) == before


def test_an_evicted_task_does_not_attract_unless_it_is_put_back() -> None:
    plugin = TaskTopology()
    running = (a_task("j-ps-0", a_shape(cpu=1), job="j", role="ps", status=TaskStatus.RUNNING, node="n2"),)
    ssn = a_session(a_world(*running, *tasks_of("j", 2, role="worker")), plugin)
    before, row = scores(ssn, plugin, "j-worker-0"), task_row(ssn, "j-ps-0")
    statement = ssn.statement()

    statement.evict(np.array([row]))
    assert len(set(scores(ssn, plugin, "j-worker-0"))) == 1
    statement.put_back(row)
    assert scores(ssn, plugin, "j-worker-0") == before


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(None, id="none"),
        pytest.param(TopologyTexts("ps,chief", "ps", None), id="a-role-that-is-not-there"),
        pytest.param(TopologyTexts("ps,ps", "ps", None), id="a-role-twice"),
        pytest.param(TopologyTexts("ps,worker", "ps", "chief"), id="an-order-of-others"),
        pytest.param(TopologyTexts(None, None, "ps,worker"), id="an-order-alone"),
        pytest.param(TopologyTexts(" ps,worker", None, None), id="a-space"),
    ],
)
def test_without_valid_annotations_there_is_no_topology(texts: TopologyTexts | None) -> None:
    plugin = TaskTopology()
    ssn = a_session(a_world(texts=texts), plugin)

    assert len(ssn.state.classes.shapes) == 1
    assert scores(ssn, plugin, "j-ps-0") == [0, 0, 0]
    assert ssn.hooks.nodes.node_local(0)


def test_an_annotation_error_names_role_and_job() -> None:
    with pytest.raises(InvalidTopology, match="task chief do not exist in job <ns/j>"):
        read(TopologyTexts("ps,chief", None, None), {"ps"}, JobKey("ns", "j"))
    with pytest.raises(InvalidTopology, match="task ps is duplicate in job <ns/j>"):
        read(TopologyTexts(None, None, "ps,ps"), {"ps"}, JobKey("ns", "j"))


@pytest.mark.parametrize("args", [{"task-topology.weight": 10}, {"task-topology.weight": "10"}, {}])
def test_arguments(args: dict[str, object]) -> None:
    assert TaskTopology.parse(args, lambda text: None).weight == (10 if args.get("task-topology.weight") == 10 else 1)


def test_the_order_of_arrival_changes_nothing() -> None:
    world = a_world()
    found = []
    for shuffle in range(5):
        plugin = TaskTopology()
        ssn = a_session(world.store(shuffle), plugin)
        put(ssn, "j-ps-0", "n1")
        found.append((order_of(ssn), scores(ssn, plugin, "j-worker-1"), scores(ssn, plugin, "j-ps-1")))
    assert all(one == found[0] for one in found)


def _compare(world: World, ssn: Session, plugin: TaskTopology, opened: World, at: str) -> int:
    """Compare the scores of waiting tasks with the reference; buckets are those at the opening. Return how many."""
    compared = 0
    for job in world.jobs:
        layout = topology.lay_out(opened, job)
        if layout is None:
            continue
        _move(layout, world)
        for task in (task for task in layout.tasks if task.status is TaskStatus.PENDING):
            found = scores(ssn, plugin, task.record.name)
            expected = [topology.score(layout, world, task, name) for name in ssn.state.nodes.names]
            assert found == pytest.approx(expected, abs=1e-5), f"{at}, {task.record.name}"
            compared += layout.bucket_of(task) is not None
    return compared


def _move(layout: topology.Layout, world: World) -> None:
    """Let the tasks of buckets stand where they stand now."""
    now = {task.record.uid: task for task in world.tasks}
    for bucket in layout.buckets:
        waiting = [now[task.record.uid] for task in bucket.waiting]
        bucket.bound += [task for task in waiting if task.status is not TaskStatus.PENDING]
        bucket.waiting = [task for task in waiting if task.status is TaskStatus.PENDING]
        bucket.bound = [now[task.record.uid] for task in bucket.bound]
    layout.tasks = [now[task.record.uid] for task in layout.tasks]


def test_scores_and_order_equal_the_reference_also_after_placements() -> None:
    compared = 0
    for number in range(40):
        world, random, plugin = with_topology(number), Random(number), TaskTopology()
        ssn = a_session(world, plugin)
        _compare_order(world, ssn, number)
        compared += _compare(world, ssn, plugin, world, f"with_topology({number})")
        tasks = list(world.tasks)
        for place, task in enumerate(tasks):
            if task.status is TaskStatus.PENDING and random.random() < 0.4:
                node = random.choice(world.nodes).name
                put(ssn, task.record.name, node)
                tasks[place] = replace(task, status=TaskStatus.ALLOCATED, node=node)
        compared += _compare(replace(world, tasks=tuple(tasks)), ssn, plugin, world, f"with_topology({number}), later")
    assert compared > 100


def _compare_order(world: World, ssn: Session, number: int) -> None:
    for job in world.jobs:
        layout = topology.lay_out(world, job)
        if layout is None:
            continue
        found = [ssn.state.tasks.record(row) for row in ssn.hooks.pending.of(job_row(ssn, job.key.name)).tolist()]
        ranks = []
        for record in found:
            task = next(task for task in layout.tasks if task.record.uid == record.uid)
            bucket = layout.bucket_of(task)
            if bucket is None:
                ranks.append((1, 0, 0, 0, 0))
            else:
                ranks.append((0, -len(bucket.waiting), layout.buckets.index(bucket), *layout.rank(record.role)))
        assert ranks == sorted(ranks), f"with_topology({number}), {job.key}"
