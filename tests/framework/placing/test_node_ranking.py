from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info, job_row, node_row, shape_id
from tests.reference.strategies import worlds
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.contract.extension_points import NodeOrder, Predicate, Verdicts
from volcano_py.framework.contract.plugin import DependsOn, Plugin, PluginFailed
from volcano_py.framework.placing.node_ranking import NodeRanking
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import TaskInfo
from volcano_py.model.arrays import Floats
from volcano_py.model.objects import TaintRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.binpack import Binpack
from volcano_py.plugins.nodeorder import NodeOrderArgs, NodeOrdering
from volcano_py.plugins.predicates import Predicates
from volcano_py.snapshot.columns import NodeColumns

NOWHERE = -np.inf


def candidates(world: World, shape: Shape, *plugins: Plugin) -> NodeRanking:
    ssn = a_session(world, *plugins)
    return ssn.placement.rank(info(ssn, shape))


def test_feasible_nodes_are_ranked_by_the_sum_of_scores() -> None:
    shape = a_shape(cpu=2, memory="4Gi")
    world = World(
        nodes=(
            a_node("n0", cpu=4, memory="8Gi"),
            a_node("n1", cpu=1),
            a_node("n2", taints=[TaintRecord("k", "", "NoSchedule")]),
            a_node("n3", closed="unreadable"),
            a_node("n4", unschedulable=True),
            a_node("n5", pods=0),
        ),
        tasks=(a_task("p", shape),),
    )
    spread = NodeOrdering(NodeOrderArgs.only(least_allocated=1))
    state = candidates(world, shape, Predicates(), spread, Binpack())

    assert state.ranked.tolist() == [50 + 50, NOWHERE, NOWHERE, NOWHERE, NOWHERE, NOWHERE]
    assert state.future.tolist() == [NOWHERE] * 6


def test_a_releasing_node_is_ranked_for_pipelining_only() -> None:
    shape = a_shape(cpu=3)
    world = World(
        nodes=(a_node("n0"), a_node("n1"), a_node("n2")),
        tasks=(
            a_task("p", shape),
            a_task("go", a_shape(cpu=2), status=TaskStatus.RELEASING, node="n1"),
            a_task("stay", a_shape(cpu=2), status=TaskStatus.RUNNING, node="n2"),
        ),
    )
    state = candidates(world, shape, Predicates())

    assert state.ranked.tolist() == [0, NOWHERE, NOWHERE]
    assert state.future.tolist() == [NOWHERE, 0, NOWHERE]


@pytest.mark.parametrize(
    ("world", "shape", "text"),
    [
        pytest.param(World(), a_shape(cpu=1), "0/0 nodes are unavailable", id="no-nodes"),
        pytest.param(
            World(nodes=tuple(a_node(f"n{i}") for i in range(5))),
            a_shape(cpu=5),
            "0/5 nodes are unavailable: 5 Insufficient cpu.",
            id="one-reason",
        ),
        pytest.param(
            World(nodes=(a_node("n0", cpu=1, memory="1Gi"), a_node("n1", memory="1Gi"), a_node("n2"))),
            a_shape(cpu=2, memory="2Gi", gpu=1),
            "0/3 nodes are unavailable: 1 Insufficient cpu, 1 Insufficient memory, 1 Insufficient nvidia.com/gpu.",
            id="the-first-lacking-resource-of-each-node",
        ),
        pytest.param(
            World(
                nodes=(
                    a_node("n0", unschedulable=True),
                    a_node("n1", taints=[TaintRecord("k", "", "NoSchedule")]),
                    a_node("n2", labels={"zone": "b"}),
                    a_node("n3", cpu=1, unschedulable=True),
                )
            ),
            a_shape(cpu=2, node_selector={"zone": "b"}, memory="17Gi"),
            "0/4 nodes are unavailable: 1 Insufficient cpu, 3 Insufficient memory.",
            id="resources-come-before-other-reasons",
        ),
        pytest.param(
            World(
                nodes=(
                    a_node("n0", unschedulable=True),
                    a_node("n1", labels={"zone": "a"}, taints=[TaintRecord("k", "", "NoSchedule")]),
                    a_node("n2", labels={"zone": "b"}),
                )
            ),
            a_shape(cpu=2, node_selector={"zone": "a"}),
            "0/3 nodes are unavailable: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable.",
            id="every-filter",
        ),
        pytest.param(
            World(nodes=(a_node("n0", pods=0),)),
            a_shape(cpu=1),
            "0/1 nodes are unavailable: 1 Insufficient pods.",
            id="pods-are-a-resource-too",
        ),
    ],
)
def test_a_rejection_counts_the_first_reason_of_every_node(world: World, shape: Shape, text: str) -> None:
    world = World(nodes=world.nodes, tasks=(a_task("p", shape),))

    assert candidates(world, shape, Predicates(), NodeOrdering()).rejection().message == text


