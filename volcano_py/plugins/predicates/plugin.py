"""Predicates: kube-scheduler's filters, over columns.

Per node record (static): NodeUnschedulable, NodeAffinity (nodeSelector and required terms), TaintToleration.
Per moment: the number of pods. Texts are kube-scheduler's. Whether the request fits is the framework's own check.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from volcano_py.conf.arguments import Warn, get_bool
from volcano_py.framework.extension import Predicate, StaticPredicate, Verdicts
from volcano_py.framework.info import TaskInfo
from volcano_py.framework.plugin import DependsOn, Plugin
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import PODS_ROW
from volcano_py.model.shape import Field, Shape
from volcano_py.snapshot import node_terms, taints
from volcano_py.snapshot.columns import NodeColumns

UNSCHEDULABLE, NODE_AFFINITY, TAINT = 1, 2, 3
TOO_MANY_PODS = 1


@dataclass(frozen=True, slots=True)
class PredicatesArgs:
    """Which filters are on."""

    node_affinity: bool = True
    taint_toleration: bool = True


class Predicates(Plugin, StaticPredicate, Predicate):
    """Filter nodes."""

    name = "predicates"
    depends_on = DependsOn.NODE_ALONE
    reads = frozenset({Field.NODE_SELECTOR, Field.NODE_AFFINITY, Field.TOLERATIONS})
    arguments = frozenset({"predicate.NodeAffinityEnable", "predicate.TaintTolerationEnable"})
    static_reasons = (
        Reason("predicates", "node-unschedulable", "node(s) were unschedulable"),
        Reason("predicates", "node-affinity", "node(s) didn't match Pod's node affinity/selector"),
        Reason("predicates", "taint-toleration", "node(s) had untolerated taint(s)"),
    )
    reasons = (Reason("predicates", "pod-number", "node(s) pod number exceeded", resolvable=True),)

    def __init__(self, arguments: PredicatesArgs | None = None) -> None:
        self._args = arguments or PredicatesArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> PredicatesArgs:
        """Read the switches ``predicate.NodeAffinityEnable`` and ``predicate.TaintTolerationEnable`` (true)."""
        return PredicatesArgs(
            node_affinity=get_bool(arguments, "predicate.NodeAffinityEnable", True, warn),
            taint_toleration=get_bool(arguments, "predicate.TaintTolerationEnable", True, warn),
        )

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        """Return the first of cordon, affinity, taints that keeps the shape away, shape (n_nodes,)."""
        verdicts = np.zeros(len(nodes), dtype=np.int16)
        if self._args.taint_toleration:
            verdicts[~taints.tolerated(shape.tolerations, nodes)] = TAINT
        if self._args.node_affinity:
            verdicts[~node_terms.matches(shape, nodes)] = NODE_AFFINITY
        if not taints.tolerates_cordon(shape.tolerations):
            verdicts[nodes.unschedulable] = UNSCHEDULABLE
        return verdicts

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse nodes that already have as many pods as they may have, shape (n_nodes,)."""
        full = nodes.pod_count >= nodes.allocatable[PODS_ROW]
        return np.asarray(full * np.int16(TOO_MANY_PODS), dtype=np.int16)
