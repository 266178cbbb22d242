from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from tests.framework.sessions import a_session, job_row, node_row, task_row
from tests.reference.strategies import worlds
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from tests.scheduler.running import cycle
from volcano_py.framework.session import Session
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.drf import Drf
from volcano_py.plugins.drf.tree import dominant_share

HOLDING = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING, TaskStatus.PIPELINED)
CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: drf
  - name: predicates
"""


def shares(ssn: Session) -> dict[str, float]:
    plugin = ssn.hooks.plugins()[0]
    assert isinstance(plugin, Drf)
    keys = plugin.job_order(ssn.state.jobs).tolist()
    return {record.key.name: keys[row] for row, record in enumerate(ssn.state.jobs.records) if record is not None}


@pytest.mark.parametrize(
    ("taken", "total", "share"),
    [
        pytest.param([1, 1], [10, 10], 0.1, id="even"),
        pytest.param([1, 5], [10, 10], 0.5, id="the-dominant-one-counts"),
        pytest.param([0, 0], [10, 10], 0, id="nothing"),
        pytest.param([20, 0], [10, 10], 2, id="more-than-there-is"),
        pytest.param([], [], 0, id="nothing-to-share"),
    ],
)
def test_a_dominant_share(taken: list[float], total: list[float], share: float) -> None:
    assert dominant_share(np.array([taken]).T, np.array(total)).tolist() == [share]


def test_pods_count_as_a_resource_and_resources_that_no_node_has_do_not() -> None:
    gpu = a_shape(cpu="100m", memory="100Mi", gpu=1)
    world = World(
        nodes=(a_node("n1", cpu=10, memory="100Gi", pods=4),),
        jobs=(a_job("many"), a_job("gpu")),
        tasks=(
            *tasks_of("many", 2, a_shape(cpu="100m", memory="100Mi"), status=TaskStatus.RUNNING, node="n1"),
            *tasks_of("gpu", 1, gpu, status=TaskStatus.RUNNING, node="n1"),
        ),
    )

    assert shares(a_session(world, Drf())) == {"many": 0.5, "gpu": 0.25}


def test_a_share_follows_allocations_and_their_undo() -> None:
    world = World(nodes=(a_node("n1", cpu=4),), jobs=(a_job("j"),), tasks=tasks_of("j", 2))
    ssn = a_session(world, Drf())
    before = shares(ssn)
    rows = np.array([task_row(ssn, "j-0"), task_row(ssn, "j-1")])
    job, node, shape = job_row(ssn, "j"), np.array([node_row(ssn, "n1")]), int(ssn.state.tasks.shape[rows[0]])

    statement = ssn.statement()
    statement.allocate(job, shape, rows[:1], node)
    assert shares(ssn) == {"j": 0.25}
    statement.pipeline(job, shape, rows[1:], node)
    assert shares(ssn) == {"j": 0.5}
    statement.discard()

    assert shares(ssn) == before == {"j": 0.0}


def test_jobs_without_any_node_have_no_share() -> None:
    assert shares(a_session(World(jobs=(a_job("j"),)), Drf())) == {"j": 0.0}


def test_a_large_and_a_small_job_of_equal_pods_run_equally_many() -> None:
    world = World(
        nodes=tuple(a_node(f"n{index}", cpu=10) for index in range(5)),
        jobs=(a_job("large", creation=0.0), a_job("small", creation=1.0)),
        tasks=(*tasks_of("large", 300), *tasks_of("small", 60)),
    )

    bound = Counter(name.split("-")[0] for name, _ in cycle(world, CONF).binds)

    assert bound == {"large": 25, "small": 25}
    by_arrival = cycle(world, CONF.replace("  - name: drf\n", ""))
    assert {name.split("-")[0] for name, _ in by_arrival.binds} == {"large"}


@settings(max_examples=40, derandomize=True)
@given(world=worlds())
def test_shares_equal_a_count_task_by_task(world: World) -> None:
    total: Counter[str] = Counter()
    for node in world.nodes:
        total.update({name: int(amount) for name, amount in node.allocatable.items()})
    expected = {}
    for job in world.jobs:
        taken: Counter[str] = Counter()
        for task in world.tasks:
            if task.record.key == job.key and task.status in HOLDING:
                taken.update({name: int(amount) for name, amount in task.shape.request})
        parts = [Fraction(taken[name], amount) for name, amount in total.items() if amount]
        expected[job.key.name] = float(max(parts, default=Fraction(0)))

    assert shares(a_session(world, Drf())) == expected


def test_the_job_of_the_lowest_share_goes_first() -> None:
    world = World(
        nodes=(a_node("n1", cpu=4),),
        jobs=(a_job("a", creation=0.0), a_job("b", creation=1.0)),
        tasks=(
            a_task("a-0", job="a", status=TaskStatus.RUNNING, node="n1"),
            *tasks_of("a", 1, first=1),
            *tasks_of("b", 1),
        ),
    )

    assert [name for name, _ in cycle(world, CONF).binds] == ["b-0", "a-1"]


def test_the_shares_of_jobs_that_hold_something_are_reported() -> None:
    world = World(
        nodes=(a_node("n1", cpu=4),),
        jobs=(a_job("runs"), a_job("waits")),
        tasks=(
            a_task("runs-0", job="runs", status=TaskStatus.RUNNING, node="n1"),
            a_task("waits-0", job="waits", shape=a_shape(cpu=8)),
        ),
    )
    ssn = a_session(world, Drf())

    ssn.hooks.plugins()[0].on_session_close(ssn.state)

    assert {key.name: share for key, share in ssn.state.report.job_shares.items()} == {"runs": 0.25}
