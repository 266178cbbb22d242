"""Sets of nodes: what a shard makes of the nodes, and the order in which they are tried."""

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from volcano_py.framework.placing.node_sets import ALL, OTHERS, OURS, NodeSet, NodeSets
from volcano_py.model.facts import Shard
from volcano_py.snapshot.columns import NodeColumns
from volcano_py.testing.cluster import a_cluster
from volcano_py.testing.objects import a_node

NAMES = ("n0", "n1", "n2", "n3")


def columns(names: tuple[str, ...] = NAMES, closed: tuple[str, ...] = ()) -> NodeColumns:
    return a_cluster(*(a_node(name, terminating=name in closed) for name in names)).snapshot().nodes


def divided(shard: Shard | None, nodes: NodeColumns) -> NodeSets:
    def static_row(_: Hashable, ask: Callable[[NodeColumns], NDArray[Any]]) -> NDArray[Any]:
        return ask(nodes)

    return NodeSets.of_shard(shard, nodes, static_row)


def rows(mask: NDArray[np.bool_] | None) -> list[int] | None:
    return None if mask is None else np.flatnonzero(mask).tolist()


def a_mask(*nodes: int) -> NDArray[np.bool_]:
    return np.isin(np.arange(len(NAMES)), nodes)


@pytest.mark.parametrize(
    ("shard", "sets", "shut"),
    [
        pytest.param(None, [(ALL, None)], [3], id="no shard"),
        pytest.param(Shard(frozenset(NAMES)), [(OURS, None)], [3], id="all are ours"),
        pytest.param(Shard(frozenset({"n1", "n9"})), [(OURS, [1]), (OTHERS, [0, 2, 3])], [3], id="one is ours"),
        pytest.param(Shard(), [(OTHERS, None)], [3], id="none is ours"),
        pytest.param(Shard(frozenset({"n1", "n3"}), strict=True), [(OURS, None)], [0, 2, 3], id="strict"),
        pytest.param(Shard(strict=True), [(OURS, None)], [0, 1, 2, 3], id="strict, none is ours"),
    ],
)
def test_a_shard_divides_the_nodes(shard: Shard | None, sets: list[tuple[str, list[int] | None]], shut: list[int]):
    found = divided(shard, columns(closed=("n3",)))

    assert [(one.name, rows(one.mask)) for one in found.sets] == sets
    assert rows(found.shut) == shut


def test_the_answer_about_nodes_is_kept_by_the_names_of_the_shard():
    nodes, keys = columns(), []

    def static_row(key: Hashable, ask: Callable[[NodeColumns], NDArray[Any]]) -> NDArray[Any]:
        keys.append(key)
        return ask(nodes)

    NodeSets.of_shard(Shard(frozenset({"n1"})), nodes, static_row)

    assert keys == [("shard", frozenset({"n1"}))]


def test_without_nodes_there_is_one_empty_set():
    found = divided(Shard(frozenset({"n1"})), columns(names=()))

    assert (len(found.sets), len(found.shut)) == (1, 0)


def test_nodes_have_the_place_of_their_set():
    found = divided(Shard(frozenset({"n1", "n3"})), columns())

    assert found.places(np.array([0, 3, 2, 1])).tolist() == [1, 0, 1, 0]
    assert [found.index_of(node) for node in range(4)] == [1, 0, 1, 0]


def test_in_one_set_all_nodes_have_the_same_place():
    found = divided(None, columns())

    assert found.places(np.array([2, 0, 1])).tolist() == [0, 0, 0]
    assert found.index_of(3) == 0


def test_a_node_counts_for_the_first_of_the_sets_that_have_it():
    """As of topology domains: a rack, the block around it, then everything."""
    sets = (NodeSet("rack", a_mask(2)), NodeSet("block", a_mask(1, 2)), NodeSet("all"))
    found = NodeSets(sets, a_mask())

    assert [found.index_of(node) for node in range(4)] == [2, 1, 0, 2]
    assert found.places(np.arange(4)).tolist() == [2, 1, 0, 2]


def test_a_node_in_no_set_comes_last():
    found = NodeSets((NodeSet("a", a_mask(3)), NodeSet("b", a_mask(1))), a_mask(0, 2))

    assert found.index_of(0) == 2
    assert found.places(np.arange(4)).tolist() == [2, 1, 2, 0]
