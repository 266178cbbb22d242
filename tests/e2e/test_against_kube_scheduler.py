"""Predicates and nodeorder agree with the real kube-scheduler on every node: feasibility, reasons and scores.

Both see the same random clusters through a real API server, and the same pods one by one. The judge's configuration
covers Volcano's differences from kube-scheduler. Our differences from both are left out and listed in docs/parity.md: a
pod's own terms with an unsatisfiable namespace selector, and pod-level requests.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pytest

from tests.controlplane.servers import SCHEDULER
from tests.e2e.control_plane import ControlPlane, Options
from tests.e2e.kube_scheduler import FILTERS, NOBODY, REFUSING, WAYS, Judge, Judgement, may_only_look, typed
from tests.e2e.random_clusters import PODS, RUNTIME_CLASS, RandomCluster, create, random_cluster, remove
from tests.e2e.random_pods import NAMESPACES, Wire
from tests.framework.sessions import a_session
from volcano_py.api.apps import ReplicaSet, StatefulSet
from volcano_py.api.core import Namespace, Node, Pod, ReplicationController, Service
from volcano_py.cache.cluster import ClusterCache
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import TaskInfo
from volcano_py.model.resources import PODS_ROW
from volcano_py.plugins.nodeorder import NodeOrderArgs, NodeOrdering
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.predicates.plugin import PredicatesArgs
from volcano_py.testing import a_cluster, added, deleted

SEEDS: Final = (5, 8, 11, 305)  # those that found most of the faults inserted in a trial, or one in our code
N_JUDGED: Final = 25
LISTS: Final = {
    Namespace: "/api/v1/namespaces",
    Service: "/api/v1/services",
    ReplicationController: "/api/v1/replicationcontrollers",
    ReplicaSet: "/apis/apps/v1/replicasets",
    StatefulSet: "/apis/apps/v1/statefulsets",
    Node: "/api/v1/nodes",
    Pod: "/api/v1/pods",
}
WEIGHTS: Final = {
    "NodeResourcesFit": "least_allocated",
    "NodeResourcesBalancedAllocation": "balanced_allocation",
    "NodeAffinity": "node_affinity",
    "TaintToleration": "taint_toleration",
    "InterPodAffinity": "pod_affinity",
    "PodTopologySpread": "pod_topology_spread",
    "ImageLocality": "image_locality",
}
SWITCHES: Final = ("taint_toleration", "node_ports", "spread", "pod_affinity", "node_affinity")
FILTER_OF: Final = {
    "node-unschedulable": "NodeUnschedulable",
    "taint-toleration": "TaintToleration",
    "node-ports": "NodePorts",
    "topology-spread-label": "PodTopologySpread",
    "topology-spread": "PodTopologySpread",
    "pod-affinity": "InterPodAffinity",
    "pod-anti-affinity": "InterPodAffinity",
    "existing-anti-affinity": "InterPodAffinity",
    "node-affinity": "NodeAffinity",
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """An API server alone: no controller runs, deletes or changes the pods to judge."""
    plane = ControlPlane(Options(controller_manager=False, kwok=False))
    plane.binaries.require([SCHEDULER])
    with plane:
        may_only_look(plane)
        plane.request("POST", "/apis/node.k8s.io/v1/runtimeclasses", RUNTIME_CLASS)
        for name, labels in NAMESPACES.items():
            plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        yield plane


@pytest.mark.parametrize("seed", SEEDS)
def test_every_node_is_judged_as_by_kube_scheduler(plane: ControlPlane, seed: int) -> None:
    cluster, scored = random_cluster(seed, N_JUDGED), 0
    create(plane, cluster)
    try:
        ours = _OurJudge(plane)
        with Judge(plane) as judge:
            for pod, theirs in _judged(plane, judge, cluster):
                assert ours.says(pod) == _told(pod, theirs), f"{pod['metadata']['name']} of seed {seed}: {pod['spec']}"
                scored += len(theirs["score"].feasible) > 1
    finally:
        remove(plane)
    assert scored > N_JUDGED // 3, "too few pods had a choice for the scores to mean much"


def _judged(plane: ControlPlane, judge: Judge, cluster: RandomCluster) -> Iterator[tuple[Wire, dict[str, Judgement]]]:
    for pod in cluster.judged:
        path, name = PODS.format(pod["metadata"]["namespace"]), pod["metadata"]["name"]
        judgements: dict[str, Judgement] = {}
        for way in WAYS:
            wire = {
                "metadata": pod["metadata"] | {"name": f"{name}-{way}"},
                "spec": pod["spec"] | {"schedulerName": way},
            }
            made = plane.request("POST", path, wire)
            judgements[way] = judge.judgement(f"{pod['metadata']['namespace']}/{name}-{way}")
        yield made, judgements


def _told(pod: Wire, theirs: dict[str, Judgement]) -> dict[str, Any]:
    """Return the comparable part of kube-scheduler's judgement."""
    scores, feasible = theirs["score"].scores, theirs["score"].feasible
    told: dict[str, Any] = {way: theirs[way].refusals for way in REFUSING} | {"feasible": feasible}
    if not feasible:
        told["score"] = theirs["score"].refusals
    if len(feasible) > 1:  # a scorer that gives no scores is not in the log
        nothing = dict.fromkeys(feasible, 0)
        told |= {scorer: scores.get(scorer, nothing) for scorer in WEIGHTS}
        told["most"] = theirs["most"].scores["NodeResourcesFit"]
        if "resources" in pod["spec"]:
            del told["NodeResourcesFit"], told["most"]
    return told


