from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info
from tests.reference.accounts import node_accounts
from tests.reference.scoring import binpack as slow_binpack
from tests.reference.strategies import worlds
from tests.reference.world import GPU, World, a_node, a_shape, a_task
from volcano_py.model.objects import NodeRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.binpack import Binpack, BinpackArgs

RUNNING = TaskStatus.RUNNING


def half_and_more(**others: object) -> World:
    """Three nodes of 8 CPU of which 0, 4 and 7 are used."""
    nodes: tuple[NodeRecord, ...] = tuple(
        a_node(name, cpu=8, memory="16Gi", **others) for name in ("empty", "half", "packed")
    )
    return World(
        nodes=nodes,
        tasks=(
            a_task("a", a_shape(cpu=4), status=RUNNING, node="half"),
            a_task("b", a_shape(cpu=7), status=RUNNING, node="packed"),
        ),
    )


def scores(world: World, shape: Shape, args: BinpackArgs | None = None) -> list[float]:
    world = replace(world, tasks=(*world.tasks, a_task("incoming", shape)))
    plugin = Binpack(args)
    ssn = a_session(world, plugin)
    found: list[float] = plugin.node_order(info(ssn, shape), ssn.state.nodes).tolist()
    return found


@pytest.mark.parametrize(
    ("args", "shape", "expected"),
    [
        pytest.param(BinpackArgs(), a_shape(cpu=2), [25, 75, 0], id="fuller-is-better-and-misfit-is-zero"),
        pytest.param(BinpackArgs(weight=3), a_shape(cpu=2), [75, 225, 0], id="plugin-weight-scales-the-score"),
        pytest.param(BinpackArgs(weight=-1), a_shape(cpu=2), [-25, -75, 0], id="a-negative-weight-turns-it-round"),
        pytest.param(BinpackArgs(weight=0), a_shape(cpu=2), [0, 0, 0], id="weight-zero-has-no-opinion"),
        pytest.param(BinpackArgs(), a_shape(gpu=1), [0, 0, 0], id="unweighted-resource-is-ignored"),
        pytest.param(BinpackArgs(), a_shape(), [0, 0, 0], id="best-effort-has-no-opinion"),
        pytest.param(BinpackArgs(), a_shape(cpu=1, memory="8Gi"), [31.25, 56.25, 75], id="mean-of-cpu-and-memory"),
        pytest.param(
            BinpackArgs(resource_weights={"cpu": 3.0, "memory": 1.0}),
            a_shape(cpu=1, memory="8Gi"),
            [21.875, 59.375, 87.5],
            id="resources-have-weights",
        ),
        pytest.param(
            BinpackArgs(resource_weights={"cpu": 0.0, "memory": 1.0}),
            a_shape(cpu=2, memory="8Gi"),
            [50, 50, 50],
            id="a-resource-of-weight-zero-does-not-even-disqualify",
        ),
    ],
)
def test_node_order(args: BinpackArgs, shape: Shape, expected: list[float]) -> None:
    assert scores(half_and_more(), shape, args) == pytest.approx(expected)


def test_a_resource_the_node_does_not_have_adds_nothing_but_its_weight_counts() -> None:
    world = World(nodes=(a_node("with", cpu=8, gpu=4), a_node("without", cpu=8)))
    args = BinpackArgs(resource_weights={"cpu": 1.0, GPU: 3.0})

    assert scores(world, a_shape(cpu=4, gpu=2), args) == pytest.approx([50, 12.5])


