"""Sums over the nodes of each domain of a session, brought up to date with every placement."""

from functools import cached_property

import numpy as np

from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats, Rows, fixed


class DomainSums:
    """What the nodes of each domain offer and hold. Amounts are whole numbers, so adding changes is exact."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._position = -1  # of the journal, when `_used` was right
        self._used = np.zeros((len(state.resources), 0))
        self._counted = self._used  # what each node held then, (n_resources, n_nodes)

    @cached_property
    def allocatable(self) -> Floats:
        """What the nodes of each domain offer to pods, shape (n_resources, n_domains), read only."""
        return fixed(self._state.domains.sums(self._state.nodes.allocatable))

    def used(self) -> Floats:
        """Return what tasks hold on the nodes of each domain now, shape (n_resources, n_domains), read only."""
        state, journal = self._state, self._state.journal
        if self._position < 0:
            self._counted = state.nodes.used.copy()
            self._used = fixed(state.domains.sums(self._counted))
        elif self._position != journal.n_touched:
            rows: Rows = np.unique(journal.touched_since(self._position))
            change = state.nodes.used[:, rows] - self._counted[:, rows]
            self._counted[:, rows] += change
            self._used = fixed(self._used + state.domains.sums_of(rows, change))
        self._position = journal.n_touched
        return self._used
