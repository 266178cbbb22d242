"""Topology counts: pods counted by topology domain, to evaluate the terms between pods.

    sums[domain] = sum over pods in the domain of the weight of their shape

A domain is a value of a node label. `snapshot.selection` knows, per shape, which pods a term selects. So one weight per
shape says which pods a count includes, and how often: pods that a selector selects, or owners of terms that select a
given pod. Pods that this session places, promises or evicts count at once, also for shapes asked about before; an undo
reverses that. (Volcano works with lists of nodes that are frozen when a session opens.)

A count is made when a shape first needs it, from the pods that were on nodes when the session opened and from the
changes since. From then on every placement or eviction costs one addition per count that includes the shape of the pod.
"""

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.pod_terms import PodSelector
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import OCCUPYING_STATUSES, TaskStatus, members
from volcano_py.snapshot.columns import NodeColumns, TaskColumns
from volcano_py.snapshot.journal import Journal

EACH_NODE: Final = ""
"""The key of a count whose domains are the nodes themselves."""

Weights = Mapping[int, float]
"""How much a pod counts, by the id of its shape; pods of other shapes do not count."""

_OCCUPYING: Final = members(OCCUPYING_STATUSES)


class TopologyCount:
    """Pods per domain."""

    __slots__ = ("_counted", "codes", "sums", "total", "version", "weights")

    def __init__(self, codes: Rows, n_codes: int, weights: Weights, counted: Bools | None) -> None:
        self.codes = codes  # (n_nodes,), the domain of each node, 0 for none
        self.sums = np.zeros(n_codes)  # by domain; pods in no domain are not counted
        self.total = 0.0
        self.version = 0  # grows whenever a sum changes
        self.weights = weights
        self._counted = counted  # (n_nodes,), None: all

    def add(self, nodes: Rows, amounts: Floats) -> None:
        """Count pods, one on each of these nodes, by these amounts."""
        if self._counted is not None:
            counted = self._counted[nodes]
            nodes, amounts = nodes[counted], amounts[counted]
        sums = np.bincount(self.codes[nodes], weights=amounts, minlength=len(self.sums))
        sums[0] = 0.0
        self.sums += sums
        self.total += float(sums.sum())
        self.version += 1

    def move(self, node: int, amount: float) -> None:
        """Count one more pod, or one less."""
        domain = int(self.codes[node])
        if domain and (self._counted is None or self._counted[node]):
            self.sums[domain] += amount
            self.total += amount
            self.version += 1

    def at_nodes(self) -> Floats:
        """Return the sum of each node's domain, shape (n_nodes,); 0 for a node that is in none."""
        return self.sums.take(self.codes)

    def present(self) -> Bools:
        """Return which nodes are in a domain whose sum is above 0, shape (n_nodes,)."""
        found: Bools = (self.sums > 0).take(self.codes)
        return found


class _Owned(NamedTuple):
    """A term of some shape about other pods."""

    key: str
    weight: float
    shape_id: int


