from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, info
from tests.reference.strategies import selective_nodes, selective_shapes
from tests.reference.world import World, a_node, a_shape, a_task
from volcano_py.framework.contract.combine import Point
from volcano_py.framework.contract.extension_points import StaticPredicate, Verdicts
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.hooks.node_hooks import static_verdicts
from volcano_py.framework.state import static_filter_cache
from volcano_py.framework.state.static_filter_cache import StaticFilterCache
from volcano_py.framework.state.tie_order import tie_order
from volcano_py.model.objects import NodeRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.shape import Shape
from volcano_py.plugins.nodeorder import NodeOrdering
from volcano_py.plugins.predicates import Predicates
from volcano_py.snapshot.columns import NodeColumns
from volcano_py.snapshot.store import ClusterStore

SHAPE, OTHER, PICKY = a_shape(cpu=1), a_shape(cpu=2), a_shape(cpu=1, node_selector={"zone": "a"})


class Cordoned(Plugin, StaticPredicate):
    """Refuses cordoned nodes, and remembers which nodes it was asked about."""

    name = "cordoned"
    static_reasons: ClassVar = (Reason("cordoned", "c", "cordoned"),)

    def __init__(self, arguments: object = None) -> None:
        self.asked: list[list[str]] = []

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        self.asked.append(list(nodes.names))
        return nodes.unschedulable.astype(np.int16)


@pytest.fixture
def plugin() -> Cordoned:
    return Cordoned()


@pytest.fixture
def store() -> ClusterStore:
    return World(nodes=tuple(a_node(f"n{index}") for index in range(4))).store()


def of(
    kept: StaticFilterCache, shape: Shape, nodes: NodeColumns, points: list[Point], offsets: tuple[int, ...]
) -> Verdicts:
    return static_verdicts(lambda key, ask: kept.row(key, nodes, ask), shape, points, offsets)


def verdicts(kept: StaticFilterCache, store: ClusterStore, plugin: Cordoned, shape: Shape = SHAPE) -> list[int]:
    answer = of(kept, shape, store.snapshot().nodes, [Point(plugin, "static_predicate")], (0,))
    return [int(verdict) for verdict in answer]


def test_a_shape_is_asked_about_once_as_long_as_no_node_changes(store: ClusterStore, plugin: Cordoned) -> None:
    kept = StaticFilterCache()
    for _ in range(3):
        assert verdicts(kept, store, plugin) == [0, 0, 0, 0]

    assert plugin.asked == [["n0", "n1", "n2", "n3"]]


def test_pods_that_come_and_go_do_not_change_the_static_state_of_a_node(store: ClusterStore, plugin: Cordoned) -> None:
    kept = StaticFilterCache()
    verdicts(kept, store, plugin)
    task = a_task("p")
    store.set_task(task.record, task.shape, task.status, "n1")
    store.set_task(task.record, task.shape, task.status, "nowhere")
    verdicts(kept, store, plugin)

    assert len(plugin.asked) == 1


def test_only_changed_nodes_are_asked_about_again(store: ClusterStore, plugin: Cordoned) -> None:
    kept = StaticFilterCache()
    verdicts(kept, store, plugin)
    store.set_node(a_node("n2", unschedulable=True))
    store.set_node(a_node("n0", labels={"a": "b"}))

    assert verdicts(kept, store, plugin) == [0, 0, 1, 0]
    assert plugin.asked[1:] == [["n0", "n2"]]
    assert verdicts(kept, store, plugin) == [0, 0, 1, 0]
    assert len(plugin.asked) == 2


def test_a_shape_that_was_not_asked_for_a_while_catches_up(store: ClusterStore, plugin: Cordoned) -> None:
    kept = StaticFilterCache()
    verdicts(kept, store, plugin)
    for name in ("n1", "n3"):
        store.set_node(a_node(name, unschedulable=True))
        verdicts(kept, store, plugin, OTHER)

    assert verdicts(kept, store, plugin) == [0, 1, 0, 1]
    assert plugin.asked[-1] == ["n1", "n3"]


