"""The nodes below each HyperNode as arrays, kept until a HyperNode, the set of nodes or a node's labels change.

Domains are numbered: the lowest tier first, then by name, and `TOP`, the domain of all nodes, last. Domains of one tier
may overlap, and a node may be in none of them.

    tier     domains       rows of nodes                   sums per domain
    1        0, 1, 2       | 0 1 | 2 3 4 | 5 |             np.add.reduceat over a row of amounts
    2        3, 4          | 0 1 2 3 4 | 5 |
    TOP      5             | 0 1 2 3 4 5 6 |
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.api.go_regexp import PatternError, compile_pattern
from volcano_py.model.arrays import Bools, Codes, Floats, Ints, Rows
from volcano_py.model.hyper_nodes import NO_HYPER_NODES, TOP, HyperNodeTree, NodeMember
from volcano_py.model.objects import NodeRecord
from volcano_py.model.selectors import IN, LabelSelector

NOWHERE: Final = -1
"""Instead of a domain, for a node that is in none."""


class Tier(NamedTuple):
    """The domains of one tier, one after the other."""

    tier: int
    domains: range
    """Their numbers."""
    rows: Rows
    """The nodes of all of them; a node of two domains is here twice."""
    starts: Rows
    """Where the nodes of each domain begin, shape (n_domains + 1,): the last element is the end."""


class Domains:
    """The domains of a cluster. Nothing is computed before it is asked for."""

    def __init__(
        self, tree: HyperNodeTree, nodes: Sequence[NodeRecord], matches: "PatternMatches | None" = None
    ) -> None:
        """Take nodes in order of their rows, and what was known about names and patterns before."""
        self.tree = tree
        self.names: tuple[str, ...] = (*(name for names in tree.by_tier.values() for name in names), TOP)
        """The names of the domains, by number."""
        self.n_nodes = len(nodes)
        self.matches = matches or PatternMatches()
        """What is known about names and patterns, to be given to the next domains."""
        self._nodes = nodes
        self._at: dict[int, Codes] = {}  # by tier, what `at` has found

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def number(self) -> Mapping[str, int]:
        """The number of each domain by its name."""
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def tier_of(self) -> Ints:
        """The tier of each domain, shape (n_domains,)."""
        by_name = self.tree.by_name
        return np.array([*(by_name[name].tier for name in self.names[:-1]), self.tree.top_tier], dtype=np.int64)

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers, the lowest first; the last one has only `TOP`."""
        found, first = [], 0
        for tier, names in (*self.tree.by_tier.items(), (self.tree.top_tier, (TOP,))):
            parts = [self.rows(name) for name in names]
            starts = np.cumsum([0, *map(len, parts)], dtype=np.intp)
            found.append(Tier(tier, range(first, first + len(names)), np.concatenate(parts), starts))
            first += len(names)
        return tuple(found)

    def rows(self, name: str) -> Rows:
        """Return the nodes of a domain, in order; callers do not change the array."""
        return self._rows[self.number[name]]

    def mask(self, name: str) -> Bools:
        """Say for each node whether it is in a domain, shape (n_nodes,)."""
        found = np.zeros(self.n_nodes, dtype=bool)
        found[self.rows(name)] = True
        return found

    @cached_property
    def leaf(self) -> Codes:
        """The domain of the lowest tier that has each node, shape (n_nodes,): the first by name, else `NOWHERE`."""
        found = np.full(self.n_nodes, NOWHERE, dtype=np.int32)
        for tier in reversed(self.tiers[:-1]):
            at_tier = self.at(tier)
            found = np.where(at_tier == NOWHERE, found, at_tier)
        return found

    def at(self, tier: Tier) -> Codes:
        """Return the domain of a tier that has each node, shape (n_nodes,): the first by name, else `NOWHERE`."""
        found = self._at.get(tier.tier)
        if found is not None:
            return found
        found = self._at[tier.tier] = np.full(self.n_nodes, NOWHERE, dtype=np.int32)
        numbers = np.repeat(np.arange(tier.domains.start, tier.domains.stop, dtype=np.int32), np.diff(tier.starts))
        found[tier.rows[::-1]] = numbers[::-1]  # of several numbers for a node, the last one stays
        return found

    # By number

    @property
    def top(self) -> int:
        """The number of `TOP`."""
        return len(self) - 1

    @cached_property
    def innermost(self) -> Rows:
        """The leaf of each node, `top` for a node that is in no HyperNode, shape (n_nodes,)."""
        return np.where(self.leaf == NOWHERE, self.top, self.leaf).astype(np.intp)

    @cached_property
    def _parent(self) -> list[int]:
        above = self.tree.parent
        return [*(self.number[above.get(name, TOP)] for name in self.names[:-1]), NOWHERE]

    def ancestors(self, domain: int) -> list[int]:
        """Return a domain and all above it, the nearest first, `top` last."""
        found = []
        while domain != NOWHERE:
            found.append(domain)
            domain = self._parent[domain]
        return found

    def common(self, domains: Iterable[int]) -> int | None:
        """Return the lowest domain that is one of these or above it, for all of them; None for no domains."""
        found: int | None = None
        for domain in domains:
            if found is None:
                found = domain
            elif domain != found:
                above = set(self.ancestors(found))
                found = next(one for one in self.ancestors(domain) if one in above)
        return found

    def around(self, nodes: Rows) -> int | None:
        """Return the first domain, by tier and name, that has all these nodes; None for no nodes."""
        if self._nested or not len(nodes):
            return self.common(np.unique(self.innermost[nodes]).tolist())
        present = np.unique(nodes)
        return int(np.flatnonzero(self.counts(present) == len(present))[0])

    @cached_property
    def _nested(self) -> bool:
        """Whether the domains of a node are its leaf and those above the leaf, each of a higher tier."""
        depths = np.array([len(self.ancestors(domain)) - 1 for domain in range(len(self))], dtype=np.intp)
        rising = bool((self.tier_of[self._parent[:-1]] > self.tier_of[:-1]).all())
        return rising and sum(map(len, self._rows[:-1])) == int(depths[self.innermost].sum())

    def below(self, domain: int) -> Rows:
        """Return a domain and all below it, in order of their numbers."""
        if domain == self.top:
            return np.arange(len(self))
        return np.array(sorted(self.number[name] for name in self.tree.below(self.names[domain])), dtype=np.intp)

    def common_tiers(self, domain: int) -> Floats:
        """Return the tier of the lowest domain above both each node and a domain, shape (n_nodes,)."""
        tiers = np.empty(self.n_nodes)
        for above in reversed(self.ancestors(domain)):  # a Python loop over a handful of tiers
            tiers[self._rows[above]] = self.tier_of[above]
        return tiers

    # Sums

    def counts(self, nodes: Rows) -> Ints:
        """Return how many of these rows of nodes each domain has, shape (n_domains,); rows may repeat, -1 is none."""
        return self.sums(np.bincount(nodes[nodes >= 0], minlength=self.n_nodes))

    def sums(self, amounts: NDArray[Any]) -> NDArray[Any]:
        """Return sums per domain of amounts per node, shape (..., n_nodes) to (..., n_domains)."""
        found = np.zeros((*amounts.shape[:-1], len(self)), dtype=amounts.dtype)
        if not self.n_nodes:
            return found
        rows, starts, domains = self._segments
        found[..., domains] = np.add.reduceat(amounts.take(rows, axis=-1), starts, axis=-1)
        for children, firsts, parents in self._steps:
            found[..., parents] += np.add.reduceat(found[..., children], firsts, axis=-1)
        return found

    def sums_of(self, rows: Rows, amounts: NDArray[Any]) -> NDArray[Any]:
        """Return sums per domain of amounts (..., n) of some nodes, each given once, shape (..., n_domains)."""
        if not self._nested or 2 * len(rows) > self.n_nodes:
            every = np.zeros((*amounts.shape[:-1], self.n_nodes), dtype=amounts.dtype)
            every[..., rows] = amounts
            return self.sums(every)
        found = np.zeros((*amounts.shape[:-1], len(self)), dtype=amounts.dtype)
        order = np.argsort(self.innermost[rows], kind="stable")
        starts, leaves = _begins(self.innermost[rows[order]])
        if len(leaves):
            own = np.add.reduceat(amounts.take(order, axis=-1), starts, axis=-1)
        for number, leaf in enumerate(leaves.tolist()):  # a Python loop over the leaves of these nodes
            for above in self.ancestors(leaf):
                found[..., above] += own[..., number]
        return found

    @cached_property
    def _segments(self) -> tuple[Rows, Rows, Rows]:
        """Rows of nodes, where each domain begins among them, and these domains.

        Nested domains have the nodes of which they are the leaf; the sums of others are added to theirs. Otherwise they
        have all their nodes.
        """
        if self._nested:
            rows = np.argsort(self.innermost, kind="stable")
            return rows, *_begins(self.innermost[rows])
        numbers = np.repeat(np.arange(len(self), dtype=np.intp), [len(rows) for rows in self._rows])
        return np.concatenate(self._rows), *_begins(numbers)

    @cached_property
    def _steps(self) -> list[tuple[Rows, Rows, Rows]]:
        """What is added to what, for nested domains, the lowest tier first: children by parent, and the parents."""
        found = []
        for tier in self.tiers[:-1] if self._nested else ():
            above = np.array(self._parent[tier.domains.start : tier.domains.stop], dtype=np.intp)
            order = np.argsort(above, kind="stable")
            found.append((order + tier.domains.start, *_begins(above[order])))
        return found

    @cached_property
    def _rows(self) -> list[Rows]:
        own = self._own_rows()
        found = []
        for name in self.names[:-1]:
            below = self.tree.below(name)
            if len(below) == 1:
                found.append(own[name])
            else:
                mask = np.zeros(self.n_nodes, dtype=bool)
                mask[np.concatenate([own[each] for each in below])] = True
                found.append(np.flatnonzero(mask))
        return [*found, np.arange(self.n_nodes, dtype=np.intp)]

    def _own_rows(self) -> dict[str, Rows]:
        """Return the nodes that each HyperNode names or selects itself.

        A Python loop over members, of which there may be one for each node; it runs after a change alone.
        """
        row_of = {node.name: row for row, node in enumerate(self._nodes)}
        members = [member for one in self.tree.by_name.values() for member in one.nodes]
        self.matches = self.matches.now(row_of, {member.pattern: None for member in members if member.pattern})
        labels = _LabelCodes(self._nodes)
        found = {}
        for name, one in self.tree.by_name.items():
            rows: set[int] = set()
            for member in one.nodes:
                rows.update(self._selected(member, row_of, labels))
            found[name] = np.array(sorted(rows), dtype=np.intp)
        return found

    def _selected(self, member: NodeMember, row_of: Mapping[str, int], labels: "_LabelCodes") -> Collection[int]:
        if member.name:
            row = row_of.get(member.name)
            return () if row is None else (row,)
        if member.pattern:
            return [row_of[name] for name in self.matches.found[member.pattern]]
        if member.labels is None or member.labels.empty:
            return ()
        return np.flatnonzero(labels.matching(member.labels)).tolist()


