"""Greedy placement: each task in turn takes the node that is best at that moment."""

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from itertools import product

from tests.reference.accounts import NodeAccount, ports_free, takes
from tests.reference.selection import static_reason
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus

Score = Callable[[Shape, NodeAccount], Fraction | int]
GroupScore = Callable[[Shape, Sequence[NodeAccount], Sequence[NodeAccount]], Sequence[Fraction | int]]
"""The scores of all candidates, given the shape, the candidates and all nodes."""


def alone(score: Score) -> GroupScore:
    """Return node-local scores: each depends on its own node only."""
    return lambda shape, group, everybody: [score(shape, node) for node in group]


def greedy(
    shape: Shape, count: int, nodes: Sequence[NodeAccount], score: GroupScore, ours: Collection[str] | None = None
) -> list[tuple[str, TaskStatus]]:
    """Return node and status of each task in turn; ties go to the first of ``nodes``, which are changed in place.

    ``ours`` are nodes that come first whatever the others' scores (None: no node does).
    """
    chosen: list[tuple[str, TaskStatus]] = []
    for _ in range(count):
        able = [node for node in nodes if not node.record.closed and not static_reason(shape, node.record)]
        able = [node for node in able if node.pods < node.allocatable["pods"] and ports_free(shape, node)]
        first = [node for node in able if ours is None or node.record.name in ours]
        rest = [node for node in able if node not in first]
        kinds = ((TaskStatus.ALLOCATED, False), (TaskStatus.PIPELINED, True))
        for (status, future), part in product(kinds, (first, rest)):
            group = [node for node in part if takes(shape, node, future=future)]
            if group:
                scores = score(shape, group, nodes)
                best = group[scores.index(max(scores))]
                best.put(shape, status)
                chosen.append((best.record.name, status))
                break
        else:
            break
    return chosen