class _OurJudge:
    """This scheduler's judgement of the same pods."""

    def __init__(self, plane: ControlPlane) -> None:
        objects = [typed(one, kind) for kind, path in LISTS.items() for one in plane.request("GET", path)["items"]]
        self._cache: ClusterCache = a_cluster(*objects)

    def says(self, wire: Wire) -> dict[str, Any]:
        pod = typed(wire | {"spec": wire["spec"] | {"schedulerName": "volcano"}}, Pod)
        added(self._cache, pod)
        by_filter = self._by_filter(pod)
        said: dict[str, Any] = {way: _first(by_filter, filters, NOBODY) for way, filters in REFUSING.items()}
        scores = {scorer: self._scores(pod, weight) for scorer, weight in WEIGHTS.items()}
        most = self._scores(pod, "most_allocated")
        said["feasible"] = set(most)
        if not most:
            said["score"] = _first(by_filter, FILTERS, "")
        if len(most) > 1:
            said |= scores | {"most": most}
            if "resources" in wire["spec"]:
                del said["NodeResourcesFit"], said["most"]
        deleted(self._cache, pod)
        return said

    def _scores(self, pod: Pod, weight: str) -> dict[str, int]:
        ssn, task = self._open(pod, NodeOrderArgs.only(**{weight: 1}), Predicates())
        ranked = ssn.placement.rank(task).ranked
        return {ssn.state.nodes.names[row]: int(ranked[row]) for row in np.flatnonzero(ranked > -np.inf)}

    def _by_filter(self, pod: Pod) -> dict[str, dict[str, set[str]]]:
        """Return the reasons by node and filter; each filter runs alone, since the first refusal may hide others."""
        said: dict[str, dict[str, set[str]]] = {}
        for only in SWITCHES:
            plugin = Predicates(PredicatesArgs(**{switch: switch == only for switch in SWITCHES}))
            ssn, task = self._open(pod, NodeOrderArgs.only(), plugin)
            refused = plugin.refusals(task, ssn.state.nodes)
            for row, name in enumerate(ssn.state.nodes.names):
                verdict = int(ssn.hooks.nodes.static_verdicts(task)[row])
                reasons = [plugin.reasons[number] for number in np.flatnonzero(refused[:, row])]
                node = said.setdefault(name, defaultdict(set))
                for reason in [*reasons, *([ssn.hooks.nodes.reason(verdict)] if verdict else [])]:
                    if reason.code in FILTER_OF:
                        node[FILTER_OF[reason.code]].add(reason.text)
        for row, name in enumerate(ssn.state.nodes.names):
            lacking = np.flatnonzero((task.request > ssn.state.nodes.idle[:, row]) & (task.request > 0))
            said[name]["NodeResourcesFit"] = {
                "Too many pods" if number == PODS_ROW else f"Insufficient {ssn.state.resources.names[number]}"
                for number in lacking.tolist()
            }
        return said

    def _open(self, pod: Pod, weights: NodeOrderArgs, filters: Predicates) -> tuple[Session, TaskInfo]:
        ssn = a_session(self._cache.snapshot(), NodeOrdering(weights), filters)
        uid = pod.metadata.uid
        row = next(
            row for row, record in enumerate(ssn.state.tasks.records) if record is not None and record.uid == uid
        )
        return ssn, ssn.state.task_of(int(ssn.state.tasks.shape[row]))


def _first(said: dict[str, dict[str, set[str]]], filters: tuple[str, ...], otherwise: str) -> Counter[str]:
    """Return the number of nodes per reason, counting only the first filter that refuses."""
    counts = Counter[str]()
    for node in said.values():
        asked = filters[:-1] if otherwise else filters  # the filter that every node fails is NodeAffinity
        counts.update(next((node[each] for each in asked if node[each]), {otherwise}))
    return counts