class PatternMatches:
    """Which names match which patterns. It never changes: when nodes come and go, `now` looks at new names alone."""

    def __init__(self, names: Collection[str] = (), found: Mapping[str, Sequence[str]] | None = None) -> None:
        self._names = frozenset(names)
        self.found = found or {}
        """The names in which a pattern is found, in no particular order; none if the pattern cannot be read."""

    def now(self, names: Collection[str], patterns: Iterable[str]) -> "PatternMatches":
        """Return the same for these names and patterns."""
        present = frozenset(names)
        new = present - self._names
        found: dict[str, Sequence[str]] = {}
        for pattern in patterns:
            before = self.found.get(pattern)
            if before is None:
                found[pattern] = _search(pattern, present)
            else:
                found[pattern] = [*(name for name in before if name in present), *_search(pattern, new)]
        return PatternMatches(present, found)


class DomainStore:
    """Gives out the present domains; they are the same object while nothing changed that they depend on."""

    def __init__(self) -> None:
        self._domains = NO_DOMAINS
        self._nodes: Sequence[NodeRecord] = ()

    def of(self, tree: HyperNodeTree, nodes: Sequence[NodeRecord]) -> Domains:
        """Return the domains of these nodes, which are in order of their rows."""
        if self._domains.tree is tree and self._same(nodes):
            self._nodes = nodes
            return self._domains
        self._nodes, self._domains = nodes, Domains(tree, nodes, self._domains.matches)
        return self._domains

    def _same(self, nodes: Sequence[NodeRecord]) -> bool:
        """Say whether names and labels of nodes are those of the last call."""
        if nodes is self._nodes:
            return True
        if len(nodes) != len(self._nodes):
            return False
        if not self._domains.tree.by_name:
            return True
        # A Python loop over nodes, in a cycle after the record of a node changed. Most records are the same objects.
        return all(
            new is old or (new.name == old.name and new.labels == old.labels)
            for new, old in zip(nodes, self._nodes, strict=True)
        )


