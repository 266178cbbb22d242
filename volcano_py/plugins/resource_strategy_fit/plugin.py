"""Resource-strategy-fit: node scores by a strategy per resource, and protection of scarce resources.

    strategy      100 * weight * sum_r w_r * s_r / sum_r w_r   over the requested resources that have an entry
                  s = (used + request) / allocatable (MostAllocated) or 1 minus that (LeastAllocated). If one of them
                  would not fit, the node scores 0. A resource that the node does not have adds 0; its weight counts.
    sra           100 * weight * (1 - sum of weights of the scarce resources a node has / sum of all their weights);
                  0 if the node lacks a requested resource, or if the weight or the sum of the weights is 0
    proportional  a pod that requests none of the listed resources may use a node only if for each of them
                  idle cpu - request >= idle units * cores, and idle memory - request >= idle units * 10^9 bytes

A pod's annotations may replace the strategy: ``volcano.sh/resource-strategy-scoring-type`` and ``-weight``. ``used``
does not include pipelined tasks. (Volcano: plugins/resource-strategy-fit.) If several listed resources lack their
share, the message names the first in the configuration; Volcano names any.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from volcano_py.conf.arguments import Warn
from volcano_py.framework.contract.extension_points import NodeOrder, Predicate, Verdicts
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import CPU_ROW, EPSILON, MEMORY_ROW
from volcano_py.model.shape import Field
from volcano_py.plugins.resource_strategy_fit.arguments import LEAST, MOST, ResourceStrategyFitArgs, Share, of_pod, read
from volcano_py.plugins.resource_strategy_fit.scores import Weighted, sra_score, strategy_score
from volcano_py.snapshot.columns import NodeColumns

_BYTES_PER_MILLI: float = 1e6  # 10^9 bytes for a unit; amounts of scarce resources are in thousandths


class _Kept(NamedTuple):
    """A listed resource whose idle units reserve cpu and memory."""

    name: str
    row: int
    share: Share


class ResourceStrategyFit(Plugin, NodeOrder, Predicate):
    """Scores by strategy and scarce resources, and a predicate for proportions."""

    name = "resource-strategy-fit"
    depends_on = DependsOn.NODE_ALONE
    reads = frozenset({Field.REQUEST, Field.STRATEGY})
    arguments = frozenset({"resourceStrategyFitWeight", "resources", "sra", "proportional"})

    def __init__(self, arguments: ResourceStrategyFitArgs | None = None) -> None:
        self._args = arguments or ResourceStrategyFitArgs()
        self.reasons = tuple(
            Reason(self.name, f"proportional-{name}", f"proportional of resource {name} check failed")
            for name in self._args.shares
        )

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> ResourceStrategyFitArgs:
        """Read ``resourceStrategyFitWeight`` (10), ``resources``, ``sra`` and ``proportional``, see `arguments`.

        A value of a wrong type is an error.
        """
        return read(arguments, warn)

    def on_session_open(self, ssn: State) -> None:
        """Look up the rows of the configured resources."""
        self._names = ssn.resources.names
        scarce = self._args.scarce
        weights = ssn.resources.vector({name: float(weight) for name, weight in scarce.resources.items()})
        self._scarce: Rows = np.flatnonzero(weights)
        self._scarce_weights = weights[self._scarce]  # (n_scarce,)
        self._scarce_total = float(sum(scarce.resources.values()))  # a resource that no node has counts too
        self._kept = [
            (number, _Kept(name, row, share))
            for number, (name, share) in enumerate(self._args.shares.items(), 1)
            if (row := ssn.resources.find(name)) is not None
        ]
        self._weighted: dict[int, Weighted | None] = {}  # by shape id

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return the scores of strategy and scarce resources, shape (n_nodes,)."""
        score = np.zeros(len(nodes))
        weighted = self._strategy_of(task)
        if weighted is not None:
            score += strategy_score(task.request, weighted, nodes)
        if self._args.scarce.weight and self._scarce_total > 0:
            part = sra_score(task.request, self._scarce, self._scarce_weights / self._scarce_total, nodes)
            score += 100.0 * self._args.scarce.weight * part
        return score

    def _strategy_of(self, task: TaskInfo) -> Weighted | None:
        """Return the scored resources of a task's request and how to score them, None if there are none."""
        if task.shape_id not in self._weighted:
            self._weighted[task.shape_id] = self._weigh(task)
        return self._weighted[task.shape_id]

    def _weigh(self, task: TaskInfo) -> Weighted | None:
        strategy = self._args.strategy
        kind, weights = task.shape.strategy
        found = of_pod(kind, weights, strategy.weight) if kind else strategy
        if found is None or not strategy.weight:
            return None
        asked = ((row, found.find(self._names[row])) for row in np.flatnonzero(task.request >= EPSILON).tolist())
        entries = [(row, entry) for row, entry in asked if entry is not None and entry.weight]
        if not entries:
            return None
        return Weighted(
            rows=np.array([row for row, _ in entries], dtype=np.intp),
            most=np.array([entry.kind == MOST for _, entry in entries])[:, None],
            known=np.array([entry.kind in (LEAST, MOST) for _, entry in entries])[:, None],
            weights=np.array([float(entry.weight) for _, entry in entries])[:, None],
            scale=100.0 * strategy.weight,
        )

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse nodes on which too little would remain for idle listed resources, shape (n_nodes,)."""
        verdicts = np.zeros(len(nodes), dtype=np.int16)
        if any(task.request[kept.row] > 0 for _, kept in self._kept):
            return verdicts
        for number, kept in reversed(self._kept):
            verdicts[lacks_share(task.request, nodes, kept.row, kept.share)] = number
        return verdicts


def lacks_share(request: Floats, nodes: NodeColumns, row: int, share: Share) -> Bools:
    """Say on which nodes a request leaves less than the idle units of a resource reserve, shape (n_nodes,).

    A node without the resource reserves nothing. A node without an idle unit reserves 0, so the rest must not be
    negative.
    """
    idle = nodes.idle
    units = idle[row]
    short_cpu = idle[CPU_ROW] - request[CPU_ROW] < units * share.cpu
    short_memory = idle[MEMORY_ROW] - request[MEMORY_ROW] < units * share.memory * _BYTES_PER_MILLI
    return np.asarray((nodes.allocatable[row] > 0) & (short_cpu | short_memory))
