"""Domains as arrays against the plain sets of the tree, and when they are made anew."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.world import a_node
from volcano_py.model.hyper_nodes import TOP, HyperNode, HyperNodeTree, NodeMember, NodeNames
from volcano_py.model.objects import NodeRecord
from volcano_py.model.requirements import Requirement
from volcano_py.model.selectors import LabelSelector
from volcano_py.snapshot.domains import NOWHERE, Domains, DomainStore
from volcano_py.snapshot.store import ClusterStore

NODES = tuple(a_node(f"node-{index}", labels={"rack": str(index % 4)}) for index in range(9))
RACK = ("In", ("1",)), ("In", ("0", "9")), ("NotIn", ("2",)), ("Exists", ()), ("DoesNotExist", ())

members = st.one_of(
    st.sampled_from([*(node.name for node in NODES), "gone"]).map(lambda name: NodeMember(name=name)),
    st.sampled_from(["node-1", "^node-1$", "[02468]$", "(", "nothing"]).map(lambda text: NodeMember(pattern=text)),
    st.builds(
        lambda key, wanted: NodeMember(labels=LabelSelector((Requirement(key, *wanted),))),
        st.sampled_from(["rack", "row"]),
        st.sampled_from(RACK),
    ),
    st.just(NodeMember(labels=LabelSelector())),
)
some_nodes = st.lists(st.sampled_from(NODES), unique_by=lambda node: node.name).map(
    lambda nodes: tuple(sorted(nodes, key=lambda node: node.name))
)


@st.composite
def some_trees(draw: st.DrawFn) -> HyperNodeTree:
    """Any objects: domains overlap, children have any tier, and circles are cut."""
    names = [f"h{index}" for index in range(draw(st.integers(0, 6)))]
    return HyperNodeTree(
        HyperNode(
            name,
            draw(st.integers(0, 3)),
            "",
            tuple(draw(st.lists(members, max_size=3))),
            tuple(draw(st.lists(st.sampled_from([*names, "unknown"]), max_size=3, unique=True))),
        )
        for name in names
    )


def plain(tree: HyperNodeTree, nodes: Sequence[NodeRecord]) -> dict[str, set[int]]:
    """Return the nodes of every domain in order of the domains' numbers: by tier, then by name."""
    found = tree.domains(NodeNames([node.name for node in nodes], [node.labels for node in nodes]))
    names = sorted(found, key=lambda name: (tree.by_name[name].tier, name))
    return {name: found[name] for name in names} | {TOP: set(range(len(nodes)))}


@given(some_trees(), some_nodes)
def test_a_domain_has_the_nodes_below_its_hyper_node(tree: HyperNodeTree, nodes: tuple[NodeRecord, ...]) -> None:
    domains = Domains(tree, nodes)
    expected = plain(tree, nodes)

    assert list(domains.names) == list(expected)
    for name, rows in expected.items():
        assert domains.rows(name).tolist() == sorted(rows)
        assert np.flatnonzero(domains.mask(name)).tolist() == sorted(rows)
        assert domains.names[domains.number[name]] == name
        tier = tree.top_tier if name == TOP else tree.by_name[name].tier
        assert domains.tier_of[domains.number[name]] == tier
    assert [tier.tier for tier in domains.tiers] == sorted({*tree.by_tier, tree.top_tier})


@given(some_trees(), some_nodes)
def test_the_leaf_of_a_node_is_its_domain_of_the_lowest_tier_and_then_of_the_first_name(
    tree: HyperNodeTree, nodes: tuple[NodeRecord, ...]
) -> None:
    domains = Domains(tree, nodes)
    expected = plain(tree, nodes)
    del expected[TOP]

    for row, leaf in enumerate(domains.leaf.tolist()):
        having = [name for name, rows in expected.items() if row in rows]
        assert leaf == (domains.number[having[0]] if having else NOWHERE)
    for tier in domains.tiers[:-1]:
        for row, found in enumerate(domains.at(tier).tolist()):
            having = [name for name in tree.by_tier[tier.tier] if row in expected[name]]
            assert found == (domains.number[having[0]] if having else NOWHERE)


@given(some_trees(), some_nodes, st.data())
def test_sums_are_those_over_the_nodes_of_each_domain(
    tree: HyperNodeTree, nodes: tuple[NodeRecord, ...], data: st.DataObject
) -> None:
    domains = Domains(tree, nodes)
    flat = data.draw(st.lists(st.integers(-9, 9), min_size=2 * len(nodes), max_size=2 * len(nodes)))
    amounts = np.array(flat, dtype=np.float64).reshape(2, len(nodes))
    expected = [[sum(line[row] for row in rows) for rows in plain(tree, nodes).values()] for line in amounts.tolist()]

    assert domains.sums(amounts).tolist() == expected
    assert domains.sums(amounts[0]).tolist() == expected[0]


