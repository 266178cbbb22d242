"""PodTopologySpread's score: soft constraints (kube-scheduler v1.36, podtopologyspread/scoring).

    raw   = round(sum over constraints whose label the node has of: pods in its domain * ln(domains + 2) + max_skew - 1)
    score = floor(100 * (highest + lowest - raw) / highest) among the candidates, 100 for all if the highest is 0

Candidate nodes that lack a label of the pod's own constraints score 0 and do not count. Under the system's default
constraints, nodes without the label form a domain. Domains are counted among the candidate nodes, pods on all nodes
that count (`framework.placing.spread`). For the host name, each node is a domain and all its pods count. Halves are
rounded up.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.placing.spread import counted_nodes, spread_count
from volcano_py.framework.state.state import State
from volcano_py.framework.state.topology_counts import EACH_NODE, TopologyCount, TopologyCounts
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.shape import Shape

_BEST: Final = 100.0


class _Constraint(NamedTuple):
    max_skew: int
    tally: TopologyCount
    each_node: bool
    unlabelled: Bools | None  # (n_nodes,), nodes that lack the key although the tally has a domain for them


class SoftSpread:
    """The soft constraints of one shape."""

    def __init__(self, ssn: State, shape: Shape, topology_counts: TopologyCounts) -> None:
        soft = [spread for spread in shape.spread if not spread.hard]
        own = not any(spread.default for spread in soft)
        needed = tuple(dict.fromkeys(spread.key for spread in soft)) if own else ()
        self._constraints: list[_Constraint] = []
        for spread in soft:
            codes, _ = topology_counts.domains(spread.key)
            each_node = spread.key == keys.LABEL_HOSTNAME
            counted = None if each_node else counted_nodes(ssn, shape, spread, needed)
            tally = spread_count(topology_counts, spread, EACH_NODE if each_node else spread.key, counted)
            unlabelled = codes == 0 if each_node and not codes.all() else None
            self._constraints.append(_Constraint(spread.max_skew, tally, each_node, unlabelled))
        labels = [topology_counts.domains(key)[0] for key in needed]
        self._labelled: Bools | None = None  # (n_nodes,), nodes with all labels; None: all nodes
        if not all(codes.all() for codes in labels):
            self._labelled = np.all([codes > 0 for codes in labels], axis=0)

    def __bool__(self) -> bool:
        return bool(self._constraints)

    def scores(self, group: Bools) -> Floats:
        """Return scores 0..100 among the candidate nodes ``group``, shape (n_nodes,); undefined for other nodes."""
        counting = group if self._labelled is None else group & self._labelled
        if not counting.any():
            return np.zeros(len(group))
        raw = np.zeros(len(group))
        for constraint in self._constraints:
            domains = constraint.tally.sums * math.log(_size(constraint, counting) + 2)
            domains += constraint.max_skew - 1
            domains[0] = 0.0
            pods = domains.take(constraint.tally.codes)
            if constraint.unlabelled is not None:
                pods[constraint.unlabelled] = 0.0
            raw += pods
        raw += 0.5
        np.floor(raw, out=raw)
        candidates = raw[counting]
        highest = max(0.0, float(candidates.max()))
        if not highest:
            return np.where(counting, _BEST, 0.0)
        lowest = float(candidates.min())
        np.subtract(highest + lowest, raw, out=raw)
        raw *= _BEST
        raw /= highest
        np.floor(raw, out=raw)
        raw *= counting
        return raw


def _size(constraint: _Constraint, counting: Bools) -> int:
    """Return the number of domains among these nodes; nodes without the label count as one domain."""
    if constraint.each_node:
        return int(np.count_nonzero(counting))
    return int(np.count_nonzero(np.bincount(constraint.tally.codes[counting])))
