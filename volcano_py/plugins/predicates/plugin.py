"""Predicates: kube-scheduler's filters, over columns.

static      depend only on the node's record: NodeUnschedulable, NodeAffinity (nodeSelector and required terms),
            TaintToleration
per node    depend on the pods of the node: the number of pods, and NodePorts, which checks that the host ports of the
            pod are free, also when several pods of its shape are placed together (`snapshot.ports`)
inter-pod   depend on pods of all nodes: InterPodAffinity (`pod_affinity`) and the hard constraints of PodTopologySpread
            (`spread`)

Texts are kube-scheduler's. As in Volcano, a node gives all reasons that an eviction could resolve, up to the first one
that it could not. The framework itself checks whether the request fits.
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
_CLAIMS: Final = {  # Volcano's arguments about claims
    "predicate.NodeVolumeLimitsEnable": "volume claims",
    "predicate.VolumeZoneEnable": "volume claims",
    "predicate.VolumeBindingEnable": "volume claims",
    "volumebinding.*": "volume claims",
    "predicate.DynamicResourceAllocationEnable": "resource claims",
    "dynamicresources.*": "resource claims",
}
_CACHE: Final = "predicate.CacheEnable"  # accepted and ignored: answers are always cached, which never changes them
TOO_MANY_PODS, PORTS_TAKEN = 1, 2


@dataclass(frozen=True, slots=True)
class PredicatesArgs:
    """Which filters are enabled."""

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

        The following have no effect, because pods with volume or resource claims always wait, and cause a warning
        unless they are true: ``predicate.NodeVolumeLimitsEnable``, ``predicate.VolumeZoneEnable``,
        ``predicate.VolumeBindingEnable``, ``predicate.DynamicResourceAllocationEnable``, ``volumebinding.*`` and
        ``dynamicresources.*``. ``predicate.CacheEnable`` is ignored: answers are always cached.
        """
        for key, value in arguments.items():
            claims = next((claims for pattern, claims in _CLAIMS.items() if fnmatchcase(key, pattern)), None)
            if claims is not None and value not in (True, "true"):
                warn(f"argument {key} has no effect: {claims} are not supported yet, so pods with them always wait")
        return PredicatesArgs(**{name: get_bool(arguments, key, True, warn) for name, key in _KEYS.items()})

    def on_session_open(self, ssn: State) -> None:
        """Keep the session."""
        self._ssn = ssn
        self._filters: dict[int, Filter | None] = {}  # by shape id

    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        """Return the first reason that refuses the shape: cordon, node affinity or taints, shape (n_nodes,)."""
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
        """Return selector, affinity and tolerations, and the verdict on inter-pod terms that cannot be read."""
        return shape.node_selector, shape.node_affinity, shape.tolerations, self._unreadable(shape)

    def _unreadable(self, shape: Shape) -> int:
        """Return the verdict on every node if an inter-pod term of the shape cannot be read, else 0."""
        if self._args.pod_affinity and not shape.pod_terms.readable:
            return UNREADABLE_TERMS
        if self._args.spread and not all(spread.selector.readable for spread in shape.spread if spread.hard):
            return UNREADABLE_SPREAD
        return 0

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse nodes with the maximum number of pods, or on which a host port is not free, shape (n_nodes,)."""
        full = nodes.pod_count >= nodes.allocatable[PODS_ROW]
        verdicts: Verdicts = full.astype(np.int16)  # TOO_MANY_PODS is 1
        if self._wants_ports(task):
            verdicts[self._ports_taken(task, nodes) & ~full] = PORTS_TAKEN
        return verdicts

    def refusals(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        """Return for each of `reasons` the nodes to which it applies, shape (7, n_nodes).

        A node that fails required inter-pod affinity gives no further inter-pod reason.
        """
        full = nodes.pod_count >= nodes.allocatable[PODS_ROW]
        taken = self._ports_taken(task, nodes) if self._wants_ports(task) else np.zeros(len(nodes), dtype=bool)
        inter_pod = self.inter_pod_filter(task)
        if inter_pod is None:
            return np.vstack((full, taken, np.zeros((5, len(nodes)), dtype=bool)))
        refused = inter_pod.refused()
        return np.vstack((full, taken, refused if nodes.rows is None else refused[:, nodes.rows]))

    def inter_pod_filter(self, task: TaskInfo) -> Filter | None:
        """Return the inter-pod filter of a task's shape; None if other pods cannot affect it."""
        if task.shape_id not in self._filters:
            args = self._args
            self._filters[task.shape_id] = inter_pod_filter(self._ssn, task, args.pod_affinity, args.spread)
        return self._filters[task.shape_id]

    def _wants_ports(self, task: TaskInfo) -> bool:
        return self._args.node_ports and bool(task.shape.host_ports)

    def _ports_taken(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        taken: Bools = nodes.ports.conflicts(task.shape.host_ports)[nodes.port_codes]
        return taken if nodes.copies is None else taken | (nodes.copies > 0)  # pods of one shape want the same ports
