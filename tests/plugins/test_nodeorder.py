from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info, node_row
from tests.reference.accounts import node_accounts
from tests.reference.scoring import least_allocated as slow_least_allocated
from tests.reference.strategies import worlds
from tests.reference.world import World, a_node, a_shape, a_task, fixture_f
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.nodeorder import NodeOrderArgs, NodeOrdering, least_allocated

P = a_shape(cpu=1, memory="2Gi")
B = a_shape()
RUNNING = TaskStatus.RUNNING
LEAST = NodeOrderArgs.only(least_allocated=1)


def scores(world: World, shape: Shape, plugin: NodeOrdering | None = None) -> list[float]:
    world = replace(world, tasks=(*world.tasks, a_task("incoming", shape)))
    plugin = plugin or NodeOrdering(LEAST)
    ssn = a_session(world, plugin)
    found: list[float] = plugin.node_order(info(ssn, shape), ssn.state.nodes).tolist()
    return found


def with_task(world: World, name: str, shape: Shape, node: str, status: TaskStatus = RUNNING) -> World:
    return replace(world, tasks=(*world.tasks, a_task(name, shape, status=status, node=node)))


@pytest.mark.parametrize(
    ("world", "shape", "expected"),
    [
        pytest.param(fixture_f(), P, [56, 86, 31], id="T-LA1"),
        pytest.param(fixture_f(), B, [78, 97, 47], id="T-LA2-best-effort-counts-as-a-little"),
        pytest.param(fixture_f(), a_shape(cpu=0, memory=0), [81, 98, 50], id="T-LA3-explicit-zeros"),
        pytest.param(fixture_f(), a_shape(cpu="500m"), [73, 94, 42], id="T-LA4-missing-memory"),
        pytest.param(
            fixture_f(),
            replace(a_shape(cpu="500m"), nonzero=(600.0, 400.0 * 1024**2)),
            [71, 93, 41],
            id="T-LA5-two-containers",
        ),
        pytest.param(with_task(fixture_f(), "p", P, "n2"), P, [56, 73, 31], id="T-LA6-after-one-was-placed"),
        pytest.param(
            with_task(
                fixture_f(n2=a_node("n2", cpu=8, memory=None)),
                "big",
                replace(a_shape(cpu=2), nonzero=(2000.0, 200.0 * 1024**2)),
                "n3",
            ),
            P,
            [56, 86, 30],
            id="T-LA7-no-memory-there-and-too-much-cpu-there",
        ),
        pytest.param(World(nodes=(a_node("n1", cpu=None, memory=None),)), P, [0], id="a-node-without-either"),
    ],
)
def test_least_allocated_has_kube_schedulers_numbers(world: World, shape: Shape, expected: list[int]) -> None:
    assert scores(world, shape) == expected


def test_oversubscribed_resources_do_not_count_in_kube_schedulers_scores() -> None:
    world = fixture_f()
    lavish = tuple(
        replace(
            node,
            allocatable={**node.allocatable, "cpu": node.allocatable["cpu"] + 4000, "memory": 2.0**40},
            oversubscription=(4000.0, 2.0**40 - node.allocatable["memory"]),
        )
        for node in world.nodes
    )
    plugin = NodeOrdering(NodeOrderArgs.only(least_allocated=1, most_allocated=1, balanced_allocation=1))
    together = NodeOrdering(NodeOrderArgs.only(least_allocated=1, balanced_allocation=1))

    assert scores(replace(world, nodes=lavish), P, plugin) == scores(world, P, plugin)
    assert scores(replace(world, nodes=lavish), P, together) == scores(world, P, together)


def test_the_weight_multiplies_the_score() -> None:
    assert scores(fixture_f(), P, NodeOrdering(NodeOrderArgs.only(least_allocated=3))) == [168, 258, 93]


def test_weight_zero_switches_the_scorer_off() -> None:
    assert scores(fixture_f(), P, NodeOrdering(NodeOrderArgs.only(least_allocated=0))) == [0, 0, 0]


def test_terminating_and_promised_pods_count() -> None:
    world = fixture_f()
    terminating = with_task(world, "p", P, "n2", TaskStatus.RELEASING)
    promised = with_task(world, "p", P, "n2", TaskStatus.PIPELINED)

    assert scores(terminating, P) == scores(promised, P) == [56, 73, 31]


def test_a_node_has_the_same_score_in_a_view_of_one_node() -> None:
    plugin = NodeOrdering(LEAST)
    ssn = a_session(with_task(fixture_f(), "p", P, "n2"), plugin)
    task = info(ssn, P)

    row = node_row(ssn, "n2")
    assert plugin.node_order(task, ssn.state.nodes.rows_view(np.array([row]))).tolist() == [73]


def test_a_quotient_just_below_a_whole_number_is_not_rounded_up() -> None:
    capacity = 2.0**46
    asked = np.array([[1.0], [1.0]])

    assert least_allocated(asked, np.full((2, 1), capacity)).tolist() == [99]
    assert least_allocated(np.zeros((2, 1)), np.full((2, 1), capacity)).tolist() == [100]


@settings(max_examples=50, derandomize=True)
@given(worlds())
def test_scores_equal_a_plain_loop_over_the_nodes(world: World) -> None:
    plugin = NodeOrdering(LEAST)
    ssn = a_session(world, plugin)
    accounts = node_accounts(world)
    for shape in {task.shape for task in world.tasks}:
        expected = [slow_least_allocated(shape, accounts[name]) for name in ssn.state.nodes.names]
        assert plugin.node_order(info(ssn, shape), ssn.state.nodes).tolist() == expected


amounts = st.integers(0, 2**44)


@settings(max_examples=200, derandomize=True)
@given(amounts, amounts, st.integers(0, 2**20), st.integers(0, 2**20))
def test_scores_are_integer_divisions_for_any_amount(memory: int, asked: int, cpu: int, asked_cpu: int) -> None:
    parts = [
        (100 * (has - want) // has if want <= has else 0) for has, want in ((cpu, asked_cpu), (memory, asked)) if has
    ]
    expected = sum(parts) // len(parts) if parts else 0

    found = least_allocated(np.array([[asked_cpu], [asked]], dtype=float), np.array([[cpu], [memory]], dtype=float))
    assert found.tolist() == [expected]


@pytest.mark.parametrize(
    ("arguments", "expected", "warned"),
    [
        ({}, 1, 0),
        ({"leastrequested.weight": 0}, 0, 0),
        ({"leastrequested.weight": -2}, -2, 0),
        ({"leastrequested.weight": "5"}, 1, 1),
        ({"leastrequested.weight": 2.0}, 1, 1),
    ],
)
def test_arguments_are_read_as_volcano_reads_them(arguments: dict[str, object], expected: int, warned: int) -> None:
    warnings: list[str] = []

    assert NodeOrdering.parse(arguments, warnings.append).least_allocated == expected
    assert len(warnings) == warned
