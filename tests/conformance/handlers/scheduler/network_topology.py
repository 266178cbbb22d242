"""Area network-topology: the plugin's scores of nodes and HyperNodes, its arguments, and which HyperNodes are tried."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest

from tests.conformance.handlers.scheduler.node_order import is_tolerance
from tests.conformance.handlers.scheduler.world import INPUTS, open_session
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api import keys
from volcano_py.framework.contract import combine
from volcano_py.framework.contract.topology import DomainOrder, DomainView, NearOrder, Part
from volcano_py.framework.placing import domain_search
from volcano_py.framework.placing.domain_room import has_room
from volcano_py.framework.session import Session
from volcano_py.framework.state.domain_sums import DomainSums
from volcano_py.model.arrays import Floats
from volcano_py.model.hyper_nodes import HyperNode, HyperNodeTree, NodeMember
from volcano_py.model.objects import NodeRecord
from volcano_py.model.resources import ResourceRegistry
from volcano_py.model.statuses import ALLOCATED_STATUSES, TaskStatus, members
from volcano_py.model.sub_groups import TierLimit
from volcano_py.plugins.network_topology_aware import NetworkTopologyAware
from volcano_py.snapshot.domains import Domains

_ALLOCATED: Final = "volcano.sh/job-allocated-hypernode"
_SUB_JOB: Final = "task1-worker"
_CPU, _MEMORY = 4000.0, 8.0 * 2**30


def _part(ssn: Session) -> Part:
    """Return the sub-group of the only pending tasks, or the whole job."""
    pending = np.flatnonzero(ssn.state.tasks.status == TaskStatus.PENDING)
    (row,) = set(ssn.state.tasks.job[pending].tolist())
    job, groups = ssn.state.job(row), ssn.state.sub_groups(row)
    request = ssn.state.classes.requests[:, ssn.state.tasks.shape[pending]].sum(axis=1)
    if groups is None:
        return Part(job, str(job.key), ssn.state.rows_of_job(row), request)
    (group,) = {groups.number_of[task] for task in pending.tolist()}
    return Part(job, groups.groups[group].id, groups.members(group), request)


def _nodes_of(ssn: Session, part: Part) -> Any:
    return ssn.state.tasks.node[part.tasks[members(ALLOCATED_STATUSES)[ssn.state.tasks.status[part.tasks]]]]


def _node_scores(case: Case) -> Outcome:
    ssn = open_session(case)
    state, part = ssn.state, _part(ssn)
    (written,) = case.input["podGroups"]
    begun = state.domains.number.get(written["metadata"].get("annotations", {}).get(_ALLOCATED, ""))
    task = state.task_of(int(state.tasks.shape[np.flatnonzero(state.tasks.status == TaskStatus.PENDING)[0]]))
    scores = combine.total(ssn.hooks.nodes.node_orders, len(state.nodes), task, state.nodes)
    by_leaf = ssn.hooks.nodes.leaf_order(task)
    scores = scores if by_leaf is None else scores + by_leaf
    if begun is not None:
        counts = np.bincount(state.domains.innermost[_nodes_of(ssn, part)], minlength=len(state.domains))
        points = ssn.hooks.points(NearOrder, "near_order")
        scored = case.input.get("scoreNodes") or state.nodes.names
        group = np.isin(state.nodes.names, list(scored))
        scores = scores + combine.total(points, len(state.nodes), part, state.domains, begun, counts, group)
    return {"nodeScores": dict(zip(state.nodes.names, scores.tolist(), strict=True)), "tolerance": None}


def _hyper_node_scores(case: Case) -> Outcome:
    ssn = open_session(case)
    part = _part(ssn)
    assert part.name.endswith(f"/{_SUB_JOB}")
    counts = np.bincount(_nodes_of(ssn, part), minlength=len(ssn.state.nodes))
    domains = ssn.state.domains
    view = DomainView(domains, DomainSums(ssn.state), counts)
    scores = combine.total(ssn.hooks.points(DomainOrder, "domain_order"), len(domains), part, view)
    return {"hyperNodeScores": dict(zip(domains.names, scores.tolist(), strict=True)), "tolerance": None}


def _close(expected: Mapping[str, float], actual: Mapping[str, float], expect: Mapping[str, Any]) -> None:
    assert {name: actual[name] for name in expected} == pytest.approx(expected, abs=expect["tolerance"], rel=0)


def _arguments(case: Case) -> Outcome:
    found = NetworkTopologyAware.parse(case.input.get("arguments", {}), lambda _: None)
    weights = dict(found.resource_weights)
    cpu, memory = weights.pop(keys.CPU), weights.pop(keys.MEMORY)
    listed = {"hyperNodeBinPackingResources": weights} if weights else {}
    return {
        "weight": {
            "globalWeight": found.weight,
            "hyperNodeBinPackingCPU": cpu,
            "hyperNodeBinPackingMemory": memory,
            **listed,
        },
        "normalPod": {
            "hyperNodeBinPackingEnable": found.normal_pods,
            "hyperNodeBinPackingFading": found.fading,
        },
    }


def _is_candidate(case: Case) -> Outcome:
    given, resources = case.input, ResourceRegistry()
    racks = [
        HyperNode(f"hn-1-{rack}", 1, nodes=tuple(NodeMember(name=f"n{rack * 10 + node}") for node in range(10)))
        for rack in range(100)
    ]
    tree = HyperNodeTree([*racks, HyperNode("hn-2-0", 2, children=tuple(rack.name for rack in racks))])
    domains = Domains(tree, [NodeRecord(f"n{node}") for node in range(1000)])
    own = resources.vector({keys.CPU: _CPU, keys.MEMORY: _MEMORY})
    allocatable = domains.sums(np.repeat(own[:, None], 1000, axis=1))
    number = domains.number["hn-1-0"]

    def replaced(name: str) -> Floats:
        found = allocatable.copy()
        found[:, number] = _vector(resources, given[name])
        return found

    available = [allocatable] if given["purpose"] == "evict" else [replaced("idle"), replaced("futureIdle")]
    fits = has_room(_vector(resources, given["minResource"]), available)
    limit = TierLimit(given["highestAllowedTier"])
    tried = np.concatenate(domain_search.by_tier(domains, domains.number["hn-2-0"], limit))
    return {"tier1Selected": number in tried[fits[tried]]}


def _vector(resources: ResourceRegistry, amounts: Mapping[str, float]) -> Floats:
    known = {"milliCPU": keys.CPU, "memory": keys.MEMORY}
    return resources.vector({known[name]: float(amount) for name, amount in amounts.items()})


OPERATIONS: Final = {
    "batchNodeOrder": Operation(
        _node_scores,
        {"nodeScores": _close, "tolerance": is_tolerance},
        INPUTS | {"scoreNodes"},
        needs_session=True,
    ),
    "hyperNodeOrder": Operation(
        _hyper_node_scores, {"hyperNodeScores": _close, "tolerance": is_tolerance}, INPUTS, needs_session=True
    ),
    "parseArguments": Operation(_arguments, {"weight": same, "normalPod": same}, frozenset({"arguments"})),
    "gradientFilter": Operation(
        _is_candidate,
        {"tier1Selected": same},
        frozenset({"purpose", "highestAllowedTier", "minResource", "idle", "futureIdle"}),
    ),
}
