"""The raw numbers of normalised scores: a session asks for them once per part of a shape that they depend on."""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Final

from volcano_py.framework.contract.combine import Point, Points
from volcano_py.framework.contract.normalization import GroupScores, NormalizedScore
from volcano_py.framework.placing.statically_infeasible import StaticallyInfeasible
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats
from volcano_py.model.shape import Shape
from volcano_py.snapshot.columns import NodeColumns

_MOST: Final = 256  # how many answers are kept: each may hold a few arrays over all nodes


class RawScores:
    """The scorers of all `NormalizedOrder` plugins, and their raw numbers."""

    def __init__(self, state: State, orders: Points) -> None:
        """Take the plugins' points; they are asked at the first use, when the session is open."""
        self._state = state
        self._orders = orders
        self._rows: dict[Hashable, Floats] = {}  # raw numbers that are not kept over cycles
        self._found: dict[Hashable, GroupScores] = {}  # by statically infeasible nodes and parts of the shape

    def of(self, task: TaskInfo, statically_infeasible: StaticallyInfeasible) -> GroupScores:
        """Return the normalised scores of a shape among the nodes it may go to."""
        parts = [part(task.shape) for part, _, _ in self._scores]
        key = (statically_infeasible, *parts)
        found = self._found.get(key)
        if found is None:
            rows = [
                (score, self._row(point, score, task.shape, part))
                for (_, point, score), part in zip(self._scores, parts, strict=True)
                if part is not None
            ]
            if len(self._found) >= _MOST:
                self._found.clear()
            found = self._found[key] = GroupScores(rows, ~statically_infeasible.nodes)
        return found

    @cached_property
    def _scores(self) -> list[tuple[Callable[[Shape], Hashable], Point, NormalizedScore]]:
        found = [(point, score) for point in self._orders for score in point()]
        return [
            (
                point.other(score.name, score.part, "NormalizedScore.part"),
                point.other(score.name, score.raw, "NormalizedScore.raw"),
                score,
            )
            for point, score in found
            if score.weight
        ]

    def _row(self, point: Point, score: NormalizedScore, shape: Shape, part: Hashable) -> Floats:
        key = (point.plugin.name, score.name, part)

        def ask(view: NodeColumns) -> Floats:
            raw: Floats = point.finite(len(view), shape, view)
            return raw

        if score.kept:
            return self._state.static_row(key, ask)
        found = self._rows.get(key)
        if found is None:
            found = self._rows[key] = ask(self._state.nodes)
        return found
