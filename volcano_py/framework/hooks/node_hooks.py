"""What plugins answer about nodes: predicates, scores, and the reasons behind their verdicts."""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.contract import combine, extension_points, topology
from volcano_py.framework.contract.answers import reasons_of
from volcano_py.framework.contract.combine import Point, Points
from volcano_py.framework.contract.extension_points import Verdicts
from volcano_py.framework.contract.plugin import DependsOn
from volcano_py.framework.hooks import refusals
from volcano_py.framework.hooks.plugin_calls import PluginCalls
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.rejections import Reason
from volcano_py.model.shape import Shape
from volcano_py.snapshot.columns import NodeColumns


class NodeHooks:
    """The extension points that are asked about nodes, in conf order."""

    def __init__(self, state: State, calls: PluginCalls) -> None:
        self._state = state
        self._static_predicates = calls.points(extension_points.StaticPredicate, "static_predicate")
        self.predicates = calls.points(extension_points.Predicate, "predicate")
        self.inter_pod_predicates = calls.points(extension_points.InterPodPredicate, "inter_pod_filter")
        self.node_orders = calls.points(extension_points.NodeOrder, "node_order")
        self.normalized_orders = calls.points(extension_points.NormalizedOrder, "normalized_orders")
        self.inter_pod_orders = calls.points(extension_points.InterPodOrder, "inter_pod_scores")
        self.leaf_orders = calls.points(topology.LeafOrder, "leaf_order")
        about_nodes = {point.plugin: point for point in (*self.predicates, *self.node_orders)}
        self._depends = [point.other("depends") for point in about_nodes.values()]
        self._node_local: dict[int, bool] = {}
        self._reasons: list[Reason] = []
        dynamic = self._number("reasons", self.predicates)
        static = self._number("static_reasons", self._static_predicates)
        self.reason_offsets = tuple(codes.start - 1 for codes in dynamic)
        self._static_offsets = tuple(codes.start - 1 for codes in static)
        self.filters = refusals.filters(
            calls.plugins(),
            zip(self._static_predicates, static, strict=True),
            zip(self.predicates, dynamic, strict=True),
        )

    @property
    def refusals_stay(self) -> bool:
        """Whether a node that refuses a task refuses it until room is given back (`Predicate.refusals_stay`)."""
        return all(point.plugin.refusals_stay for point in self.predicates)

    def _number(self, attribute: str, points: Points) -> list[range]:
        """Return the codes of the reasons of plugins. A plugin without valid reasons has failed, and gives none."""
        found = []
        for point in points:
            first = len(self._reasons) + 1
            self._reasons.extend(reasons_of(point.plugin, attribute) or ())
            found.append(range(first, len(self._reasons) + 1))
        return found

    @cached_property
    def resolvable(self) -> Bools:
        """By number of a verdict: whether an eviction could change it. Number 0 is no refusal."""
        return np.array([True, *(reason.resolvable for reason in self._reasons)], dtype=bool)

    @cached_property
    def before_nodes(self) -> tuple[int, ...]:
        """The codes of static reasons that hold before any node is looked at."""
        static = (code for one in self.filters for code in one.static)
        return tuple(code for code in static if self._reasons[code - 1].before_nodes)

    def reason(self, code: int) -> Reason:
        """Return the reason for a verdict: a code above 0 is a plugin's, a code below 0 is a lacking resource."""
        if code > 0:
            return self._reasons[code - 1]
        name = self._state.resources.names[-1 - code]
        return Reason("resources", f"insufficient-{name}", f"Insufficient {name}", resolvable=True)

    def leaf_order(self, task: TaskInfo) -> Floats | None:
        """Return what the domains above nodes add to their scores, shape (n_nodes,); None for nothing."""
        total: Floats | None = None
        for point in self.leaf_orders:
            answer: Floats | None = point(task)
            if answer is not None:
                Point(point.plugin, point.method, lambda answer=answer: answer).finite(len(self._state.nodes))
                total = answer if total is None else total + answer
        return total

    def node_local(self, shape_id: int) -> bool:
        """Say whether all answers about tasks of this class depend on the node alone."""
        found = self._node_local.get(shape_id)
        if found is None:
            task = self._state.task_of(shape_id)
            found = all(point(task) is DependsOn.NODE_ALONE for point in self._depends)
            self._node_local[shape_id] = found
        return found

    def static_verdicts(self, task: TaskInfo) -> Verdicts:
        """Return the static verdicts on all nodes, shape (n_nodes,): 0 or the number of the first reason."""
        points, offsets = self._static_predicates, self._static_offsets
        return static_verdicts(self._state.static_row, task.shape, points, offsets)

    def static_part(self, shape: Shape) -> Hashable:
        """Return the part of a shape that static predicates read: shapes that are equal in it have equal verdicts."""
        return static_part(shape, self._static_predicates)


StaticRow = Callable[[Hashable, Callable[[NodeColumns], NDArray[Any]]], NDArray[Any]]
"""Returns answers about all nodes, kept under a key; see `State.static_row`."""


def static_verdicts(row: StaticRow, shape: Shape, points: Points, offsets: tuple[int, ...]) -> Verdicts:
    """Return one verdict per node, shape (n_nodes,): 0 or the number of the first reason that refuses.

    Verdicts are kept over cycles, by the part of the shape that they depend on.
    """

    def ask(view: NodeColumns) -> Verdicts:
        return combine.first_refusals(points, offsets, len(view), shape, view)

    return row(("verdicts", static_part(shape, points)), ask)


def static_part(shape: Shape, points: Points) -> Hashable:
    """Return the part of a shape that the verdicts of static predicates depend on."""
    return tuple([point.other("static_part")(shape) for point in points])
