"""HyperNodes: network domains, the tree that they form, and the nodes below each of them.

A HyperNode has a tier: the lower it is, the closer its nodes are to each other. Its members are nodes or HyperNodes.

    tier 3   spine ──┬── rack-a ──┬── node-1        domain of a HyperNode: all nodes below it
    tier 1           │            └── node-2        leaf: a HyperNode without HyperNodes as members
                     └── rack-b ───── node-3

Mistakes in the objects do not stop the rest. Each one is a sentence in ``problems``.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import intern
from typing import Final, NamedTuple

from volcano_py.api import topology as wire
from volcano_py.api.go_regexp import PatternError, compile_pattern
from volcano_py.model.selectors import LabelSelector, label_selector

TOP: Final = "<cluster-top-hypernode>"
"""Volcano's name for the domain of all nodes."""
_HIGHEST_TIER: Final = 2**31
"""Columns keep tiers as integers of 64 bits, and `TOP` is above the highest."""


class NodeMember(NamedTuple):
    """A member of a HyperNode that selects nodes; one of the three is given."""

    name: str = ""
    pattern: str = ""
    """A regular expression of Go, which may match anywhere in the name."""
    labels: LabelSelector | None = None
    """An empty selector selects nothing here."""


@dataclass(frozen=True, slots=True)
class HyperNode:
    """One HyperNode, as far as the scheduler needs it."""

    name: str
    tier: int
    tier_name: str = ""
    nodes: tuple[NodeMember, ...] = ()
    children: tuple[str, ...] = ()
    """The names of the HyperNodes that are its members."""


class NodeNames(NamedTuple):
    """Nodes as members select them, in the order of their rows."""

    names: Sequence[str]
    labels: Sequence[Mapping[str, str]]


class HyperNodeTree:
    """The HyperNodes of a cluster and who contains whom.

    A child that several HyperNodes name belongs to the one of the lowest tier, then to the first by name. A HyperNode
    contains all nodes below it, whomever its children belong to.
    """

    def __init__(self, hyper_nodes: Iterable[HyperNode]) -> None:
        self.by_name: Mapping[str, HyperNode] = {one.name: one for one in sorted(hyper_nodes, key=lambda h: h.name)}
        problems: list[str] = []
        self.children: Mapping[str, tuple[str, ...]] = _without_cycles(self.by_name, problems)
        """The members that exist, without those that would close a circle."""
        self.parent: Mapping[str, str] = _parents(self.by_name, self.children, problems)
        self.problems: tuple[str, ...] = tuple(problems)

    @property
    def ready(self) -> bool:
        """Whether the objects form a forest; Volcano places no job with a topology while they do not."""
        return not self.problems

    @cached_property
    def by_tier(self) -> Mapping[int, tuple[str, ...]]:
        """The names of each tier, in order; the lowest tier first."""
        found: dict[int, list[str]] = {}
        for name, one in sorted(self.by_name.items(), key=lambda item: (item[1].tier, item[0])):
            found.setdefault(one.tier, []).append(name)
        return {tier: tuple(names) for tier, names in found.items()}

    @property
    def top_tier(self) -> int:
        """The tier of `TOP`, above all others."""
        return max(self.by_tier, default=0) + 1

    def tier_named(self, name: str) -> int | None:
        """Return the tier of this name, None if no HyperNode has it; the lowest one if several tiers do."""
        return min((one.tier for one in self.by_name.values() if one.tier_name == name), default=None)

    def ancestors(self, name: str) -> list[str]:
        """Return a HyperNode and all above it, the nearest first; empty if it does not exist."""
        found = []
        while name in self.by_name:
            found.append(name)
            name = self.parent.get(name, "")
        return found

    def common_ancestor(self, one: str, other: str) -> str:
        """Return the lowest HyperNode that is above both or one of them, "" if there is none.

        If one is empty, the answer is the other one.
        """
        if not one or not other:
            return one or other
        above = set(self.ancestors(one))
        return next((name for name in self.ancestors(other) if name in above), "")

    def below(self, name: str) -> list[str]:
        """Return a HyperNode and all below it, each once, in the order of a walk by levels."""
        found = {name: None} if name in self.by_name else {}
        todo = list(found)
        for current in todo:
            new = [child for child in self.children[current] if child not in found]
            found.update(dict.fromkeys(new))
            todo += new
        return list(found)

    def leaves(self, name: str) -> list[str]:
        """Return the leaves below a HyperNode, in order of name; itself if it is one."""
        return sorted(each for each in self.below(name) if self.is_leaf(each))

    def is_leaf(self, name: str) -> bool:
        """Say whether no HyperNode is below a HyperNode."""
        return not self.children[name]

    def selecting_leaves(self) -> list[str]:
        """Return HyperNodes that name no HyperNode, and select nodes by pattern or labels: a new node may be theirs."""
        return [
            name
            for name, one in self.by_name.items()
            if not one.children and any(member.pattern or member.labels is not None for member in one.nodes)
        ]

    def domains(self, nodes: NodeNames) -> dict[str, set[int]]:
        """Return the rows of the nodes below each HyperNode; names that no node has are left out."""
        rows = {name: row for row, name in enumerate(nodes.names)}
        own = {name: _selected(one.nodes, rows, nodes) for name, one in self.by_name.items()}
        return {name: set().union(*(own[each] for each in self.below(name))) for name in self.by_name}


