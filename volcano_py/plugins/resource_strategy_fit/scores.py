"""Scores of strategies and of scarce resources, over columns."""

from typing import NamedTuple

import numpy as np

from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.resources import EPSILON
from volcano_py.snapshot.columns import NodeColumns


class Weighted(NamedTuple):
    """What of a request is scored, and how."""

    rows: Rows  # (n_asked,)
    most: Bools  # (n_asked, 1), the fuller the better
    known: Bools  # (n_asked, 1), False for a kind that nobody knows: it scores 0
    weights: Floats  # (n_asked, 1)
    scale: float  # the best score


def parts(after: Floats, capacity: Floats, most: Bools, weights: Floats) -> tuple[Floats, Bools]:
    """Return weighted fractions and where more would be used than there is, each (n_asked, n_nodes).

    ``after`` is what would be used, ``capacity`` what there is, both (n_asked, n_nodes); ``most`` and ``weights`` are
    (n_asked, 1). What a node does not have, and what has no weight, is 0 and never too much.
    """
    counts = (capacity > 0) & (weights > 0)
    fraction = np.where(most, after, capacity - after) * weights / np.where(counts, capacity, 1.0)
    over = (after > capacity) & counts
    return np.where(counts & ~over, fraction, 0.0), over


def strategy_score(request: Floats, weighted: Weighted, nodes: NodeColumns) -> Floats:
    """Return the score of the strategies for a request (n_resources,), shape (n_nodes,)."""
    rows, most, known, weights, scale = weighted
    after = nodes.used[rows] + request[rows, None]
    found, over = parts(after, nodes.allocatable[rows], most, np.where(known, weights, 0.0))
    # Added one by one, since the last bit of a sum over an axis depends on the number of nodes in the view.
    total = found[0]
    for other in found[1:]:
        total = total + other
    return np.where(over.any(axis=0), 0.0, total / weights.sum() * scale)


def sra_score(request: Floats, scarce: Rows, shares: Floats, nodes: NodeColumns) -> Floats:
    """Return 1 minus the weighted part of the scarce resources that a node has, shape (n_nodes,).

    ``shares`` (n_scarce,) are their weights as parts of all. A node that lacks a requested resource scores 0.
    """
    asked = np.flatnonzero(request >= EPSILON)
    able = (nodes.allocatable[asked] > 0).all(axis=0)
    held = np.zeros(len(nodes))
    for row, share in zip(scarce.tolist(), shares.tolist(), strict=True):
        held += share * (nodes.allocatable[row] > 0)
    return np.where(able, 1.0 - held, 0.0)