@given(some_trees(), some_nodes, st.sets(st.integers(0, 8)))
def test_the_domain_around_nodes_is_the_first_that_has_them_all(
    tree: HyperNodeTree, nodes: tuple[NodeRecord, ...], chosen: set[int]
) -> None:
    chosen = {row for row in chosen if row < len(nodes)}
    domains = Domains(tree, nodes)

    around = domains.around(np.array(sorted(chosen), dtype=np.intp))

    having = [name for name, rows in plain(tree, nodes).items() if chosen <= rows]
    assert (None if around is None else domains.names[around]) == (having[0] if chosen else None)


@given(some_trees(), some_nodes)
def test_above_and_below_a_domain_is_what_is_there_in_the_tree(
    tree: HyperNodeTree, nodes: tuple[NodeRecord, ...]
) -> None:
    domains = Domains(tree, nodes)
    for number, name in enumerate(domains.names):
        above = [domains.names[one] for one in domains.ancestors(number)]
        below = sorted(domains.names[one] for one in domains.below(number))
        if name == TOP:
            assert (above, below) == ([TOP], sorted(domains.names))
        else:
            assert (above, below) == ([*tree.ancestors(name), TOP], sorted(tree.below(name)))


@given(some_trees(), some_nodes, st.lists(st.integers(-1, 8), max_size=12))
def test_counts_are_those_of_rows_in_each_domain(
    tree: HyperNodeTree, nodes: tuple[NodeRecord, ...], rows: list[int]
) -> None:
    rows = [row for row in rows if row < len(nodes)]

    counts = Domains(tree, nodes).counts(np.array(rows, dtype=np.intp)).tolist()

    assert counts == [sum(row in found for row in rows) for found in plain(tree, nodes).values()]


@given(st.lists(st.tuples(some_trees(), some_nodes, st.booleans()), min_size=1, max_size=6))
def test_the_store_gives_the_present_domains_whatever_changed(
    steps: list[tuple[HyperNodeTree, tuple[NodeRecord, ...], bool]],
) -> None:
    """Some of the domains are used before the next change, others never."""
    store = DomainStore()
    tree = steps[0][0]
    for other, nodes, used in steps:
        tree = tree if used else other
        found = store.of(tree, nodes)
        if used:
            assert {name: set(found.rows(name).tolist()) for name in found.names} == plain(tree, nodes)
        assert store.of(tree, list(nodes)) is found


def with_labels(nodes: tuple[NodeRecord, ...], **labels: str) -> tuple[NodeRecord, ...]:
    return (replace(nodes[0], labels=labels), *nodes[1:])


def test_domains_stay_while_only_other_things_of_nodes_change() -> None:
    tree = HyperNodeTree([HyperNode("rack", 1, nodes=(NodeMember(pattern="node"),))])
    store = DomainStore()
    before = store.of(tree, NODES)

    assert store.of(tree, (replace(NODES[0], unschedulable=True, allocatable={"cpu": 1.0}), *NODES[1:])) is before
    assert store.of(tree, with_labels(NODES, rack="7")) is not before


def test_a_new_node_is_looked_at_and_a_node_that_left_is_forgotten() -> None:
    tree = HyperNodeTree([HyperNode("even", 1, nodes=(NodeMember(pattern="[02468]$"),))])
    store = DomainStore()
    assert store.of(tree, NODES).rows("even").tolist() == [0, 2, 4, 6, 8]

    assert store.of(tree, NODES[1:]).rows("even").tolist() == [1, 3, 5, 7]
    assert store.of(tree, NODES).rows("even").tolist() == [0, 2, 4, 6, 8]


def test_snapshots_have_the_domains_and_share_them() -> None:
    store = ClusterStore()
    for node in NODES:
        store.set_node(node)
    store.facts.set_hyper_node(HyperNode("rack", 1, nodes=(NodeMember(name="node-3"), NodeMember(name="node-1"))))
    before = store.snapshot()

    store.set_node(replace(NODES[0], allocatable={"cpu": 1.0}))

    assert before.domains.rows("rack").tolist() == [1, 3]
    assert store.snapshot().domains is before.domains
    store.remove_node("node-0")
    assert store.snapshot().domains.rows("rack").tolist() == [0, 2]
    assert before.domains.rows("rack").tolist() == [1, 3]


@given(some_trees(), some_nodes, st.data())
def test_sums_of_some_nodes_are_sums_in_which_the_others_have_nothing(
    tree: HyperNodeTree, nodes: tuple[NodeRecord, ...], data: st.DataObject
) -> None:
    domains = Domains(tree, nodes)
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, max(len(nodes) - 1, 0))))) if nodes else [], dtype=np.intp)
    amounts = np.array([[float(row + 1), 2.0 * row] for row in rows.tolist()]).reshape(len(rows), 2).T
    every = np.zeros((2, len(nodes)))
    every[:, rows] = amounts

    assert domains.sums_of(rows, amounts).tolist() == domains.sums(every).tolist()
