"""Inter-pod filter and scores of one shape: where it may run, and how good the nodes are, given the other pods."""

import numpy as np

from volcano_py.framework.hooks.node_hooks import NodeHooks
from volcano_py.framework.retired import method
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.session_volumes import NEED
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats


class InterPodFilters:
    """The filters and scores of a shape that depend on other pods."""

    __slots__ = ("_answers", "_filters", "_kept", "_n", "_scores", "_unresolvable", "own_pods_matter")

    def __init__(self, n_nodes: int, hooks: NodeHooks, task: TaskInfo) -> None:
        self._n = n_nodes
        found = [(point, point(task)) for point in hooks.inter_pod_predicates]
        filters = [(point, answer) for point, answer in found if answer is not None]
        scores = [(point, point(task)) for point in hooks.inter_pod_orders]
        self._filters = [point.other("InterPodFilter.allowed", answer.allowed) for point, answer in filters]
        self._unresolvable = [
            point.other("InterPodFilter.unresolvable", method(answer, "unresolvable", "hopeless"))
            for point, answer in filters
        ]
        self._scores = [point.other("InterPodScores.scores", one.scores) for point, one in scores if one is not None]
        self.own_pods_matter = bool(self._scores) or any(answer.own_pods_matter for _, answer in filters)
        """Whether placing one task of the shape may change an answer for the next one."""
        self._answers: list[Bools] = []
        self._kept: Bools | None = None

    def allowed(self) -> Bools | None:
        """Return where the shape may run now, shape (n_nodes,), None for everywhere; the same array while equal."""
        if not self._filters:
            return None
        answers: list[Bools] = [point.array(self._n) for point in self._filters]
        if self._kept is None or any(new is not old for new, old in zip(answers, self._answers, strict=True)):
            self._kept = answers[0]
            for answer in answers[1:]:
                self._kept = self._kept & answer
            self._answers = answers
        return self._kept

    def unresolvable(self) -> Bools:
        """Return the nodes on which no eviction could let the shape run, shape (n_nodes,)."""
        unresolvable = np.zeros(self._n, dtype=bool)
        for point in self._unresolvable:
            unresolvable |= point.array(self._n)
        return unresolvable

    def added(self, group: Bools) -> Floats | float:
        """Return what other pods add to the scores of a group of feasible nodes, shape (n_nodes,)."""
        added: Floats | float = 0.0
        for point in self._scores:
            added = added + point.finite(self._n, group)
        return added


def depends_on_others(state: State, task: TaskInfo) -> bool:
    """Say whether other pods may affect where tasks of a class may go, by terms or by the volumes that they get."""
    if state.volumes is not None and task.equivalence_key(NEED):
        return True
    return state.topology_counts is not None and task.shape.has_inter_pod_terms


def inter_pod_filters_of(n_nodes: int, hooks: NodeHooks, task: TaskInfo) -> InterPodFilters | None:
    """Return the filters and scores of a class for which `depends_on_others` holds, None if it has none."""
    found = InterPodFilters(n_nodes, hooks, task)
    return found if found.own_pods_matter or found.allowed() is not None else None
