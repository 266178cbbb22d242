"""PodTopologySpread, hard constraints (kube-scheduler v1.36, podtopologyspread/filtering).

    skew = pods in the node's domain + 1 if the pod itself counts - fewest pods in any domain  <=  max_skew

The fewest is 0 if there are fewer domains than ``minDomains``. Domains come from the nodes that count
(`framework.placing.spread`), even if a node cannot take the pod or a domain has no pod. A node without the label is
always refused. The filter stops at the first constraint that refuses a node.
"""

from typing import NamedTuple

import numpy as np

from volcano_py.framework.placing.spread import counted_nodes, spread_count
from volcano_py.framework.state.state import State
from volcano_py.framework.state.topology_counts import TopologyCount, TopologyCounts
from volcano_py.model.arrays import Bools
from volcano_py.model.pod_terms import Spread
from volcano_py.model.shape import Shape

NO_LABEL, TOO_SKEWED = range(2)


class _Constraint(NamedTuple):
    spread: Spread
    tally: TopologyCount
    domains: Bools  # (n_codes,), which domains exist
    enough: bool  # whether there are at least minDomains
    itself: int


class HardSpread:
    """The hard constraints of one shape."""

    def __init__(self, ssn: State, shape: Shape, topology_counts: TopologyCounts) -> None:
        hard = [spread for spread in shape.spread if spread.hard]
        keys = tuple(dict.fromkeys(spread.key for spread in hard))
        self._constraints: list[_Constraint] = []
        for spread in hard:
            counted = counted_nodes(ssn, shape, spread, keys)
            for expected in topology_counts.views:
                tally = spread_count(topology_counts, spread, spread.key, counted, expected=expected)
                domains = np.bincount(tally.codes[counted[1]], minlength=len(tally.sums)) > 0
                enough = int(np.count_nonzero(domains)) >= max(spread.min_domains, 1)
                itself = spread.selector in shape.selected_by
                self._constraints.append(_Constraint(spread, tally, domains, enough, itself))
        self._n_nodes = topology_counts.n_nodes

    @property
    def tallies(self) -> tuple[TopologyCount, ...]:
        """The topology counts on which the answers depend."""
        return tuple(constraint.tally for constraint in self._constraints)

    def allowed(self) -> Bools:
        """Return which nodes pass all constraints, shape (n_nodes,)."""
        found = np.ones(self._n_nodes, dtype=bool)
        for constraint in self._constraints:
            found &= _even_enough(constraint).take(constraint.tally.codes)
        return found

    def refused(self) -> Bools:
        """Return which nodes lack a label, and which would be too skewed, shape (2, n_nodes)."""
        refused = np.zeros((2, self._n_nodes), dtype=bool)
        for constraint in self._constraints:
            codes = constraint.tally.codes
            silent = ~refused.any(axis=0)
            refused[NO_LABEL] |= silent & (codes == 0)
            refused[TOO_SKEWED] |= silent & (codes > 0) & ~_even_enough(constraint).take(codes)
        return refused


def _even_enough(constraint: _Constraint) -> Bools:
    """Return which domains may take one more pod, shape (n_codes,); code 0, no domain, may not."""
    spread, tally, domains, enough, itself = constraint
    fewest = float(tally.sums[domains].min()) if enough else 0.0
    found: Bools = tally.sums <= spread.max_skew + fewest - itself
    found[0] = False
    return found
