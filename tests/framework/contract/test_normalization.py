"""Scores that depend on who else is a candidate."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info, job_row, shape_id
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.contract.extension_points import NodeOrder, NormalizedOrder
from volcano_py.framework.contract.normalization import GroupScores, NormalizedScore, Normalizer, normalized
from volcano_py.framework.contract.plugin import DependsOn, Plugin, PluginFailed
from volcano_py.framework.placing.node_ranking import NodeRanking
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.static_filter_cache import StaticFilterCache
from volcano_py.model.arrays import Floats
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.nodeorder import NodeOrderArgs, NodeOrdering
from volcano_py.snapshot.columns import NodeColumns

UP, DOWN, AS_IS = Normalizer.HIGHEST_IS_BEST, Normalizer.LOWEST_IS_BEST, Normalizer.AS_IS
ONE = a_shape(cpu=1, memory="1Gi")


class ByLabel(Plugin, NormalizedOrder):
    """Raw numbers are labels of nodes."""

    name = "by-label"
    depends_on: ClassVar = DependsOn.NODE_ALONE

    def __init__(self, *scores: tuple[str, Normalizer, float]) -> None:
        super().__init__()
        self.scores = scores
        self.asked: list[int] = []

    def normalized_orders(self) -> Sequence[NormalizedScore]:
        return [
            NormalizedScore(label, kind, weight, self.part, self.reader(label)) for label, kind, weight in self.scores
        ]

    def part(self, shape: Shape) -> Hashable:
        return "everybody"

    def reader(self, label: str):  # type: ignore[no-untyped-def]
        def raw(shape: Shape, nodes: NodeColumns) -> Floats:
            self.asked.append(len(nodes))
            rows = range(len(nodes.statics.records)) if nodes.rows is None else nodes.rows
            return np.array([float(nodes.statics.records[row].labels[label]) for row in rows])

        return raw


class Recompute(Plugin, NodeOrder):
    """Has no opinion and makes everything be computed again for every task."""

    name = "recompute"
    depends_on: ClassVar = DependsOn.OTHER_NODES

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        return np.zeros(len(nodes))


def a_cluster(*raws: int, cpu: int = 4, tasks: int = 1, **node: object) -> World:
    nodes = tuple(
        a_node(f"n{row}", cpu=cpu, labels={"a": str(raw)}, **node)  # type: ignore[arg-type]
        for row, raw in enumerate(raws)
    )
    return World(nodes=nodes, jobs=(a_job("j"),), tasks=tasks_of("j", tasks, ONE))


def candidates(world: World, *plugins: Plugin) -> NodeRanking:
    ssn = a_session(world, *plugins)
    return ssn.placement.rank(info(ssn, ONE))


@pytest.mark.parametrize(
    ("raw", "kind", "expected"),
    [
        pytest.param([80, 50, 20], UP, [100, 62, 25], id="highest-is-best"),
        pytest.param([0, 0, 0], UP, [0, 0, 0], id="nothing-for-anybody"),
        pytest.param([3, 1, 0], DOWN, [0, 67, 100], id="lowest-is-best-subtracts-after-cutting"),
        pytest.param([0, 0, 0], DOWN, [100, 100, 100], id="all-equally-good"),
        pytest.param([7, 0, 3], AS_IS, [7, 0, 3], id="as-it-is"),
    ],
)
def test_raw_numbers_become_scores(raw: list[float], kind: Normalizer, expected: list[float]) -> None:
    assert normalized(np.array(raw, dtype=float), kind, max(raw)).tolist() == expected


def test_scores_equal_on_all_feasible_nodes_are_added_once() -> None:
    raw = np.array([5.0, 5.0, 9.0])
    score = NormalizedScore("s", UP, 2.0, lambda shape: shape, lambda shape, nodes: raw)

    scores = GroupScores([(score, raw)], np.array([True, True, False]))

    assert (scores.fixed, scores.base) == (True, 200.0)
    assert not GroupScores([(score, raw)], np.ones(3, dtype=bool)).fixed
    assert GroupScores([(score, raw)], np.zeros(3, dtype=bool)).base == 0.0


def test_scores_are_weighted_and_added_to_the_others() -> None:
    world = a_cluster(80, 50, 20)
    spread = NodeOrdering(NodeOrderArgs.only(least_allocated=1))

    state = candidates(world, spread, ByLabel(("a", UP, 2.0), ("a", AS_IS, -1.0)))

    assert state.ranked.tolist() == [84 + 200 - 80, 84 + 124 - 50, 84 + 50 - 20]


@pytest.mark.parametrize("switch", [0.0, None], ids=["weight-0", "nothing-to-say"])
def test_a_scorer_that_is_off_or_has_nothing_to_say_is_not_asked(switch: float | None) -> None:
    plugin = ByLabel(("a", DOWN, 1.0 if switch is None else switch))
    if switch is None:
        plugin.part = lambda shape: None  # type: ignore[method-assign, assignment, return-value]

    assert candidates(a_cluster(1, 2), plugin).ranked.tolist() == [0, 0]
    assert plugin.asked == []


def test_scores_are_normalised_over_candidates_with_idle_and_releasing_nodes_apart() -> None:
    """The best of all is full, the next two are being cleared, the others are idle."""
    going = tuple(a_task(f"g{node}", a_shape(cpu=4), status=TaskStatus.RELEASING, node=node) for node in ("n1", "n2"))
    full = a_task("full", a_shape(cpu=4), status=TaskStatus.RUNNING, node="n0")
    world = a_cluster(90, 40, 30, 20, 10)
    state = candidates(World(world.nodes, jobs=world.jobs, tasks=(*world.tasks, full, *going)), ByLabel(("a", UP, 1.0)))

    assert state.ranked.tolist() == [-np.inf] * 3 + [100, 50]
    assert state.future.tolist() == [-np.inf, 100, 75, -np.inf, -np.inf]


def test_scores_rise_without_the_best_candidate_and_fall_when_it_returns() -> None:
    world = a_cluster(80, 40, 20, cpu=1)
    ssn = a_session(world, ByLabel(("a", UP, 1.0)))
    own, row = shape_id(ssn, ONE), job_row(ssn, "j")
    state = ssn.placement.ranking(own)
    seen = [state.ranked.tolist()]

    statement = ssn.statement()
    statement.allocate(row, own, ssn.hooks.pending.of(row), np.array([0]))
    seen.append(ssn.placement.ranking(own).ranked.tolist())
    statement.discard()
    seen.append(ssn.placement.ranking(own).ranked.tolist())

    assert seen == [[100, 50, 25], [-np.inf, 100, 50], [100, 50, 25]]


def test_once_the_best_node_is_full_the_rest_of_a_gang_is_scored_again() -> None:
    """Node n0 is preferred and has one place; after it n1 is worth 100 more than n2, before it hardly anything."""
    world = World(
        nodes=(
            a_node("n0", cpu=1, labels={"a": "100"}),
            a_node("n1", cpu=16, memory="16Gi", labels={"a": "2"}),
            a_node("n2", cpu=32, memory="64Gi", labels={"a": "0"}),
        ),
        jobs=(a_job("j"),),
        tasks=tasks_of("j", 3, ONE),
    )

    plugins = (ByLabel(("a", UP, 1.0)), NodeOrdering(NodeOrderArgs.only(least_allocated=1)))

    assert place(a_session(world, *plugins), 3) == ["n0", "n1", "n1"]


def place(ssn: Session, count: int) -> list[str]:
    row = job_row(ssn, "j")
    tasks = ssn.hooks.pending.of(row)[:count]
    done = ssn.placement.place(ssn.statement(), row, shape_id(ssn, ONE), tasks)
    return [ssn.state.nodes.names[ssn.state.tasks.node[task]] for task in tasks[:done]]


nodes = st.lists(
    st.tuples(st.sampled_from((1, 1, 2, 3, 8)), st.sampled_from((0, 1, 2, 3, 50, 100)), st.sampled_from((0, 1, 3))),
    min_size=1,
    max_size=7,
)


@settings(max_examples=120, derandomize=True)
@given(
    sizes=nodes,
    count=st.sampled_from((1, 2, 5, 12, 30)),
    weights=st.tuples(st.sampled_from((0, 1, 2)), st.sampled_from((-1, 1, 3)), st.sampled_from((0, 1))),
    seed=st.sampled_from((0, 5)),
)
def test_a_heap_places_what_recomputing_for_every_task_places(
    sizes: list[tuple[int, int, int]], count: int, weights: tuple[int, int, int], seed: int
) -> None:
    world = World(
        nodes=tuple(
            a_node(f"n{row}", cpu=cpu, labels={"a": str(a), "b": str(b)}) for row, (cpu, a, b) in enumerate(sizes)
        ),
        jobs=(a_job("j"),),
        tasks=tasks_of("j", count, ONE),
    )
    labels = ByLabel(("a", UP, weights[0]), ("b", DOWN, weights[1]))
    spread = NodeOrdering(NodeOrderArgs.only(least_allocated=weights[2], most_allocated=1))

    heap = place(a_session(world, labels, spread, seed=seed), count)

    assert heap == place(a_session(world, labels, spread, Recompute(), seed=seed), count)


def test_raw_numbers_are_kept_over_cycles_and_asked_again_for_nodes_that_changed() -> None:
    plugin, static_filters = ByLabel(("a", UP, 1.0)), StaticFilterCache()
    store = a_cluster(80, 40, 20).store()

    def ranked() -> list[float]:
        ssn = a_session(store, plugin, static_filters=static_filters)
        return ssn.placement.rank(info(ssn, ONE)).ranked.tolist()

    assert ranked() == ranked() == [100, 50, 25]
    store.set_node(a_node("n1", labels={"a": "160"}))
    assert ranked() == [50, 100, 12]
    assert plugin.asked == [3, 1]


@pytest.mark.parametrize("answer", [np.array([1.0]), np.array([1.0, np.nan])], ids=["too-short", "not-a-number"])
def test_nonsense_is_a_failure_of_the_plugin_that_names_the_scorer(answer: Floats) -> None:
    plugin = ByLabel(("a", UP, 1.0))
    plugin.reader = lambda label: lambda shape, nodes: answer  # type: ignore[method-assign]

    with pytest.raises(PluginFailed, match="plugin by-label failed in a: "):
        candidates(a_cluster(1, 2), plugin)
