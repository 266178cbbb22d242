"""The nodes and pods that a topology spread constraint counts (kube-scheduler v1.36, podtopologyspread/common).

A node counts if it has the labels of all constraints that are evaluated together. A constraint may also demand that the
node selector and required affinity of the pod allow the node (the default), and that the pod tolerates its taints (not
the default).
"""

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np

from volcano_py.framework.state.state import State
from volcano_py.framework.state.topology_counts import TopologyCount, TopologyCounts, Weights
from volcano_py.model.arrays import Bools
from volcano_py.model.pod_terms import Spread
from volcano_py.model.shape import Shape
from volcano_py.snapshot import node_terms, taints
from volcano_py.snapshot.columns import NodeColumns


def counted_nodes(state: State, shape: Shape, spread: Spread, keys: Sequence[str]) -> tuple[Hashable, Bools]:
    """Return which nodes count for a constraint, shape (n_nodes,), with a key that identifies the answer."""
    affinity = (shape.node_selector, shape.node_affinity) if spread.honor_affinity else None
    known = ("spread", tuple(keys), affinity, shape.tolerations if spread.honor_taints else None)
    counted: Bools = state.static_row(known, partial(_count, shape, spread, keys))
    return known, counted


def _count(shape: Shape, spread: Spread, keys: Sequence[str], nodes: NodeColumns) -> Bools:
    found = np.ones(len(nodes), dtype=bool)
    for key in keys:
        column = nodes.label(key)
        found &= False if column is None else column.codes > 0
    if spread.honor_affinity:
        found &= node_terms.matches(shape, nodes)
    if spread.honor_taints:
        found &= taints.tolerated(shape.tolerations, nodes)
    return found


def matching(topology_counts: TopologyCounts, spread: Spread) -> Weights:
    """Return the shapes that a constraint counts; an empty selector counts none."""
    return dict.fromkeys(topology_counts.selected_by([spread.selector]), 1.0) if spread.selector.labels else {}


def spread_count(
    topology_counts: TopologyCounts,
    spread: Spread,
    key: str,
    counted: tuple[Hashable, Bools] | None,
    *,
    expected: bool = True,
) -> TopologyCount:
    """Return the count of the pods of a constraint; those being deleted do not count."""
    weights = matching(topology_counts, spread)
    return topology_counts.count(key, weights, counted=counted, terminating=False, expected=expected)