def test_the_pod_limit_is_the_reason_where_a_pipelined_pod_takes_the_last_slot() -> None:
    """The promised pod waits for the room of the terminating one: pods are left by Volcano's books, not by kube's."""
    shape = a_shape(cpu="1m")
    world = World(
        nodes=(a_node("n0", pods=2),),
        tasks=(
            a_task("p", shape),
            a_task("go", shape, status=TaskStatus.RELEASING, node="n0"),
            a_task("run", shape, status=TaskStatus.RUNNING, node="n0"),
        ),
    )

    text = candidates(world, shape, Predicates()).rejection().message
    assert text == "0/1 nodes are unavailable: 1 node(s) pod number exceeded."


def test_a_closed_node_says_so_before_anything_else() -> None:
    shape = a_shape(cpu=64)
    world = World(nodes=(a_node("n0", closed="unreadable", unschedulable=True),), tasks=(a_task("p", shape),))

    assert "closed" in candidates(world, shape, Predicates()).rejection().message


def test_a_node_that_is_being_deleted_is_not_said_to_hold_an_unreadable_pod() -> None:
    shape = a_shape(cpu=1)
    world = World(nodes=(a_node("n0", closed="the node is being deleted"),), tasks=(a_task("p", shape),))

    text = candidates(world, shape, Predicates()).rejection().message
    assert "cannot be read" not in text
    assert "deleted" in text


def test_reasons_of_a_rejection_know_whether_an_eviction_could_help() -> None:
    shape = a_shape(cpu=4)
    world = World(
        nodes=(a_node("n0", cpu=1), a_node("n1", unschedulable=True), a_node("n2", cpu=2)), tasks=(a_task("p", shape),)
    )
    refusals = candidates(world, shape, Predicates()).rejection().refusals

    assert [(refusal.nodes, refusal.reason.code, refusal.reason.resolvable) for refusal in refusals] == [
        (2, "insufficient-cpu", True),
        (1, "node-unschedulable", False),
    ]


class Verdict(Plugin, Predicate):
    """Refuses the nodes whose rows it is told, for the second of its reasons."""

    name = "verdict"
    depends_on: ClassVar = DependsOn.NODE_ALONE
    reasons: ClassVar = (Reason("verdict", "one", "one"), Reason("verdict", "two", "two"))

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        return np.array([2 if name == "n1" else 0 for name in nodes.names], dtype=np.int16)


def test_reasons_of_several_plugins_are_kept_apart() -> None:
    shape = a_shape(cpu=1)
    world = World(nodes=(a_node("n0", unschedulable=True), a_node("n1")), tasks=(a_task("p", shape),))
    for plugins in ((Verdict(), Predicates()), (Predicates(), Verdict())):
        text = candidates(world, shape, *plugins).rejection().message
        assert text == "0/2 nodes are unavailable: 1 node(s) were unschedulable, 1 two."


class Bad(Plugin, NodeOrder):
    """Answers with what it is given."""

    name = "bad"
    depends_on: ClassVar = DependsOn.NODE_ALONE

    def __init__(self, arguments: object = None) -> None:
        self.answer = arguments

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        return self.answer  # type: ignore[return-value]


@pytest.mark.parametrize("answer", [np.array([np.nan]), np.zeros(2), None], ids=["nan", "length", "none"])
def test_a_scorer_that_answers_nonsense_is_named(answer: object) -> None:
    shape = a_shape(cpu=1)
    world = World(nodes=(a_node("n0"),), tasks=(a_task("p", shape),))
    with pytest.raises(PluginFailed, match="plugin bad failed in node_order"):
        candidates(world, shape, NodeOrdering(), Bad(answer))


