"""Nodeorder: kube-scheduler's scorers under Volcano's weights. Of these the slice has LeastAllocated.

    LeastAllocated = floor((s_cpu + s_memory) / 2),   s_r = floor((allocatable_r - q_r) * 100 / allocatable_r)

with q_r = what pods on the node and the task ask for, missing requests counted as 100m and 200 MiB. s_r is 0 where q_r
exceeds allocatable_r; a resource that the node does not have is left out of sum and divisor (kube-scheduler v1.36,
noderesources/least_allocated.go and resource_allocation.go).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_int
from volcano_py.framework.extension import NodeOrder
from volcano_py.framework.info import TaskInfo
from volcano_py.framework.plugin import DependsOn, Plugin
from volcano_py.model.resources import CPU_ROW, MEMORY_ROW, Floats
from volcano_py.model.shape import Field
from volcano_py.snapshot.columns import NodeColumns

_CPU_AND_MEMORY: Final = slice(CPU_ROW, MEMORY_ROW + 1)


@dataclass(frozen=True, slots=True)
class NodeOrderArgs:
    """Weights of the scorers; 0 switches one off."""

    least_allocated: int = 1


class NodeOrdering(Plugin, NodeOrder):
    """Weighted sum of kube-scheduler's scores."""

    name = "nodeorder"
    depends_on = DependsOn.NODE_ALONE
    reads = frozenset({Field.REQUEST})
    arguments = frozenset({"leastrequested.weight"})

    def __init__(self, arguments: NodeOrderArgs | None = None) -> None:
        self._args = arguments or NodeOrderArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> NodeOrderArgs:
        """Read ``leastrequested.weight`` (1)."""
        return NodeOrderArgs(least_allocated=get_int(arguments, "leastrequested.weight", 1, warn))

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return one score per node of the view, shape (n_nodes,)."""
        if not self._args.least_allocated:
            return np.zeros(len(nodes))
        score = least_allocated(nodes.nonzero + task.nonzero[:, None], nodes.allocatable[_CPU_AND_MEMORY])
        return score if self._args.least_allocated == 1 else score * self._args.least_allocated


def least_allocated(asked: Floats, allocatable: Floats) -> Floats:
    """Return LeastAllocated scores 0..100, shape (n_nodes,), from cpu and memory of nodes, each shape (2, n_nodes)."""
    left = np.maximum(allocatable - asked, 0.0) * 100.0
    cpu, memory = np.floor(left / np.maximum(allocatable, 1.0))  # what a node does not have scores 0 and is left out
    has_cpu, has_memory = allocatable > 0
    return np.asarray(np.floor((cpu + memory) / np.maximum(has_cpu + has_memory.astype(float), 1.0)))
