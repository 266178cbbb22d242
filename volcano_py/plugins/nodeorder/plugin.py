"""Nodeorder: the sum of kube-scheduler's scores, each 0..100, with Volcano's weights.

    LeastAllocated, MostAllocated, BalancedAllocation   how full and how evenly used a node would be: `resources`
    ImageLocality                                       images that the node already has: `images`
    NodeAffinity      raw = sum of weights of the preferred terms that match; the highest raw number scores 100
    TaintToleration   raw = number of PreferNoSchedule taints that are not tolerated; 0 such taints score 100
    InterPodAffinity  preferred affinity and anti-affinity to pods in the same domain: `pod_affinity`
    PodTopologySpread how evenly pods would be spread over domains: `spread`

NodeAffinity and TaintToleration are scaled by the highest raw number among the candidate nodes
(`framework.contract.normalization`), the last two by their own rules. A weight of 0 disables a scorer, a negative
weight reverses it. (Volcano: plugins/nodeorder with kube-scheduler v1.36.)

A preferred term that cannot be parsed makes kube-scheduler's scorer fail; Volcano then leaves the task pending without
a message. Here the task is pending, too, and its users get the reason.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_int
from volcano_py.framework.contract.extension_points import (
    InterPodOrder,
    InterPodScores,
    NodeOrder,
    NormalizedOrder,
    StaticPredicate,
    Verdicts,
)
from volcano_py.framework.contract.normalization import NormalizedScore, Normalizer
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import CPU_ROW, MEMORY_ROW
from volcano_py.model.shape import Field, Shape
from volcano_py.plugins.nodeorder import images
from volcano_py.plugins.nodeorder.pod_affinity import PreferredInterPodTerms
from volcano_py.plugins.nodeorder.resources import (
    balanced_allocation,
    least_allocated,
    least_and_balanced,
    most_allocated,
)
from volcano_py.plugins.nodeorder.spread import SoftSpread
from volcano_py.snapshot import taints
from volcano_py.snapshot.columns import NodeColumns
from volcano_py.snapshot.node_terms import term_matches, valid_term

_CPU_AND_MEMORY: Final = slice(CPU_ROW, MEMORY_ROW + 1)
_GPU: Final = "nvidia.com/gpu"
_INVALID_PREFERENCE, _INVALID_POD_TERM, _INVALID_SPREAD = 1, 2, 3


@dataclass(frozen=True, slots=True)
class NodeOrderArgs:
    """Weights of the scorers; 0 disables a scorer."""

    least_allocated: int = 1
    most_allocated: int = 0
    balanced_allocation: int = 1
    node_affinity: int = 2
    taint_toleration: int = 3
    image_locality: int = 1
    pod_affinity: int = 2
    pod_topology_spread: int = 2

    @classmethod
    def only(cls, **weights: int) -> "NodeOrderArgs":
        """Return these weights and 0 for every other scorer."""
        return cls(**{**{field.name: 0 for field in fields(cls)}, **weights})


_KEYS: Final = {
    "least_allocated": "leastrequested.weight",
    "most_allocated": "mostrequested.weight",
    "balanced_allocation": "balancedresource.weight",
    "node_affinity": "nodeaffinity.weight",
    "taint_toleration": "tainttoleration.weight",
    "image_locality": "imagelocality.weight",
    "pod_affinity": "podaffinity.weight",
    "pod_topology_spread": "podtopologyspread.weight",
}


class NodeOrdering(Plugin, NodeOrder, NormalizedOrder, InterPodOrder, StaticPredicate):
    """Weighted sum of kube-scheduler's scores."""

    name = "nodeorder"
    depends_on = DependsOn.NODE_ALONE
    reads = frozenset(
        {
            *(Field.REQUEST, Field.PREFERRED_NODE_AFFINITY, Field.TOLERATIONS, Field.IMAGES),
            *(Field.POD_TERMS, Field.SPREAD, Field.SELECTED_BY, Field.NODE_SELECTOR, Field.NODE_AFFINITY),
        }
    )
    arguments = frozenset(_KEYS.values())
    static_reasons = (
        Reason(
            "nodeorder", "preferred-node-affinity", "pod's preferred node affinity cannot be read: correct its terms"
        ),
        Reason("nodeorder", "preferred-pod-affinity", "pod's affinity to other pods cannot be read: correct its terms"),
        Reason("nodeorder", "soft-spread", "pod's topology spread constraints cannot be read: correct their selectors"),
    )

    def __init__(self, arguments: NodeOrderArgs | None = None) -> None:
        self._args = arguments or NodeOrderArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> NodeOrderArgs:
        """Read the weights: ``leastrequested`` 1, ``mostrequested`` 0, ``balancedresource`` 1, ``nodeaffinity`` 2,
        ``tainttoleration`` 3, ``imagelocality`` 1, ``podaffinity`` 2 and ``podtopologyspread`` 2, each with
        ``.weight``.
        """
        defaults = NodeOrderArgs()
        return NodeOrderArgs(
            **{name: get_int(arguments, key, getattr(defaults, name), warn) for name, key in _KEYS.items()}
        )

    def on_session_open(self, ssn: State) -> None:
        """Look up the rows of balanced allocation, oversubscription, and whether every node has cpu and memory."""
        self._ssn = ssn
        gpu = ssn.resources.find(_GPU)
        rows = (CPU_ROW, MEMORY_ROW) if gpu is None else (CPU_ROW, MEMORY_ROW, gpu)
        self._balanced: dict[int, slice | Rows | None] = {}  # shape id -> rows to balance; None: nothing to balance
        self._rows: Rows = np.array(rows, dtype=np.intp)
        weights = (self._args.least_allocated, self._args.balanced_allocation)
        self._weights = None if weights == (1, 1) else np.array(weights, dtype=float)[:, None]
        beyond = np.stack([ssn.static_row(("oversubscription", row), _oversubscription(row)) for row in (0, 1)])
        self._beyond: Floats | None = beyond if beyond.any() else None  # (2, n_nodes), cpu and memory
        self._whole = bool((self._own(ssn.nodes, _CPU_AND_MEMORY) > 0).all())  # every node has cpu and memory
        self._together = self._whole and all(weights) and not self._args.most_allocated

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return the weighted resource scores, which depend only on the node, shape (n_nodes,)."""
        args, scores = self._args, []
        rows = self._rows_to_balance(task) if args.balanced_allocation else None
        if self._together and rows is _CPU_AND_MEMORY:
            n = len(nodes)
            return least_and_balanced(
                nodes.nonzero,
                task.nonzero_amounts.beside(n),
                nodes.requested[_CPU_AND_MEMORY],
                task.amounts.beside(n)[_CPU_AND_MEMORY],
                self._own(nodes, _CPU_AND_MEMORY),
                self._weights,
            )
        if args.least_allocated or args.most_allocated:
            asked, allocatable = nodes.nonzero + task.nonzero[:, None], self._own(nodes, _CPU_AND_MEMORY)
            if args.least_allocated:
                scores.append(_weighted(least_allocated(asked, allocatable, self._whole), args.least_allocated))
            if args.most_allocated:
                scores.append(_weighted(most_allocated(asked, allocatable, self._whole), args.most_allocated))
        if rows is not None:
            whole = self._whole and rows is _CPU_AND_MEMORY
            balance = balanced_allocation(nodes.requested[rows], task.request[rows], self._own(nodes, rows), whole)
            scores.append(_weighted(balance, args.balanced_allocation))
        if not scores:
            return np.zeros(len(nodes))
        total = scores[0]
        for score in scores[1:]:
            total += score
        return total

    def _own(self, nodes: NodeColumns, rows: slice | Rows) -> Floats:
        """Return allocatable cpu, memory and maybe GPUs without oversubscription, shape (n_rows, n_nodes)."""
        if self._beyond is None:
            return nodes.allocatable[rows]
        own = np.array(nodes.allocatable[rows])
        own[_CPU_AND_MEMORY] -= self._beyond if nodes.rows is None else self._beyond[:, nodes.rows]
        return own

    def _rows_to_balance(self, task: TaskInfo) -> slice | Rows | None:
        """Return the rows of cpu and memory, and of GPUs if the task requests any; None if it requests none of them."""
        if task.shape_id not in self._balanced:
            asked = task.request[self._rows] > 0
            rows = self._rows if asked[2:].any() else _CPU_AND_MEMORY
            self._balanced[task.shape_id] = rows if asked.any() else None
        return self._balanced[task.shape_id]

    def normalized_orders(self) -> Sequence[NormalizedScore]:
        """Return the scorers that depend on labels, taints and images."""
        highest, lowest, as_is = Normalizer.HIGHEST_IS_BEST, Normalizer.LOWEST_IS_BEST, Normalizer.AS_IS
        weights = self._args
        return (
            NormalizedScore("node-affinity", highest, weights.node_affinity, _preference, preference),
            NormalizedScore("taint-toleration", lowest, weights.taint_toleration, _tolerations, intolerable),
            NormalizedScore("image-locality", as_is, weights.image_locality, _images, self._image_locality, kept=False),
        )

    def _image_locality(self, shape: Shape, nodes: NodeColumns) -> Floats:
        found = (self._ssn.static_row(("image", image), partial(images.sizes, image)) for image in shape.images)
        return images.image_locality(found, shape.n_containers, len(nodes))

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        """Refuse all nodes if a preference of the pod cannot be read, shape (n_nodes,)."""
        return np.full(len(nodes), self.static_part(shape), dtype=np.int16)

    def static_part(self, shape: Shape) -> int:
        """Return the verdict on all nodes: the number of the reason why a preference cannot be read, or 0."""
        args, verdict = self._args, 0
        if args.pod_topology_spread and not all(spread.selector.readable for spread in shape.spread if not spread.hard):
            verdict = _INVALID_SPREAD
        if args.pod_affinity and not shape.pod_terms.readable:
            verdict = _INVALID_POD_TERM
        if args.node_affinity and not all(valid_term(term) for _, term in shape.preferred):
            verdict = _INVALID_PREFERENCE
        return verdict

    def inter_pod_scores(self, task: TaskInfo) -> InterPodScores | None:
        """Return the scores of a shape that depend on other pods, None if none does."""
        topology_counts, args, shape = self._ssn.topology_counts, self._args, task.shape
        if topology_counts is None:
            return None
        affinity = PreferredInterPodTerms(shape, topology_counts) if args.pod_affinity else None
        spread = SoftSpread(self._ssn, shape, topology_counts) if args.pod_topology_spread and shape.spread else None
        parts: list[tuple[int, InterPodScores]] = []
        if affinity:
            parts.append((args.pod_affinity, affinity))
        if spread:
            parts.append((args.pod_topology_spread, spread))
        return _Weighted(parts) if parts else None


class _Weighted:
    """The sum of scores that depend on other pods."""

    def __init__(self, parts: Sequence[tuple[int, InterPodScores]]) -> None:
        self._parts = parts

    def scores(self, group: Bools) -> Floats:
        """Return the weighted sum, shape (n_nodes,)."""
        found = [_weighted(part.scores(group), weight) for weight, part in self._parts]
        return found[0] if len(found) == 1 else sum(found[1:], found[0])


def preference(shape: Shape, nodes: NodeColumns) -> Floats:
    """Return the sum of the weights of the preferred terms that match each node, shape (n_nodes,)."""
    raw = np.zeros(len(nodes))
    for weight, term in shape.preferred:
        raw += weight * term_matches(term, nodes)
    return raw


def intolerable(shape: Shape, nodes: NodeColumns) -> Floats:
    """Return how many PreferNoSchedule taints of each node are not tolerated, shape (n_nodes,)."""
    return taints.not_preferred(shape.tolerations, nodes)


def _oversubscription(row: int) -> Callable[[NodeColumns], Floats]:
    def ask(nodes: NodeColumns) -> Floats:
        records = nodes.statics.records
        rows = range(len(records)) if nodes.rows is None else nodes.rows
        # A Python loop over nodes whose records have changed; answers are cached.
        return np.array([records[number].oversubscription[row] for number in rows], dtype=float)

    return ask


def _preference(shape: Shape) -> Hashable:
    return shape.preferred or None


def _tolerations(shape: Shape) -> Hashable:
    return shape.tolerations


def _images(shape: Shape) -> Hashable:
    return (shape.images, shape.n_containers) if shape.images else None


def _weighted(scores: Floats, weight: int) -> Floats:
    return scores if weight == 1 else scores * weight