def test_a_built_in_scorer_that_answers_nonsense_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Binpack, "node_order", lambda self, task, nodes: np.full(len(nodes), np.inf))
    world = World(nodes=(a_node("n0"),), tasks=(a_task("p", a_shape(cpu=1)),))
    with pytest.raises(PluginFailed, match="plugin binpack failed in node_order: answered with NaN or infinity"):
        candidates(world, a_shape(cpu=1), NodeOrdering(), Binpack())


def everything(state: NodeRanking) -> tuple[list[float], list[float], str]:
    return state.ranked.tolist(), state.future.tolist(), state.rejection().message


@settings(max_examples=60, derandomize=True)
@given(worlds(), st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), max_size=6))
def test_a_state_that_is_refreshed_equals_a_fresh_one(world: World, history: list[tuple[int, bool]]) -> None:
    ssn = a_session(world, Predicates(), NodeOrdering(), Binpack())
    ids = [index for index, shape in enumerate(ssn.state.classes.shapes) if shape is not None]
    kept = [ssn.placement.rank(ssn.state.task_of(index)) for index in ids]
    for pick, keep in history:
        statement = ssn.statement()
        _place_something(ssn, statement, np.random.default_rng(pick))
        if not keep:
            statement.discard()
        for index, state in zip(ids, kept, strict=True):
            state.refresh()
            fresh = ssn.placement.rank(ssn.state.task_of(index))
            assert everything(state) == everything(fresh)


def test_a_shape_without_room_is_given_no_scores_until_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = Binpack.node_order

    def noted(self: Binpack, task: TaskInfo, nodes: NodeColumns) -> Floats:
        asked.append(len(nodes))
        return answer(self, task, nodes)

    monkeypatch.setattr(Binpack, "node_order", noted)
    shape = a_shape(cpu=1)
    ssn = a_session(
        World(nodes=(a_node("n0", cpu=1), a_node("n1", cpu=1)), jobs=(a_job("j"),), tasks=tasks_of("j", 3, shape)),
        *(Predicates(), Binpack()),
    )
    row, kind, statement = job_row(ssn, "j"), shape_id(ssn, shape), ssn.statement()
    statement.allocate(row, kind, ssn.hooks.pending.of(row)[:2], np.array([0, 1]))
    state = ssn.placement.rank(info(ssn, shape))

    assert state.ranked.tolist() == [NOWHERE, NOWHERE]
    assert asked == []

    statement.discard()
    state.refresh()
    assert everything(state) == everything(ssn.placement.rank(info(ssn, shape)))
    assert state.ranked.max() > NOWHERE


def _place_something(ssn: Session, statement: object, numbers: np.random.Generator) -> None:
    pending = np.flatnonzero((ssn.state.tasks.status == TaskStatus.PENDING) & (ssn.state.tasks.job >= 0))
    if not len(pending) or not len(ssn.state.nodes):
        return
    task = pending[numbers.integers(len(pending))]
    nodes = np.array([numbers.integers(len(ssn.state.nodes))])
    place = statement.allocate if numbers.integers(2) else statement.pipeline  # type: ignore[attr-defined]
    place(int(ssn.state.tasks.job[task]), int(ssn.state.tasks.shape[task]), np.array([task]), nodes)


def test_scores_looked_ahead_equal_scores_after_placing() -> None:
    shape = a_shape(cpu=1, memory="1Gi")
    world = World(
        nodes=(a_node("n0", cpu=3), a_node("n1", cpu=2), a_node("n2", unschedulable=True)),
        jobs=(a_job("j"),),
        tasks=tasks_of("j", 5, shape),
    )
    plugins = (Predicates(), NodeOrdering(), Binpack())
    ssn = a_session(world, *plugins)
    state = ssn.placement.rank(info(ssn, shape))
    delta, _ = ssn.state.classes.deltas(shape_id(ssn, shape), TaskStatus.ALLOCATED)
    ahead = state.after(np.array([0, 0, 0, 1, 2]), np.array([1, 2, 3, 1, 1]), delta).tolist()

    row, pending = job_row(ssn, "j"), ssn.hooks.pending.of(job_row(ssn, "j"))
    found = []
    for count in (1, 2, 3):
        ssn.statement().allocate(row, shape_id(ssn, shape), pending[count - 1 : count], np.array([node_row(ssn, "n0")]))
        found.append(ssn.placement.rank(info(ssn, shape)).ranked[0])

    assert ahead[:3] == found
    assert ahead[2] == NOWHERE
    assert ahead[4] == NOWHERE
