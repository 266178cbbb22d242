"""Predicates: kube-scheduler's filters, over columns.

Per node record (static): NodeUnschedulable, NodeAffinity (nodeSelector and required terms), TaintToleration.
Per moment: the number of pods, and NodePorts: the ports of the node that the pod wants for itself are free, also of
other pods of its like (`snapshot.ports`). As pods stand here and elsewhere: InterPodAffinity (`pod_affinity`) and the
hard constraints of PodTopologySpread (`spread`). Texts are kube-scheduler's; as in Volcano a node says all that an
eviction could change, up to the first reason that it could not. Whether the request fits is the framework's own check.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_bool
from volcano_py.framework.contract.extension_points import InterPodPredicate, Predicate, StaticPredicate, Verdicts
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import PODS_ROW
from volcano_py.model.shape import Field, Shape
from volcano_py.plugins.predicates.inter_pod import Filter, inter_pod_filter
from volcano_py.snapshot import node_terms, taints
from volcano_py.snapshot.columns import NodeColumns

UNSCHEDULABLE, NODE_AFFINITY, TAINT, UNREADABLE_TERMS, UNREADABLE_SPREAD = range(1, 6)
_KEYS: Final = {
    "node_affinity": "predicate.NodeAffinityEnable",
    "taint_toleration": "predicate.TaintTolerationEnable",
    "node_ports": "predicate.NodePortsEnable",
    "pod_affinity": "predicate.PodAffinityEnable",
    "spread": "predicate.PodTopologySpreadEnable",
}
_CLAIMS: Final = {  # what Volcano reads about claims
    "predicate.NodeVolumeLimitsEnable": "volume claims",
    "predicate.VolumeZoneEnable": "volume claims",
    "predicate.VolumeBindingEnable": "volume claims",
    "volumebinding.*": "volume claims",
    "predicate.DynamicResourceAllocationEnable": "resource claims",
    "dynamicresources.*": "resource claims",
}
_CACHE: Final = "predicate.CacheEnable"  # what it asks for is always done here, and never changes an answer
TOO_MANY_PODS, PORTS_TAKEN = 1, 2


@dataclass(frozen=True, slots=True)
class PredicatesArgs:
    """Which filters are on."""

    node_affinity: bool = True
    taint_toleration: bool = True
    node_ports: bool = True
    pod_affinity: bool = True
    spread: bool = True


class Predicates(Plugin, StaticPredicate, Predicate, InterPodPredicate):
    """Filter nodes."""

    name = "predicates"
    depends_on = DependsOn.NODE_ALONE
    reads = frozenset(
        {
            *(Field.NODE_SELECTOR, Field.NODE_AFFINITY, Field.TOLERATIONS, Field.HOST_PORTS),
            *(Field.POD_TERMS, Field.SPREAD, Field.SELECTED_BY),
        }
    )
    arguments = frozenset({*_KEYS.values(), *_CLAIMS, _CACHE})
    static_reasons = (
        Reason("predicates", "node-unschedulable", "node(s) were unschedulable"),
        Reason("predicates", "node-affinity", "node(s) didn't match Pod's node affinity/selector"),
        Reason("predicates", "taint-toleration", "node(s) had untolerated taint(s)"),
        Reason(
            "predicates",
            "pod-affinity-unreadable",
            "plugin InterPodAffinity pre-predicates failed parsing pod: a selector of its affinity terms is invalid",
        ),
        Reason(
            "predicates",
            "topology-spread-unreadable",
            "plugin PodTopologySpread pre-predicates failed get constraints from pod: a selector of them is invalid",
        ),
    )
    reasons = (
        Reason("predicates", "pod-number", "node(s) pod number exceeded", resolvable=True),
        Reason(
            "predicates",
            "node-ports",
            "node(s) didn't have free ports for the requested pod ports",
            resolvable=True,
        ),
        Reason("predicates", "pod-affinity", "node(s) didn't match pod affinity rules"),
        Reason("predicates", "pod-anti-affinity", "node(s) didn't match pod anti-affinity rules", resolvable=True),
        Reason(
            "predicates",
            "existing-anti-affinity",
            "node(s) didn't satisfy existing pods anti-affinity rules",
            resolvable=True,
        ),
        Reason(
            "predicates",
            "topology-spread-label",
            "node(s) didn't match pod topology spread constraints (missing required label)",
        ),
        Reason(
            "predicates", "topology-spread", "node(s) didn't match pod topology spread constraints", resolvable=True
        ),
    )
    early = TOO_MANY_PODS

    def __init__(self, arguments: PredicatesArgs | None = None) -> None:
        self._args = arguments or PredicatesArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> PredicatesArgs:
        """Read the switches, all true: ``predicate.NodeAffinityEnable``, ``predicate.TaintTolerationEnable``,
        ``predicate.NodePortsEnable``, ``predicate.PodAffinityEnable`` and ``predicate.PodTopologySpreadEnable``.

        Warned about, unless true: ``predicate.NodeVolumeLimitsEnable``, ``predicate.VolumeZoneEnable``,
        ``predicate.VolumeBindingEnable``, ``predicate.DynamicResourceAllocationEnable``, ``volumebinding.*`` and
        ``dynamicresources.*``: pods with such preemptors wait here in any case. ``predicate.CacheEnable`` changes
        nothing: what can be kept is.
        """
        for key, value in arguments.items():
            preemptors = next(
                (preemptors for pattern, preemptors in _CLAIMS.items() if fnmatchcase(key, pattern)), None
            )
            if preemptors is not None and value not in (True, "true"):
                warn(f"argument {key} has no effect: pods with {preemptors} wait here in any case")
        return PredicatesArgs(**{name: get_bool(arguments, key, True, warn) for name, key in _KEYS.items()})

    def on_session_open(self, ssn: State) -> None:
        """Note the session."""
        self._ssn = ssn
        self._filters: dict[int, Filter | None] = {}  # by shape id

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        """Return the first of cordon, affinity, taints that keeps the shape away, shape (n_nodes,)."""
        verdicts = np.zeros(len(nodes), dtype=np.int16)
        if self._args.taint_toleration:
            verdicts[~taints.tolerated(shape.tolerations, nodes)] = TAINT
        if self._args.node_affinity:
            verdicts[~node_terms.matches(shape, nodes)] = NODE_AFFINITY
        if not taints.tolerates_cordon(shape.tolerations):
            verdicts[nodes.unschedulable] = UNSCHEDULABLE
        unreadable = self._unreadable(shape)
        if unreadable:
            verdicts[:] = unreadable
        return verdicts

    def static_part(self, shape: Shape) -> Hashable:
        """Return selector, affinity and tolerations, and whether what it says of other pods can be read."""
        return shape.node_selector, shape.node_affinity, shape.tolerations, self._unreadable(shape)

    def _unreadable(self, shape: Shape) -> int:
        """Return the verdict on every node of a pod whose terms about others cannot be read, 0 for any other."""
        if self._args.pod_affinity and not shape.pod_terms.readable:
            return UNREADABLE_TERMS
        if self._args.spread and not all(spread.selector.readable for spread in shape.spread if spread.hard):
            return UNREADABLE_SPREAD
        return 0

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse nodes that have all the pods they may have, or not the ports that are wanted, shape (n_nodes,)."""
        full = nodes.pod_count >= nodes.allocatable[PODS_ROW]
        verdicts: Verdicts = full.astype(np.int16)  # TOO_MANY_PODS is 1
        if self._wants_ports(task):
            verdicts[self._ports_taken(task, nodes) & ~full] = PORTS_TAKEN
        return verdicts

    def refusals(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        """Return for each of `reasons` which nodes it is true of, shape (7, n_nodes).

        A node too far from the pods that this one must be near to says no more.
        """
        full = nodes.pod_count >= nodes.allocatable[PODS_ROW]
        taken = self._ports_taken(task, nodes) if self._wants_ports(task) else np.zeros(len(nodes), dtype=bool)
        company = self.inter_pod_filter(task)
        if company is None:
            return np.vstack((full, taken, np.zeros((5, len(nodes)), dtype=bool)))
        beside = company.refused()
        return np.vstack((full, taken, beside if nodes.rows is None else beside[:, nodes.rows]))

    def inter_pod_filter(self, task: TaskInfo) -> Filter | None:
        """Return what the terms between pods, and the spread of pods, allow a shape; None if there is nothing."""
        if task.shape_id not in self._filters:
            args = self._args
            self._filters[task.shape_id] = inter_pod_filter(self._ssn, task, args.pod_affinity, args.spread)
        return self._filters[task.shape_id]

    def _wants_ports(self, task: TaskInfo) -> bool:
        return self._args.node_ports and bool(task.shape.host_ports)

    def _ports_taken(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        taken: Bools = nodes.ports.conflicts(task.shape.host_ports)[nodes.port_codes]
        return taken if nodes.copies is None else taken | (nodes.copies > 0)  # a pod of its like wants the same ports
