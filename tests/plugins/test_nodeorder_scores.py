"""The scores of nodeorder with kube-scheduler's numbers, and against plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info
from tests.reference import ranking
from tests.reference.accounts import node_accounts
from tests.reference.strategies import worlds
from tests.reference.world import GPU, World, a_node, a_shape, a_task, amounts, fixture_f
from volcano_py.framework.state.static_filter_cache import StaticFilterCache
from volcano_py.model.objects import NodeRecord, TaintRecord
from volcano_py.model.shape import NodeTerm, PreferredTerm, Requirement, Shape, Tolerance
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.nodeorder import NodeOrderArgs, NodeOrdering, balanced_allocation
from volcano_py.plugins.nodeorder.images import image_locality, sizes
from volcano_py.plugins.nodeorder.resources import least_allocated, least_and_balanced
from volcano_py.plugins.predicates import Predicates

P = a_shape(cpu=1, memory="2Gi")
B = a_shape()
MIB = 2**20


def ranked(world: World, shape: Shape, args: NodeOrderArgs, *, n_candidates: int | None = None) -> list[float]:
    """Return the scores of all candidates; if asked for, only the first so many nodes are candidates."""
    if n_candidates is not None:
        nodes = [node if row < n_candidates else replace(node, closed="no") for row, node in enumerate(world.nodes)]
        world = replace(world, nodes=tuple(nodes))
    ssn = a_session(replace(world, tasks=(*world.tasks, a_task("incoming", shape))), NodeOrdering(args), Predicates())
    scores = ssn.placement.rank(info(ssn, shape)).ranked.tolist()
    return [score for score in scores if score > -np.inf]


def only(**weights: int) -> NodeOrderArgs:
    return NodeOrderArgs.only(**weights)


def running(name: str, shape: Shape, node: str) -> tuple[object, ...]:
    return (a_task(name, shape, status=TaskStatus.RUNNING, node=node),)


def plus(world: World, *tasks: object) -> World:
    return replace(world, tasks=(*world.tasks, *tasks))


def without_memory_and_crowded() -> World:
    """Fixture F whose n2 has no memory and whose n3 also runs a pod of 2 cores without a memory request."""
    world = fixture_f(n2=replace(a_node("n2", cpu=8, memory=None)))
    return plus(world, a_task("big", a_shape(cpu=2), status=TaskStatus.RUNNING, node="n3"))


def with_gpus() -> World:
    nodes = {
        node.name: replace(node, allocatable={**node.allocatable, **amounts(gpu=count)})
        for node, count in zip(fixture_f().nodes, (8, 8, 2), strict=True)
    }
    return plus(
        fixture_f(**nodes), a_task("gpus", a_shape(cpu=0, memory=0, gpu=6), status=TaskStatus.RUNNING, node="n2")
    )


def amd(count: int) -> Shape:
    return Shape(request=(("amd.com/gpu", count * 1000.0), ("pods", 1.0)), nonzero=(100.0, 200.0 * MIB))


@pytest.mark.parametrize(
    ("world", "shape", "expected"),
    [
        pytest.param(fixture_f(), P, [43, 13, 68], id="T-MA1"),
        pytest.param(fixture_f(), B, [20, 2, 51], id="T-MA2"),
        pytest.param(
            plus(fixture_f(), a_task("p", P, status=TaskStatus.RUNNING, node="n2")),
            P,
            [43, 26, 68],
            id="after-one-on-n2",
        ),
    ],
)
def test_most_allocated_has_kube_schedulers_numbers(world: World, shape: Shape, expected: list[int]) -> None:
    assert ranked(world, shape, only(most_allocated=1)) == expected


def balance(world: World, shape: Shape) -> list[float]:
    """Return BalancedAllocation of all nodes, whether the shape fits there or not."""
    plugin = NodeOrdering(only(balanced_allocation=1))
    ssn = a_session(plus(world, a_task("incoming", shape)), plugin)
    found: list[float] = plugin.node_order(info(ssn, shape), ssn.state.nodes).tolist()
    return found


@pytest.mark.parametrize(
    ("world", "shape", "expected"),
    [
        pytest.param(fixture_f(), P, [75, 75, 71], id="T-BA1"),
        pytest.param(fixture_f(), B, [0, 0, 0], id="T-BA2-best-effort"),
        pytest.param(fixture_f(), amd(1), [0, 0, 0], id="T-BA2-another-gpu"),
        pytest.param(fixture_f(), a_shape(cpu="500m"), [72, 73, 71], id="T-BA3"),
        pytest.param(with_gpus(), a_shape(gpu=2), [77, 69, 75], id="T-BA4"),
        pytest.param(with_gpus(), a_shape(cpu=1, memory="2Gi", gpu=2), [75, 72, 76], id="T-BA5"),
        pytest.param(without_memory_and_crowded(), P, [75, 75, 78], id="T-BA6"),
        pytest.param(
            World(nodes=(a_node("n1", cpu=4, memory="100Gi"),)),
            a_shape(cpu="200m", memory="73Gi"),
            [58],
            id="T-BA7-two-fractions-are-halved-not-squared",
        ),
        pytest.param(
            World(nodes=(a_node("n1", cpu=4, memory="100Gi"),)),
            a_shape(cpu=1, memory="93Gi"),
            [57],
            id="T-BA8-floating-point-as-in-go",
        ),
        pytest.param(with_gpus(), P, [75, 75, 71], id="gpus-count-only-if-asked-for"),
    ],
)
def test_balanced_allocation_has_kube_schedulers_numbers(world: World, shape: Shape, expected: list[int]) -> None:
    assert balance(world, shape) == expected


def test_three_resources_of_which_a_node_lacks_one_are_two_fractions() -> None:
    used, request = np.zeros((3, 3)), np.array([500.0, 200.0, 1000.0])
    allocatable = np.array([[1000.0, 0.0, 1000.0], [1000.0, 1000.0, 0.0], [0.0, 4000.0, 4000.0]])

    # n0: cpu .5, memory .2; n1: memory .2, gpu .25; n2: cpu .5, gpu .25
    expected = [50 + (50 + int((1 - d / 2) * 100) - 100) // 2 for d in (0.5 - 0.2, 0.25 - 0.2, 0.5 - 0.25)]
    assert balanced_allocation(used, request, allocatable).tolist() == expected


def prefers(*terms: tuple[int, str, str, tuple[str, ...]]) -> Shape:
    return a_shape(
        cpu=1,
        preferred=[PreferredTerm(weight, NodeTerm((Requirement(*term),))) for weight, *term in terms],  # type: ignore[arg-type]
    )


ZONE = "topology.kubernetes.io/zone"
LABELS = (30, "disk", "In", ("ssd",)), (50, ZONE, "In", ("a",)), (20, "disk", "DoesNotExist", ())


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        pytest.param(prefers(*LABELS), [100, 62, 25], id="T-NA1"),
        pytest.param(prefers((9, "disk", "In", ("tape",))), [0, 0, 0], id="T-NA2-nobody-matches"),
        pytest.param(prefers((5, "disk", "Exists", ())), [100, 100, 0], id="T-NA3"),
        pytest.param(a_shape(cpu=1), [0, 0, 0], id="no-preference"),
        pytest.param(prefers((7, "disk", "NotIn", ("tape",))), [100, 100, 100], id="everybody-matches"),
    ],
)
def test_node_affinity_has_kube_schedulers_numbers(shape: Shape, expected: list[int]) -> None:
    assert ranked(fixture_f(), shape, only(node_affinity=1)) == expected


def tainted(*keys: str) -> tuple[TaintRecord, ...]:
    return tuple(TaintRecord(key, "", "PreferNoSchedule") for key in keys)


F = fixture_f()
SOFT = World(
    nodes=tuple(
        replace(node, taints=taints) for node, taints in zip(F.nodes, (tainted(*"abc"), tainted("a"), ()), strict=True)
    ),
    tasks=F.tasks,
)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param((), [0, 67, 100], id="T-TT1"),
        pytest.param((Tolerance("a", "Exists"),), [0, 100, 100], id="T-TT2"),
        pytest.param((Tolerance("a", "Exists", "", "NoSchedule"),), [0, 67, 100], id="T-TT3-another-effect"),
        pytest.param((Tolerance("", "Exists"),), [100, 100, 100], id="T-TT4-everything"),
    ],
)
def test_taint_toleration_has_kube_schedulers_numbers(tolerations: tuple[Tolerance, ...], expected: list[int]) -> None:
    assert ranked(SOFT, a_shape(cpu=1, tolerations=tolerations), only(taint_toleration=1)) == expected


def test_scores_are_scaled_by_the_highest_among_the_candidates() -> None:
    nodes = (
        F.nodes[2],
        *(replace(node, taints=tainted(*keys)) for node, keys in zip(F.nodes, ("a", "abc"), strict=False)),
    )
    world = World(nodes=tuple(replace(node, name=f"n{row}") for row, node in enumerate(nodes)))
    shape = a_shape(cpu=1)

    assert ranked(world, shape, only(taint_toleration=1)) == [100, 67, 0]
    assert ranked(world, shape, only(taint_toleration=1), n_candidates=2) == [100, 0]


def holding(**images: tuple[int, str]) -> tuple[NodeRecord, ...]:
    """Return nodes with these images: size in MiB and the nodes that have it."""
    return tuple(
        replace(node, images={name: size * MIB for name, (size, where) in images.items() if node.name[1] in where})
        for node in F.nodes
    )


@pytest.mark.parametrize(
    ("nodes", "images", "containers", "expected"),
    [
        pytest.param(holding(big=(900, "12"), small=(60, "1")), ("big", "small"), 2, [30, 29, 0], id="T-IL1"),
        pytest.param(holding(big=(900, "12")), ("big",), 1, [59, 59, 0], id="T-IL2"),
        pytest.param(holding(small=(60, "1")), ("small",), 1, [0, 0, 0], id="T-IL3"),
        pytest.param(holding(a=(700, "123")), ("a",), 1, [69, 69, 69], id="T-IL4-everywhere"),
        pytest.param(holding(a=(700, "123")), ("a", "a"), 2, [69, 69, 69], id="T-IL4-in-an-init-container-too"),
        pytest.param(
            holding(a=(700, "123"), v=(400, "1")), ("a", "a", "v"), 2, [76, 69, 69], id="T-IL4-and-an-image-volume"
        ),
        pytest.param(holding(), ("a",), 1, [0, 0, 0], id="nowhere"),
        pytest.param(holding(a=(9000, "123")), ("a",), 1, [100, 100, 100], id="more-than-counts"),
    ],
)
def test_image_locality_has_kube_schedulers_numbers(
    nodes: tuple[NodeRecord, ...], images: tuple[str, ...], containers: int, expected: list[int]
) -> None:
    shape = replace(a_shape(cpu="100m", images=images), n_containers=containers)

    assert ranked(World(nodes=nodes), shape, only(image_locality=1)) == expected


def test_an_image_counts_on_all_nodes_and_not_only_on_candidates() -> None:
    shape = a_shape(cpu="100m", images=("a",))

    assert ranked(World(nodes=holding(a=(600, "13"))), shape, only(image_locality=1), n_candidates=2) == [38, 0]


def test_a_pod_without_containers_has_no_image_score() -> None:
    assert image_locality([np.array([5e9])], 0, 1).tolist() == [0]


def test_images_are_looked_up_again_only_where_nodes_have_changed() -> None:
    """What is kept over cycles follows the nodes: one loses the image and gets it in half the size, one is added."""
    shape = a_shape(cpu="100m", images=("a",))
    static_filters = StaticFilterCache()
    store = World(nodes=holding(a=(900, "12")), tasks=(a_task("p", shape),)).store()

    def scores() -> list[float]:
        ssn = a_session(store, NodeOrdering(only(image_locality=1)), static_filters=static_filters)
        return ssn.placement.rank(info(ssn, shape)).ranked.tolist()

    assert scores() == [59, 59, 0]
    store.set_node(F.nodes[1])
    assert scores() == [28, 0, 0]
    store.set_node(replace(F.nodes[1], images={"a": 450 * MIB}))
    store.set_node(a_node("n4"))
    assert scores() == [43, 20, 0, 0]


def test_the_sizes_of_an_image_on_some_nodes() -> None:
    nodes = a_session(World(nodes=holding(a=(3, "13")))).state.nodes

    assert (sizes("a", nodes) / MIB).tolist() == [3, -1 / MIB, 3]
    assert (sizes("a", nodes.rows_view(np.array([2, 1]))) / MIB).tolist() == [3, -1 / MIB]


def combined() -> tuple[World, Shape]:
    """The combined case, without its parts that look at other pods."""
    image = {"r/a:1": 600 * MIB}
    nodes = (
        replace(F.nodes[0], images=image),
        replace(F.nodes[1], taints=tainted("spot")),
        replace(F.nodes[2], images=image),
    )
    small = a_shape(cpu="100m", memory="100Mi")
    others = [
        a_task(f"s{row}", small, status=TaskStatus.RUNNING, node=node)
        for row, node in enumerate(("n1", "n1", "n2", "n3"))
    ]
    shape = replace(
        a_shape(cpu="500m", memory="1Gi", images=("r/a:1",)),
        preferred=prefers((40, "disk", "In", ("ssd",)), LABELS[1]).preferred,
    )
    shape = replace(shape, preferred=(shape.preferred[0], shape.preferred[1]._replace(weight=30)))
    return World(nodes=nodes, tasks=(*F.tasks, *others)), shape


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"least_allocated": 1}, [64, 91, 39]),
        ({"most_allocated": 1}, [34, 8, 60]),
        ({"balanced_allocation": 1}, [75, 75, 73]),
        ({"node_affinity": 1}, [100, 42, 0]),
        ({"taint_toleration": 1}, [100, 0, 100]),
        ({"image_locality": 1}, [38, 0, 38]),
    ],
)
def test_the_combined_case_scorer_by_scorer(weights: dict[str, int], expected: list[int]) -> None:
    world, shape = combined()

    assert ranked(world, shape, only(**weights)) == expected


def test_the_combined_case_with_default_weights() -> None:
    world, shape = combined()

    assert ranked(world, shape, NodeOrderArgs()) == [64 + 75 + 200 + 300 + 38, 91 + 75 + 84, 39 + 73 + 300 + 38]
    assert ranked(fixture_f(), P, NodeOrderArgs()) == [431, 461, 402]


def test_negative_weights_invert_a_scorer() -> None:
    assert ranked(fixture_f(), P, only(least_allocated=-1)) == [-56, -86, -31]
    assert ranked(SOFT, a_shape(cpu=1), only(taint_toleration=-2)) == [0, -134, -200]


def test_a_preference_that_cannot_be_read_keeps_the_pod_waiting_and_says_so() -> None:
    shape = prefers((1, "disk", "Gt", ("abc",)), (5, "disk", "Exists", ()))
    world = plus(F, a_task("incoming", shape))
    ssn = a_session(world, NodeOrdering())
    state = ssn.placement.rank(info(ssn, shape))

    assert (state.ranked == -np.inf).all()
    assert state.rejection().message == (
        "0/3 nodes are unavailable: 3 pod's preferred node affinity cannot be read: correct its terms."
    )
    assert len(ranked(F, shape, only(least_allocated=1))) == 3


def test_default_weights_are_volcanos() -> None:
    assert NodeOrdering.parse({}, lambda text: None) == NodeOrderArgs(1, 0, 1, 2, 3, 1, 2, 2)


@settings(max_examples=60, derandomize=True)
@given(world=worlds(), most=st.integers(-1, 2))
def test_all_scores_equal_plain_loops_over_the_candidates(world: World, most: int) -> None:
    ssn = a_session(world, NodeOrdering(NodeOrderArgs(most_allocated=most)), Predicates())
    accounts = list(node_accounts(world).values())
    for shape in {task.shape for task in world.tasks}:
        state = ssn.placement.rank(info(ssn, shape))
        for scores in (state.ranked, state.future):
            group = [account for account, score in zip(accounts, scores.tolist(), strict=True) if score > -np.inf]
            expected = ranking.nodeorder(shape, group, accounts, ranking.Weights(most=most))
            assert scores[scores > -np.inf].tolist() == expected


sized = st.integers(0, 2**20)


@settings(max_examples=120, derandomize=True)
@given(
    st.lists(st.tuples(sized, sized, sized), min_size=3, max_size=3),
    st.booleans(),
)
def test_balance_equals_gos_floating_point(rows: list[tuple[int, int, int]], gpu: bool) -> None:
    names = ("cpu", "memory", GPU)
    node = ranking.NodeAccount(a_node("n1"))
    for name, (used, _, has) in zip(names, rows, strict=True):
        node.used[name], node.allocatable[name] = used, has
    request = {name: float(row[1]) for name, row in zip(names, rows, strict=True) if name != GPU or gpu}
    shape = Shape(request=tuple(sorted(request.items())))
    columns = np.array(rows, dtype=float)[: 3 if gpu and rows[2][1] else 2]

    expected = ranking.balanced_allocation(shape, node)
    found = balanced_allocation(columns[:, [0]], columns[:, 1], columns[:, [2]]).tolist()

    assert found == [expected] or not any(request.values())


@settings(max_examples=80, derandomize=True)
@given(st.integers(0, 2**32 - 1), st.tuples(st.integers(-1, 2), st.integers(-1, 2)), st.integers(0, 30))
def test_two_scores_computed_together_are_their_sum(seed: int, weights: tuple[int, int], n: int) -> None:
    numbers = np.random.default_rng(seed)
    room, most = numbers.integers(1, 2**40, (2, n)).astype(float), np.array([[2.0**41], [2.0**20]])
    held, defaulted = (np.floor(numbers.random((2, n)) * room * 1.2) for _ in range(2))
    request, nonzero = np.floor(numbers.random((2, 1)) * most), np.floor(numbers.random((2, 1)) * most)

    factors = None if weights == (1, 1) else np.array(weights, dtype=float)[:, None]
    together = least_and_balanced(defaulted, nonzero, held, request, room, factors)

    least = least_allocated(defaulted + nonzero, room)
    assert np.array_equal(together, weights[0] * least + weights[1] * balanced_allocation(held, request[:, 0], room))
