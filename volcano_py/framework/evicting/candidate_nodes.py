"""Preemption candidate nodes of one shape: the nodes where evictions might make room for it, and their scores."""

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.hooks.node_hooks import NodeHooks
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.snapshot.columns import NodeColumns

_NOWHERE = -np.inf


class PreemptionCandidateNodes:
    """The preemption candidate nodes of a session for tasks of one class.

    Every node is one, unless it is closed or is refused for a reason that no eviction can resolve: by its record, by a
    predicate, or because of other pods. Resources are not checked. (Volcano: PredicateForPreemptAction.)
    """

    __slots__ = (
        *("_added", "_fixed", "_hooks", "_inter_pod", "_position", "_possible", "_raw_scores", "_state"),
        *("_statically_infeasible", "scores", "task"),
    )

    def __init__(self, state: State, hooks: NodeHooks, placement: Placement, task: TaskInfo) -> None:
        self._state = state
        self._hooks = hooks
        self._raw_scores = placement.raw_scores
        self.task = task
        self._statically_infeasible = placement.statically_infeasible(task)
        self._possible: Bools = ~self._statically_infeasible.nodes
        self._inter_pod = placement.inter_pod_filters(task.shape_id)
        self._fill()

    def _fill(self) -> None:
        self._position = self._state.journal.n_touched
        inter_pod_filters = self._inter_pod
        possible = self._possible
        if inter_pod_filters is not None:
            possible = possible & ~inter_pod_filters.unresolvable()
        scores = self._evaluate(self._state.nodes, possible)
        group = scores > _NOWHERE
        normalized = self._raw_scores.of(self.task, self._statically_infeasible)
        self._fixed = normalized.fixed
        self._added = normalized.base if normalized.fixed else normalized.added(normalized.highest(group))
        if inter_pod_filters is not None:
            self._added = self._added + inter_pod_filters.added(group)
        by_leaf = self._hooks.leaf_order(self.task)
        if by_leaf is not None:
            self._added = self._added + by_leaf
        self.scores: Floats = scores + self._added  # (n_nodes,), minus infinity for nodes where no eviction helps

    def _evaluate(self, nodes: NodeColumns, possible: Bools) -> Floats:
        hooks, task, n = self._hooks, self.task, len(nodes)
        if hooks.predicates:
            codes = combine.first_refusals(hooks.predicates, hooks.reason_offsets, n, task, nodes)
            possible = possible & hooks.resolvable[codes]
        return np.where(possible, combine.total(hooks.node_orders, n, task, nodes), _NOWHERE)

    def refresh(self) -> None:
        """Bring the scores up to date with what has changed since."""
        journal = self._state.journal
        if self._position == journal.n_touched:
            return
        if not self._hooks.node_local(self.task.shape_id) or self._inter_pod is not None:
            self._fill()
            return
        rows: Rows = np.unique(journal.touched_since(self._position))
        scores = self._evaluate(self._state.nodes.rows_view(rows), self._possible[rows])
        if not self._fixed and ((scores > _NOWHERE) != (self.scores[rows] > _NOWHERE)).any():
            self._fill()  # normalised scores depend on which nodes are candidates
            return
        self._position = journal.n_touched
        self.scores[rows] = scores + (self._added[rows] if isinstance(self._added, np.ndarray) else self._added)