def test_an_answer_that_was_handed_out_does_not_change_any_more(store: ClusterStore, plugin: Cordoned) -> None:
    kept = StaticFilterCache()
    points = [Point(plugin, "static_predicate")]
    answer = of(kept, SHAPE, store.snapshot().nodes, points, (0,))
    store.set_node(a_node("n0", unschedulable=True))
    of(kept, SHAPE, store.snapshot().nodes, points, (0,))

    assert answer.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("change", ["add", "remove", "replace"])
def test_when_nodes_come_or_go_everything_is_asked_again(store: ClusterStore, plugin: Cordoned, change: str) -> None:
    kept = StaticFilterCache()
    verdicts(kept, store, plugin)
    if change in ("remove", "replace"):
        store.remove_node("n0")
    if change in ("add", "replace"):
        store.set_node(a_node("n9", unschedulable=True))

    expected = {"add": [0, 0, 0, 0, 1], "remove": [0, 0, 0], "replace": [0, 0, 0, 1]}[change]
    assert verdicts(kept, store, plugin) == expected


def test_another_cluster_of_the_same_size_is_not_mistaken_for_this_one(store: ClusterStore, plugin: Cordoned) -> None:
    kept = StaticFilterCache()
    verdicts(kept, store, plugin)
    other = World(nodes=tuple(a_node(f"n{index}", unschedulable=True) for index in range(4))).store()

    assert verdicts(kept, other, plugin) == [1, 1, 1, 1]


def test_shapes_unused_for_long_are_dropped(
    store: ClusterStore, plugin: Cordoned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static_filter_cache, "_MAX_ROWS", 2)
    kept = StaticFilterCache()
    third = a_shape(cpu=3)
    for shape in (SHAPE, OTHER, SHAPE, third):
        verdicts(kept, store, plugin, shape)
    assert len(plugin.asked) == 3

    verdicts(kept, store, plugin, SHAPE)
    assert len(plugin.asked) == 3
    verdicts(kept, store, plugin, OTHER)
    assert len(plugin.asked) == 4


def test_pods_that_differ_in_nothing_but_requests_share_their_verdicts(store: ClusterStore) -> None:
    kept, nodes = StaticFilterCache(), store.snapshot().nodes
    points = [Point(plugin, "static_predicate") for plugin in (Predicates(), NodeOrdering())]
    one, other, picky = (of(kept, shape, nodes, points, (0, 5)) for shape in (SHAPE, OTHER, PICKY))

    assert one is other
    assert picky.tolist() != one.tolist()


histories = st.lists(
    st.one_of(selective_nodes("n0"), selective_nodes("n1"), selective_nodes("n2"), st.sampled_from(("n0", "n1", "n2"))),
    min_size=1,
    max_size=6,
)


@settings(max_examples=50, derandomize=True)
@given(histories, st.lists(selective_shapes(), min_size=1, max_size=3))
def test_cached_verdicts_equal_fresh_ones(history: list[NodeRecord | str], shapes: list[Shape]) -> None:
    kept = StaticFilterCache()
    store = World(tasks=tuple(a_task(f"p{index}", shape) for index, shape in enumerate(shapes))).store()
    for step in history:
        if isinstance(step, str):
            store.remove_node(step)
        else:
            store.set_node(step)
        warm, cold = a_session(store, Predicates(), static_filters=kept), a_session(store, Predicates())
        for shape in shapes:
            one, other = (
                warm.hooks.nodes.static_verdicts(info(warm, shape)),
                cold.hooks.nodes.static_verdicts(info(cold, shape)),
            )
            assert one.tolist() == other.tolist()


def test_the_order_of_ties_is_kept_until_nodes_come_or_go_or_the_seed_changes() -> None:
    kept, store = StaticFilterCache(), World(nodes=tuple(a_node(f"n{i}") for i in range(9))).store()
    first = store.snapshot().nodes.statics
    order = kept.tie_order(first, 7)

    store.set_node(a_node("n3", labels={"a": "b"}))
    assert kept.tie_order(store.snapshot().nodes.statics, 7) is order

    store.remove_node("n3")
    fewer, other = store.snapshot().nodes.statics, kept.tie_order(first, 8)
    assert kept.tie_order(fewer, 7).tolist() == tie_order(fewer.names, 7).tolist()  # type: ignore[union-attr]
    assert other.tolist() == tie_order(first.names, 8).tolist()  # type: ignore[union-attr]
    assert kept.tie_order(first, 0) is None
