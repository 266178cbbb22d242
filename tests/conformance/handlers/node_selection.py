"""Area node_selection: choosing among scored nodes, and the nodes of HyperNodes."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from tests.conformance.handlers.scheduler.world import CLOCK
from tests.conformance.operations import Operation, Outcome, one_of, same
from tests.conformance.row_files import Case
from tests.framework.sessions import a_session
from volcano_py.api.meta import ObjectMeta
from volcano_py.api.shard import NodeShard, NodeShardSpec
from volcano_py.conf.arguments import Warn
from volcano_py.conf.schema import PluginConf, SchedulerConf, Where
from volcano_py.framework.contract.extension_points import NodeOrder
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.contract.topology import DomainOrder, DomainView, Part, TierLimits
from volcano_py.framework.placing.node_sets import OTHERS
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.memory import Memory
from volcano_py.model.arrays import Floats
from volcano_py.model.decisions import Bind, Decision
from volcano_py.model.hyper_nodes import HyperNode, HyperNodeTree, NodeMember
from volcano_py.model.objects import NodeRecord
from volcano_py.scheduler import resolve, run_cycle
from volcano_py.snapshot.columns import NodeColumns
from volcano_py.snapshot.domains import NOWHERE, Domains
from volcano_py.testing import a_cluster, a_hyper_node, a_job, a_node, added
from volcano_py.testing.cluster import Object


class GivenScores(Plugin, NodeOrder):
    """Gives nodes the scores in its arguments."""

    name = "given-scores"
    depends_on = DependsOn.NODE_ALONE
    arguments = frozenset({"*"})

    def __init__(self, arguments: Mapping[str, float]) -> None:
        self._scores = arguments

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> Mapping[str, float]:
        return arguments

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        return np.array([self._scores[name] for name in nodes.names])


class GivenDomainScores(Plugin, TierLimits, DomainOrder):
    """Gives HyperNodes the scores in its arguments."""

    name = "given-domain-scores"
    depends_on = DependsOn.NODE_ALONE
    arguments = frozenset({"*"})

    def __init__(self, arguments: Mapping[str, float]) -> None:
        self._scores = arguments

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> Mapping[str, float]:
        return arguments

    def most_domains(self) -> int:
        return len(self._scores)

    def domain_order(self, part: Part, domains: DomainView) -> Floats:
        return np.array([self._scores.get(name, 0.0) for name in domains.domains.names])


def _best_hyper_node(case: Case) -> Outcome:
    """Place a task that needs a HyperNode, where each of those with these scores has one node."""
    scores = {name: float(score) for score, names in case.input.get("scores", {}).items() for name in names}
    limit = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    hyper_nodes = [a_hyper_node(name, 1, [f"node-of-{name}"]) for name in scores]
    nodes = [a_node(f"node-of-{name}") for name in scores]
    node = _placed(GivenDomainScores, scores, *nodes, *hyper_nodes, a_job("j", cpu=1, group_spec=limit))
    name = None if node is None else node.removeprefix("node-of-")
    return {"anyOf": name, "score": 0.0 if name is None else scores[name]}


def _one_of_or_none(expected: list[str], actual: str | None, _: Mapping[str, Any]) -> None:
    assert actual in (expected or [None])


def _best_node(case: Case) -> Outcome:
    """Place a task that fits everywhere on nodes with these scores."""
    scores = {node: float(score) for score, nodes in case.input.get("scores", {}).items() for node in nodes}
    node = _placed(GivenScores, scores, *(a_node(name) for name in scores), a_job("j", cpu=1))
    return {"anyOf": node, "score": scores[node] if node is not None else 0.0}


def _placed(plugin: type[Plugin], arguments: Mapping[str, float], *objects: Object) -> str | None:
    """Return the node of the only task after a cycle with this plugin alone, None if it waits."""
    here = Where("row", 1)
    tiers = ((PluginConf(plugin.name, here, arguments=arguments),),)
    policy = resolve(SchedulerConf("row", ("allocate",), here, tiers), {plugin.name: plugin})
    binds: list[Bind] = []

    def take(batch: tuple[Decision, ...]) -> None:
        binds.extend(decision for decision in batch if isinstance(decision, Bind))

    run_cycle(a_cluster(*objects).snapshot(), policy, CLOCK, 0, Memory(), take)
    return binds[0].node if binds else None


def _same_nodes(expected: list[str] | None, actual: list[str] | None, _: Mapping[str, Any]) -> None:
    assert sorted(actual or ()) == sorted(expected or ())


def _split_by_shard(case: Case) -> Outcome:
    """Return how a session groups its nodes; without a known shard they are one group."""
    names, mode, ours = case.input["nodes"], case.input["mode"], case.input["nodesInShard"]
    cluster = a_cluster(*(a_node(name) for name in names))
    if mode in ("hard", "soft") and ours is not None:
        cluster.use_shard("ours", strict=mode == "hard")
        added(cluster, NodeShard(ObjectMeta(name="ours"), NodeShardSpec(ours)))
    ssn = a_session(cluster.snapshot())
    found: dict[str, list[str] | None] = {"inShard": None, "inOtherShard": None}
    for one in ssn.placement.node_sets.sets:
        mask = np.ones(len(ssn.state.nodes), dtype=bool) if one.mask is None else one.mask
        names_in_it = [ssn.state.nodes.names[row] for row in np.flatnonzero(mask)]
        found["inOtherShard" if one.name == OTHERS else "inShard"] = names_in_it
    return found


def _domains(hyper_nodes: Mapping[str, list[str]], nodes: Iterable[str], tiers: Mapping[str, int]) -> Domains:
    """Return the domains of HyperNodes that name their nodes; those without a tier are left out."""
    tree = HyperNodeTree(
        HyperNode(name, tier, nodes=tuple(NodeMember(name=node) for node in hyper_nodes.get(name, ())))
        for name, tier in tiers.items()
    )
    return Domains(tree, [NodeRecord(name) for name in sorted(set(nodes))])


def _real_nodes(case: Case) -> Outcome:
    hyper_nodes, names = case.input.get("hyperNodes", {}), sorted(case.input.get("nodes", ()))
    domains = _domains(hyper_nodes, names, dict.fromkeys(hyper_nodes, 1))
    return {"realNodes": {name: [names[row] for row in domains.rows(name)] for name in hyper_nodes}}


def _tasks_in_hyper_node(case: Case) -> Outcome:
    hyper_nodes, tasks = case.input["hyperNodes"], case.input.get("tasks", {})
    names = sorted({*tasks.values(), *(node for nodes in hyper_nodes.values() for node in nodes)})
    domains = _domains(hyper_nodes, names, dict.fromkeys(hyper_nodes, 1))
    counts = domains.counts(np.array([names.index(node) for node in tasks.values()], dtype=np.intp))
    return {"tasks": int(counts[domains.number[case.input["hyperNode"]]])}


def _hyper_node_of_node(case: Case) -> Outcome:
    """Ask for the leaf of a node in a tree of the listed tiers."""
    hyper_nodes, node = case.input.get("hyperNodes", {}), case.input["node"]
    tiers = {
        name: tier for tier in case.input.get("tiers", ()) for name in case.input.get("byTier", {}).get(str(tier), ())
    }
    names = sorted({node, *(one for nodes in hyper_nodes.values() for one in nodes)})
    domains = _domains(hyper_nodes, names, tiers)
    leaf = int(domains.leaf[names.index(node)])
    return {"hyperNode": "" if leaf == NOWHERE else domains.names[leaf]}


def _same_members(expected: Mapping[str, list[str]], actual: Mapping[str, list[str]], _: Mapping[str, Any]) -> None:
    assert {name: sorted(nodes) for name, nodes in actual.items()} == {
        name: sorted(nodes) for name, nodes in expected.items()
    }


OPERATIONS: Final = {
    "bestNode": Operation(_best_node, {"anyOf": one_of, "score": same}, frozenset({"scores"})),
    "realNodes": Operation(_real_nodes, {"realNodes": _same_members}, frozenset({"hyperNodes", "nodes"})),
    "tasksInHyperNode": Operation(
        _tasks_in_hyper_node, {"tasks": same}, frozenset({"hyperNode", "tasks", "hyperNodes"})
    ),
    "hyperNodeOfNode": Operation(
        _hyper_node_of_node, {"hyperNode": same}, frozenset({"node", "hyperNodes", "tiers", "byTier"})
    ),
    "bestHyperNode": Operation(_best_hyper_node, {"anyOf": _one_of_or_none, "score": same}, frozenset({"scores"})),
    "splitByShard": Operation(
        _split_by_shard,
        {"inShard": _same_nodes, "inOtherShard": _same_nodes},
        frozenset({"mode", "nodes", "nodesInShard"}),
    ),
}
