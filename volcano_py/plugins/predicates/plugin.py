"""Predicates: kube-scheduler's filters, over columns.

static      depend only on the node's record: NodeUnschedulable, NodeAffinity (nodeSelector and required terms),
            TaintToleration
per node    depend on the pods of the node: the number of pods, NodePorts, which checks that the host ports of the pod
            are free, also when several pods of its shape are placed together (`snapshot.ports`), and the number of
            volumes (`volume_limits`)
inter-pod   depend on pods of all nodes: InterPodAffinity (`pod_affinity`), the hard constraints of PodTopologySpread
            (`spread`), and what volumes claims have or can get (`claims`)

Texts are kube-scheduler's. As in Volcano, a node gives all reasons that an eviction could resolve, up to the first one
that it could not. The framework itself checks whether the request fits.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_bool, get_float
from volcano_py.framework.contract.extension_points import InterPodPredicate, Predicate, StaticPredicate, Verdicts
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools
from volcano_py.model.pod_needs import NO_NEED
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import PODS_ROW
from volcano_py.model.shape import Field, Shape
from volcano_py.plugins.predicates.claims import AFFINITY as VOLUME_AFFINITY
from volcano_py.plugins.predicates.claims import BIND, EXCLUSIVE, JOINED, MISSING, SPACE, too_few_local, with_pairs
from volcano_py.plugins.predicates.inter_pod import INTER_POD, Filter, ended, inter_pod_filter
from volcano_py.plugins.predicates.pod_affinity import AFFINITY as POD_AFFINITY
from volcano_py.plugins.predicates.volume_limits import disks_taken, too_many_volumes
from volcano_py.snapshot import node_terms, taints
from volcano_py.snapshot.columns import NodeColumns

UNSCHEDULABLE, NODE_AFFINITY, TAINT, NAMES_CONFLICT, UNREADABLE_TERMS, UNREADABLE_SPREAD = range(1, 7)
_KEYS: Final = {
    "node_affinity": "predicate.NodeAffinityEnable",
    "taint_toleration": "predicate.TaintTolerationEnable",
    "node_ports": "predicate.NodePortsEnable",
    "pod_affinity": "predicate.PodAffinityEnable",
    "spread": "predicate.PodTopologySpreadEnable",
    "volume_limits": "predicate.NodeVolumeLimitsEnable",
    "volume_zone": "predicate.VolumeZoneEnable",
    "volume_binding": "predicate.VolumeBindingEnable",
}
_CLAIMS: Final = {  # Volcano's arguments that have no effect yet
    "volumebinding.*": "scores of volumes",
    "predicate.DynamicResourceAllocationEnable": "resource claims",
    "dynamicresources.*": "resource claims",
}
_CACHE: Final = "predicate.CacheEnable"  # accepted and ignored: answers are always cached, which never changes them
_BIND_TIMEOUT: Final = "volumebinding.bindTimeoutSeconds"
_BIND_TIMEOUT_S: Final = 600.0
TOO_MANY_PODS, PORTS_TAKEN, TOO_MANY_VOLUMES, DISK_TAKEN = 1, 2, 3, 4
_ON_NODE: Final = 4
NO_VOLUME: Final = _ON_NODE + 1 + INTER_POD + BIND
_OF_BINDING: Final = {
    VOLUME_AFFINITY: Reason("predicates", "volume-affinity", "node(s) didn't match PersistentVolume's node affinity"),
    BIND: Reason("predicates", "volume-binding", "node(s) didn't find available persistent volumes to bind"),
    SPACE: Reason("predicates", "volume-space", "node(s) did not have enough free storage"),
    MISSING: Reason(
        "predicates", "volume-missing", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    ),
}
_PAIRS: Final = ("volume-affinity-binding", "volume-affinity-space", "volume-binding-missing", "volume-space-missing")


def _both(code: str, pair: tuple[int, int]) -> Reason:
    """Return two reasons of VolumeBinding as one, as in Volcano: a filter gives one text per node."""
    return Reason("predicates", code, ", ".join(_OF_BINDING[number].text for number in pair))


@dataclass(frozen=True, slots=True)
class PredicatesArgs:
    """Which filters are enabled."""

    node_affinity: bool = True
    taint_toleration: bool = True
    node_ports: bool = True
    pod_affinity: bool = True
    spread: bool = True
    volume_limits: bool = True
    volume_zone: bool = True
    volume_binding: bool = True
    bind_timeout_s: float = _BIND_TIMEOUT_S
    """How long the claims of a pod may take to be bound; who carries out decisions reads it."""


class Predicates(Plugin, StaticPredicate, Predicate, InterPodPredicate):
    """Filter nodes."""

    name = "predicates"
    depends_on = DependsOn.NODE_ALONE
    refusals_stay = True
    reads = frozenset(
        {
            *(Field.NODE_SELECTOR, Field.NODE_AFFINITY, Field.TOLERATIONS, Field.HOST_PORTS),
            *(Field.POD_TERMS, Field.SPREAD, Field.SELECTED_BY),
        }
    )
    arguments = frozenset({*_KEYS.values(), *_CLAIMS, _CACHE, _BIND_TIMEOUT})
    static_reasons = (
        Reason("predicates", "node-unschedulable", "node(s) were unschedulable"),
        Reason("predicates", "node-affinity", "node(s) didn't match Pod's node affinity/selector"),
        Reason("predicates", "taint-toleration", "node(s) had untolerated taint(s)"),
        Reason(
            "predicates",
            "node-affinity-conflict",
            "plugin NodeAffinity pre-predicates failed pod affinity terms conflict",
            before_nodes=True,
        ),
        Reason(
            "predicates",
            "pod-affinity-unreadable",
            "plugin InterPodAffinity pre-predicates failed parsing pod: a selector of its affinity terms is invalid",
            before_nodes=True,
        ),
        Reason(
            "predicates",
            "topology-spread-unreadable",
            "plugin PodTopologySpread pre-predicates failed get constraints from pod: a selector of them is invalid",
            before_nodes=True,
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
        Reason("predicates", "volume-limits", "node(s) exceed max volume count", resolvable=True),
        Reason("predicates", "disk-conflict", "node(s) had no available disk", resolvable=True),
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
        Reason(
            "predicates",
            "volume-exclusive",
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by "
            "another pod",
            resolvable=True,
        ),
        Reason("predicates", "volume-zone", "node(s) had no available volume zone"),
        *_OF_BINDING.values(),
        *map(_both, _PAIRS, JOINED),
    )
    early = TOO_MANY_PODS

    def __init__(self, arguments: PredicatesArgs | None = None) -> None:
        self._args = arguments or PredicatesArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> PredicatesArgs:
        """Read the switches, all true: ``predicate.NodeAffinityEnable``, ``predicate.TaintTolerationEnable``,
        ``predicate.NodePortsEnable``, ``predicate.PodAffinityEnable``, ``predicate.PodTopologySpreadEnable``,
        ``predicate.NodeVolumeLimitsEnable``, ``predicate.VolumeZoneEnable`` and ``predicate.VolumeBindingEnable``.

        ``volumebinding.bindTimeoutSeconds``, 600, is how long the claims of a pod may take to be bound before its bind.

        The following have no effect and cause a warning unless they are true: ``volumebinding.*``, and
        ``predicate.DynamicResourceAllocationEnable`` and ``dynamicresources.*``, because pods with resource claims
        always wait. ``predicate.CacheEnable`` is ignored: answers are always cached.
        """
        for key, value in arguments.items():
            if key == _BIND_TIMEOUT:
                continue
            claims = next((claims for pattern, claims in _CLAIMS.items() if fnmatchcase(key, pattern)), None)
            if claims is not None and value not in (True, "true"):
                warn(f"argument {key} has no effect: {claims} are not supported yet")
        timeout_s = get_float(arguments, _BIND_TIMEOUT, _BIND_TIMEOUT_S, warn)
        if timeout_s <= 0:
            raise ValueError(f"{_BIND_TIMEOUT}: {timeout_s:g} is no time to wait: write a number above 0")
        switches = {name: get_bool(arguments, key, True, warn) for name, key in _KEYS.items()}
        return PredicatesArgs(**switches, bind_timeout_s=timeout_s)

    def on_session_open(self, ssn: State) -> None:
        """Keep the session, and say which filters about claims are enabled."""
        self._ssn = ssn
        if ssn.volumes is not None:
            ssn.volumes.binds_claims = self._args.volume_binding
            ssn.volumes.checks_zones = self._args.volume_zone
            ssn.volumes.checks_limits = self._args.volume_limits
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
        before_nodes = self._before_nodes(shape)
        if before_nodes:
            verdicts[:] = before_nodes
        return verdicts

    def static_part(self, shape: Shape) -> Hashable:
        """Return selector, affinity and tolerations, and the verdict on the shape itself."""
        return shape.node_selector, shape.node_affinity, shape.tolerations, self._before_nodes(shape)

    def _before_nodes(self, shape: Shape) -> int:
        """Return the verdict on every node if the shape fails before any node is looked at, else 0.

        In kube-scheduler's order: node names that conflict, then inter-pod terms and constraints that cannot be read.
        """
        if self._args.node_affinity and node_terms.names_conflict(shape):
            return NAMES_CONFLICT
        if self._args.pod_affinity and not shape.pod_terms.readable:
            return UNREADABLE_TERMS
        if self._args.spread and not all(spread.selector.readable for spread in shape.spread if spread.hard):
            return UNREADABLE_SPREAD
        return 0

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse nodes with the maximum number of pods or volumes, or without a free host port, shape (n_nodes,)."""
        full = nodes.pod_count >= nodes.allocatable[PODS_ROW]
        verdicts: Verdicts = full.astype(np.int16)  # TOO_MANY_PODS is 1
        volumes = self._ssn.volumes
        if volumes is not None and volumes.need_of(task) is not NO_NEED:
            too_few = too_few_local(volumes, task, nodes)
            for code, refused in enumerate(self._volumes_on_node(task, nodes), TOO_MANY_VOLUMES):
                verdicts[refused & ~full] = code
            if too_few is not None:
                verdicts[too_few & ~full] = NO_VOLUME
        if self._wants_ports(task):
            verdicts[self._ports_taken(task, nodes) & ~full] = PORTS_TAKEN
        return verdicts

    def refusals(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        """Return for each of `reasons` the nodes to which it applies, shape (19, n_nodes).

        Reasons follow each other as in `inter_pod`: after one that no eviction could resolve, a node gives no more.
        """
        full = nodes.pod_count >= nodes.allocatable[PODS_ROW]
        taken = self._ports_taken(task, nodes) if self._wants_ports(task) else np.zeros(len(nodes), dtype=bool)
        on_node = self._volumes_on_node(task, nodes)
        inter_pod = self.inter_pod_filter(task)
        if inter_pod is None:
            others = len(self.reasons) - _ON_NODE
            return np.vstack((full, taken, on_node, np.zeros((others, len(nodes)), dtype=bool)))
        refused = inter_pod.refused()
        refused = refused.copy() if nodes.rows is None else refused[:, nodes.rows]
        on_node &= ~refused[POD_AFFINITY]
        refused[INTER_POD + EXCLUSIVE] &= ~on_node[1]  # one filter of kube-scheduler, and the first reason counts
        too_few = None if self._ssn.volumes is None else too_few_local(self._ssn.volumes, task, nodes)
        if too_few is not None:
            refused[INTER_POD + BIND] |= too_few & ~ended(refused)
        return np.vstack((full, taken, on_node, refused[:INTER_POD], with_pairs(refused[INTER_POD:])))

    def inter_pod_filter(self, task: TaskInfo) -> Filter | None:
        """Return the filter of a task's class by other pods and volume claims; None if they cannot affect it."""
        if task.shape_id not in self._filters:
            args = self._args
            self._filters[task.shape_id] = inter_pod_filter(
                self._ssn, task, args.pod_affinity, args.spread, args.volume_zone
            )
        return self._filters[task.shape_id]

    def _volumes_on_node(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        """Return which nodes have too many volumes, and which a disk that is in use there, shape (2, n_nodes)."""
        refused = np.zeros((2, len(nodes)), dtype=bool)
        volumes = self._ssn.volumes
        if volumes is not None:
            too_many = too_many_volumes(volumes, task, nodes) if self._args.volume_limits else None
            if too_many is not None:
                refused[0] = too_many
            if volumes.need_of(task).disks:
                refused[1] = disks_taken(volumes, task, nodes)
        return refused

    def _wants_ports(self, task: TaskInfo) -> bool:
        return self._args.node_ports and bool(task.shape.host_ports)

    def _ports_taken(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        taken: Bools = nodes.ports.conflicts(task.shape.host_ports)[nodes.port_codes]
        return taken if nodes.copies is None else taken | (nodes.copies > 0)  # pods of one shape want the same ports
