"""Placement is always what greedy would do, however many tasks are placed at once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, job_row, shape_id
from tests.reference import ranking, scoring
from tests.reference.accounts import NodeAccount, node_accounts
from tests.reference.greedy import GroupScore, alone, greedy
from tests.reference.strategies import sized_nodes, sized_shapes
from tests.reference.world import GPU, World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.placing import placement
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.tie_order import tie_order
from volcano_py.model.arrays import Floats
from volcano_py.model.facts import NodeShardRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.binpack import Binpack, BinpackArgs
from volcano_py.plugins.nodeorder import NodeOrderArgs, NodeOrdering
from volcano_py.plugins.predicates import Predicates
from volcano_py.snapshot.columns import NodeColumns
from volcano_py.snapshot.store import ClusterStore

SEEDS = (0, 1, 77)
WEIGHTS = {"cpu": 1, "memory": 1}


class Nothing(Plugin, NodeOrder):
    """Has no opinion, and says that it may depend on anything, so that every task is placed by itself."""

    name = "nothing"
    depends_on: ClassVar = DependsOn.OTHER_NODES

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        return np.zeros(len(nodes))


def place(ssn: Session, shape: Shape, count: int) -> list[tuple[str, TaskStatus]]:
    """Place pending tasks of the job ``j``; return node and status of each that found a node."""
    row = job_row(ssn, "j")
    tasks = ssn.hooks.pending.of(row)[:count]
    done = ssn.placement.place(ssn.statement(), row, shape_id(ssn, shape), tasks)
    found = [
        (ssn.state.nodes.names[ssn.state.tasks.node[task]], TaskStatus(ssn.state.tasks.status[task]))
        for task in tasks[:done]
    ]
    assert (ssn.state.tasks.status[tasks[done:]] == TaskStatus.PENDING).all()
    return found


def cluster(nodes: list, shape: Shape, count: int, *standing: tuple[str, TaskStatus, Shape]) -> World:  # type: ignore[type-arg]
    return World(
        nodes=tuple(nodes),
        jobs=(a_job("j"),),
        tasks=(
            *tasks_of("j", count, shape),
            *(a_task(f"s{i}", other, status=status, node=node) for i, (node, status, other) in enumerate(standing)),
        ),
    )


def divided(world: World, ours: set[str], *, strict: bool = False) -> ClusterStore:
    store = world.store()
    store.facts.use_shard("ours", strict=strict)
    store.facts.set_node_shard(NodeShardRecord("ours", frozenset(ours)))
    return store


def in_tie_order(world: World, seed: int) -> list[NodeAccount]:
    accounts = list(node_accounts(world).values())
    order = tie_order(tuple(account.record.name for account in accounts), seed)
    return accounts if order is None else [accounts[row] for row in order]


@st.composite
def clusters(draw: st.DrawFn) -> World:
    """Up to six nodes with pods on them, and one shape to be placed many times."""
    nodes = [draw(sized_nodes(f"n{index}")) for index in range(draw(st.sampled_from((1, 2, 3, 4, 5, 6))))]
    others = draw(st.lists(sized_shapes(), min_size=1, max_size=2))
    statuses = (TaskStatus.RUNNING, TaskStatus.RELEASING, TaskStatus.UNKNOWN, TaskStatus.SUCCEEDED)
    standing = [
        (node.name, draw(st.sampled_from(statuses)), draw(st.sampled_from(others)))
        for node in nodes
        for _ in range(draw(st.sampled_from((0, 0, 1, 2))))
    ]
    shape = draw(sized_shapes())
    return cluster(nodes, shape, draw(st.sampled_from((1, 2, 5, 12, 40))), *standing)


def spread(shape: Shape, node: NodeAccount) -> int:
    return scoring.least_allocated(shape, node)


def pack(shape: Shape, node: NodeAccount) -> Fraction:
    return scoring.binpack(shape, node, WEIGHTS, 2)


def both(shape: Shape, node: NodeAccount) -> Fraction:
    return spread(shape, node) + pack(shape, node)


def nothing(shape: Shape, node: NodeAccount) -> int:
    return 0


def in_full(shape: Shape, group: Sequence[NodeAccount], everybody: Sequence[NodeAccount]) -> list[Fraction | int]:
    """All of nodeorder, and binpack."""
    scores = ranking.nodeorder(shape, group, everybody, ranking.ALL)
    return [score + pack(shape, node) for score, node in zip(scores, group, strict=True)]


SPREAD = NodeOrderArgs.only(least_allocated=1)
POLICIES: dict[str, tuple[Callable[[], list[Plugin]], GroupScore]] = {
    "spread": (lambda: [NodeOrdering(SPREAD)], alone(spread)),
    "pack": (lambda: [Binpack(BinpackArgs(weight=2))], alone(pack)),
    "both": (lambda: [NodeOrdering(SPREAD), Binpack(BinpackArgs(weight=2))], alone(both)),
    "in-full": (lambda: [NodeOrdering(), Binpack(BinpackArgs(weight=2))], in_full),
    "neither": (list, alone(nothing)),
}


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=40, derandomize=True)
@given(world=clusters(), seed=st.sampled_from(SEEDS))
def test_placing_many_at_once_equals_placing_one_by_one(policy: str, world: World, seed: int) -> None:
    plugins, score = POLICIES[policy]
    shape = world.task("j-0").shape
    count = sum(task.record.job == "j" for task in world.tasks)

    found = place(a_session(world, Predicates(), *plugins(), seed=seed), shape, count)

    assert found == greedy(shape, count, in_tie_order(world, seed), score)


@pytest.mark.parametrize("policy", ["in-full", "pack"])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(world=clusters(), ours=st.sets(st.sampled_from(("n0", "n1", "n2", "n3", "elsewhere"))))
def test_nodes_of_our_shard_come_first_and_scores_are_compared_within_a_shard(
    policy: str, world: World, ours: set[str]
) -> None:
    plugins, score = POLICIES[policy]
    shape = world.task("j-0").shape
    count = sum(task.record.job == "j" for task in world.tasks)

    found = place(a_session(divided(world, ours), Predicates(), *plugins()), shape, count)

    assert found == greedy(shape, count, in_tie_order(world, 0), score, ours)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(world=clusters(), ours=st.sets(st.sampled_from(("n0", "n1", "n2", "n3", "elsewhere"))))
def test_nothing_goes_outside_a_strict_shard(world: World, ours: set[str]) -> None:
    shape = world.task("j-0").shape
    count = sum(task.record.job == "j" for task in world.tasks)

    found = place(a_session(divided(world, ours, strict=True), Predicates(), NodeOrdering(SPREAD)), shape, count)

    inside = [account for account in in_tie_order(world, 0) if account.record.name in ours]
    assert found == greedy(shape, count, inside, alone(spread))


@pytest.mark.parametrize("count", [1, 3, 10])
def test_a_policy_that_depends_on_other_nodes_is_asked_for_every_task(count: int) -> None:
    asked: list[int] = []

    class Counts(Nothing):
        def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
            asked.append(len(nodes))
            return np.zeros(len(nodes))

    world = cluster([a_node(f"n{index}", cpu=4) for index in range(3)], a_shape(cpu=1), 10)
    place(a_session(world, Counts()), a_shape(cpu=1), count)

    assert asked == [3] * count


uneven = st.builds(
    lambda cpu, memory, gpu: (f"{cpu}m", memory, gpu),
    st.integers(3000, 9000),
    st.integers(10**9, 10**10),
    st.integers(1, 7),
)


@settings(max_examples=40, derandomize=True)
@given(
    st.lists(uneven, min_size=1, max_size=7),
    st.sampled_from((2, 7, 30)),
    st.sampled_from(SEEDS),
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
)
def test_the_heap_and_one_by_one_agree_to_the_last_bit_of_uneven_ratios(
    sizes: list[tuple[str, int, int]], count: int, seed: int, weights: tuple[int, int, int]
) -> None:
    nodes = [a_node(f"n{i}", cpu=cpu, memory=memory, gpu=gpu) for i, (cpu, memory, gpu) in enumerate(sizes)]
    shape = a_shape(cpu="333m", memory=98765432, gpu="100m")
    world = cluster(nodes, shape, count)
    args = BinpackArgs(1, dict(zip(("cpu", "memory", GPU), map(float, weights), strict=True)))

    heap = place(a_session(world, Predicates(), NodeOrdering(), Binpack(args), seed=seed), shape, count)
    one_by_one = place(
        a_session(world, Predicates(), NodeOrdering(), Binpack(args), Nothing(), seed=seed), shape, count
    )

    assert heap == one_by_one


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_long_gang_fills_nodes_deeper_than_the_first_look(policy: str, seed: int) -> None:
    """200 tasks on three nodes: scores are looked up in blocks, and nodes run full at different times."""
    nodes = [
        a_node("n0", cpu=128, memory="128Gi", pods=90),
        a_node("n1", cpu=64, memory="256Gi", pods=300),
        a_node("n2"),
    ]
    shape = a_shape(cpu="512m", memory="1Gi")
    world = cluster(nodes, shape, 300)
    plugins, score = POLICIES[policy]

    found = place(a_session(world, Predicates(), *plugins(), seed=seed), shape, 300)

    assert found == greedy(shape, 300, in_tie_order(world, seed), score)
    assert len(found) > 200


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_placement_stops_when_no_node_has_room(wanted: int) -> None:
    shape = a_shape(cpu=3)
    ssn = a_session(cluster([a_node("n0"), a_node("n1")], shape, 3), Predicates())
    state = ssn.placement.ranking(shape_id(ssn, shape))

    assert ssn.placement.choose_many(state, shape_id(ssn, shape), wanted).tolist() == [0, 1][:wanted]


def test_without_nodes_nothing_is_placed() -> None:
    assert place(a_session(cluster([], a_shape(cpu=1), 3), Predicates(), NodeOrdering()), a_shape(cpu=1), 3) == []


def test_idle_resources_are_used_before_releasing_ones() -> None:
    """The node that is being cleared would score better, but waiting for it is worse than running now."""
    shape = a_shape(cpu=2)
    world = cluster(
        [a_node("n0", cpu=2), a_node("n1", cpu=8)],
        shape,
        3,
        ("n1", TaskStatus.RELEASING, a_shape(cpu=4)),
        ("n1", TaskStatus.RUNNING, a_shape(cpu=4)),
    )

    assert place(a_session(world, Predicates(), NodeOrdering()), shape, 3) == [
        ("n0", TaskStatus.ALLOCATED),
        ("n1", TaskStatus.PIPELINED),
        ("n1", TaskStatus.PIPELINED),
    ]


def test_pipelined_resources_are_not_given_twice() -> None:
    shape = a_shape(cpu=3)
    world = cluster([a_node("n0", cpu=4)], shape, 2, ("n0", TaskStatus.RELEASING, a_shape(cpu=4)))

    assert place(a_session(world, Predicates()), shape, 2) == [("n0", TaskStatus.PIPELINED)]


@pytest.mark.parametrize(
    ("small", "taken"), [pytest.param(2, 0, id="idle-but-promised"), pytest.param(1, 1, id="neither")]
)
def test_idle_resources_that_a_pipelined_task_needs_are_not_given_away(small: int, taken: int) -> None:
    big = a_shape(cpu=4)
    world = cluster([a_node("n0", cpu=5)], big, 1, ("n0", TaskStatus.RELEASING, a_shape(cpu=3)))
    other = a_shape(cpu=small)
    world = replace(world, jobs=(*world.jobs, a_job("k")), tasks=(*world.tasks, *tasks_of("k", 2, other)))
    ssn = a_session(world, Predicates())
    before = ssn.placement.ranking(shape_id(ssn, other)).ranked.copy()
    assert place(ssn, big, 1) == [("n0", TaskStatus.PIPELINED)]

    row = job_row(ssn, "k")
    done = ssn.placement.place(ssn.statement(), row, shape_id(ssn, other), ssn.hooks.pending.of(row))

    assert before.tolist() == [0.0]
    assert done == taken


def test_a_second_gang_sees_what_the_first_has_taken() -> None:
    big, small = a_shape(cpu=2), a_shape(cpu=1)
    world = cluster([a_node("n0", cpu=4), a_node("n1", cpu=4)], big, 2)
    world = replace(world, jobs=(*world.jobs, a_job("k")), tasks=(*world.tasks, *tasks_of("k", 8, small)))
    ssn = a_session(world, Predicates(), Binpack())
    statement = ssn.statement()
    before = ssn.placement.ranking(shape_id(ssn, small)).ranked.copy()
    assert len(place(ssn, big, 2)) == 2

    row = job_row(ssn, "k")
    done = ssn.placement.place(statement, row, shape_id(ssn, small), ssn.hooks.pending.of(row))

    assert done == 4
    assert (ssn.state.nodes.idle[0] == 0).tolist() == [True, True]
    assert before.tolist() != ssn.placement.ranking(shape_id(ssn, small)).ranked.tolist()


def test_a_gang_fills_a_node_beyond_the_levels_computed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "_LEVELS_AT_ONCE", 2)
    shape = a_shape(cpu=1)
    ssn = a_session(
        cluster([a_node("n0", cpu=30), a_node("n1", cpu=2)], shape, 40), Predicates(), NodeOrdering(NodeOrderArgs())
    )

    found = place(ssn, shape, 40)

    assert len(found) == 32
    assert [name for name, _ in found].count("n1") == 2