class TopologyCounts:
    """Which pods select which in a session, and the counts that have been asked for."""

    def __init__(self, nodes: NodeColumns, tasks: TaskColumns, shapes: list[Shape | None]) -> None:
        """Take the columns of a session that opens."""
        self._nodes = nodes
        self._shapes = shapes
        self._opened = (tasks.shape, tasks.node.copy(), tasks.status.copy())
        self._moved: dict[int, dict[int, int]] = {}  # shape -> node -> pods placed since, less those evicted
        self._expected: dict[int, dict[int, int]] = {}  # shape -> node -> pods with nominated room
        self._domains: dict[str, tuple[Rows, int]] = {}
        self._counts: dict[Hashable, TopologyCount] = {}
        # Shape -> the counts that include it, each with its weight; and those of them that include expected pods.
        self._watching: dict[int, list[tuple[TopologyCount, float]]] = {}
        self._expecting: dict[int, list[tuple[TopologyCount, float]]] = {}

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self._nodes)

    # Which pods select which

    def selected_by(self, selectors: Iterable[PodSelector]) -> list[int]:
        """Return the ids of the shapes that every one of these selectors selects."""
        first, *others = set(selectors)
        return [
            shape_id
            for shape_id in self._selected.get(first, ())
            if all(other in self._selectors_of(shape_id) for other in others)
        ]

    def kept_away_by(self, shape: Shape) -> dict[str, dict[int, float]]:
        """Return, by key, the shapes whose required anti-affinity selects this one, with the number of such terms."""
        return self._owners(shape, self._away)

    def wished_by(self, shape: Shape) -> dict[str, dict[int, float]]:
        """Return, by key, the shapes whose preferred terms select this one, with the sum of their weights."""
        return self._owners(shape, self._preferred)

    def _owners(self, shape: Shape, terms: dict[PodSelector, list[_Owned]]) -> dict[str, dict[int, float]]:
        found: dict[str, dict[int, float]] = {}
        for selector in shape.selected_by:
            for owned in terms.get(selector, ()):
                weights = found.setdefault(owned.key, {})
                weights[owned.shape_id] = weights.get(owned.shape_id, 0.0) + owned.weight
        return found

    def _selectors_of(self, shape_id: int) -> frozenset[PodSelector]:
        shape = self._shapes[shape_id]
        return frozenset() if shape is None else shape.selected_by

    @cached_property
    def _selected(self) -> dict[PodSelector, list[int]]:
        """Ids of shapes by the selectors that select them."""
        found: dict[PodSelector, list[int]] = {}
        for shape_id, shape in enumerate(self._shapes):
            for selector in () if shape is None else shape.selected_by:
                found.setdefault(selector, []).append(shape_id)
        return found

    @cached_property
    def _away(self) -> dict[PodSelector, list[_Owned]]:
        found: dict[PodSelector, list[_Owned]] = {}
        for shape_id, shape in enumerate(self._shapes):
            for term in () if shape is None else shape.pod_terms.away:
                found.setdefault(term.selector, []).append(_Owned(term.key, 1.0, shape_id))
        return found

    @cached_property
    def _preferred(self) -> dict[PodSelector, list[_Owned]]:
        found: dict[PodSelector, list[_Owned]] = {}
        for shape_id, shape in enumerate(self._shapes):
            for weight, term in () if shape is None else shape.pod_terms.preferred:
                found.setdefault(term.selector, []).append(_Owned(term.key, float(weight), shape_id))
        return found

    # Counting

    def domains(self, key: str) -> tuple[Rows, int]:
        """Return the domain of each node, shape (n_nodes,), 0 for none, and the number of codes."""
        found = self._domains.get(key)
        if found is None:
            column = None if key == EACH_NODE else self._nodes.label(key)
            if key == EACH_NODE:
                found = np.arange(1, self.n_nodes + 1), self.n_nodes + 1
            elif column is None:
                found = np.zeros(self.n_nodes, dtype=np.intp), 1
            else:
                found = column.codes.astype(np.intp), len(column.values)  # as an index this type is twice as fast
            self._domains[key] = found
        return found

    def count(
        self,
        key: str,
        weights: Weights,
        *,
        counted: tuple[Hashable, Bools] | None = None,
        terminating: bool = True,
        expected: bool = True,
    ) -> TopologyCount:
        """Return the count of pods by the domains of a key, kept up to date from now on.

        ``counted`` is a mask of nodes whose pods count (n_nodes,), with a key that identifies the mask. Without
        ``terminating``, pods that were being deleted when the session opened do not count; without ``expected``, those
        with nominated room do not.
        """
        known = (key, tuple(sorted(weights.items())), counted and counted[0], terminating, expected)
        found = self._counts.get(known)
        if found is None:
            codes, n_codes = self.domains(key)
            found = self._counts[known] = TopologyCount(codes, n_codes, weights, counted and counted[1])
            for shape_id, weight in weights.items():
                nodes = self._occupied_by(shape_id, terminating)
                if len(nodes):
                    found.add(nodes, np.full(len(nodes), weight))
                for node, count in self._moved.get(shape_id, {}).items():
                    found.move(node, weight * count)
                self._watching.setdefault(shape_id, []).append((found, weight))
                if expected:
                    for node, count in self._expected.get(shape_id, {}).items():
                        found.move(node, weight * count)
                    self._expecting.setdefault(shape_id, []).append((found, weight))
        return found

    @property
    def views(self) -> tuple[bool, ...]:
        """The values of ``expected`` for which a required term must hold: both, if pods have nominated room.

        As in kube-scheduler, such a pod may forbid a node to others, but nobody may rely on it: it may come otherwise.
        """
        return (True, False) if self._expected else (True,)

    def moved(self, journal: Journal, shape_id: int, nodes: Rows, count: int) -> None:
        """Count pods of a shape in (1) or out (-1), one on each of these nodes; an undo of the journal reverses it."""
        shape = self._shapes[shape_id]
        if shape is not None and shape.has_inter_pod_terms:
            journal.tell(self._count, shape_id, nodes.tolist(), count)

    def expected(self, shape_id: int, node: int, count: int) -> None:
        """Count a pod with nominated room in (1) or out (-1), outside the journal."""
        shape = self._shapes[shape_id]
        if shape is not None and shape.has_inter_pod_terms:
            at = self._expected.setdefault(shape_id, {})
            at[node] = at.get(node, 0) + count
            for topology_count, weight in self._expecting.get(shape_id, ()):
                topology_count.move(node, weight * count)

    def _count(self, shape_id: int, nodes: list[int], count: int) -> None:
        moved = self._moved.setdefault(shape_id, {})
        watching = self._watching.get(shape_id, ())
        # A Python loop over placed pods, only of shapes with inter-pod terms.
        for node in nodes:
            moved[node] = moved.get(node, 0) + count
            for topology_count, weight in watching:
                topology_count.move(node, weight * count)

    def _occupied_by(self, shape_id: int, terminating: bool) -> Rows:
        """Return the nodes of the pods of a shape that were on nodes when the session opened, one entry per pod."""
        nodes, bounds, ending = self._occupied
        run = slice(bounds[shape_id], bounds[shape_id + 1])
        return nodes[run] if terminating else nodes[run][~ending[run]]

    @cached_property
    def _occupied(self) -> tuple[Rows, Rows, Bools]:
        """Nodes of the pods at the opening, in order of shapes; where each shape begins; which were being deleted."""
        shape, node, status = self._opened
        has_inter_pod_terms = np.array(
            [found is not None and found.has_inter_pod_terms for found in self._shapes], dtype=bool
        )
        rows = np.flatnonzero((node >= 0) & _OCCUPYING[status] & has_inter_pod_terms[shape])
        rows = rows[np.argsort(shape[rows], kind="stable")]
        bounds = np.searchsorted(shape[rows], np.arange(len(self._shapes) + 1))
        return node[rows].astype(np.intp), bounds, status[rows] == TaskStatus.RELEASING
