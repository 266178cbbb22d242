"""Node ranking of one shape: which nodes are feasible now, how good they are, and why the others are not.

A ranking is computed once per session. Afterwards only changed nodes are computed again, if all plugins declare that
their answers depend on the node alone. The inter-pod filter (`framework.placing.inter_pod_filter`) is a mask if placing
a task of the shape does not change it for the next one. Otherwise it is asked again for each task.
"""

from collections.abc import Callable

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.normalization import GroupScores, Highest, HighestWatch
from volcano_py.framework.hooks.node_hooks import NodeHooks
from volcano_py.framework.placing.inter_pod_filter import InterPodFilters
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.rejections import Rejection
from volcano_py.model.resources import even
from volcano_py.snapshot.columns import NodeColumns

_NOWHERE = -np.inf
_NOWHERE_AT_ALL = np.array(_NOWHERE)  # numpy is faster with an array without dimensions than with a number
_FEW = 64


Explain = Callable[[TaskInfo, bool], Rejection]
"""Returns why no node takes a task; the flag says whether what is being released counts."""


class NodeRanking:
    """The nodes of a session, ranked for tasks of one class."""

    __slots__ = (
        *("_added", "_inter_pod", "_direct", "_excluded", "_highest", "_later", "_local", "_mask", "_mixed", "_never"),
        *("_explain", "_hooks", "_nowhere", "_position", "_rejection", "_scored", "_scores", "_state"),
        *("future", "ranked", "scored_s", "task"),
    )

    def __init__(
        self,
        state: State,
        hooks: NodeHooks,
        task: TaskInfo,
        never: Bools,
        inter_pod: InterPodFilters | None,
        scores: GroupScores,
        explain: Explain,
        nowhere: Floats,
    ) -> None:
        """Take what belongs to the class of a task.

        ``never`` are the nodes where it can never go (n_nodes,). ``scores`` are its normalised scores. ``nowhere`` are
        the scores if no node is feasible (n_nodes,), read only.
        """
        self._state = state
        self._hooks = hooks
        self._explain = explain
        self._nowhere = nowhere
        self.task = task
        self._never = never
        self._excluded = self._never
        self._inter_pod = inter_pod
        self._mixed = self._inter_pod is not None and self._inter_pod.own_pods_matter
        self._mask: Bools | None = None  # what the inter-pod filter allows, if a task of the shape does not change it
        self._scores = scores
        self._direct = self._scores.fixed and not self._mixed  # whether `_evaluate` returns `ranked` itself
        self._added = np.asarray(self._scores.base)  # () or (n_nodes,), the normalised scores of all nodes
        self._highest: Highest = ()  # the highest raw numbers from which `_added` was made
        self._scored = False  # whether all nodes have had their scores
        self._rejection: tuple[bool, Rejection] | None = None
        self.scored_s: float | None = None
        """How long the first scoring of all nodes took; None if the first look found no node with room."""
        self._fill()

    def _fill(self) -> None:
        self._position = self._state.journal.n_touched
        if self._inter_pod is not None and not self._mixed:
            self._mask = self._inter_pod.allowed()
            self._excluded = self._never if self._mask is None else self._never | ~self._mask
        found = self._evaluate(self._state.nodes, self._excluded, None)
        if self._direct:
            self.ranked, self.future = found
        else:
            self._local, self._later = found
            self._rank(None)

    def _evaluate(self, nodes: NodeColumns, never: Bools, rows: Rows | None) -> tuple[Floats, Floats]:
        """Return two rows of scores (n_nodes,), minus infinity where the task may not go.

        The first has the nodes where it fits what is idle, the second those where it fits only what will be idle. In
        both the task must also fit once every promise is kept (Volcano: request <= FutureIdle, then Idle). ``nodes``
        are these rows of the session's nodes (None: all of them), ``never`` those where the task can never go. Scores
        that depend on which nodes are feasible are left out.
        """
        state, task, n = self._state, self.task, len(nodes)
        refused = combine.refused(self._hooks.predicates, n, task, nodes)
        if refused is not None:
            never = refused | never
        too_full = task.fit.lacks(nodes.idle)
        promised: Bools | None = None
        if state.looks_ahead:  # else nothing is promised
            kept = task.fit.fits(nodes.future_idle)
            promised = too_full & ~never & kept
            too_full |= ~kept
        too_full |= never
        if rows is None and too_full.all() and (promised is None or not promised.any()):
            # A full cluster: nobody would read the scores, which take most of the time.
            return np.full(n, _NOWHERE), self._nowhere[:n] if promised is None else np.full(n, _NOWHERE)
        if self._scored:
            scores = combine.total(self._hooks.node_orders, n, task, nodes, again=rows is not None)
        else:
            started = state.clock.stopwatch()
            scores = combine.total(self._hooks.node_orders, n, task, nodes, again=False)
            self.scored_s = state.clock.stopwatch() - started if self.scored_s is None else self.scored_s
        self._scored |= rows is None
        scores = scores + _of(self._added, rows) if self._scores.fixed else scores.copy()
        later = self._nowhere[:n] if promised is None else np.where(promised, scores, _NOWHERE)
        scores[too_full] = _NOWHERE_AT_ALL
        return scores, later

    def _rank(self, rows: Rows | None) -> None:
        """Add what depends on which nodes are feasible, after these rows of `_local` have changed (None: all)."""
        if self._mixed:
            self.ranked = self._with_inter_pod(self._local)
            self.future = self._with_inter_pod(self._later) if self._state.looks_ahead else self._later
            return
        highest = self._scores.highest(self._local > _NOWHERE)
        if rows is None or highest != self._highest:
            self._highest = highest
            self._added = np.asarray(self._scores.added(highest))
            self.ranked = self._local + self._added
        else:
            self.ranked[rows] = self._local[rows] + _of(self._added, rows)
        self.future = self._later
        if self._state.looks_ahead:
            self.future = self._later + self._scores.added(self._scores.highest(self._later > _NOWHERE))

    def _with_inter_pod(self, local: Floats) -> Floats:
        """Return the scores of those of the nodes that the inter-pod filter allows, shape (n_nodes,)."""
        group = local > _NOWHERE
        if self._inter_pod is None:
            return local
        allowed = self._inter_pod.allowed()
        if allowed is not None:
            group &= allowed
        added = self._inter_pod.added(group)
        if not self._scores.fixed:
            added = added + self._scores.added(self._scores.highest(group))
        return np.where(group, local + added, _NOWHERE)

    def refresh(self) -> None:
        """Bring the ranking up to date with all placements and undos since the last call."""
        journal = self._state.journal
        if self._position == journal.n_touched:
            return
        self._rejection = None
        if not self._hooks.node_local(self.task.shape_id) or (self._inter_pod is not None and self._mask_is_old()):
            self._fill()
            return
        n = journal.n_touched - self._position
        if n > _FEW:
            rows = np.unique(journal.touched_since(self._position))
            n = len(rows)
        else:  # computing some nodes twice costs less than finding the distinct ones
            rows = journal.touched_last(even(n))
        if 2 * n > len(self.ranked):
            self._fill()
            return
        self._position = journal.n_touched
        view = self._state.nodes.rows_view(rows)
        ranked, future = self._evaluate(view, self._excluded.take(rows), rows)
        if self._direct:
            self.ranked[rows] = ranked
            if self._state.looks_ahead:
                self.future[rows] = future
            return
        self._local[rows] = ranked
        if self._state.looks_ahead:
            self._later[rows] = future
        self._rank(rows)

    def _mask_is_old(self) -> bool:
        if self._inter_pod is None or self._mixed:
            return False
        return self._inter_pod.allowed() is not self._mask

    def after(self, rows: Rows, copies: Ints, delta: Floats) -> Floats:
        """Return what `ranked` would be on these nodes with ``copies`` more tasks of this shape each, shape (n_rows,).

        This is correct as long as the highest raw numbers among the feasible nodes do not change; see `watch`.
        """
        view = self._state.nodes.after(rows, copies, delta)
        ranked = self._evaluate(view, self._excluded[rows], rows)[0]
        return ranked if self._scores.fixed else ranked + _of(self._added, rows)

    def watch(self, nodes: Rows) -> HighestWatch | None:
        """Return a watch that says whether a node that becomes infeasible changes `ranked`; None: none does."""
        return self._scores.watch(self._local > _NOWHERE, self._highest, nodes) if not self._scores.fixed else None

    def rejection(self, *, promises: bool = True) -> Rejection:
        """Return why no node takes a task of this shape now; without ``promises`` only what is idle counts."""
        if self._rejection is None or self._rejection[0] != promises:
            self._rejection = (promises, self._explain(self.task, promises))
        return self._rejection[1]


def _of(values: Floats, rows: Rows | None) -> Floats:
    return values if rows is None or not values.ndim else values[rows]
