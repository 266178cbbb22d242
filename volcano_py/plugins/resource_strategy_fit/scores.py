"""Scores of strategies and of scarce resources, over columns."""

from typing import NamedTuple

import numpy as np

from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.resources import EPSILON
from volcano_py.snapshot.columns import NodeColumns


class Weighted(NamedTuple):
    """The scored resources of a request, and how to score them."""

    rows: Rows  # (n_asked,)
    most: Bools  # (n_asked, 1), True for MostAllocated
    known: Bools  # (n_asked, 1), False for an unknown strategy, which scores 0
    weights: Floats  # (n_asked, 1)
    scale: float  # the best score


def parts(after: Floats, capacity: Floats, most: Bools, weights: Floats) -> tuple[Floats, Bools]:
    """Return weighted fractions, and where ``after`` exceeds ``capacity``, each (n_asked, n_nodes).

    ``after`` is what would be used, ``capacity`` what the node has, both (n_asked, n_nodes); ``most`` and ``weights``
    are (n_asked, 1). A resource that a node does not have, or without weight, has fraction 0 and never exceeds.
    """
    counts = (capacity > 0) & (weights > 0)
    fraction = np.where(most, after, capacity - after) * weights / np.where(counts, capacity, 1.0)
    over = (after > capacity) & counts
    return np.where(counts & ~over, fraction, 0.0), over


def strategy_score(request: Floats, weighted: Weighted, nodes: NodeColumns) -> Floats:
    """Return the strategy score for a request (n_resources,), shape (n_nodes,)."""
    rows, most, known, weights, scale = weighted
    after = nodes.used[rows] + request[rows, None]
    found, over = parts(after, nodes.allocatable[rows], most, np.where(known, weights, 0.0))
    # The rows are added one by one: the last bit of a sum over an axis depends on the number of nodes in the view.
    total = found[0]
    for other in found[1:]:
        total = total + other
    return np.where(over.any(axis=0), 0.0, total / weights.sum() * scale)


def sra_score(request: Floats, scarce: Rows, shares: Floats, nodes: NodeColumns) -> Floats:
    """Return 1 minus the weighted fraction of the scarce resources that a node has, shape (n_nodes,).

    ``shares`` (n_scarce,) are their weights divided by the sum of all. A node that lacks a requested resource scores 0.
    """
    asked = np.flatnonzero(request >= EPSILON)
    able = (nodes.allocatable[asked] > 0).all(axis=0)
    held = np.zeros(len(nodes))
    for row, share in zip(scarce.tolist(), shares.tolist(), strict=True):
        held += share * (nodes.allocatable[row] > 0)
    return np.where(able, 1.0 - held, 0.0)