def test_terminating_pods_count_as_used_and_promised_ones_do_not() -> None:
    world = World(
        nodes=(a_node("n1", cpu=8), a_node("n2", cpu=8)),
        tasks=(
            a_task("a", a_shape(cpu=2), status=TaskStatus.RELEASING, node="n1"),
            a_task("b", a_shape(cpu=2), status=TaskStatus.PIPELINED, node="n2"),
        ),
    )

    assert scores(world, a_shape(cpu=2)) == pytest.approx([50, 25])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({}, BinpackArgs(), id="defaults"),
        pytest.param(
            {"binpack.weight": 10, "binpack.cpu": 5, "binpack.memory": 1},
            BinpackArgs(10, {"cpu": 5.0, "memory": 1.0}),
            id="the-introductions-experiment",
        ),
        pytest.param(
            {"binpack.resources": "nvidia.com/gpu, example.com/fpga", "binpack.resources.nvidia.com/gpu": 7},
            BinpackArgs(1, {"cpu": 1.0, "memory": 1.0, GPU: 7.0, "example.com/fpga": 1.0}),
            id="listed-resources-have-weights-of-their-own",
        ),
        pytest.param(
            {"binpack.resources.nvidia.com/gpu": 7}, BinpackArgs(), id="a-weight-without-a-listing-does-not-count"
        ),
        pytest.param(
            {"binpack.weight": -1, "binpack.cpu": -5, "binpack.memory": 0},
            BinpackArgs(-1, {"cpu": 1.0, "memory": 0.0}),
            id="negative-counts-as-one-for-a-resource",
        ),
        pytest.param(
            {"binpack.cpu": 5, "binpack.resources": "cpu,,memory", "binpack.resources.cpu": 7},
            BinpackArgs(1, {"cpu": 5.0, "memory": 1.0}),
            id="cpu-and-memory-have-keys-of-their-own",
        ),
        pytest.param({"binpack.weight": "10"}, BinpackArgs(), id="a-quoted-number-does-not-count"),
    ],
)
def test_arguments_are_read_as_volcano_reads_them(arguments: dict[str, object], expected: BinpackArgs) -> None:
    assert Binpack.parse(arguments, lambda text: None) == expected


@settings(max_examples=50, derandomize=True)
@given(worlds(), st.integers(1, 10), st.integers(0, 10), st.integers(0, 10), st.integers(1, 3))
def test_scores_equal_exact_fractions(world: World, cpu: int, memory: int, gpu: int, weight: int) -> None:
    weights = {"cpu": cpu, "memory": memory, GPU: gpu}
    plugin = Binpack(BinpackArgs(weight, {name: float(number) for name, number in weights.items()}))
    ssn = a_session(world, plugin)
    accounts = node_accounts(world)
    for shape in {task.shape for task in world.tasks}:
        expected = [float(slow_binpack(shape, accounts[name], weights, weight)) for name in ssn.state.nodes.names]
        assert plugin.node_order(info(ssn, shape), ssn.state.nodes).tolist() == pytest.approx(expected, rel=1e-12)


def uneven(n_nodes: int) -> World:
    """Nodes whose ratios are not exact in floating point."""
    numbers = np.random.default_rng(1)
    nodes = [
        a_node(
            f"n{index:02}",
            cpu=f"{numbers.integers(3000, 9000)}m",
            memory=int(numbers.integers(10**9, 10**10)),
            gpu=int(numbers.integers(3, 9)),
        )
        for index in range(n_nodes)
    ]
    return World(nodes=tuple(nodes), tasks=(a_task("p", a_shape(cpu="777m", memory=123456789, gpu=1)),))


@pytest.mark.parametrize("n_nodes", [3, 8, 17])
def test_a_node_has_the_same_score_to_the_last_bit_in_every_view(n_nodes: int) -> None:
    """Placement compares scores of whole columns with scores of views; a different last bit is a different node."""
    world = uneven(n_nodes)
    plugin = Binpack(BinpackArgs(3, {"cpu": 5.0, "memory": 7.0, GPU: 3.0}))
    ssn = a_session(world, plugin)
    task = info(ssn, world.tasks[0].shape)
    whole = plugin.node_order(task, ssn.state.nodes)
    numbers = np.random.default_rng(2)
    for size in range(1, 2 * n_nodes):
        rows = numbers.integers(0, n_nodes, size=size)
        assert np.array_equal(plugin.node_order(task, ssn.state.nodes.rows_view(rows)), whole[rows])


def test_scores_do_not_depend_on_which_resource_was_seen_first() -> None:
    plain = uneven(17)
    names = [f"example.com/{letter}" for letter in "abcde"]
    nodes = tuple(
        replace(node, allocatable={**node.allocatable, **{name: 1000.0 * (3 + i) for i, name in enumerate(names)}})
        for node in plain.nodes
    )
    shape = a_shape(cpu="777m", memory=123456789, **dict.fromkeys(names, 1))
    args = BinpackArgs(1, {"cpu": 5.0, "memory": 7.0, **{name: 1.0 + i for i, name in enumerate(names)}})
    found = []
    for order in (names, names[::-1]):
        first = a_node("n99", cpu=1, **dict.fromkeys(order, 1))
        found.append(scores(World(nodes=(first, *nodes)), shape, args))

    assert found[0] == found[1]