class _LabelCodes:
    """The labels of nodes as codes, made for the keys that somebody asks for."""

    def __init__(self, nodes: Sequence[NodeRecord]) -> None:
        self._nodes = nodes
        self._columns: dict[str, tuple[Codes, dict[str | None, int]]] = {}

    def matching(self, selector: LabelSelector) -> Bools:
        """Say for each node whether a selector matches its labels, shape (n_nodes,)."""
        result = np.ones(len(self._nodes), dtype=bool)
        for requirement in selector.requirements:
            codes, known = self._column(requirement.key)
            answers = np.zeros(len(known), dtype=bool)
            if requirement.operator == IN:  # the usual one, asked for many values
                answers[[known[value] for value in requirement.values if value in known]] = True
            else:
                one = LabelSelector((requirement,))
                answers[:] = [one.matches({} if value is None else {requirement.key: value}) for value in known]
            result &= answers[codes]
        return result

    def _column(self, key: str) -> tuple[Codes, dict[str | None, int]]:
        found = self._columns.get(key)
        if found is None:
            known: dict[str | None, int] = {None: 0}
            codes = [known.setdefault(node.labels.get(key), len(known)) for node in self._nodes]
            found = self._columns[key] = np.array(codes, dtype=np.int32), known
        return found


def _begins(numbers: Rows) -> tuple[Rows, Rows]:
    """Return where each number begins in an ascending sequence, and the numbers."""
    values, firsts = np.unique(numbers, return_index=True)
    return firsts, values


def _search(pattern: str, names: Collection[str]) -> list[str]:
    try:
        compiled = compile_pattern(pattern)
    except PatternError:
        return []
    return [name for name in names if compiled.search(name)]


NO_DOMAINS: Final = Domains(NO_HYPER_NODES, ())
"""The domains of a cluster without nodes and HyperNodes."""
