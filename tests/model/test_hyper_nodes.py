"""The tree of HyperNodes against plain walks, also where the objects make no tree."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from volcano_py.model.hyper_nodes import HyperNode, HyperNodeTree, NodeMember, NodeNames, selected_names
from volcano_py.model.requirements import Requirement
from volcano_py.model.selectors import LabelSelector

NAMES = [f"h{index}" for index in range(7)]
NODES = NodeNames([f"node-{index}" for index in range(12)], [{"rack": str(index % 3)} for index in range(12)])

members = st.one_of(
    st.sampled_from(NODES.names).map(lambda name: NodeMember(name=name)),
    st.sampled_from(["node-1", "^node-1$", "[02468]$", "(", "nothing"]).map(lambda text: NodeMember(pattern=text)),
    st.sampled_from("012").map(lambda v: NodeMember(labels=LabelSelector((Requirement("rack", "In", (v,)),)))),
)


@st.composite
def some_hyper_nodes(draw: st.DrawFn, *, orderly: bool = False) -> list[HyperNode]:
    """Any graph; an orderly one has children of lower tiers only, and one parent for each."""
    found = []
    free = list(NAMES)
    for index, name in enumerate(NAMES):
        tier = draw(st.integers(index // 2, 4 + index // 2)) if not orderly else index
        candidates = [other for other in free if other < name] if orderly else [*NAMES, "unknown"]
        children = draw(st.lists(st.sampled_from(candidates), max_size=3, unique=True)) if candidates else []
        free = [other for other in free if other not in children] if orderly else free
        found.append(HyperNode(name, tier, f"tier-{tier}", tuple(draw(st.lists(members, max_size=3))), tuple(children)))
    return draw(st.permutations(found))


@given(some_hyper_nodes(orderly=True))
def test_an_orderly_forest_is_taken_as_it_is(written: list[HyperNode]) -> None:
    tree = HyperNodeTree(written)
    by_name = {one.name: one for one in written}

    assert tree.ready, tree.problems
    assert {name: set(tree.children[name]) for name in tree.by_name} == {
        name: set(one.children) for name, one in by_name.items()
    }
    for name, one in by_name.items():
        assert all(tree.parent[child] == name for child in one.children)


@given(some_hyper_nodes())
def test_whatever_the_objects_say_there_is_a_forest_and_its_domains_are_the_nodes_below(
    written: list[HyperNode],
) -> None:
    tree = HyperNodeTree(written)
    domains = tree.domains(NODES)

    def reached(name: str, depth: int = 0) -> set[int]:
        assert depth <= len(NAMES), "a circle is left"
        own = {NODES.names.index(node) for member in tree.by_name[name].nodes for node in selected_names(member, NODES)}
        return own.union(*(reached(child, depth + 1) for child in tree.children[name]))

    for name in NAMES:
        assert domains[name] == reached(name)
        above = tree.ancestors(name)
        assert above[0] == name
        assert len(above) == len(set(above))
        assert all(name in tree.below(each) for each in above)
        assert all(domains[lower] <= domains[upper] for lower, upper in pairwise(above))
        assert set(tree.leaves(name)) == {each for each in tree.below(name) if not tree.children[each]}
    cut = sum(len({c for c in one.children if c in NAMES}) - len(tree.children[one.name]) for one in written)
    shared = len({c for cs in tree.children.values() for c in cs}) != sum(map(len, tree.children.values()))
    assert tree.ready == (cut == 0 and not shared)


@given(some_hyper_nodes(), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_the_common_ancestor_is_the_lowest_that_has_both(written: list[HyperNode], one: str, other: str) -> None:
    tree = HyperNodeTree(written)
    common = [name for name in tree.ancestors(one) if name in tree.ancestors(other)]

    assert tree.common_ancestor(one, other) == (common[0] if common else "")
    assert tree.common_ancestor(one, other) == tree.common_ancestor(other, one)
    assert tree.common_ancestor(one, "") == one == tree.common_ancestor("", one)


@given(some_hyper_nodes())
def test_the_order_of_the_objects_changes_nothing(written: list[HyperNode]) -> None:
    one, other = HyperNodeTree(written), HyperNodeTree(reversed(written))

    assert (one.children, one.parent, one.problems) == (other.children, other.parent, other.problems)


def test_mistakes_are_said_and_the_rest_works() -> None:
    tree = HyperNodeTree(
        [
            HyperNode("a", 2, children=("b",)),
            HyperNode("b", 1, children=("a",), nodes=(NodeMember("node-1"),)),
            HyperNode("c", 2, children=("b", "missing")),
        ]
    )

    assert tree.problems == (
        "HyperNode b of tier 1 contains a of tier 2, which contains b: the member a is ignored",
        "HyperNode b is a member of a, c: it counts for a; let one HyperNode have it",
    )
    assert tree.domains(NODES) == {"a": {1}, "b": {1}, "c": {1}}
    assert tree.tier_named("none") is None
