"""For one shape: the nodes where evictions might make room for it, and how good they are."""

from typing import TYPE_CHECKING

import numpy as np

from volcano_py.framework import combine
from volcano_py.framework.info import TaskInfo
from volcano_py.model.resources import Bools, Floats
from volcano_py.snapshot.columns import NodeColumns, Rows

if TYPE_CHECKING:
    from volcano_py.framework.session import Session

_NOWHERE = -np.inf


class Prospects:
    """The nodes of a session as victims of one shape would leave them to it.

    A node has a prospect unless it is closed or something refuses it that no eviction could change: its record, or a
    predicate or other pods, for a reason that is not resolvable. Resources are not looked at. (Volcano:
    PredicateForPreemptAction.)
    """

    __slots__ = ("_added", "_barred", "_company", "_fixed", "_position", "_possible", "_ssn", "scores", "task")

    def __init__(self, ssn: "Session", task: TaskInfo) -> None:
        self._ssn = ssn
        self.task = task
        self._barred = ssn.placement.barred(task)
        self._possible: Bools = ~self._barred.nodes
        self._company = ssn.placement.company(task.shape_id)
        self._fill()

    def _fill(self) -> None:
        self._position = self._ssn.journal.n_touched
        company = self._company
        possible = self._possible if company is None else self._possible > company.hopeless()  # and not hopeless
        scores = self._evaluate(self._ssn.nodes, possible)
        group = scores > _NOWHERE
        normalized = self._ssn.normalized.of(self.task, self._barred)
        self._fixed = normalized.fixed
        self._added = normalized.base if normalized.fixed else normalized.added(normalized.highest(group))
        if company is not None:
            self._added = self._added + company.added(group)
        self.scores: Floats = scores + self._added  # (n_nodes,), minus infinity where no eviction helps

    def _evaluate(self, nodes: NodeColumns, possible: Bools) -> Floats:
        ssn, task, n = self._ssn, self.task, len(nodes)
        if ssn.predicates:
            codes = combine.first_refusals(ssn.predicates, ssn.reason_offsets, n, task, nodes)
            possible = possible & ssn.resolvable[codes]
        return np.where(possible, combine.total(ssn.node_orders, n, task, nodes), _NOWHERE)

    def refresh(self) -> None:
        """Bring the scores up to date with what has changed since."""
        journal = self._ssn.journal
        if self._position == journal.n_touched:
            return
        if not self._ssn.node_local(self.task.shape_id) or self._company is not None:
            self._fill()
            return
        rows: Rows = np.unique(journal.touched_since(self._position))
        scores = self._evaluate(self._ssn.nodes.rows_view(rows), self._possible[rows])
        if not self._fixed and ((scores > _NOWHERE) != (self.scores[rows] > _NOWHERE)).any():
            self._fill()  # what is added depends on who has a prospect
            return
        self._position = journal.n_touched
        self.scores[rows] = scores + (self._added[rows] if isinstance(self._added, np.ndarray) else self._added)