def hyper_node_record(written: wire.HyperNode) -> HyperNode:
    """Return the record of a HyperNode; raise ValueError naming the field that cannot be read.

    A member that is a HyperNode is read by ``exactMatch`` alone, as in Volcano. A tier counts up to `_HIGHEST_TIER`.
    """
    nodes, children = [], []
    for index, member in enumerate(written.spec.members):
        exact = member.selector.exact_match
        if member.type == wire.HYPER_NODE_MEMBER:
            if exact is not None and exact.name:
                children.append(intern(exact.name))
        else:
            nodes.append(node_member(member.selector, f"spec.members[{index}].selector"))
    spec = written.spec
    tier = min(spec.tier, _HIGHEST_TIER)
    return HyperNode(intern(written.metadata.name), tier, intern(spec.tier_name), tuple(nodes), tuple(children))


def node_member(selector: wire.MemberSelector, where: str) -> NodeMember:
    """Return what selects nodes; raise ValueError naming the field that cannot be read."""
    exact, pattern, labels = selector.exact_match, selector.regex_match, selector.label_match
    if exact is not None:
        return NodeMember(name=intern(exact.name))
    if pattern is not None:
        return NodeMember(pattern=pattern.pattern)
    return NodeMember(labels=None if labels is None else label_selector(labels, f"{where}.labelMatch"))


def selected_names(member: NodeMember, nodes: NodeNames) -> list[str]:
    """Return the names of the nodes that a member selects, in order of row; a faulty pattern selects nothing."""
    if member.name:
        return [member.name] if member.name in nodes.names else []
    if member.pattern:
        try:
            pattern = compile_pattern(member.pattern)
        except PatternError:
            return []
        return [name for name in nodes.names if pattern.search(name)]
    selector = member.labels
    if selector is None or selector.empty:
        return []
    return [name for name, labels in zip(nodes.names, nodes.labels, strict=True) if selector.matches(labels)]


def _selected(members: Iterable[NodeMember], rows: Mapping[str, int], nodes: NodeNames) -> set[int]:
    found: set[int] = set()
    for member in members:
        if member.name:  # the common case needs no look at all nodes
            found.update({rows[member.name]} if member.name in rows else ())
        else:
            found.update(rows[name] for name in selected_names(member, nodes))
    return found


def _without_cycles(by_name: Mapping[str, HyperNode], problems: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the children of each; in a circle, members whose tier is not below that of the parent are left out."""
    children = {
        name: tuple(dict.fromkeys(child for child in one.children if child in by_name)) for name, one in by_name.items()
    }
    circle = {name for circle in _circles(children) for name in circle}
    for name in sorted(circle):
        for child in children[name]:
            if child in circle and by_name[child].tier >= by_name[name].tier:
                problems.append(
                    f"HyperNode {name} of tier {by_name[name].tier} contains {child} of tier {by_name[child].tier}, "
                    f"which contains {name}: the member {child} is ignored"
                )
                children[name] = tuple(each for each in children[name] if each != child)
    return children


def _circles(children: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return groups of HyperNodes that contain each other (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for root in children:
        work = [(root, iter(children[root]))] if root not in index else []
        while work:
            name, rest = work[-1]
            if name not in index:
                index[name] = low[name] = len(index)
                stack.append(name)
            child = next(rest, None)
            if child is None:
                work.pop()
                if low[name] == index[name]:
                    group = stack[stack.index(name) :]
                    del stack[-len(group) :]
                    if len(group) > 1 or name in children[name]:
                        found.append(group)
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
            elif child not in index:
                work.append((child, iter(children[child])))
            elif child in stack:
                low[name] = min(low[name], index[child])
    return found


def _parents(
    by_name: Mapping[str, HyperNode], children: Mapping[str, Sequence[str]], problems: list[str]
) -> dict[str, str]:
    claims: dict[str, list[str]] = {}
    for name, named in children.items():
        for child in named:
            claims.setdefault(child, []).append(name)
    found = {}
    for child, parents in sorted(claims.items()):
        parents.sort(key=lambda name: (by_name[name].tier, name))
        found[child] = parents[0]
        if len(parents) > 1:
            problems.append(
                f"HyperNode {child} is a member of {', '.join(parents)}: it counts for {parents[0]}; "
                "let one HyperNode have it"
            )
    return found


NO_HYPER_NODES: Final = HyperNodeTree(())
"""The tree of a cluster without HyperNodes."""
